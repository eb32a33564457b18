"""Layer against batch normalisation.

Claim: Layer normalisation (3.1) suits sentences of varying length; batch normalisation, whose statistics mix
sentences and positions, does not: readers ask whether its training diverges, and what padding does to it.

Method: (a) The synthetic task (sequences reversed), 24 sequences of 4 to 10 symbols in one batch, the short ones
padded, so that padding is in the statistics; five seeds each. Share of right tokens, where the decoder is given the
right ones before, with running statistics and with those of the batch at hand; the same sequences once more with ten
positions of padding added to each: what changes in the states of the real ones. (b) The quick family's base row on
Multi30k with each, where batch normalisation sees real positions and no padding but what a batch needs; the
validation loss also with the statistics of the batch at hand.

Rule: Divergence: the training loss with batch normalisation ends above where it began (a ratio of at least 1).
Quality: with layer normalisation right tokens are more by at least 0.03 (a), BLEU higher by at least 0.5 (b). Running
statistics: they cost at least 0.03 of right tokens against those of the batch. Padding: it changes the states with
batch normalisation by at least a hundredth of their size; with layer normalisation by less than a millionth.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.data.batching import make_batch, plan_epoch
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import Finding
from dragoman.lab.rules import fact, higher, higher_in_pairs, mean, not_measured
from dragoman.lab.synthetic import BATCH, LONGEST, RATE, SHORTEST, STEPS, SYMBOLS, WARMUP, make_reverser
from dragoman.lab.tasks import END, FIRST, PAD, START, fit, generator, one_thread, thinned
from dragoman.lab.translation import mean_nll, prepared_text, run_of
from dragoman.lab.variants import COLUMNS, better, measure_any, quality_figures, translators, variant_arms, with_base
from dragoman.model.checkpoint import load_model
from dragoman.model.transformer import Transformer
from dragoman.model.variants import BatchNorm

VARIANTS = {"batch norm": {"model__norm": "batch"}}
NORMS = ("layer", "batch")
MORE_PADDING = 10


def arms(settings: LabSettings) -> list[Arm]:
    steps = 3 if settings.size == "smoke" else STEPS
    padded = [
        Arm("norm-padded", f"{norm} norm, seed {seed}", {"norm": norm, "seed": seed, "steps": steps})
        for norm in NORMS
        for seed in settings.seed_list(5)
    ]
    batch_norm = variant_arms(settings, VARIANTS)
    looked_at = [Arm("norm", arm.name, arm.configuration, 0.1) for arm in batch_norm]
    return padded + with_base(settings, VARIANTS) + looked_at


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    if arm.kind == "norm-padded":
        with one_thread():
            return learn_padded(**arm.configuration)
    if arm.kind != "norm":
        return measure_any(arm, settings)
    model, prepared = load_model(run_of(arm, settings)), prepared_text(settings)
    plan = [rows for step in plan_epoch(prepared.valid, 1000, 1000, 0, 0) for rows in step]
    losses = {}
    with one_thread(), torch.inference_mode():
        for statistics in ("running", "of the batch"):
            use_statistics(model, of_batch=statistics == "of the batch")
            batches = (make_batch(prepared.valid, rows, prepared.tokenizer) for rows in plan)
            losses[f"nll, statistics {statistics}"] = mean_nll(model, batches)
    return losses


def use_statistics(model: torch.nn.Module, of_batch: bool) -> None:
    for part in model.modules():
        if isinstance(part, BatchNorm):
            part.train(of_batch)
            part.norm.momentum = 0.0  # look, and leave the running means as they are


def draw_padded(seed: int, step: int, more: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sources, decoder inputs, labels and the mask of real source positions, of sequences of several lengths."""
    draw = generator(seed, step)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (BATCH,), generator=draw)
    width = LONGEST + 2 + more
    source, fed, labels = (torch.full((BATCH, width), PAD) for _ in range(3))
    for row, length in enumerate(lengths.tolist()):
        symbols = torch.randint(FIRST, FIRST + SYMBOLS, (length,), generator=draw)
        source[row, : length + 1] = torch.cat((symbols, torch.tensor([END])))
        fed[row, : length + 1] = torch.cat((torch.tensor([START]), symbols.flip(0)))
        labels[row, : length + 1] = torch.cat((symbols.flip(0), torch.tensor([END])))
    return source, fed, labels, source != PAD


def states_of(model: Transformer, source: Tensor, fed: Tensor, real: Tensor) -> Tensor:
    return model.states(source, fed, real)


def learn_padded(norm: str, seed: int, steps: int) -> Measurements:
    model = make_reverser(seed, norm=norm)

    def loss_at(step: int) -> Tensor:
        source, fed, labels, real = draw_padded(seed, step)
        logits = model.output(states_of(model, source, fed, real))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD)

    losses = fit(model, loss_at, steps, RATE, WARMUP)
    model.eval()
    found: Measurements = {"first_loss": mean(losses[:5]), "final_loss": mean(losses[-20:]), "losses": thinned(losses)}
    with torch.inference_mode():
        source, fed, labels, real = draw_padded(seed, 0)
        for name, of_batch in (("running", False), ("batch", True)):
            use_statistics(model, of_batch)
            states = states_of(model, source, fed, real)
            right = model.output(states).argmax(-1) == labels
            found[f"accuracy_{name}"] = float(right[labels != PAD].float().mean())
            longer_source, longer_fed, _, longer_real = draw_padded(seed, 0, MORE_PADDING)
            longer = states_of(model, longer_source, longer_fed, longer_real)[:, : fed.shape[1]]
            here = labels != PAD
            change = (longer - states)[here].norm() / states[here].norm()
            found[f"padding_changes_{name}"] = float(change)
    return found


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    def of(name: str, norm: str) -> list[float]:
        return values_of([one for one in measured if one.arm.kind == "norm-padded"], name, norm=norm)

    unit, accuracy = "of the tokens right", "accuracy_running"
    running, at_hand = of(accuracy, "batch"), of("accuracy_batch", "batch")
    return [
        diverges("Synthetic task: training with batch normalisation diverges.", of("first_loss", "batch"),
                 of("final_loss", "batch")),
        higher("Synthetic task: layer normalisation is better.", of(accuracy, "layer"), running, NORMS, unit, 0.03, 3),
        higher_in_pairs("Synthetic task: the running statistics of batch normalisation cost something.", at_hand,
                        running, ("statistics of the batch", "running"), unit, 0.03, 3),
        changes("Padding changes what batch normalisation by the batch at hand makes of a sentence.",
                of("padding_changes_batch", "batch"), 0.01),
        unchanged("It does not change what layer normalisation makes of it.", of("padding_changes_running", "layer")),
        better(measured, "Multi30k: layer normalisation translates better.", "base", "batch norm", least=0.5),
    ]  # fmt: skip


def diverges(claim: str, first: Sequence[float], last: Sequence[float]) -> Finding:
    ratios = [end / start for start, end in zip(first, last, strict=True)]
    return higher_in_pairs(
        claim, ratios, [1.0] * len(ratios), ("loss at the end over the first", "no fall"), "times", 0.0
    )


def changes(claim: str, values: Sequence[float], least: float) -> Finding:
    nothing = [0.0] * len(values)
    return higher_in_pairs(claim, values, nothing, ("relative change", "none"), "of the states' norm", least, 3)


def unchanged(claim: str, values: Sequence[float]) -> Finding:
    if not values:
        return not_measured(claim, "waits for: layer norm")
    return fact(
        claim, max(values) < 1e-6, f"largest relative change {max(values):.1e}", max(values), "of the states' norm"
    )


def show(measured: Sequence[MeasuredArm]) -> Shown:
    notes = [
        f"Multi30k, {one.arm.name}: " + "; ".join(f"{name} {value:.3f}" for name, value in one.measurements.items())
        for one in measured
        if one.arm.kind == "norm"
    ]
    columns = (
        "accuracy_running", "accuracy_batch", "padding_changes_running", "padding_changes_batch", "first_loss",
        "final_loss",
    )  # fmt: skip
    return Shown((*columns, *COLUMNS), quality_figures(translators(measured)), notes)
