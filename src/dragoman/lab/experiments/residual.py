"""Residual connections.

Claim: A residual connection around each sub-layer (3.1) is what lets a stack of them learn: without it training is
unstable or slower, and the more so in a deeper stack.

Method: (a) The synthetic task (sequences reversed), two and six layers a side, with and without residual connections,
five seeds. (b) The base row of the quick family on Multi30k with and without, and the same with twice as many layers;
the norm of the gradient by layer before the first step, the loss while training, BLEU.

Rule: For each depth, with residual connections: on the synthetic task the share of right tokens is higher by at least
0.1; on Multi30k the validation loss is lower by at least 0.1 nats a token.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import higher
from dragoman.lab.synthetic import of_synthetic, synthetic_arm
from dragoman.lab.translation import scaled
from dragoman.lab.variants import (
    COLUMNS,
    better,
    gradient_arm,
    gradient_figure,
    measure_any,
    quality_figures,
    with_base,
)

DEPTHS = (2, 6)


def arms(settings: LabSettings) -> list[Arm]:
    synthetic = [
        synthetic_arm(settings, named(depth, residual), seed, encoder_layers=depth, decoder_layers=depth,
                      residual=residual)
        for depth in DEPTHS
        for residual in (True, False)
        for seed in settings.seed_list(5)
    ]  # fmt: skip
    depth = 2 * scaled("table3-base", settings.size).model.encoder_layers
    deep = {"model__encoder_layers": depth, "model__decoder_layers": depth}
    variants: dict[str, dict[str, Any]] = {
        "no residual": {"model__residual": False},
        "twice as deep": deep,
        "twice as deep, no residual": {**deep, "model__residual": False},
    }
    translated = with_base(settings, variants)
    return synthetic + translated + [gradient_arm(arm) for arm in translated if arm.name.endswith("seed 1")]


def named(depth: int, residual: bool) -> str:
    return f"{depth} layers, {'residual' if residual else 'none'}"


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    return measure_any(arm, settings)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    found = []
    for depth in DEPTHS:
        names = named(depth, True), named(depth, False)
        with_it, without = (of_synthetic(measured, name, "accuracy") for name in names)
        claim = f"On the synthetic task, {depth} layers a side learn better with residual connections."
        found.append(higher(claim, with_it, without, names, "of the tokens right", least=0.1, digits=3))
    return [
        *found,
        better(measured, "Multi30k, base depth: they help.", "base", "no residual", "nll", 0.1),
        better(measured, "Multi30k, twice the depth: they help.", "twice as deep", "twice as deep, no residual", "nll",
               0.1),
    ]  # fmt: skip


def show(measured: Sequence[MeasuredArm]) -> Shown:
    gradients = [gradient_figure(measured)] if any(one.arm.kind == "gradients" for one in measured) else []
    return Shown(("accuracy", "final_loss", *COLUMNS), [*quality_figures(measured), *gradients])
