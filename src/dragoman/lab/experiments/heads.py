"""One head or several.

Claim: With a single head, averaging inhibits attending to several positions with different content; multi-head
attention counteracts the reduced resolution (3.2.2, section 2). One head is 0.9 BLEU worse than the best, too many
are worse too.

Method: (a) A task that needs resolution: one attention layer of width 64 with a feed-forward layer must tell, at each
position of a random sequence, the tokens at offsets -3, -1, +2 and +5, all four at once, from one look; h = 1, 2, 8
and 64 at equal computation, four seeds, 3,000 steps; and as recorded before, 5,000 steps, h = 1 to 16, three seeds.
How sharp its attention is after training: entropy over its largest possible value, and the largest weight. (b)
Translators of the quick family on Multi30k at d_model = 512 with one layer a side, h = 1, 4, 8, 16: BLEU, and the
same two measures on 60 test sentences. One head of 512 may only need another rate: h = 1 and h = 8 are also trained
at a half and a quarter of it, three seeds each.

Rule: Resolution: on the task (5,000 steps) right answers are more with h = 8 than with h = 1 by at least 0.05.
Sharpness: one head's attention has a lower largest weight than eight heads', by at least 0.05: it averages. Too many:
with h = 64 (d_k = 1) right answers are fewer than with 8 by at least 0.05. Translation: BLEU of h = 8 is above that
of h = 1 by at least 0.5, each at its own best of three rates.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.evaluation.charts import Figure
from dragoman.inspection.attention_trace import trace
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import Finding
from dragoman.lab.rules import higher, mean, spread
from dragoman.lab.tasks import fit, generator, one_thread, thinned
from dragoman.lab.translation import measure_translation, prepared_text, run_of, test_set, translation_arm
from dragoman.lab.variants import of_variant, quality_figures
from dragoman.model.checkpoint import load_transformer
from dragoman.model.probe import Probe, Site
from dragoman.model.transformer import FeedForward, MultiHeadAttention, sinusoids

OFFSETS, SYMBOLS, LENGTH = (-3, -1, 2, 5), 16, 24


TASK_HEADS, RATES = (1, 2, 8, 64), {"": 1.0, ", half the rate": 0.5, ", a quarter of the rate": 0.25}


def arms(settings: LabSettings) -> list[Arm]:
    smoke = settings.size == "smoke"
    width, steps = (16, 2) if smoke else (512, 700)

    def translator(h: int, seed: int, name: str, factor: float) -> Arm:
        rate: dict[str, Any] = {} if factor == 1 else {"train__peak_rate": 2e-3 * factor}
        return translation_arm(
            settings, f"h = {h}{name}", seed, model__d_model=width, model__d_ff=width, model__num_heads=h,
            model__d_k=width // h, model__d_v=width // h, model__encoder_layers=1, model__decoder_layers=1,
            train__steps=steps, train__warmup_steps=min(100, steps), **rate,
        )  # fmt: skip

    several = [translator(h, 1, "", 1.0) for h in ((1, 8) if smoke else (1, 4, 8, 16))]
    by_rate = [
        translator(h, seed, name, factor)
        for h in (1, 8)
        for name, factor in RATES.items()
        for seed in settings.seed_list(3)
        if (factor, seed) != (1.0, 1)
    ]
    sharpness = [Arm("heads-sharpness", arm.name, arm.configuration, 0.2) for arm in several]
    recorded = [
        Arm("heads-task", f"recorded: h = {h}, seed {seed}", {"h": h, "seed": seed, "steps": 3 if smoke else 5000})
        for h in ((1, 8) if smoke else (1, 2, 4, 8, 16))
        for seed in settings.seed_list(3)
    ]
    task = [
        Arm("heads-offsets", f"h = {h}, seed {seed}", {"h": h, "seed": seed, "steps": 3 if smoke else 3000})
        for h in ((1, 8, 64) if smoke else TASK_HEADS)
        for seed in settings.seed_list(4)
    ]
    return recorded + task + several + sharpness + by_rate


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    if arm.kind == "translation":
        return measure_translation(arm, settings)
    with one_thread():
        if arm.kind in ("heads-offsets", "heads-task"):
            return learn(**arm.configuration)
        return sharpness(arm, settings)


class OffsetModel(nn.Module):
    """One layer of attention and feed-forward over symbols and positions that predicts the symbol at each offset."""

    def __init__(self, h: int, d_model: int = 64) -> None:
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, d_model)
        self.attention = MultiHeadAttention(d_model, h, d_model // h, d_model // h)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2))
        self.feed_forward = FeedForward(d_model, 4 * d_model)
        self.output = nn.Linear(d_model, len(OFFSETS) * SYMBOLS)
        self.positions = sinusoids(LENGTH, d_model)

    def forward(self, ids: Tensor, probe: Probe | None = None) -> Tensor:
        x = self.symbols(ids) + self.positions
        x = self.norms[0](x + self.attention.attend(*self.attention.project(x), Site("encoder", 0), probe=probe))
        x = self.norms[1](x + self.feed_forward(x))
        return self.output(x).view(*ids.shape, len(OFFSETS), SYMBOLS)  # type: ignore[no-any-return]


def draw_looks(count: int, draw: torch.Generator) -> tuple[Tensor, Tensor, slice]:
    """Symbols, the right answers (B, T, offsets), and the positions from which all offsets are inside the sequence."""
    ids = torch.randint(SYMBOLS, (count, LENGTH), generator=draw)
    right = torch.stack([ids.roll(-offset, dims=1) for offset in OFFSETS], dim=-1)
    return ids, right, slice(-min(OFFSETS), LENGTH - max(OFFSETS))


def learn(h: int, seed: int, steps: int) -> Measurements:
    torch.manual_seed(seed)
    model = OffsetModel(h)

    def loss_at(step: int) -> Tensor:
        ids, right, inside = draw_looks(32, generator(seed, step))
        return F.cross_entropy(model(ids)[:, inside].flatten(0, 2), right[:, inside].flatten())

    losses = fit(model, loss_at, steps, peak_rate=3e-3, warmup_steps=100)
    ids, right, inside = draw_looks(200, generator(seed, 0))
    probe = Probe()
    with torch.inference_mode():
        accuracy = float((model(ids, probe)[:, inside].argmax(-1) == right[:, inside]).float().mean())
        rows = probe.weights[Site("encoder", 0)][:, :, inside].flatten(0, 2)
    return {"accuracy": accuracy, "losses": thinned(losses), **sharpness_of(rows)}


def sharpness_of(rows: Tensor) -> Measurements:
    """Of rows of weights over equally many keys: the mean entropy over its largest value, the mean largest weight."""
    entropy = torch.special.entr(rows).sum(-1) / math.log(rows.shape[-1])
    return {"entropy": float(entropy.mean()), "largest_weight": float(rows.max(-1).values.mean())}


def sharpness(arm: Arm, settings: LabSettings) -> Measurements:
    """How concentrated attention is: means over heads, rows and sentences, of rows with more than one key."""
    model, tokenizer = load_transformer(run_of(arm, settings)), prepared_text(settings).tokenizer
    sums: dict[str, list[float]] = {}
    for source, target in list(zip(*test_set(settings), strict=True))[:60]:
        ids = (
            [*tokenizer.encode(source), tokenizer.eos_id],
            [tokenizer.bos_id, *tokenizer.encode_target(target), tokenizer.eos_id],
        )
        for site, weights in trace(model, *ids).weights.items():
            keys = (weights > 0).sum(-1)
            rows = weights[keys > 1]
            entropy = torch.special.entr(rows).sum(-1) / keys[keys > 1].log()
            sums.setdefault(f"entropy, {site.kind}", []).append(float(entropy.mean()))
            sums.setdefault(f"largest weight, {site.kind}", []).append(float(rows.max(-1).values.mean()))
    return {name: mean(values) for name, values in sums.items()}


def of_task(measured: Sequence[MeasuredArm], name: str, h: int) -> list[float]:
    return values_of([one for one in measured if one.arm.kind == "heads-offsets"], name, h=h)


def at_best(measured: Sequence[MeasuredArm], h: int) -> tuple[str, list[float]]:
    """The number of heads at the rate with the lowest validation loss: its name and BLEU; nothing until all are
    measured."""
    losses = {name: of_variant(measured, f"h = {h}{name}", "nll") for name in RATES}
    if not all(losses.values()):
        return f"h = {h}, three rates", []
    best = f"h = {h}" + min(losses, key=lambda name: mean(losses[name]))
    return best, of_variant(measured, best, "bleu")


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    def compared(claim: str, name: str, more: int, fewer: int, unit: str) -> Finding:
        values = of_task(measured, name, more), of_task(measured, name, fewer)
        return higher(claim, *values, (f"h = {more}", f"h = {fewer}"), unit, 0.05, 3)

    (eight, bleu_eight), (one, bleu_one) = at_best(measured, 8), at_best(measured, 1)
    task = [found for found in measured if found.arm.kind == "heads-task"]
    longer = values_of(task, "accuracy", h=8), values_of(task, "accuracy", h=1)
    return [
        higher("Several heads recover the resolution that averaging loses.", *longer, ("h = 8", "h = 1"),
               "of the answers right", 0.05, 3),
        compared("One head averages: eight look more sharply.", "largest_weight", 8, 1, "of the weight"),
        compared("Too many heads are worse.", "accuracy", 8, 64, "of the answers right"),
        higher("Multi30k: eight heads translate better than one.", bleu_eight, bleu_one, (eight, one), "BLEU", 0.5),
    ]  # fmt: skip


def show(measured: Sequence[MeasuredArm]) -> Shown:
    heads = sorted({one.arm.configuration["h"] for one in measured if one.arm.kind == "heads-offsets"})
    sharp = [one for one in measured if one.arm.kind == "heads-sharpness"]
    figures, names, notes = [], [], []
    if heads:
        figures = [
            Figure(title, heads, {name: [mean(of_task(measured, name, h)) for h in heads] for name in several}, "heads",
                   label, log_x=True,
                   spread={name: [spread(of_task(measured, name, h)) for h in heads] for name in several})
            for title, several, label in (
                ("Right answers on the task that needs resolution", ["accuracy"], "share of right answers"),
                ("How sharp attention is on it", ["entropy", "largest_weight"], "share"))
        ]  # fmt: skip
    if sharp:
        names = list(sharp[0].measurements)
        figures.append(
            Figure("How sharp attention is in the trained translators", list(range(len(sharp))),
                   {name: [one.measurements[name] for one in sharp] for name in names}, "", "share", "bars",
                   labels=[one.arm.name for one in sharp])
        )  # fmt: skip
        blur = ", ".join(f"{one.measurements['entropy, encoder']:.3f} ({one.arm.name})" for one in sharp)
        notes = [
            f"Entropy of the translators' encoder attention over its largest possible value: {blur}. Where that of one "
            f"head is the lowest, it does not blur several places into one; it looks at one of them only. One head of "
            f"512 at this rate may be saturated: the arms at lower rates are to say so."
        ]
    columns = ("accuracy", "entropy", "largest_weight", "bleu", "perplexity", *names)
    return Shown(columns, [*figures, *quality_figures(measured)], notes)
