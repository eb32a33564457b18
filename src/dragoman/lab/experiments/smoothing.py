"""Label smoothing.

Claim: Label smoothing of 0.1 hurts perplexity, as the model learns to be more unsure, but improves accuracy and BLEU
(5.4, Table 3 row D).

Method: The base row (ε = 0.1) on Multi30k against ε = 0, and 0.2 for the trend.

Rule: Perplexity of ε = 0 is below that of ε = 0.1, and BLEU of ε = 0.1 above that of ε = 0, each by more than two
standard errors, by the spread over seeds, mostly the base row's.
"""

from collections.abc import Sequence

from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.translation import base_arms, translation_arm
from dragoman.lab.variants import COLUMNS, better, measure_variants, quality_figures


def arms(settings: LabSettings) -> list[Arm]:
    seeds = settings.seed_list(2)
    return base_arms(settings) + [
        translation_arm(settings, name, seed, recipe)
        for name, recipe, runs in (("ε = 0", "table3-D3", seeds), ("ε = 0.2", "table3-D4", seeds[:1]))
        for seed in runs
    ]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    return [
        better(measured, "Label smoothing hurts perplexity.", "ε = 0", "base", "perplexity"),
        better(measured, "It helps BLEU.", "base", "ε = 0"),
    ]


def run(settings: LabSettings) -> ExperimentResult:
    measured = measure_variants(settings, arms(settings))
    return conclude("smoothing", settings, measured, judge(measured), COLUMNS, quality_figures(measured))
