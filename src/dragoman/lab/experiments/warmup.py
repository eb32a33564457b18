"""The learning rate's warm-up.

Claim: The rate should rise for some thousand steps before it falls with the root of the step (5.3, equation 3).

Method: Equation 3 on Multi30k, with normalisation after the sub-layer as in the paper: a warm-up of 300 of 1,000
steps, of 100 and of 700, which also changes the highest rate as the equation says; and the highest rate of the first
with no warm-up at all.

Rule: The validation loss with a warm-up of 300 is below that of none by more than two standard errors, by the spread
over seeds, of which both have two. The other lengths are shown, not judged.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.translation import scaled
from dragoman.lab.variants import COLUMNS, better, curve_figure, measure_variants, quality_figures, variant_arms
from dragoman.training.schedule import learning_rate


def arms(settings: LabSettings) -> list[Arm]:
    base = scaled("table3-base", settings.size)
    usual = max(1, base.train.steps * 3 // 10)
    paper: dict[str, Any] = {"model__norm_order": "post", "train__schedule": "paper", "train__peak_rate": None}
    peak = learning_rate(usual, base.model.d_model, usual)
    judged = {
        "warm-up": {**paper, "train__warmup_steps": usual},
        "no warm-up": {**paper, "train__warmup_steps": 1, "train__peak_rate": peak},
    }
    shown = {
        "a third of it": {**paper, "train__warmup_steps": max(1, usual // 3)},
        "more than twice": {**paper, "train__warmup_steps": usual * 7 // 3},
    }
    return variant_arms(settings, judged, 2) + variant_arms(settings, shown)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    return [better(measured, "Warm-up helps.", "warm-up", "no warm-up", "nll")]


def run(settings: LabSettings) -> ExperimentResult:
    measured = measure_variants(settings, arms(settings))
    norms = curve_figure(measured, "gradient_norms", "Gradient norm while training", "norm", True)
    notes = ["Without warm-up the rate starts at its highest and falls with the root of the step from there."]
    return conclude("warmup", settings, measured, judge(measured), COLUMNS, [*quality_figures(measured), norms], notes)
