"""`dragoman demo` and `dragoman quickstart`: the first things to try."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import (
    AsJson,
    FromLanguage,
    IntoLanguage,
    Overrides,
    both_languages,
    changed,
    in_range,
    out_option,
    whole,
)
from dragoman.cli.terminal import say, show, this_command
from dragoman.config.ranges import MOST_SEED
from dragoman.errors import require_torch
from dragoman.quickstart.corpora import DEFAULT, DemoName


def demo(
    name: Annotated[DemoName, typer.Argument(metavar="PAIR", help="From which language into which.")] = DEFAULT,
    minutes: Annotated[
        float | None,
        typer.Option(parser=in_range(0, 1e6, above=True), help="Minutes of training [default: the recipe's]."),
    ] = None,
    out: Annotated[
        Path | None, out_option("The run's directory [default: runs/demo; runs/demo-en-es and so on].")
    ] = None,
) -> None:
    """Train a translator from English and try it.

    Fetches real sentence pairs, trains for some minutes, scores on sentences held out, translates a few more.
    """
    require_torch("demo")  # before anything is fetched
    from dragoman.quickstart.demo import run_demo

    run_demo(name, out or Path("runs/demo" if name == DEFAULT else f"runs/demo-{name}"), minutes, show)


def quickstart(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="TSV, CSV, XLSX, JSONL, TMX, XLIFF, PO or MO; two aligned files; or a folder."
        ),
    ],
    out: Annotated[Path | None, out_option("The run's directory [default: runs/ and the file's name].")] = None,
    minutes: Annotated[
        float, typer.Option(parser=in_range(0.1, 1e6), help="Minutes for everything, from reading to the report.")
    ] = 30.0,
    source_language: FromLanguage = None,
    target_language: IntoLanguage = None,
    seed: Annotated[
        int, typer.Option(parser=whole(0, MOST_SEED), help="Seed of what is held out, and of the training.")
    ] = 1,
    changes: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Make a translator from your own sentence pairs, and learn what it is good for.

    The text is checked, the model sized to it and to the time, trained, scored, calibrated, quantised. Languages that
    are not named are taken from the files, or detected. The same command goes on with a quickstart that was stopped;
    with more --minutes it goes on with one that is finished.
    """
    wanted = both_languages("quickstart", source_language, target_language)
    first = paths[0]
    out = out or Path("runs") / first.name.removesuffix(".gz").split(".")[0]
    overrides = changed(changes)
    from dragoman.quickstart.pipeline import quickstart as start

    again = this_command()
    ended = start(paths, out, minutes, wanted, seed, overrides, again, say)
    show(json.dumps(ended.values, ensure_ascii=False) if as_json else "\n".join(ended.lines))
