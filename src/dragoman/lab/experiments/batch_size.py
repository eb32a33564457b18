"""Tokens in a step.

Claim: The paper trains with 25,000 tokens of each side in a step (5.1): large batches give better gradients. Readers
ask what that is worth when the number of tokens in all is what is paid for.

Method: The base row on Multi30k with a quarter, the whole and four times its tokens a step, each with the same tokens
in all and so with four times, as many and a quarter of the steps; the warm-up is the same share of the steps, and the
highest rate goes with the root of the tokens, as equation 3 would have it then.

Rule: At equal tokens, smaller steps are better: the validation loss of the quarter is below that of the base by more
than two standard errors (holds), above it by as much (does not hold here), else undecided; and likewise base against
four times.
"""

from collections.abc import Sequence

from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.translation import scaled
from dragoman.lab.variants import COLUMNS, better, measure_variants, quality_figures, with_base


def arms(settings: LabSettings) -> list[Arm]:
    base = scaled("table3-base", settings.size).train

    def times(factor: float) -> dict[str, float]:
        return {
            "train__batch_tokens": int(base.batch_tokens * factor),
            "train__micro_batch_tokens": int(base.micro_batch_tokens * factor),
            "train__steps": max(2, int(base.steps / factor)),
            "train__warmup_steps": max(1, int(base.warmup_steps / factor)),
            "train__peak_rate": (base.peak_rate or 0.0) * factor**0.5,
        }

    return with_base(settings, {"a quarter": times(0.25), "four times": times(4)})


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    return [
        better(measured, "A quarter of the tokens a step is better at equal tokens.", "a quarter", "base", "nll"),
        better(measured, "The base is better than four times its tokens a step.", "base", "four times", "nll"),
    ]


def run(settings: LabSettings) -> ExperimentResult:
    measured = measure_variants(settings, arms(settings))
    return conclude("batch-size", settings, measured, judge(measured), COLUMNS, quality_figures(measured))
