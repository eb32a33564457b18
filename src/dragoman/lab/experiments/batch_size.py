"""Tokens in a step.

Claim: The paper trains with 25,000 tokens of each side in a step (5.1): large batches give better gradients. Readers
ask what that is worth when the number of tokens in all is what is paid for.

Method: The paper's family on Multi30k with a quarter, the whole and four times its tokens a step, each with the same
tokens in all and so with four times, as many and a quarter of the steps; the warm-up is the same share of the steps.
The best rate goes with the batch, so each size has its own: the rates of the base times 1/4, 1/2, 1 and 2, by one
seed and the validation loss; the chosen one is trained with three seeds. The recorded arms of the quick family, whose
rate went with the root of the tokens, have one seed for two of the sizes: they are shown, not judged.

Rule: At equal tokens smaller steps are better: the validation loss of the quarter is below that of the base by at
least 0.05 nats a token, and that of the base below that of four times.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.translation import chosen, paper_arm, paper_trials, scaled
from dragoman.lab.variants import COLUMNS, better, measure_any, quality_figures, with_base

SIZES = {"a quarter": 0.25, "the base": 1.0, "four times": 4.0}
FACTORS = (0.25, 0.5, 1.0, 2.0)


def times(settings: LabSettings, factor: float) -> dict[str, Any]:
    base = scaled("table3-base", settings.size).train
    steps = max(2, int(base.steps / factor))
    return {
        "train__batch_tokens": int(base.batch_tokens * factor),
        "train__micro_batch_tokens": int(base.micro_batch_tokens * factor),
        "train__steps": steps,
    }


def arms(settings: LabSettings) -> list[Arm]:
    base = scaled("table3-base", settings.size).train
    found = list(paper_trials(settings).values())
    middle = chosen(settings, paper_trials(settings))
    factors = FACTORS[2:3] if settings.size == "smoke" else FACTORS
    final = []
    for name, size in SIZES.items():
        changes = times(settings, size)
        changes["train__warmup_steps"] = max(1, changes["train__steps"] * 3 // 10)
        tried = {
            factor * middle: paper_arm(settings, f"trial: {name}, rate times {factor:g}", 1,
                                       train__peak_rate=float(f"{factor * middle:.4g}"), **changes)
            for factor in factors
        }  # fmt: skip
        found += list(tried.values())
        rate = float(f"{chosen(settings, tried):.4g}")
        final += [paper_arm(settings, name, seed, train__peak_rate=rate, **changes) for seed in settings.seed_list(3)]
    recorded = {
        f"recorded: {name}": {
            **times(settings, size),
            "train__warmup_steps": max(1, int(base.warmup_steps / size)),
            "train__peak_rate": (base.peak_rate or 0.0) * size**0.5,
        }
        for name, size in SIZES.items()
        if size != 1
    }
    return found + final + with_base(settings, recorded, 1)


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    return measure_any(arm, settings)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    claims = (
        ("A quarter of the tokens a step is better at equal tokens.", "a quarter", "the base"),
        ("The base is better than four times its tokens a step.", "the base", "four times"),
    )
    return [better(measured, claim, a, b, "nll", 0.05) for claim, a, b in claims]


def show(measured: Sequence[MeasuredArm]) -> Shown:
    return Shown(COLUMNS, quality_figures(measured))
