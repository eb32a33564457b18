"""Translators that differ from the base row in one setting: their arms, comparisons and figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from dragoman.data.batching import make_batch, plan_epoch
from dragoman.evaluation.charts import Figure
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import alike, higher, mean, spread
from dragoman.lab.synthetic import measure_synthetic
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import base_arms, config_of, measure_translation, prepared_text, translation_arm
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.sequence_model import make_model

COLUMNS = ("bleu", "perplexity", "length_ratio", "parameters", "skipped_steps")


def variant_arms(settings: LabSettings, variants: Mapping[str, Mapping[str, Any]], usual_seeds: int = 3) -> list[Arm]:
    return [
        translation_arm(settings, name, seed, **changes)
        for name, changes in variants.items()
        for seed in settings.seed_list(usual_seeds)
    ]


def with_base(settings: LabSettings, variants: Mapping[str, Mapping[str, Any]], usual_seeds: int = 3) -> list[Arm]:
    return base_arms(settings) + variant_arms(settings, variants, usual_seeds)


def measure_any(arm: Arm, settings: LabSettings) -> Measurements:
    """Measures an arm of any kind that several experiments have."""
    if arm.kind == "gradients":
        return measure_gradients(arm, settings)
    return measure_synthetic(arm) if arm.kind == "synthetic" else measure_translation(arm, settings)


TRANSLATORS = ("translation", "translator")


def translators(measured: Sequence[MeasuredArm]) -> list[MeasuredArm]:
    return [one for one in measured if one.arm.kind in TRANSLATORS]


def of_variant(measured: Sequence[MeasuredArm], name: str, measurement: str) -> list[float]:
    """One measurement of the translators of a variant, a value for each seed."""
    return [one.measurements[measurement] for one in translators(measured) if variant_of(one) == name]


def variant_of(measured: MeasuredArm) -> str:
    """The variant's name: the arm's, without its seed."""
    return measured.arm.name.rpartition(", seed ")[0]


def names_of(measured: Sequence[MeasuredArm]) -> list[str]:
    """The variants among these arms, in their order."""
    return list(dict.fromkeys(map(variant_of, translators(measured))))


# What a difference must have to count, and how it is told.
UNITS = {"bleu": "BLEU", "nll": "nats a token", "perplexity": "perplexity"}


def better(
    measured: Sequence[MeasuredArm], claim: str, a: str, b: str, measurement: str = "bleu", least: float = 0.0
) -> Finding:
    """Whether the translators of a are better than those of b: higher in BLEU, lower in perplexity and loss."""
    values = of_variant(measured, a, measurement), of_variant(measured, b, measurement)
    return higher(claim, *values, (a, b), UNITS[measurement], least, lower_is_better=measurement != "bleu")


def as_good(
    measured: Sequence[MeasuredArm], claim: str, a: str, b: str, tolerance: float, measurement: str = "bleu"
) -> Finding:
    """Whether the translators of a and b are nearly the same."""
    values = of_variant(measured, a, measurement), of_variant(measured, b, measurement)
    return alike(claim, *values, (a, b), UNITS[measurement], tolerance)


def quality_figures(measured: Sequence[MeasuredArm]) -> list[Figure]:
    """Bars of BLEU and perplexity with their spread, and curves of the training loss."""
    if not (names := names_of(measured)):
        return []
    at = list(range(len(names)))
    figures = [
        Figure(f"{label}", at, {label: [mean(of_variant(measured, name, key)) for name in names]}, "", label, "bars",
               labels=names, spread={label: [spread(of_variant(measured, name, key)) for name in names]})
        for key, label in (("bleu", "BLEU on the test set"), ("perplexity", "Perplexity on the validation set"))
    ]  # fmt: skip
    return [*figures, curve_figure(measured, "losses", "Training loss", "smoothed loss a token")]


def curve_figure(
    measured: Sequence[MeasuredArm], measurement: str, title: str, label: str, log_y: bool = False
) -> Figure:
    """A measurement while training, of the first seed of each variant, by the share of its steps that is done."""
    firsts: dict[str, MeasuredArm] = {}
    for one in measured:
        if one.arm.kind in TRANSLATORS:
            firsts.setdefault(variant_of(one), one)
    longest = max(len(one.measurements[measurement]) for one in firsts.values())
    points = min(longest, 20)

    def thin(values: Sequence[float]) -> list[float | None]:
        return [values[min(len(values) - 1, round((i + 1) * len(values) / points) - 1)] for i in range(points)]

    series = {name: thin(one.measurements[measurement]) for name, one in firsts.items()}
    return Figure(title, [round(100 * (i + 1) / points) for i in range(points)], series, "% of the training", label,
                  log_y=log_y)  # fmt: skip


def gradient_arm(like: Arm) -> Arm:
    """The arm that measures gradients at the first step of another arm's training."""
    return Arm("gradients", like.name, like.configuration, 0.1)


def measure_gradients(arm: Arm, settings: LabSettings) -> Measurements:
    """The gradient norm of each layer's feed-forward weights before training, encoder first."""
    config, prepared = config_of(arm), prepared_text(settings)
    with one_thread():
        torch.manual_seed(config.train.seed)
        model = make_model(config.model)
        tokens = config.train.batch_tokens
        rows = plan_epoch(prepared.train, tokens, tokens, config.train.seed, 0)[0][0]
        batch = make_batch(prepared.train, rows, prepared.tokenizer)
        hidden = model.states(batch.source, batch.target, batch.source_mask)
        loss, _ = smoothed_cross_entropy(batch.real_states(hidden), model.output.weight, batch.labels, 0.1)
        (loss / batch.tokens).backward()

    def norms(stack: Any) -> list[float]:
        return [float(layer.feed_forward.w_1.weight.grad.norm()) for layer in stack]

    return {"encoder": norms(model.encoder), "decoder": norms(model.decoder), "loss": loss.item() / batch.tokens}


def gradient_figure(measured: Sequence[MeasuredArm]) -> Figure:
    found = [one for one in measured if one.arm.kind == "gradients"]
    deepest = max(len(one.measurements["encoder"]) + len(one.measurements["decoder"]) for one in found)

    def padded(one: MeasuredArm) -> list[float | None]:
        values = [*one.measurements["encoder"], *one.measurements["decoder"]]
        return [*values, *[None] * (deepest - len(values))]

    return Figure("Gradient of the feed-forward weights before training, by layer: encoder, then decoder",
                  list(range(1, deepest + 1)), {variant_of(one): padded(one) for one in found}, "layer", "norm",
                  log_y=True)  # fmt: skip
