"""`dragoman doctor`."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import AsJson, out_option
from dragoman.cli.terminal import say, show, write_file
from dragoman.errors import CheckError, UsageError

if TYPE_CHECKING:
    from dragoman.diagnosis.causes import Cause


def doctor(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN|FILE", help="A run, a file of pairs, or two aligned files.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="With a file: the test pairs, to look for them in the training text.")
    ] = None,
    environment: Annotated[
        bool, typer.Option("--environment", help="Also the machine [default: with nothing else].")
    ] = False,
    out: Annotated[Path | None, out_option("With files: write their pairs there as TSV, as they were read.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say why translations are bad: ranked causes with evidence, estimated cost and remedy.

    Of a run: its training, its vocabulary, its text and what it writes. Of a file: the text. Of neither: the machine.
    The exit code is 4 where something was found.
    """
    from dragoman.diagnosis.machine_checks import examine_environment

    causes = _examine(paths, test, out) if paths else []
    machine = examine_environment() if environment or not paths else []
    if as_json:
        values = {
            "causes": [c.to_dict() for c in causes],
            "environment": [dataclasses.asdict(line) for line in machine],
        }
        show(json.dumps(values, ensure_ascii=False))
    else:
        _show_causes(causes)
        for line in machine:
            show(f"{line.name:<9} {line.found}")
            if line.fault:
                show(f"          fault: {line.fault}")
        if paths and not causes:
            say("nothing found")
    if causes or any(line.fault for line in machine):
        raise typer.Exit(CheckError.exit_code)


def _examine(paths: Sequence[Path], test: Path | None, out: Path | None) -> "list[Cause]":
    """What is found in a run, or in files of pairs."""
    from dragoman.run_directory import CONFIG

    if len(paths) == 1 and (paths[0] / CONFIG).is_file():
        if test is not None:
            raise UsageError("doctor: --test goes with a file; a run has its own validation text")
        if out is not None:
            raise UsageError("doctor: --out goes with files of pairs; a run has its text elsewhere")
        from dragoman.diagnosis.run_checks import examine_run

        return examine_run(paths[0])
    from dragoman.data.pair_formats import read_any
    from dragoman.diagnosis.corpus_checks import examine_text

    found = read_any(paths)
    for remark in found.remarks():
        say(remark)
    if out is not None:
        write_file(out, "".join(f"{source}\t{target}\n" for source, target in found.pairs).encode())
    tested = None if test is None else read_any([test]).pairs
    return examine_text(found.pairs, list(map(str, paths)), tested, found.is_lines_of(paths))


def _show_causes(causes: "Sequence[Cause]") -> None:
    for number, cause in enumerate(causes, start=1):
        show(f"{number}. {cause.name}: {cause.finding}")
        show(f"   evidence  {cause.evidence}")
        show(f"   cost      {cause.cost}")
        show(f"   remedy    {cause.remedy}")
