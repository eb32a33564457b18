"""Normalisation after or before each sub-layer, with and without warm-up.

Claim: The paper normalises after the residual sum (post-norm, 3.1) and needs its warm-up (5.3); later readers say
that normalising before the sub-layer (pre-norm) trains without it as well as with it.

Method: Post- and pre-norm, each with warm-up and with none, at several highest rates; the rate then falls straight to
zero. (a) The synthetic task (sequences reversed), three layers a side, rates of 1e-3 to 4e-3, three seeds, a warm-up of
100 of 500 steps. (b) Multi30k, rates of 1e-3, 2e-3 and 4e-3, three seeds, a warm-up of 200 of 1,000 steps, the same
search for all. (c) The two recorded seeds at 4e-3 of an earlier run. For each way the rate with the lowest mean loss
counts (its own best rate), and each rate is shown.

Rule: Post-norm needs it: at its own best rates, its loss with warm-up is lower than without by at least 0.1 nats.
Pre-norm does not: at its own best rates its loss without warm-up is within ± 0.1 nats of that with it. At one and the
same rate of 4e-3 (c), pre-norm's BLEU without warm-up is within ± 1 of that with it.
"""

from collections.abc import Sequence

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import alike, higher, mean, mean_or_none
from dragoman.lab.synthetic import WARMUP, of_synthetic, synthetic_arm
from dragoman.lab.translation import SCALES, base_arms, paper_arm
from dragoman.lab.variants import (
    COLUMNS,
    as_good,
    curve_figure,
    measure_any,
    of_variant,
    quality_figures,
    variant_arms,
)

ORDERS, WARMUPS = ("post", "pre"), ("warm-up", "no warm-up")
RATES = (1e-3, 2e-3, 4e-3)
DEPTH = 3
WAYS = tuple(f"{order}-norm, {name}" for order in ORDERS for name in WARMUPS)


def named(way: str, rate: float, where: str = "") -> str:
    return f"{where}{way}, {rate:g}"


def arms(settings: LabSettings) -> list[Arm]:
    warm = SCALES[settings.size].warmup_steps
    synthetic = [
        synthetic_arm(settings, named(f"{order}-norm, {name}", rate), seed, rate=rate, norm_order=order,
                      warmup=WARMUP if name == "warm-up" else 1, encoder_layers=DEPTH, decoder_layers=DEPTH)
        for order in ORDERS
        for name in WARMUPS
        for rate in RATES
        for seed in settings.seed_list(3)
    ]  # fmt: skip
    recorded = variant_arms(
        settings,
        {
            f"{order}-norm, {name}": {"model__norm_order": order, "train__warmup_steps": warm if index == 0 else 1}
            for order in ORDERS
            for index, name in enumerate(WARMUPS)
        },
        2,
    )
    own = [
        paper_arm(settings, named(f"{order}-norm, {name}", rate, "Multi30k, "), seed, model__norm_order=order,
                  train__schedule="linear", train__peak_rate=rate, train__warmup_steps=warm if index == 0 else 1)
        for order in ORDERS
        for index, name in enumerate(WARMUPS)
        for rate in RATES
        for seed in settings.seed_list(3)
    ]  # fmt: skip
    base = [
        Arm(a.kind, a.name.replace("base", "pre-norm, warm-up"), a.configuration, a.cost) for a in base_arms(settings)
    ]
    known = {arm.key for arm in recorded}
    return synthetic + recorded + [arm for arm in base if arm.key not in known] + own


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    return measure_any(arm, settings)


def losses(measured: Sequence[MeasuredArm], way: str, rate: float, where: str) -> list[float]:
    if where:
        return of_variant(measured, named(way, rate, where), "nll")
    return of_synthetic(measured, named(way, rate), "final_loss")


def at_best(measured: Sequence[MeasuredArm], way: str, where: str) -> tuple[str, list[float]]:
    """The way at its own best rate: its name and losses; no losses unless every rate is measured."""
    found = {rate: losses(measured, way, rate, where) for rate in RATES}
    if not all(found.values()):
        return way, []
    best = min(found, key=lambda rate: mean(found[rate]))
    return named(way, best), found[best]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    found = []
    for where, label in (("", "Synthetic task"), ("Multi30k, ", "Multi30k")):
        (post, post_warm), (post_cold_name, post_cold), (pre, pre_warm), (pre_cold_name, pre_cold) = (
            at_best(measured, way, where) for way in WAYS
        )
        found += [
            higher(f"{label}: post-norm needs the warm-up.", post_warm, post_cold, (post, post_cold_name),
                   "nats a token", 0.1, lower_is_better=True),
            alike(f"{label}: pre-norm without warm-up is as good as with it.", pre_cold, pre_warm,
                  (pre_cold_name, pre), "nats a token", 0.1),
        ]  # fmt: skip
    same_rate = "Multi30k at one rate of 4e-3: pre-norm without warm-up is as good as with it."
    return [*found, as_good(measured, same_rate, "pre-norm, no warm-up", "pre-norm, warm-up", 1.0)]


def show(measured: Sequence[MeasuredArm]) -> Shown:
    rates = list(RATES)
    figures = [
        Figure("Synthetic task: loss at the end, by the highest rate", rates,
               {way: [mean_or_none(losses(measured, way, rate, "")) for rate in rates] for way in WAYS},
               "highest rate", "nats a token"),
        *quality_figures(measured),
    ]  # fmt: skip
    if any(one.arm.kind == "translation" for one in measured):
        figures.append(curve_figure(measured, "gradient_norms", "Gradient norm while training", "norm", log_y=True))
    return Shown(("accuracy", "final_loss", *COLUMNS), figures)
