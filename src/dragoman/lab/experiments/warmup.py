"""The learning rate's warm-up.

Claim: The rate should rise for some thousand steps before it falls with the root of the step (5.3, equation 3).

Method: Equation 3 on Multi30k with a warm-up of 300 of 1,000 steps (the base row), with 100 and with 700, which also
changes the highest rate as the equation says; and the same highest rate as the base row's with no warm-up at all.

Rule: The base's validation loss is below that of no warm-up by more than two standard errors, by the spread over its
seeds. The other lengths are shown, not judged.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.lab.catalogue import concluded
from dragoman.lab.queue import Arm, Kept, Settings
from dragoman.lab.result import Finding, Result
from dragoman.lab.translation import SCALES, scaled
from dragoman.lab.variants import COLUMNS, better, curve_figure, measured, quality_figures, with_base
from dragoman.schedule import learning_rate


def arms(settings: Settings) -> list[Arm]:
    usual = SCALES[settings.size].warmup_steps
    peak = learning_rate(usual, scaled("table3-base", settings.size).model.d_model, usual)
    variants: dict[str, dict[str, Any]] = {
        "a third of the warm-up": {"train__warmup_steps": max(1, usual // 3)},
        "longer warm-up": {"train__warmup_steps": usual * 7 // 3},
        "no warm-up": {"train__warmup_steps": 1, "train__peak_rate": peak},
    }
    return with_base(settings, variants)


def judge(kept: Sequence[Kept]) -> list[Finding]:
    return [better(kept, "Warm-up helps.", "base", "no warm-up", "nll")]


def run(settings: Settings) -> Result:
    kept = measured(settings, arms(settings))
    figures = [
        *quality_figures(kept),
        curve_figure(kept, "gradient_norms", "Gradient norm while training", "norm", True),
    ]
    notes = ["Without warm-up the rate starts at its highest and falls with the root of the step from there."]
    return concluded("warmup", settings, kept, judge(kept), COLUMNS, figures, notes)
