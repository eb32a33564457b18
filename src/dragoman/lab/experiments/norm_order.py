"""Normalisation after or before each sub-layer, with and without warm-up.

Claim: The paper normalises after the residual sum (post-norm, 3.1) and needs its warm-up (5.3); later readers say
that normalising before the sub-layer (pre-norm) trains stably without it.

Method: Four translators on Multi30k: post- and pre-norm, each with a warm-up of 200 steps and with none, by a rate
that rises to 4e-3 and falls straight to zero. Gradient norm by layer before the first step, loss and gradient norm
while training, BLEU.

Rule: Post-norm needs warm-up: its validation loss with warm-up is below that without by two standard errors. Pre-norm
does not: pre-norm without warm-up is better than post-norm without, by the same measure. Noise is the standard
deviation over seeds, of all four together.
"""

from collections.abc import Sequence

from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.translation import SCALES
from dragoman.lab.variants import (
    COLUMNS,
    better,
    curve_figure,
    gradient_arm,
    gradient_figure,
    measure_variants,
    quality_figures,
    variant_arms,
)


def arms(settings: LabSettings) -> list[Arm]:
    warmups = {"warm-up": SCALES[settings.size].warmup_steps, "no warm-up": 1}
    variants = {
        f"{order}-norm, {name}": {"model__norm_order": order, "train__warmup_steps": steps}
        for order in ("post", "pre")
        for name, steps in warmups.items()
    }
    translated = variant_arms(settings, variants, 2)
    firsts = [arm for arm in translated if arm.name.endswith(", warm-up, seed 1")]
    return translated + [gradient_arm(arm) for arm in firsts]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    return [
        better(measured, "Post-norm needs the warm-up.", "post-norm, warm-up", "post-norm, no warm-up", "nll"),
        better(
            measured, "Without warm-up, pre-norm is better.", "pre-norm, no warm-up", "post-norm, no warm-up", "nll"
        ),
    ]


def run(settings: LabSettings) -> ExperimentResult:
    measured = measure_variants(settings, arms(settings))
    norms = curve_figure(measured, "gradient_norms", "Gradient norm while training", "norm", log_y=True)
    figures = [*quality_figures(measured), norms, gradient_figure(measured)]
    return conclude("norm-order", settings, measured, judge(measured), COLUMNS, figures)
