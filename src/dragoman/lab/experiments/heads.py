"""One head or several.

Claim: With a single head, averaging inhibits attending to several positions with different content; multi-head
attention counteracts the reduced resolution (3.2.2, section 2). One head is 0.9 BLEU worse than the best, too many
are worse too.

Method: (a) Translators on Multi30k at d_model = 512 with one layer a side, h = 1, 4, 8, 16 at equal computation:
BLEU, and how sharp the attention of the trained models is on 60 test sentences: entropy over its largest possible
value, and the largest weight. (b) A task that needs resolution: one attention layer with a feed-forward layer must
tell, at each position of a random sequence, the tokens at offsets -3, -1, +2 and +5, all four at once, from one look.

Rule: Resolution: on the task the mean accuracy of h = 8 is above that of h = 1 by more than two standard errors and
at least 0.05. Translation: BLEU of h = 8 is above that of h = 1 by at least 1.0 (one seed each, so a bound in place
of a spread; with several seeds, two standard errors too).
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.evaluation.charts import Figure
from dragoman.inspection.attention_trace import trace
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.rules import higher, mean, shown, spread
from dragoman.lab.tasks import fit, generator, one_thread, thinned
from dragoman.lab.translation import measure_translation, prepared_text, run_of, test_set, translation_arm
from dragoman.lab.variants import of_variant, quality_figures
from dragoman.model.checkpoint import load_transformer
from dragoman.model.probe import Site
from dragoman.model.transformer import FeedForward, MultiHeadAttention, sinusoids

OFFSETS, SYMBOLS, LENGTH = (-3, -1, 2, 5), 16, 24


def arms(settings: LabSettings) -> list[Arm]:
    smoke = settings.size == "smoke"
    width, steps = (16, 2) if smoke else (512, 700)
    translated = [
        translation_arm(
            settings, f"h = {h}", seed, model__d_model=width, model__d_ff=width, model__num_heads=h,
            model__d_k=width // h, model__d_v=width // h, model__encoder_layers=1, model__decoder_layers=1,
            train__steps=steps, train__warmup_steps=min(100, steps),
        )
        for h in ((1, 8) if smoke else (1, 4, 8, 16))
        for seed in settings.seed_list(1)
    ]  # fmt: skip
    sharpness = [Arm("heads-sharpness", arm.name, arm.configuration, 0.2) for arm in translated]
    task = [
        Arm("heads-task", f"h = {h}, seed {seed}", {"h": h, "seed": seed, "steps": 3 if smoke else 5000})
        for h in ((1, 8) if smoke else (1, 2, 4, 8, 16))
        for seed in settings.seed_list(3)
    ]
    return task + translated + sharpness


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    if arm.kind == "translation":
        return measure_translation(arm, settings)
    with one_thread():
        if arm.kind == "heads-task":
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

    def forward(self, ids: Tensor) -> Tensor:
        x = self.symbols(ids) + self.positions
        x = self.norms[0](x + self.attention.attend(*self.attention.project(x), Site("encoder", 0)))
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
    with torch.inference_mode():
        accuracy = float((model(ids)[:, inside].argmax(-1) == right[:, inside]).float().mean())
    return {"accuracy": accuracy, "losses": thinned(losses)}


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


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    task = [one for one in measured if one.arm.kind == "heads-task"]
    eight, one = values_of(task, "accuracy", h=8), values_of(task, "accuracy", h=1)
    bleu_eight, bleu_one = of_variant(measured, "h = 8", "bleu"), of_variant(measured, "h = 1", "bleu")
    return [
        Finding("Several heads recover the resolution that averaging loses.", higher(eight, one, least=0.05),
                f"right answers: {shown(eight, 3)} with eight heads, {shown(one, 3)} with one"),
        Finding("Eight heads translate better than one.", higher(bleu_eight, bleu_one, least=1.0),
                f"BLEU {shown(bleu_eight)} and {shown(bleu_one)}"),
    ]  # fmt: skip


def run(settings: LabSettings) -> ExperimentResult:
    measured = settings.queue.measure_all(arms(settings), lambda arm: measure(arm, settings))
    task = [one for one in measured if one.arm.kind == "heads-task"]
    heads = sorted({one.arm.configuration["h"] for one in task})
    sharp = [one for one in measured if one.arm.kind == "heads-sharpness"]
    names = list(sharp[0].measurements)
    figures = [
        Figure("Right answers on the task that needs resolution", heads,
               {"accuracy": [mean(values_of(task, "accuracy", h=h)) for h in heads]}, "heads", "share of right answers",
               log_x=True, spread={"accuracy": [spread(values_of(task, "accuracy", h=h)) for h in heads]}),
        *quality_figures([one for one in measured if one.arm.kind == "translation"]),
        Figure("How sharp attention is in the trained translators", list(range(len(sharp))),
               {name: [one.measurements[name] for one in sharp] for name in names}, "", "share", "bars",
               labels=[one.arm.name for one in sharp]),
    ]  # fmt: skip
    blur = ", ".join(f"{one.measurements['entropy, encoder']:.3f} ({one.arm.name})" for one in sharp)
    notes = [
        f"Entropy of the encoder's attention over its largest possible value: {blur}. Where that of one head is the "
        f"lowest, it does not blur several places into one; it looks at one of them only."
    ]
    columns = ("accuracy", "bleu", "perplexity", *names)
    return conclude("heads", settings, measured, judge(measured), columns, figures, notes)
