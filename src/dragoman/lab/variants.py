"""Translators that differ from the base row in one setting: their arms, comparisons and figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from dragoman.data.batching import make_batch, plan_epoch
from dragoman.evaluation.charts import Figure
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import higher, mean, pooled_spread, shown, spread
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import base_arms, config_of, measure_translation, prepared_text, translation_arm
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.sequence_model import make_model

COLUMNS = ("bleu", "perplexity", "length_ratio", "parameters", "skipped_steps")


def variant_arms(settings: LabSettings, variants: Mapping[str, Mapping[str, Any]], usual_seeds: int = 1) -> list[Arm]:
    return [
        translation_arm(settings, name, seed, **changes)
        for name, changes in variants.items()
        for seed in settings.seed_list(usual_seeds)
    ]


def with_base(settings: LabSettings, variants: Mapping[str, Mapping[str, Any]], usual_seeds: int = 1) -> list[Arm]:
    return base_arms(settings) + variant_arms(settings, variants, usual_seeds)


def measure_variants(settings: LabSettings, arms: Sequence[Arm]) -> list[MeasuredArm]:
    """Measures arms that train translators, and arms that measure their gradients."""
    return settings.queue.measure_all(arms, lambda arm: measure_any(arm, settings))


def measure_any(arm: Arm, settings: LabSettings) -> Measurements:
    return measure_gradients(arm, settings) if arm.kind == "gradients" else measure_translation(arm, settings)


def of_variant(measured: Sequence[MeasuredArm], name: str, measurement: str) -> list[float]:
    """One measurement of the translators of a variant, a value for each seed."""
    found = [k.measurements[measurement] for k in measured if k.arm.kind == "translation" and variant_of(k) == name]
    assert found, f"no arm {name}"
    return found


def variant_of(measured: MeasuredArm) -> str:
    """The variant's name: the arm's, without its seed."""
    return measured.arm.name.rpartition(", seed ")[0]


def names_of(measured: Sequence[MeasuredArm]) -> list[str]:
    """The variants among these arms, in their order."""
    return list(dict.fromkeys(variant_of(one) for one in measured if one.arm.kind == "translation"))


def noise(measured: Sequence[MeasuredArm], measurement: str) -> float | None:
    """The standard deviation over seeds, of all variants that have several (mostly the base row)."""
    return pooled_spread([of_variant(measured, name, measurement) for name in names_of(measured)])


def better(measured: Sequence[MeasuredArm], claim: str, a: str, b: str, measurement: str = "bleu") -> Finding:
    """Whether a is better than b beyond the noise: higher in BLEU, lower in perplexity and loss."""
    of_a, of_b = of_variant(measured, a, measurement), of_variant(measured, b, measurement)
    sign = 1 if measurement == "bleu" else -1
    band = noise(measured, measurement)
    verdict = higher([sign * v for v in of_a], [sign * v for v in of_b], band)
    noise_text = "of one seed each" if band is None else f"standard deviation over seeds {band:.2f}"
    label = {"bleu": "BLEU", "nll": "loss on the validation set"}.get(measurement, measurement)
    return Finding(claim, verdict, f"{label}: {a} {shown(of_a)}, {b} {shown(of_b)}; {noise_text}")


def quality_figures(measured: Sequence[MeasuredArm]) -> list[Figure]:
    """Bars of BLEU and perplexity with their spread, and curves of the training loss."""
    names = names_of(measured)
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
        if one.arm.kind == "translation":
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
