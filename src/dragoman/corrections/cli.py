"""`dragoman corrections`. Heavy imports inside, as in the command line that this is part of."""

import dataclasses
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman import config as configuration
from dragoman.errors import DragomanError, UsageError
from dragoman.options import AsJson, Changes, Language, Minutes, Seed, Steps

File = Annotated[Path, typer.Argument(metavar="FILE", help="What `dragoman serve --corrections FILE` keeps.")]
PairName = Annotated[str, typer.Option("--pair", metavar="en-fr", help="Of these languages.")]


def correction_commands(show: Callable[[str], None]) -> typer.Typer:
    """The group of commands, which `show` their results line by line."""
    app = typer.Typer(help="Corrections made on the page.", no_args_is_help=True, rich_markup_mode=None)

    @app.command("list")
    def list_all(file: File, as_json: AsJson = False) -> None:
        """All of them, oldest first: languages, source, correction, what was corrected."""
        from dragoman.memory import Memory

        for correction in Memory(file, must_exist=True):
            columns = (correction.pair, correction.source, correction.target, correction.machine)
            show(json.dumps(dataclasses.asdict(correction), ensure_ascii=False) if as_json else "\t".join(columns))

    @app.command()
    def export(file: File, pair: PairName) -> None:
        """As sentence pairs, tab-separated, for `dragoman train` or `finetune`."""
        from dragoman.corrections.promotion import of_pair
        from dragoman.memory import Memory

        for correction in of_pair(Memory(file, must_exist=True), pair):
            show(f"{correction.source}\t{correction.target}")

    @app.command()
    def train(
        file: File,
        run: Annotated[Path, typer.Argument(metavar="RUN", help="The run that was corrected.")],
        pair: PairName,
        out: Annotated[Path, typer.Option(help="The new run's directory.")],
        old: Annotated[float, typer.Option(help="Pairs of the old training mixed in for each correction.")] = 1.0,
        steps: Steps = None,
        minutes: Minutes = None,
        seed: Seed = None,
        set_: Changes = None,
        language: Language = None,
        as_json: AsJson = False,
    ) -> None:
        """Teach a copy of the run the corrections.

        Three in ten are held out to measure with. The same command goes on with a training that was stopped.
        """
        flags = {"train.steps": steps, "train.minutes": minutes, "train.seed": seed}
        overrides: list[tuple[str, Any, str]] = [configuration.parse_set(text) for text in set_ or ()]
        overrides += [(key, value, "command line") for key, value in flags.items() if value is not None]
        from dragoman.corrections.promotion import train_on
        from dragoman.memory import Memory

        again = shlex.join(["dragoman", *sys.argv[1:]])
        memory = Memory(file, must_exist=True)
        result = train_on(
            memory, pair, run, out, old=old, overrides=overrides, language=language, again=again, say=_say
        )
        show(json.dumps(result.to_dict(), ensure_ascii=False) if as_json else "\n".join(result.lines()))
        _say(f"if it is better: dragoman corrections promote {shlex.quote(str(run))} {shlex.quote(str(out))}")

    @app.command()
    def promote(
        run: Annotated[Path, typer.Argument(metavar="RUN", help="The run that was corrected.")],
        new: Annotated[Path, typer.Argument(metavar="NEW", help="What `corrections train` made of it.")],
        source: Annotated[
            Path | None, typer.Option(help="A test that must not get worse, one sentence a line.")
        ] = None,
        reference: Annotated[list[Path] | None, typer.Option(help="Its references.")] = None,
        language: Language = None,
        as_json: AsJson = False,
    ) -> None:
        """Let the new model take the run's place, if it is better.

        Significantly better on the corrections held out, and not significantly worse on what the run was validated
        with, or on the test that is given. Else nothing changes, and the exit code is 1.
        """
        from dragoman.corpus import read_lines
        from dragoman.corrections.promotion import BEFORE
        from dragoman.corrections.promotion import promote as put_in_place
        from dragoman.evaluate import read_references

        if (source is None) != (not reference):
            raise UsageError("corrections promote: --source and --reference go together; give both or none")
        test = None if source is None else (list(read_lines(source)), read_references(reference or []))
        verdict = put_in_place(run, new, test, language)
        show(json.dumps(verdict.to_dict()) if as_json else "\n".join(verdict.reasons))
        if not verdict.promoted:
            raise DragomanError(f"{new} is not promoted; {run} stays as it was")
        _say(f"{run} now translates with the weights of {new}; the old ones are in {run / BEFORE}")
        if (run / "confidence.json").exists():
            _say(f"its confidences were of the old weights: dragoman calibrate {run} --source FILE --reference FILE")

    return app


def _say(line: str) -> None:
    print(line, file=sys.stderr)
