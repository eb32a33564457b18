"""Residual connections.

Claim: A residual connection around each sub-layer (3.1) is what lets a stack of them learn.

Method: The base row on Multi30k with and without residual connections, and the same with twice as many layers; the
norm of the gradient by layer before the first step, the loss while training, BLEU.

Rule: For each depth: the validation loss with residual connections is below that without by more than two standard
errors, by the spread over seeds, mostly the base row's.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.translation import scaled
from dragoman.lab.variants import (
    COLUMNS,
    better,
    gradient_arm,
    gradient_figure,
    measure_variants,
    quality_figures,
    with_base,
)


def arms(settings: LabSettings) -> list[Arm]:
    depth = 2 * scaled("table3-base", settings.size).model.encoder_layers
    deep = {"model__encoder_layers": depth, "model__decoder_layers": depth}
    variants: dict[str, dict[str, Any]] = {
        "no residual": {"model__residual": False},
        "twice as deep": deep,
        "twice as deep, no residual": {**deep, "model__residual": False},
    }
    translated = with_base(settings, variants)
    return translated + [gradient_arm(arm) for arm in translated if arm.name.endswith("seed 1")]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    return [
        better(measured, "Residual connections help at the base depth.", "base", "no residual", "nll"),
        better(measured, "And at twice the depth.", "twice as deep", "twice as deep, no residual", "nll"),
    ]


def run(settings: LabSettings) -> ExperimentResult:
    measured = measure_variants(settings, arms(settings))
    return conclude(
        "residual",
        settings,
        measured,
        judge(measured),
        COLUMNS,
        [*quality_figures(measured), gradient_figure(measured)],
    )
