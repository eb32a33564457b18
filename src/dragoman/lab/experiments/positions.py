"""Sinusoidal, learned, single-number and no positions.

Claim: Without recurrence and convolution the model must be told the order of the tokens. Sinusoids and learned
positions produce nearly identical results; for any fixed offset the sinusoids at pos + k are a linear function of
those at pos; they may allow the model to extrapolate to sequences longer than those of training (3.5, Table 3 row E).

Method: A small encoder-decoder learns to copy and to reverse sequences of 4 to 16 symbols out of 12, with each kind
of position; share of right tokens in free-running greedy output within the training lengths and at 18 to 24. A linear
map between sinusoids at pos and pos + k is also compared with rotations, for all pos to 1,000 and k to 50, in
float64.

Rule: Shares of right tokens over the seeds. Order: without positions, copying and reversing are worse than with
sinusoids by at least 0.1. Nearly identical: within the training lengths sinusoids and learned positions are within ±
0.03 on both tasks. One number: on reversal it is worse than sinusoids by at least 0.1. Rotation: the largest error is
below 1e-9. Extrapolation: on copying at 18 to 24 the sinusoids are above learned positions by at least 0.05, and
their own share is at least 0.9: what would count as translating well there.
"""

from collections.abc import Sequence

import torch

from dragoman.config import ModelConfig
from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import Finding
from dragoman.lab.rules import alike, fact, higher, higher_in_pairs, mean, not_measured, spread
from dragoman.lab.tasks import FIRST, Pairs, fit, generator, one_thread, sequence_loss, thinned, token_accuracy
from dragoman.model.transformer import Transformer, sinusoids

KINDS = ("sinusoidal", "learned", "index", "none")
TASKS = ("copy", "reverse")
SYMBOLS, SHORTEST, LONGEST, BEYOND = 12, 4, 16, 24


def arms(settings: LabSettings) -> list[Arm]:
    steps, tested = (3, 2) if settings.size == "smoke" else (1200, 100)
    return [Arm("positions", "rotation", {"part": "rotation"}, 0.01)] + [
        Arm(
            "positions",
            f"{task}, {kind}, seed {seed}",
            {"part": "task", "task": task, "kind": kind, "seed": seed, "steps": steps, "tested": tested},
        )
        for task in TASKS
        for kind in KINDS
        for seed in settings.seed_list(4)
    ]


def measure(arm: Arm, settings: LabSettings) -> Measurements:  # noqa: ARG001
    values = arm.configuration
    with one_thread():
        if values["part"] == "rotation":
            return rotation()
        return learn(values["task"], values["kind"], values["seed"], values["steps"], values["tested"])


def rotation() -> Measurements:
    """The largest error of: each (sine, cosine) pair at pos + k is that at pos, rotated by k times its frequency."""
    d_model, largest = 128, 0.0
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    pos = torch.arange(1000, dtype=torch.float64)[:, None]
    sine, cosine = (pos * frequency).sin(), (pos * frequency).cos()
    for offset in range(1, 51):
        turn_sine, turn_cosine = (offset * frequency).sin(), (offset * frequency).cos()
        turned = sine * turn_cosine + cosine * turn_sine, cosine * turn_cosine - sine * turn_sine
        straight = ((pos + offset) * frequency).sin(), ((pos + offset) * frequency).cos()
        largest = max(largest, *(float((a - b).abs().max()) for a, b in zip(turned, straight, strict=True)))
    # The model's own table is these numbers, in float32.
    table = torch.stack((sine, cosine), dim=-1).flatten(1)
    return {"largest_error": largest, "table_error": float((sinusoids(1000, d_model) - table).abs().max())}


def draw_pairs(task: str, count: int, length: int, draw: torch.Generator) -> Pairs:
    source = torch.randint(FIRST, FIRST + SYMBOLS, (count, length), generator=draw)
    return source, source.flip(1) if task == "reverse" else source


def learn(task: str, kind: str, seed: int, steps: int, tested: int) -> Measurements:
    torch.manual_seed(seed)
    config = ModelConfig(
        vocab_size=FIRST + SYMBOLS, encoder_layers=2, decoder_layers=2, d_model=64, d_ff=128, num_heads=4, dropout=0.0,
        norm_order="pre", positions=kind, max_positions=BEYOND + 2,  # type: ignore[arg-type]
    )  # fmt: skip
    model = Transformer(config)

    def loss_at(step: int) -> torch.Tensor:
        draw = generator(seed, step)
        length = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=draw))
        return sequence_loss(model, draw_pairs(task, 32, length, draw))

    losses = fit(model, loss_at, steps, peak_rate=2e-3, warmup_steps=100)
    lengths = [4, 8, 12, 16, 18, 20, 24]
    by_length = [token_accuracy(model, draw_pairs(task, tested, n, generator(seed, 0, n))) for n in lengths]
    return {
        "within": mean(by_length[:4]),
        "beyond": mean(by_length[4:]),
        "by_length": by_length,
        "lengths": lengths,
        "losses": thinned(losses),
    }


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    unit = "of the tokens right"

    def right(task: str, kind: str, where: str = "within") -> list[float]:
        return values_of(measured, where, task=task, kind=kind)

    def worse(claim: str, task: str, kind: str) -> Finding:
        return higher(claim, right(task, "sinusoidal"), right(task, kind), ("sinusoids", kind), unit, 0.1, 3)

    beyond, learned = right("copy", "sinusoidal", "beyond"), right("copy", "learned", "beyond")
    there = "Beyond the training lengths sinusoids still copy well: at least 0.9 right."
    return [
        worse("Without positions the model cannot reverse.", "reverse", "none"),
        worse("Without positions the model cannot copy.", "copy", "none"),
        worse("One number for the position will not do for reversal.", "reverse", "index"),
        *(alike(f"Sinusoids and learned positions are nearly identical ({task}).", right(task, "sinusoidal"),
                right(task, "learned"), ("sinusoids", "learned"), unit, 0.03, 3) for task in TASKS),
        rotated(measured),
        higher("Beyond the training lengths sinusoids copy better than learned positions.", beyond, learned,
               ("sinusoids", "learned"), unit, 0.05, 3),
        higher_in_pairs(there, beyond, [0.9] * len(beyond), (f"at 18 to {BEYOND}", "asked"), unit, 0.0, 3),
    ]  # fmt: skip


def rotated(measured: Sequence[MeasuredArm]) -> Finding:
    claim = "A fixed offset is a fixed rotation."
    found = [one.measurements for one in measured if one.arm.configuration["part"] == "rotation"]
    if not found:
        return not_measured(claim, "waits for: rotation")
    largest = found[0]["largest_error"]
    return fact(claim, largest < 1e-9, f"largest error {largest:.1e} in float64", largest)


def show(measured: Sequence[MeasuredArm]) -> Shown:
    trained = [one for one in measured if "lengths" in one.measurements]
    if not trained:
        return Shown()
    lengths = trained[0].measurements["lengths"]
    figures = []
    for task in TASKS:
        curves = {kind: several for kind in KINDS if (several := values_of(trained, "by_length", task=task, kind=kind))}
        columns = {kind: list(zip(*several, strict=True)) for kind, several in curves.items()}
        figures.append(
            Figure(
                f"Right tokens by length: {task} (trained on {SHORTEST} to {LONGEST})",
                lengths,
                {kind: [mean(column) for column in columns[kind]] for kind in columns},
                "length",
                "share of right tokens",
                spread={kind: [spread(column) for column in columns[kind]] for kind in columns},
            )
        )
    notes = [
        "“index” adds the position itself, over 100, to every component: one number in place of a vector.",
        "A decoder knows where it is even without positions, as the mask lets it count; the encoder does not.",
    ]
    return Shown(("within", "beyond", "largest_error"), figures, notes)
