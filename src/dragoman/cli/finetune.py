"""`dragoman finetune` and `backtranslate`. Heavy imports inside, as in the command line that this is part of."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from dragoman import config as configuration
from dragoman.cli.options import (
    AsJson,
    NewRun,
    OldShare,
    RunPath,
    SamplingSeed,
    ScoredLanguage,
    SearchOptions,
    SourceLanguage,
    TextOptions,
    TrainingOptions,
    in_range,
    language_asked_for,
    out_option,
)
from dragoman.cli.terminal import say, show, this_command
from dragoman.errors import UsageError


def finetune(
    run: RunPath,
    out: NewRun,
    text: TextOptions,
    training: TrainingOptions,
    old: OldShare = 1.0,
    general: Annotated[
        Path | None,
        typer.Option(help="Source sentences, one a line, for a run without its text: its own translations are kept."),
    ] = None,
    learn: Annotated[
        configuration.Learn | None,
        typer.Option(help="What learns: all, the top layers, or low-rank additions [default: all]."),
    ] = None,
    source_language: SourceLanguage = None,
    target_language: ScoredLanguage = None,
    as_json: AsJson = False,
) -> None:
    """Fine-tune a trained run on new text.

    The vocabulary stays, text of the old training (or the run's own translations of general text) is mixed in, and both
    domains are scored before and after, with significance. The same command goes on with a run that was stopped.
    """
    new, valid = text.train_corpus("finetune"), text.valid_corpus("finetune")
    if new is None:
        raise UsageError("finetune: no new text; give --pairs new.tsv, or --source and --target")
    language_asked_for(run, target_language)
    from dragoman.training.finetune import finetune as run_finetuning

    result = run_finetuning(
        run,
        new,
        out,
        valid=valid,
        old=old,
        general=general,
        overrides=training.overrides(train__learn=learn),
        language=target_language,
        source_language=source_language,
        again=this_command(),
        say=say,
    )
    show(json.dumps(result.to_dict(), ensure_ascii=False) if as_json else "\n".join(result.lines()))
    say(f'try it: echo "..." | dragoman translate {shlex.quote(str(out))}')


def backtranslate(
    reverse: Annotated[Path, typer.Argument(metavar="RUN", help="A run that translates the other way.")],
    mono: Annotated[Path, typer.Option(help="Text in the target language, one sentence a line.")],
    out: Annotated[Path, out_option("A directory for the synthetic pairs and the recipe.")],
    text: TextOptions,
    search: SearchOptions,
    recipe: Annotated[str, typer.Option(help="The recipe that the written one extends.")] = "small",
    ratio: Annotated[
        float, typer.Option(parser=in_range(0, above=True), help="The most synthetic pairs for each real one.")
    ] = 1.0,
    drop: Annotated[
        float,
        typer.Option(parser=in_range(0, 0.99), help="Leave out this share of the synthetic pairs, the least probable."),
    ] = 0.05,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random in place of searching.")] = False,
    untagged: Annotated[bool, typer.Option("--untagged", help="Do not mark synthetic sources.")] = False,
    target_language: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="What RUN is to translate into: the language of the pairs' sources."),
    ] = None,
    seed: SamplingSeed = 0,
    as_json: AsJson = False,
) -> None:
    """Make pairs from text in the target language alone: translate it back, filter it, add the real pairs.

    The same command goes on after a stop; `dragoman train OUT/recipe.toml` then learns from both.
    """
    real, valid = text.train_corpus("backtranslate"), text.valid_corpus("backtranslate")
    if real is None:
        raise UsageError("backtranslate: no real pairs; give --pairs my.tsv, or --source and --target")
    from dragoman.training.backtranslate import backtranslate as make_pairs

    result = make_pairs(
        reverse,
        mono,
        real,
        out,
        valid=valid,
        recipe=recipe,
        ratio=ratio,
        drop=drop,
        sample=sample,
        to=language_asked_for(reverse, target_language),
        tagged=not untagged,
        seed=seed,
        say=say,
        **search.given(),
    )
    show(json.dumps(result.to_dict(), ensure_ascii=False) if as_json else "\n".join(result.lines_to_show()))
