"""`dragoman stress`."""

import difflib
import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import (
    AsJson,
    EngineOption,
    Protect,
    RunPath,
    ScoredLanguage,
    SourceLanguage,
    WholeLines,
    language_asked_for,
    whole,
)
from dragoman.cli.terminal import say, show
from dragoman.config.ranges import MOST_SEED
from dragoman.errors import CheckError, DataError, UsageError


def stress(
    run: RunPath,
    pairs: Annotated[
        Path | None, typer.Option(help="Sentence pairs, of any format [default: its validation text].")
    ] = None,
    sentences: Annotated[int, typer.Option(parser=whole(3, 10**9), help="The most pairs to use.")] = 200,
    least: Annotated[
        list[str] | None, typer.Option("--least", metavar="TEST=VALUE", help='Another limit: --least "typos=0.6".')
    ] = None,
    source_language: SourceLanguage = None,
    target_language: ScoredLanguage = None,
    seed: Annotated[int, typer.Option(parser=whole(0, MOST_SEED), help="Seed of all that is drawn.")] = 1,
    engine: EngineOption = "auto",
    protect: Protect = True,
    whole_lines: WholeLines = False,
    as_json: AsJson = False,
) -> None:
    """Test a run with capitals, typos, single words, long text, numbers, addresses, negation, emoji and empty lines.

    Prints a table beside BLEU. The exit code is 4 where a test is below its limit, so that it can guard a release.
    A run translates as `dragoman translate` does; `--whole-lines --no-protect` tests the bare model.
    """
    from dragoman.data.dataset import validation_pairs
    from dragoman.data.language_codes import languages_of
    from dragoman.data.pair_formats import read_any
    from dragoman.diagnosis.stress import LEAST
    from dragoman.diagnosis.stress import stress as run_suite
    from dragoman.run_directory import RunDirectory
    from dragoman.translation.translator import Translator

    limits = {**LEAST, **dict(_limit(text, list(LEAST)) for text in least or ())}
    directory = RunDirectory.open(run)
    translator = Translator.load(
        run, engine=engine, to=language_asked_for(run, target_language), source=source_language
    )
    text = validation_pairs(directory.path) if pairs is None else read_any([pairs]).pairs
    if pairs is None and translator.tag:  # its sources carry the tags of several languages; the tests change plain text
        text = [(s.removeprefix(translator.tag).strip(), t) for s, t in text if s.startswith(translator.tag)]
    if pairs is not None and len(text) < 3:
        raise DataError(f"{pairs}: {len(text)} pairs; at least 3 are needed to test with")
    if len(text) < 3:
        raise DataError(f"{run}: has no validation text (data/) to test with; give --pairs FILE")
    if source_language and target_language:
        languages: tuple[str, str] | None = (source_language, target_language)
    else:
        from dragoman.data.language_id import detect_pair

        languages = languages_of(directory) or detect_pair(text)
    every = max(1, len(text) // sentences)

    def translate(lines: "list[str]") -> list[str]:
        stream = translator.translate_stream(
            lines, scores=False, warn=lambda _: None, whole=whole_lines, protect=protect
        )
        return [translation.text for translation in stream]

    report = run_suite(text[::every][:sentences], translate, languages, limits, seed)  # type: ignore[arg-type]
    if as_json:
        tested = {"run": str(run), "languages": languages, "protect": protect, "whole_lines": whole_lines}
        show(json.dumps({**tested, **report.to_dict()}, ensure_ascii=False))
    else:
        show("\n".join(report.lines()))
    failed = [row.name for row in report.rows if not row.passed]
    if failed:
        say(f"below the limit: {', '.join(failed)}")
        raise typer.Exit(CheckError.exit_code)


def _limit(text: str, known: list[str]) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    try:
        limit = float(value)
    except ValueError:
        limit = -1.0
    if not equals or name not in known or not 0 <= limit <= 1:
        close = difflib.get_close_matches(name, known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close and close[0] != name else ""
        raise UsageError(f"stress: --least {text}; write it as typos=0.6, with one of: {', '.join(known)}{meant}")
    return name, limit
