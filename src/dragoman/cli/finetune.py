"""`dragoman finetune` and `backtranslate`. Heavy imports inside, as in the command line that this is part of."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dragoman import config as configuration
from dragoman.cli.options import (
    AsJson,
    Beam,
    Changes,
    Into,
    Language,
    Minutes,
    Run,
    Seed,
    Steps,
    in_range,
    overrides_from,
    whole,
)
from dragoman.cli.terminal import say, show, this_command
from dragoman.config_ranges import MOST_SEED
from dragoman.data.corpus import corpus_from
from dragoman.errors import UsageError


def finetune(
    run: Run,
    out: Annotated[Path, typer.Option(help="The new run's directory.")],
    pairs: Annotated[Path | None, typer.Option(help="New sentence pairs, tab-separated: source, target.")] = None,
    source: Annotated[Path | None, typer.Option(help="New source sentences, one a line (.gz too).")] = None,
    target: Annotated[Path | None, typer.Option(help="Their translations, line by line.")] = None,
    valid_pairs: Annotated[
        Path | None, typer.Option(help="Pairs to measure the new domain with [default: some are held out].")
    ] = None,
    valid_source: Annotated[Path | None, typer.Option(help="The same as two files.")] = None,
    valid_target: Annotated[Path | None, typer.Option(help="The same as two files.")] = None,
    old: Annotated[
        float,
        typer.Option(
            parser=in_range(0),
            help="Pairs of the old training mixed in for each new one; 0: the new domain alone counts.",
        ),
    ] = 1.0,
    steps: Steps = None,
    minutes: Minutes = None,
    seed: Seed = None,
    set_: Changes = None,
    to: Into = None,
    language: Language = None,
    as_json: AsJson = False,
) -> None:
    """Teach a trained run new text.

    The vocabulary stays, text of the old training is mixed in, and both domains are scored before and after, with
    significance. The same command goes on with a run that was stopped.
    """
    new = corpus_from("finetune", "--", pairs, source, target)
    if new is None:
        raise UsageError("finetune: no new text; give --pairs new.tsv, or --source and --target")
    valid = corpus_from("finetune", "--valid-", valid_pairs, valid_source, valid_target)
    if to is not None:
        tag = configuration.language_tag(to)
        new, valid = replace(new, tag=tag), None if valid is None else replace(valid, tag=tag)
    overrides = overrides_from(set_, steps, minutes, seed)
    from dragoman.training.finetune import finetune as run_finetuning

    again = this_command()
    result = run_finetuning(
        run, new, out, valid=valid, old=old, overrides=overrides, language=language, again=again, say=say
    )
    show(json.dumps(result.to_dict(), ensure_ascii=False) if as_json else "\n".join(result.lines()))
    say(f'try it: echo "..." | dragoman translate {shlex.quote(str(out))}')


def backtranslate(
    reverse: Annotated[Path, typer.Argument(metavar="RUN", help="A run that translates the other way.")],
    mono: Annotated[Path, typer.Option(help="Text in the target language, one sentence a line.")],
    out: Annotated[Path, typer.Option(help="A directory for the synthetic pairs and the recipe.")],
    pairs: Annotated[Path | None, typer.Option(help="The real pairs, tab-separated.")] = None,
    source: Annotated[Path | None, typer.Option(help="The real pairs as two files.")] = None,
    target: Annotated[Path | None, typer.Option(help="The real pairs as two files.")] = None,
    valid_pairs: Annotated[Path | None, typer.Option(help="Validation pairs, for the recipe.")] = None,
    valid_source: Annotated[Path | None, typer.Option(help="The same as two files.")] = None,
    valid_target: Annotated[Path | None, typer.Option(help="The same as two files.")] = None,
    recipe: Annotated[str, typer.Option(help="What the written recipe extends.")] = "small",
    ratio: Annotated[
        float, typer.Option(parser=in_range(0, above=True), help="At most so many synthetic pairs for each real one.")
    ] = 1.0,
    drop: Annotated[
        float, typer.Option(parser=in_range(0, 0.99), help="Leave out this share, the least probable.")
    ] = 0.05,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random in place of searching.")] = False,
    untagged: Annotated[bool, typer.Option("--untagged", help="Do not mark synthetic sources.")] = False,
    beam: Beam = None,
    to: Into = None,
    seed: Annotated[int, typer.Option(parser=whole(0, MOST_SEED), help="For --sample.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Make pairs of target text alone: translate it back, sift it, mix it with the real pairs.

    The same command goes on after a stop; `dragoman train OUT/recipe.toml` then learns from both.
    """
    real = corpus_from("backtranslate", "--", pairs, source, target)
    if real is None:
        raise UsageError("backtranslate: no real pairs; give --pairs my.tsv, or --source and --target")
    valid = corpus_from("backtranslate", "--valid-", valid_pairs, valid_source, valid_target)
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
        to=to,
        tagged=not untagged,
        seed=seed,
        say=say,
        **({} if beam is None else {"beam": beam}),
    )
    show(json.dumps(result.to_dict(), ensure_ascii=False) if as_json else "\n".join(result.lines_to_show()))
