"""`dragoman quickstart`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman import config as configuration
from dragoman.cli.options import AsJson, Changes, in_range, whole
from dragoman.cli.terminal import say, show, this_command
from dragoman.config_ranges import MOST_SEED
from dragoman.data.language_codes import checked_code
from dragoman.errors import UsageError


def quickstart(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="TSV, CSV, XLSX, JSONL, TMX, XLIFF, PO or MO; two aligned files; or a folder."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="The run's directory [default: runs/ and the file's name].")] = None,
    minutes: Annotated[
        float, typer.Option(parser=in_range(0.1, 1e6), help="For everything, from reading to the report.")
    ] = 30.0,
    source_language: Annotated[
        str | None, typer.Option(help="Its code [default: as the files say, or detected].")
    ] = None,
    target_language: Annotated[
        str | None, typer.Option(help="Its code [default: as the files say, or detected].")
    ] = None,
    seed: Annotated[
        int, typer.Option(parser=whole(0, MOST_SEED), help="Decides what is held out, and the training.")
    ] = 1,
    set_: Changes = None,
    as_json: AsJson = False,
) -> None:
    """From your own sentence pairs to a translator, and what it is good for.

    The text is checked, the model sized to it and to the time, trained, scored, calibrated, quantised. The same command
    goes on with a quickstart that was stopped; with more --minutes it goes on with one that is finished.
    """
    if (source_language is None) != (target_language is None):
        raise UsageError("quickstart: --source-language and --target-language go together; give both")
    wanted = None
    if source_language is not None and target_language is not None:
        wanted = (checked_code(source_language), checked_code(target_language))
    first = paths[0]
    out = out or Path("runs") / first.name.removesuffix(".gz").split(".")[0]
    changes = [configuration.parse_set(text) for text in set_ or ()]
    from dragoman.quickstart.pipeline import quickstart as start

    again = this_command()
    ended = start(paths, out, minutes, wanted, seed, changes, again, say)
    show(json.dumps(ended.values, ensure_ascii=False) if as_json else "\n".join(ended.lines))
