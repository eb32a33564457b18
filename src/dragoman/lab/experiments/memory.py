"""Memory of training by length.

Claim: Self-attention holds n² weights, so its memory grows with the square of the length, where a recurrent or
convolutional layer's grows with the length; long sentences run out of memory first there. (Readers ask it; the paper
says only that memory limits the batches of recurrent models at long lengths, section 1.)

Method: Whole encoders of four layers, d = 128, for one sequence of n = 64 to 2,048 vectors: the largest amount of
memory allocated at one time in one forward and backward pass, from the profiler's record of every allocation, weights
and their gradients not counted before the pass. The paper's encoder by equation 1 step by step, which keeps every
weight for the backward pass; the same through torch's fused kernel, which does not; bidirectional LSTM; convolutions
of width 3 with residual connections.

Rule: Exponents of memory over the upper three lengths, by their values (the count has no noise): attention by
equation 1 at least 1.7; LSTM, convolution and the fused kernel at most 1.2. Where it hurts: at n = 64 attention by
equation 1 takes at most twice the LSTM's memory, and at n = 2,048 at least five times.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.experiments.table1 import peak_bytes
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import fact, not_measured, slope
from dragoman.lab.tasks import one_thread
from dragoman.model.probe import Probe
from dragoman.model.transformer import Transformer

D, LAYERS = 128, 4
EXPLICIT = "attention, equation 1"
KINDS = (EXPLICIT, "attention, fused", "lstm", "convolution")


def arms(settings: LabSettings) -> list[Arm]:
    lengths = [16, 32, 64] if settings.size == "smoke" else [64, 128, 256, 512, 1024, 2048]
    return [Arm("memory", kind, {"kind": kind, "n": lengths, "d": D, "layers": LAYERS}) for kind in KINDS]


def measure(arm: Arm, settings: LabSettings) -> Measurements:  # noqa: ARG001
    values = arm.configuration
    with one_thread():
        torch.manual_seed(1)
        encode = encoder_of(values["kind"])
        return {"n": values["n"], "peak_bytes": [training_peak(encode, n) for n in values["n"]]}


def training_peak(encode: Callable[[Tensor], Tensor], n: int) -> int:
    x = torch.randn(1, n, D)

    def train_pass(given: Tensor) -> None:
        encode(given).sum().backward()

    train_pass(x)  # so that what a first pass makes and keeps is not counted: gradients of the weights
    return peak_bytes(train_pass, x)


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(D, D, 3, padding=1) for _ in range(LAYERS))

    def forward(self, x: Tensor) -> Tensor:
        x = x.mT
        for layer in self.layers:
            x = x + layer(x).relu()
        return x.mT


def encoder_of(kind: str) -> Callable[[Tensor], Tensor]:
    """A whole encoder as a function of its first layer's input (1, n, D)."""
    if kind == "convolution":
        return Convolutions()
    if kind == "lstm":
        lstm = nn.LSTM(D, D // 2, LAYERS, batch_first=True, bidirectional=True)
        return lambda x: lstm(x)[0]
    model = Transformer(
        ModelConfig(
            vocab_size=8, encoder_layers=LAYERS, decoder_layers=0, d_model=D, d_ff=4 * D, num_heads=8, dropout=0
        )
    )

    def encode(x: Tensor) -> Tensor:
        probe = Probe() if kind == EXPLICIT else None
        for number, layer in enumerate(model.encoder):
            x = layer(x, None, number, probe)
        return x

    return encode


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    found = {one.arm.configuration["kind"]: one.measurements["peak_bytes"] for one in measured}
    if len(found) < len(KINDS):
        return [not_measured("Memory grows with the square of the length.", "waits for: encoders")]
    lengths = measured[0].measurements["n"]
    findings = []
    for kind in KINDS:
        exponent = slope(lengths[-3:], found[kind][-3:]).value
        square = kind == EXPLICIT
        findings.append(
            fact(f"{kind}: memory grows {'nearly with the square of' if square else 'with'} the length.",
                 exponent >= 1.7 if square else exponent <= 1.2,
                 f"n^{exponent:.2f} from {lengths[-3]} to {lengths[-1]}", exponent, "exponent")
        )  # fmt: skip
    short, long = (found[EXPLICIT][at] / found["lstm"][at] for at in (0, -1))
    return [
        *findings,
        fact(f"It does not hurt at n = {lengths[0]}.", short <= 2, f"{short:.2f} times the LSTM's memory", short,
             "times the LSTM's"),
        fact(f"It does at n = {lengths[-1]}.", long >= 5, f"{long:.1f} times the LSTM's memory", long,
             "times the LSTM's"),
    ]  # fmt: skip


def show(measured: Sequence[MeasuredArm]) -> Shown:
    lengths = measured[0].measurements["n"]
    megabytes = {one.arm.configuration["kind"]: [v / 2**20 for v in one.measurements["peak_bytes"]] for one in measured}
    figures = [Figure(f"Peak memory of a training pass, {LAYERS} layers, d = {D}", lengths, megabytes, "n", "MB",
                      log_x=True, log_y=True)]  # fmt: skip
    rows = [
        {"n": n} | {f"{kind}, MB": values[at] for kind, values in megabytes.items()} for at, n in enumerate(lengths)
    ]
    fused = megabytes.get("attention, fused")
    notes = [] if fused is None else [
        "The quadratic memory is equation 1's as it is written. A kernel that computes it block by block and again in "
        "the backward pass needs memory as the length, at the same quadratic time."
    ]  # fmt: skip
    return Shown(figures=figures, notes=notes, rows=rows)
