"""The learning rate's warm-up.

Claim: The rate should rise for some thousand steps before it falls with the root of the step (5.3, equation 3).

Method: Equation 3's form of rate with normalisation after the sub-layer, as in the paper. (a) The synthetic task
(sequences reversed), three layers a side, a warm-up of 0, 20 and 100 of 500 steps, each at highest rates of 1e-3 to
4e-3, of which its own best counts; three seeds; here the rate falls straight to zero. (b) Multi30k, the paper's
family: none, 100, 300 and 700 of 1,000 steps, each at highest rates of 5e-4 to 4e-3 by one seed; the rate with the
lowest validation loss is then trained with three seeds. The recorded arms of an earlier run (one rate for all) are
shown, not judged.

Rule: With its own best rate, the longest warm-up of (a) has a lower loss than none by at least 0.1 nats a token; so
has the better of 300 and 700 steps in (b).
"""

from collections.abc import Sequence
from typing import Any

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import higher, mean, mean_or_none
from dragoman.lab.synthetic import of_synthetic, synthetic_arm
from dragoman.lab.translation import PAPER_RATES, chosen, paper_arm, scaled
from dragoman.lab.variants import COLUMNS, curve_figure, measure_any, of_variant, quality_figures, variant_arms
from dragoman.training.schedule import learning_rate

DEPTH = 3
SYNTHETIC_RATES = (1e-3, 2e-3, 4e-3)
SYNTHETIC_WARMUPS = {"none": 1, "20 steps": 20, "100 steps": 100}
SHARES = {"none": 0.0, "100 of 1,000": 0.1, "300 of 1,000": 0.3, "700 of 1,000": 0.7}


def named(warmup: str, rate: float) -> str:
    return f"warm-up {warmup}, {rate:g}"


def arms(settings: LabSettings) -> list[Arm]:
    synthetic = [
        synthetic_arm(settings, named(name, rate), seed, rate=rate, warmup=warmup, norm_order="post",
                      encoder_layers=DEPTH, decoder_layers=DEPTH)
        for name, warmup in SYNTHETIC_WARMUPS.items()
        for rate in SYNTHETIC_RATES
        for seed in settings.seed_list(3)
    ]  # fmt: skip
    return synthetic + tuned(settings) + recorded(settings)


def tuned(settings: LabSettings) -> list[Arm]:
    """Each warm-up at each rate by one seed, then each at its chosen rate by three."""
    steps = scaled("table3-base", settings.size).train.steps
    rates = PAPER_RATES[:1] if settings.size == "smoke" else PAPER_RATES
    trials, final = [], []
    for name, share in SHARES.items():
        changes: dict[str, Any] = {"train__warmup_steps": max(1, round(steps * share))}
        tried = {
            rate: paper_arm(settings, f"trial: {named(name, rate)}", 1, train__peak_rate=rate, **changes)
            for rate in rates
        }
        trials += list(tried.values())
        rate = chosen(settings, tried)
        final += [
            paper_arm(settings, f"warm-up {name}", seed, train__peak_rate=rate, **changes)
            for seed in settings.seed_list(3)
        ]
    return trials + final


def recorded(settings: LabSettings) -> list[Arm]:
    base = scaled("table3-base", settings.size)
    usual = max(1, base.train.steps * 3 // 10)
    paper: dict[str, Any] = {"model__norm_order": "post", "train__schedule": "paper", "train__peak_rate": None}
    peak = learning_rate(usual, base.model.d_model, usual)
    variants = {
        "recorded: 300 steps": {**paper, "train__warmup_steps": usual},
        "recorded: none": {**paper, "train__warmup_steps": 1, "train__peak_rate": peak},
    }
    shown = {
        "recorded: 100 steps": {**paper, "train__warmup_steps": max(1, usual // 3)},
        "recorded: 700 steps": {**paper, "train__warmup_steps": usual * 7 // 3},
    }
    return variant_arms(settings, variants, 2) + variant_arms(settings, shown, 1)


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    return measure_any(arm, settings)


def at_best(measured: Sequence[MeasuredArm], warmup: str) -> tuple[str, list[float]]:
    found = {rate: of_synthetic(measured, named(warmup, rate), "final_loss") for rate in SYNTHETIC_RATES}
    if not all(found.values()):
        return f"warm-up {warmup}", []
    best = min(found, key=lambda rate: mean(found[rate]))
    return named(warmup, best), found[best]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    (with_name, with_it), (without_name, without) = at_best(measured, "100 steps"), at_best(measured, "none")
    final = {name: of_variant(measured, f"warm-up {name}", "nll") for name in SHARES}
    long = [name for name in SHARES if SHARES[name] >= 0.3 and len(final[name]) > 1]
    best = min(long, key=lambda name: mean(final[name])) if len(long) == 2 else "300 of 1,000"
    return [
        higher("Synthetic task: warm-up helps, each at its own best rate.", with_it, without,
               (with_name, without_name), "nats a token", 0.1, lower_is_better=True),
        higher("Multi30k: warm-up helps, each at its own best rate.", final[best] if len(long) == 2 else [],
               final["none"], (f"warm-up {best}", "warm-up none"), "nats a token", 0.1, lower_is_better=True),
    ]  # fmt: skip


def show(measured: Sequence[MeasuredArm]) -> Shown:
    figures = [
        Figure("Synthetic task: loss at the end, by the highest rate", SYNTHETIC_RATES,
               {f"warm-up {name}": [mean_or_none(of_synthetic(measured, named(name, rate), "final_loss"))
                                    for rate in SYNTHETIC_RATES] for name in SYNTHETIC_WARMUPS},
               "highest rate", "nats a token"),
        *quality_figures(measured),
    ]  # fmt: skip
    if any(one.arm.kind == "translation" for one in measured):
        figures.append(curve_figure(measured, "gradient_norms", "Gradient norm while training", "norm", True))
    return Shown(("accuracy", "final_loss", *COLUMNS), figures)
