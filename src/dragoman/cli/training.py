"""`dragoman train`, `average` and `verify`. Heavy imports inside, as in the whole command line."""

import dataclasses
import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman import config as configuration
from dragoman.cli.options import (
    AsJson,
    FromLanguage,
    IntoLanguage,
    RunOut,
    RunPath,
    TextOptions,
    TrainingOptions,
    both_languages,
    whole,
)
from dragoman.cli.terminal import say, show, this_command
from dragoman.config import TEXT_CHANGES, CorpusConfig, recipes
from dragoman.errors import CheckError, UsageError

if TYPE_CHECKING:
    from dragoman.run_directory import RunDirectory


def train(
    text: TextOptions,
    training: TrainingOptions,
    recipe: Annotated[str | None, typer.Argument(metavar="RECIPE", help="A TOML file or a known name.")] = None,
    tokenizer: Annotated[Path | None, typer.Option(help="A sentencepiece model, in place of learning one.")] = None,
    source_language: FromLanguage = None,
    target_language: IntoLanguage = None,
    both_directions: Annotated[
        bool, typer.Option("--both-directions", help="Learn both directions in one model; needs the two languages.")
    ] = False,
    out: RunOut = None,
    as_json: AsJson = False,
) -> None:
    """Train a translator.

    The same command goes on with a run that was stopped.
    """
    languages = both_languages("train", source_language, target_language)
    if both_directions and languages is None:
        raise UsageError("train: --both-directions needs --source-language and --target-language; give them")
    tagged = languages if both_directions else None
    overrides = training.overrides(
        data__train=_corpora(text.train_corpus("train"), tagged),
        data__valid=_corpora(text.valid_corpus("train"), tagged),
        data__tokenizer=None if tokenizer is None else str(tokenizer),
    )
    from dragoman.run_directory import RunDirectory

    if recipe is not None:
        layered = recipes.load(recipe, overrides)
        run = RunDirectory(out or Path("runs") / Path(recipe).stem)
    elif out is not None:
        run = RunDirectory(out)
        layered = recipes.load("small", [*_text_of(run), *overrides])
    else:
        raise UsageError("train: --out is missing; name the run's directory, for example --out runs/my")
    from dragoman.data.language_codes import write_languages
    from dragoman.training.loop import train as run_training

    run_training(layered.config, run, this_command())
    if os.environ.get("RANK", "0") == "0":  # under torchrun, one of them says it
        if languages is not None:
            write_languages(run, *languages)
        if as_json:
            show_trained(run.path)
        say(f'try it: echo "..." | dragoman translate {shlex.quote(str(run.path))}')


def _text_of(run: "RunDirectory") -> list[tuple[str, Any, str]]:
    """How a run that is there already writes its text. It goes on so, also where `small` has other defaults by now."""
    if not run.config_path.exists():
        return []
    data = run.read_config().data
    names = ("casing", "split_digits", "views", *TEXT_CHANGES)
    return [(f"data.{name}", getattr(data, name), str(run.config_path)) for name in names]


def show_trained(out: Path) -> None:
    """What came of a training, as JSON: its directory, and the last line of its log."""
    from dragoman.run_directory import RunDirectory

    ends = [event for event in RunDirectory(out).events() if event["event"] == "end"]
    show(json.dumps({"run": str(out), **{key: value for key, value in ends[-1].items() if key != "event"}}))


def average(
    run: RunPath,
    last: Annotated[int, typer.Option(parser=whole(1, 1_000_000), help="How many of the newest checkpoints.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Average a run's newest checkpoints.

    The average is what translates from then on.
    """
    from dragoman.model.checkpoint import average as mean_of
    from dragoman.model.checkpoint import promote
    from dragoman.run_directory import RunDirectory, step_of

    directory = RunDirectory.open(run)
    kept = directory.checkpoints()
    if len(kept) < last:
        raise UsageError(f"average: --last {last}, but {run} keeps {len(kept)} checkpoints; ask for as many at most")
    chosen = kept[-last:]
    promote(directory, mean_of(chosen), "average", [step_of(checkpoint) for checkpoint in chosen])
    if as_json:
        values = {"run": str(run), "model": str(directory.model_path), "steps": [step_of(path) for path in chosen]}
        show(json.dumps(values))
    say(f"{directory.model_path} is now the average of {', '.join(c.name for c in chosen)}")


def verify(
    run: RunPath,
    steps: Annotated[int, typer.Option(parser=whole(0, 10**9), help="The most steps to train again; 0: none.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Check that a run is what its log says: every hash, the chain of them, and a stretch of it trained again.

    The exit code is 4 where it is not.
    """
    from dragoman.run_directory import RunDirectory
    from dragoman.training.verify import verify as verify_run

    findings: list[str] = []
    fault: CheckError | None = None
    try:
        for finding in verify_run(RunDirectory.open(run), steps, say):
            findings.append(finding)
            if not as_json:
                show(finding)
    except CheckError as error:
        fault = error
    if as_json:
        passed = {"passed": fault is None, "fault": None if fault is None else str(fault)}
        show(json.dumps({"run": str(run), **passed, "findings": findings}, ensure_ascii=False))
    if fault is not None:
        raise fault


def _corpora(corpus: CorpusConfig | None, both_ways: tuple[str, str] | None) -> list[dict[str, str]] | None:
    """A corpus as a configuration has it; `both_ways`: the languages, where it is read in both directions."""
    if corpus is None:
        return None
    if both_ways is not None:
        source, target = both_ways
        forth, back = configuration.language_tag(target), configuration.language_tag(source)
        corpus = dataclasses.replace(corpus, tag=forth, back_tag=back)
    return [{name: value for name, value in vars(corpus).items() if name != "weight" and value is not None}]
