"""`dragoman vit`: train, evaluate, show. Heavy imports inside, as in the command line that this is part of."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman.cli.options import AsJson, Checkpoint, Recipe, RunOut, RunPath, TrainingOptions, out_option, whole
from dragoman.cli.registration import command, group
from dragoman.cli.terminal import say, show, write_file
from dragoman.config import recipes
from dragoman.errors import UsageError

vit = group("Classify pictures of digits (scikit-learn's): patches in place of words.")


@command(vit)
def train(
    training: TrainingOptions,
    recipe: Recipe = "vit",
    positions: Annotated[
        Literal["sinusoidal", "sinusoidal-2d", "learned", "none"] | None,
        typer.Option(help="How a patch knows its place: in a row, on a grid, learned, not at all."),
    ] = None,
    out: RunOut = None,
    as_json: AsJson = False,
) -> None:
    """Train on four fifths of the digits.

    The same command goes on with a run that was stopped.
    """
    from dragoman.cli.language_models import run_training
    from dragoman.descendants.digits import load_digits, prepare_run

    config = recipes.load(recipe, training.overrides(model__positions=positions)).config
    out = out or Path("runs") / Path(recipe).stem
    name = run_training(prepare_run(config, load_digits(), out), recipe, out, as_json)
    say(f"try it: dragoman vit evaluate {name}; dragoman vit show {name} --number 0")


@command(vit)
def evaluate(
    run: RunPath,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """Measure accuracy on the fifth that was held out, and which digits are taken for which."""
    from dragoman.descendants.digits import load_digits
    from dragoman.descendants.masked_model import Classifier

    test = load_digits().test
    classified = Classifier.load(run, checkpoint).classify([picture for picture, _ in test])
    wrong = [
        {"number": number, "is": label, "taken_for": one.label}
        for number, (one, (_, label)) in enumerate(zip(classified, test, strict=True))
        if one.label != label
    ]
    accuracy = 1 - len(wrong) / len(test)
    if as_json:
        show(json.dumps({"accuracy": accuracy, "pictures": len(test), "wrong": wrong}))
        return
    show(f"accuracy {accuracy:.2%} of {len(test)} pictures")
    for one in wrong:
        show(f"  number {one['number']}: a {one['is']}, taken for {one['taken_for']}")


@command(vit, "show")
def show_one(
    run: RunPath,
    number: Annotated[int, typer.Option(parser=whole(0, 10**9), help="Which of the held-out pictures.")] = 0,
    out: Annotated[Path | None, out_option("Draw every head's attention into this file, as SVG.")] = None,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """Show a picture, what it is taken for, and where each layer looks to say so."""
    from dragoman.descendants.digits import load_digits
    from dragoman.descendants.masked_model import Classifier
    from dragoman.descendants.patch_attention import draw_svg, draw_text, patch_attention

    test = load_digits().test
    if number >= len(test):
        raise UsageError(f"vit show: --number {number}; the held-out pictures are 0 to {len(test) - 1}")
    picture, label = test[number]
    seen = patch_attention(Classifier.load(run, checkpoint), picture)
    likely = zip(seen.classification.classes[:3], seen.classification.probabilities, strict=False)
    if as_json:
        classes = dict(zip(seen.classification.classes, seen.classification.probabilities, strict=True))
        show(json.dumps({"number": number, "is": label, "classes": classes}))
    else:
        show(draw_text(seen))
        show(f"a {label}; taken for " + ", ".join(f"{name} ({share:.1%})" for name, share in likely))
    if out is not None:
        write_file(out, draw_svg(seen, f"digit {label}, number {number}").encode())
