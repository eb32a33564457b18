"""Label smoothing.

Claim: Label smoothing of 0.1 hurts perplexity, as the model learns to be more unsure, but improves accuracy and BLEU
(5.4, Table 3 row D).

Method: (a) The quick family's base row (ε = 0.1) on Multi30k against ε = 0, and 0.2 for the trend: two epochs, in
which no model can learn its text by heart. (b) The paper's family for twenty epochs, where a regulariser has
something to do: ε = 0.1 against 0, three seeds each.

Rule: Perplexity of ε = 0 is below that of ε = 0.1, and BLEU of ε = 0.1 above that of ε = 0, in two epochs and in
twenty.
"""

from collections.abc import Sequence

from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.translation import base_arms, long_arm, paper_trials, translation_arm
from dragoman.lab.variants import COLUMNS, better, measure_any, quality_figures


def arms(settings: LabSettings) -> list[Arm]:
    quick = [
        translation_arm(settings, name, seed, recipe)
        for name, recipe in (("ε = 0", "table3-D3"), ("ε = 0.2", "table3-D4"))
        for seed in settings.seed_list(3)
    ]
    trials = list(paper_trials(settings).values())
    long = [
        long_arm(settings, f"{name}, 20 epochs", seed, recipe)
        for name, recipe in (("ε = 0.1", "table3-base"), ("ε = 0", "table3-D3"))
        for seed in settings.seed_list(3)
    ]
    return base_arms(settings) + quick + trials + long


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    return measure_any(arm, settings)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    return [
        finding
        for when, with_it, without in (
            ("Two epochs", "base", "ε = 0"),
            ("Twenty epochs", "ε = 0.1, 20 epochs", "ε = 0, 20 epochs"),
        )
        for finding in (
            better(measured, f"{when}: label smoothing hurts perplexity.", without, with_it, "perplexity"),
            better(measured, f"{when}: it helps BLEU.", with_it, without),
        )
    ]


def show(measured: Sequence[MeasuredArm]) -> Shown:
    return Shown(COLUMNS, quality_figures(measured))
