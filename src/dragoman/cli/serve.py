"""`dragoman serve`. Heavy imports inside, as in the command line that this is part of."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.options import EngineOptions, in_range


@dataclass(frozen=True)
class LimitOptions:
    """How much one request, one client and all of them together may ask for."""

    body_limit: Annotated[int, typer.Option(help="Most bytes of a request.")] = 1 << 20
    character_limit: Annotated[int, typer.Option(help="Most characters of a text.")] = 5000
    batch_limit: Annotated[int, typer.Option(help="Most texts of a request.")] = 64
    sentence_limit: Annotated[int, typer.Option(help="Most sentences of a request.")] = 20_000
    alternatives_limit: Annotated[int, typer.Option(help="Most alternatives of a text.")] = 8
    rate_limit: Annotated[int, typer.Option(help="Most texts a minute from one address; 0: no limit.")] = 1200
    queue_limit: Annotated[
        int, typer.Option(help="Most sentences that wait; a request beyond that is answered 503.")
    ] = 1024
    workers: Annotated[int, typer.Option(help="Batches translated at the same time.")] = 2
    batch_tokens: Annotated[int, typer.Option(help="Source tokens translated together.")] = 2048
    batch_wait: Annotated[
        float,
        typer.Option(
            parser=in_range(0, 60_000), help="Milliseconds that a sentence waits for others, to be translated together."
        ),
    ] = 2.0
    cache_characters: Annotated[int, typer.Option(help="Translations kept, in characters; 0: none.")] = 4_000_000

    def values(self) -> dict[str, Any]:
        """By the names of the service's settings, whose times are in seconds."""
        return vars(self) | {"batch_wait": self.batch_wait / 1000}


@dataclass(frozen=True)
class CompareOptions:
    """What the page's Compare shows."""

    results: Annotated[
        list[Path] | None,
        typer.Option(help="A file or directory of results to open in Compare; several times for several."),
    ] = None
    source: Annotated[Path | None, typer.Option(help="A test set for Compare, in place of validation pairs.")] = None
    reference: Annotated[
        list[Path] | None, typer.Option(help="Its reference translations; several times for several of them.")
    ] = None


@dataclass(frozen=True)
class NetworkOptions:
    """Where the service listens, and who may ask."""

    host: Annotated[str, typer.Option(help="Address to listen at; any but this machine's own needs a key.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, typer.Option(help="Port; 0 takes any that is free.")] = 5000
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="A further host name that requests may use; several times for several.")
    ] = None
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="A site or browser extension whose pages may use the service, https://my.example or "
            "moz-extension://*; * for every page; several times for several.",
        ),
    ] = None
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NETWORK",
            help="A proxy, or its network, that may say who the client is, 172.16.0.0/12; several times for several.",
        ),
    ] = None
    api_key_file: Annotated[Path | None, typer.Option(help="A file of API keys, one a line.")] = None
    without_key: Annotated[bool, typer.Option("--without-key", help="Let a whole network in without a key.")] = False

    def values(self) -> dict[str, Any]:
        """By the names of the service's settings."""
        from dragoman.serve.settings import read_keys

        return {
            "host": self.host,
            "port": self.port,
            "allowed_hosts": tuple(name.lower() for name in self.allowed_host or ()),
            "allowed_origins": tuple(self.allowed_origin or ()),
            "trusted_proxies": tuple(self.trusted_proxy or ()),
            "api_keys": read_keys(self.api_key_file),
            "without_key": self.without_key,
        }


def serve(
    network: NetworkOptions,
    limits: LimitOptions,
    compare: CompareOptions,
    engine: EngineOptions,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN",
            help="Run directories, a parser's too; of two for one language pair the first translates.",
        ),
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(
            metavar="en-de=RUN",
            help="A run and its two languages, en-*=RUN for all of its targets; several times for several.",
        ),
    ] = None,
    source_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="The language of the sources, of a RUN that does not say,")
    ] = None,
    target_language: Annotated[str | None, typer.Option(metavar="CODE", help="and of its translations.")] = None,
    pivot: Annotated[
        bool,
        typer.Option("--pivot/--no-pivot", help="Translate through a third language where no run does it directly."),
    ] = True,
    metrics: Annotated[bool, typer.Option("--metrics", help="Counts and times for Prometheus at /metrics.")] = False,
    corrections: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep corrections made on the page here, and use them.")
    ] = None,
) -> None:
    """Serve runs over HTTP: a page to translate and to parse on, and an API.

    Speaks the APIs of LibreTranslate, DeepL and OPUS-CAT, and its own under /api/v1. Nothing is loaded from the
    network.

    What is given here may stand in the environment instead: DRAGOMAN_RUNS=/model, DRAGOMAN_PORT=80,
    DRAGOMAN_ALLOWED_HOST="one.example two.example", DRAGOMAN_PIVOT=no. The command line counts first, then the
    environment, then the default. Several values stand with spaces between them, several RUNs and files with colons.
    """
    from dragoman.serve.pairs import ServedPair, is_parser, pairs_to_serve, target_for
    from dragoman.serve.results import check_results
    from dragoman.serve.settings import Settings

    parsers = [run for run in dict.fromkeys(runs or ()) if is_parser(run)]
    translating = [run for run in runs or () if run not in parsers]
    # With a parser alone there is nothing to be said of languages.
    asked = bool(translating or pair or source_language or target_language or not parsers)
    pairs = pairs_to_serve(translating, pair or (), source_language, target_language) if asked else []
    settings = Settings(
        **network.values(),
        **limits.values(),
        metrics=metrics,
        pivot=pivot,
        corrections=corrections,
    )
    check_results(compare.results or ())
    from dragoman.evaluation.compare import read_test_set
    from dragoman.serve.app import run
    from dragoman.serve.service import Service, steady
    from dragoman.translation.translator import Translator

    def load(served: ServedPair) -> Translator:
        return steady(Translator.load(served.run, **vars(engine), to=target_for(served), source=served.source))

    test_set = read_test_set("serve", compare.source, compare.reference or ())
    run(
        Service(pairs, settings, load, compare.results or (), test_set, parsers),
        lambda line: print(line, file=sys.stderr),
    )
