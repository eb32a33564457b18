"""`dragoman quickstart`."""

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from dragoman import config as configuration
from dragoman.errors import UsageError
from dragoman.language_codes import checked_code
from dragoman.options import AsJson, Changes
from dragoman.terminal import say, show, this_command


def quickstart(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="TSV, CSV, JSONL, TMX, XLIFF, PO or MO; two aligned files; or a folder."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="The run's directory [default: runs/ and the file's name].")] = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="For everything, from reading to the report.")] = 30.0,
    source_language: Annotated[
        str | None, typer.Option(help="Its code [default: as the files say, or detected].")
    ] = None,
    target_language: Annotated[
        str | None, typer.Option(help="Its code [default: as the files say, or detected].")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides what is held out, and the training.")] = 1,
    set_: Changes = None,
    as_json: AsJson = False,
) -> None:
    """From your own sentence pairs to a translator: checked, sized to data and time, trained, scored, quantised.

    The same command goes on with a quickstart that was stopped.
    """
    if (source_language is None) != (target_language is None):
        raise UsageError("quickstart: --source-language and --target-language go together; give both")
    wanted = None
    if source_language is not None and target_language is not None:
        wanted = (checked_code(source_language), checked_code(target_language))
    first = paths[0]
    out = out or Path("runs") / first.name.removesuffix(".gz").split(".")[0]
    changes = [configuration.parse_set(text) for text in set_ or ()]
    from dragoman.quickstart.run import quickstart as start

    again = this_command()
    outcome = start(paths, out, minutes, wanted, seed, changes, again, say)
    if as_json:
        values = {
            "run": str(out),
            "data": outcome.data.about,
            "plan": dataclasses.asdict(outcome.plan),
            "actual": outcome.actual,
            "scores": outcome.scores.to_dict(),
            "copied_bleu": outcome.copied,
            "penalties": outcome.penalties,
            "quantised": outcome.verdict.to_dict(),
        }
        show(json.dumps(values, ensure_ascii=False))
        return
    plan, actual = outcome.plan, outcome.actual
    show(f"On {outcome.scores.sentences:,} test sentences, none of which is in the training text:")
    show(f"  {outcome.scores.bleu.line()}\n  {outcome.scores.chrf.line()}")
    for source, output, _ in outcome.samples[:3]:
        show(f"  {source}\n    {output}")
    show(
        f"Estimated {plan.minutes:.1f} minutes of training for {plan.steps:,} steps; it took {actual['minutes']:.1f} "
        f"for {actual['steps']:,}, {actual['all_minutes']:.1f} with all else."
    )
    named = shlex.quote(str(out))
    show(f'{out / "report.html"} has the rest. Now:\n  echo "..." | dragoman translate {named}')
    serve = named if outcome.data.languages else f"--pair xx-yy={named}"
    show(f"  dragoman serve {serve}")
