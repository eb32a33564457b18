"""`dragoman lab`: list, run, report. Heavy imports inside, as in the command line that this is part of."""

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dragoman.cli.options import AsJson, out_option, whole
from dragoman.cli.registration import command, group
from dragoman.cli.terminal import say, show
from dragoman.errors import DragomanError, UsageError

if TYPE_CHECKING:
    from dragoman.lab.result import Finding

SMOKE = "smoke"  # where in --out smoke runs are kept
MULTI30K = Path("../shared/data/multi30k")  # where the recipes look, too

Out = Annotated[Path, out_option("Measured arms, results and the report.")]
Names = Annotated[list[str], typer.Argument(metavar="EXPERIMENT", help="Names from `lab list`, or all.")]


lab = group("Test the paper's claims by experiments.")


@command(lab, "list")
def list_(out: Out = Path("runs/lab"), as_json: AsJson = False) -> None:
    """List the experiments, and what was found."""
    from dragoman.lab.catalogue import NAMES, describe

    found: list[dict[str, Any]] = [
        {"experiment": name, "title": describe(name).title, "found": _found(out, name)} for name in NAMES
    ]
    if as_json:
        show(json.dumps(found, ensure_ascii=False))
        return
    for one in found:
        show(f"{one['experiment']:<11} {one['title']}\n            {one['found']}")


@command(lab)
def run(
    names: Names,
    seeds: Annotated[
        int | None, typer.Option(parser=whole(1, 1000), help="Seeds of every arm [default: each experiment's own].")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Stop before the arm that would not fit, for example 3h or 90m.")
    ] = None,
    size: Annotated[
        Literal["small", "smoke"],
        typer.Option(help="The size of the models; smoke: takes seconds, to see that it works."),
    ] = "small",
    data: Annotated[Path, typer.Option(help="The directory of Multi30k.")] = MULTI30K,
    out: Out = Path("runs/lab"),
    work: Annotated[Path | None, typer.Option(help="Trained models, large [default: models/ in --out].")] = None,
    as_json: AsJson = False,
) -> None:
    """Run experiments; the same command goes on after a stop.

    What was measured is kept and never measured again, whichever experiment asks for it.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else torch's profiler reports its every start and stop
    from dragoman.files import write_atomically
    from dragoman.lab import catalogue
    from dragoman.lab.queue import LabSettings, OutOfBudget, Queue

    selected = catalogue.chosen(names)
    if size == "smoke":  # apart: its times say nothing of others', and its results are none
        out = out / SMOKE
        say(f"a smoke run: kept in {out}, and no verdict")
    queue = Queue(out, None if budget is None else parse_duration(budget))
    settings = LabSettings(queue, work or out / "models", data, size, seeds)
    queue.plan([arm for name in selected for arm in catalogue.load(name).arms(settings)])
    say(queue.left())
    for name in selected:
        try:
            result = catalogue.run(name, settings)
        except OutOfBudget as reason:
            # Others may still be whole: what they need may be there already, or be quicker to measure.
            say(f"{name}: the budget is used up; {reason}")
            result = catalogue.conclude(name, settings)
        except KeyboardInterrupt:
            say("stopped; what is measured is kept, the same command goes on")
            raise
        result = result.marked()
        write_atomically(out / "results" / f"{name}.json", result.to_json().encode())
        if as_json:
            show(json.dumps({"experiment": name, "headline": result.headline}, ensure_ascii=False))
        else:
            show(f"{name}: {result.headline}")
            for finding in result.findings:
                show(f"  {finding.verdict}: {finding.claim} {_told(finding)}")


@command(lab)
def report(out: Out = Path("runs/lab"), as_json: AsJson = False) -> None:
    """Write report.html and report.md from the results that are there."""
    from dragoman.lab.report import write_report

    written = list(map(str, write_report(out)))
    show(json.dumps(written) if as_json else "\n".join(written))


def parse_duration(text: str) -> float:
    """3h, 90m, 1h30m or 45s, in seconds."""
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text)
    if not text or found is None or len(text) > 30:
        raise UsageError(f"lab run: --budget {text}; give hours, minutes or seconds, for example 3h, 90m or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return 3600 * hours + 60 * minutes + seconds


def _told(finding: "Finding") -> str:
    from dragoman.lab.report import effect_of

    return "; ".join(part for part in (effect_of(finding), finding.because) if part)


def _found(out: Path, name: str) -> str:
    from dragoman.lab.result import ExperimentResult

    path = out / "results" / f"{name}.json"
    unmeasured = "smoke run" if (out / SMOKE / "results" / path.name).exists() else "not run"
    try:
        return ExperimentResult.read(path).headline if path.exists() else unmeasured
    except DragomanError:
        return "damaged"
