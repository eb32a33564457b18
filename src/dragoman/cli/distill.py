"""`dragoman distill`. Heavy imports inside, as in the whole command line."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import (
    AsJson,
    NewRun,
    Overrides,
    SourceLanguage,
    TargetLanguage,
    TextOptions,
    changed,
    in_range,
    language_asked_for,
    n_best_option,
    whole,
)
from dragoman.cli.terminal import say, show, this_command
from dragoman.config.ranges import MOST_BEAM, MOST_SEED
from dragoman.distillation import Begin, StudentVocabulary
from dragoman.errors import require_torch

NoiseShare = Annotated[
    float,
    typer.Option(
        parser=in_range(0, 1),
        help="Share of the sources that get typos, other capitals or no mark at the end, before the teacher "
        "translates them.",
    ),
]


def distill(
    teachers: Annotated[list[Path], typer.Argument(metavar="TEACHER", help="Run directory; several teach together.")],
    out: NewRun,
    pairs: TextOptions,
    text: Annotated[
        list[Path] | None,
        typer.Option("--text", help="More sentences of the source language, one a line; several times for several."),
    ] = None,
    minutes: Annotated[
        float, typer.Option(parser=in_range(0.1, 1e6), help="Minutes for everything, from reading to the report.")
    ] = 60.0,
    vocabulary: Annotated[
        StudentVocabulary, typer.Option(help="The student's: learned for it, or the teacher's.")
    ] = "own",
    begin: Annotated[
        Begin, typer.Option(help="What the student begins as: nothing, or layers of the (first) teacher.")
    ] = "scratch",
    noise: NoiseShare = 0.1,
    n_best: Annotated[
        int, n_best_option(MOST_BEAM, "Translations of each source, of which the nearest to the reference is learned.")
    ] = 4,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    seed: Annotated[
        int, typer.Option(parser=whole(0, MOST_SEED), help="Seed of all that is drawn, and of the training.")
    ] = 1,
    changes: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Teach a small and fast model what a larger one says, or an ensemble of several.

    The teacher translates what it was trained on (or --pairs), and --text; a student with a deep encoder and a shallow
    decoder learns that, sized to the time, and is quantised. The report has quality against speed and size for each
    stage. The same command goes on after a stop; with more --minutes it goes on with one that is finished.
    """
    require_torch("distill")
    from dragoman.distillation.pipeline import distill as start

    result = start(
        teachers,
        out,
        minutes=minutes,
        text=text or (),
        pairs=pairs.train_corpus("distill"),
        valid=pairs.valid_corpus("distill"),
        vocabulary=vocabulary,
        begin=begin,
        noise=noise,
        n_best=n_best,
        source=source_language,
        to=language_asked_for(teachers[0], target_language),
        seed=seed,
        changes=changed(changes),
        again=this_command(),
        say=say,
    )
    show(json.dumps(result.values, ensure_ascii=False) if as_json else "\n".join(result.lines))
