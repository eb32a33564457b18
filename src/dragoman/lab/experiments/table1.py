"""Table 1: complexity, sequential operations and path lengths of four kinds of layer.

Claim: A layer of self-attention costs O(n² d), a recurrent one O(n d²), a convolutional one O(k n d²), self-attention
restricted to r positions O(r n d); sequential operations are O(1) but for the recurrent one's O(n); the longest path
between two positions is O(1), O(n), O(log_k n) or O(n/r). Self-attention is faster than recurrence when n < d
(section 4).

Method: One forward pass of each layer for one sequence of n = 16 to 4,096 vectors at d = 64 to 1,024, on one core:
processor time (the least of several) and the peak of allocated memory. Self-attention is equation 1 itself; the
restricted one works on bands of r = 64; recurrence is torch's LSTM; convolution has k = 3. Exponents are
least-squares fits on logarithms, in n over the upper half of n at d = 256, in d at n = 512; their intervals come from
the residuals. Paths are measured on real layers with random weights: how many are needed until the gradient of the
last output for the first input is not zero, at n = 8 to 64, in float64; of the recurrent layer, how often its cell
must be applied to all positions at once. For n < d a whole layer of eight heads with its projections is set against
the LSTM.

Rule: Each exponent in n is within ± 0.3 of the predicted one, and in d within ± 0.5, whole intervals. n < d: over the
measured cells the LSTM's time is above the multi-head layer's (the mean ratio, on logarithms); n > 4 d: below it.
Paths: the counts equal the formulas (recurrent n, convolution n - 1 for k = 3, and so on).
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import Interval, estimated, fact, not_measured, slope, times_higher
from dragoman.lab.tasks import one_thread
from dragoman.model.probe import Intervention, Site
from dragoman.model.transformer import MultiHeadAttention, attention

K, R, HEADS = 3, 64, 8
# Predicted exponents of time in n and in d, of one layer.
PREDICTED = {
    "self-attention": (2, 1),
    "recurrent": (1, 2),
    "convolution": (1, 2),
    "restricted self-attention": (1, 1),
}
OTHERS = ("self-attention, fused", "multi-head layer", "dilated stack")


def arms(settings: LabSettings) -> list[Arm]:
    smoke = settings.size == "smoke"
    lengths = [16, 32] if smoke else [2**power for power in range(4, 13)]
    short = [8, 16] if smoke else [8, 16, 32, 64]
    return [Arm("table1", "paths", {"part": "gradient paths", "n": short}, 0.05)] + [
        Arm("table1", f"{kind}, d {d}", {"part": "cost", "kind": kind, "d": d, "n": lengths}, d / 256)
        for d in ((16, 32) if smoke else (64, 128, 256, 512, 1024))
        for kind in (*PREDICTED, *OTHERS)
    ]


def measure(arm: Arm, settings: LabSettings) -> Measurements:  # noqa: ARG001
    values = arm.configuration
    if values["part"] == "gradient paths":
        with one_thread():
            return {"n": values["n"], "paths": {kind: [path(kind, n) for n in values["n"]] for kind in FORMULAS}}
    with one_thread(), torch.inference_mode():
        torch.manual_seed(1)
        seconds, peaks = [], []
        for n in values["n"]:
            layer, x = layer_of(values["kind"], n, values["d"]), torch.randn(1, n, values["d"])
            layer(x)
            seconds.append(least_seconds(layer, x))
            peaks.append(peak_bytes(layer, x))
    return {"n": values["n"], "cpu_seconds": seconds, "peak_bytes": peaks}


def least_seconds(layer: Callable[[Tensor], object], x: Tensor) -> float:
    """The least processor time of several calls; other work on the machine does not count."""
    best, spent, rounds = math.inf, 0.0, 0
    while rounds < 3 or (spent < 0.2 and rounds < 50):
        began = time.process_time()
        layer(x)
        took = time.process_time() - began
        best, spent, rounds = min(best, took), spent + took, rounds + 1
    return best


def peak_bytes(layer: Callable[[Tensor], object], x: Tensor) -> int:
    """The largest amount of memory allocated at one time, from the profiler's record of every allocation."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        layer(x)
    assert recorded.profiler is not None
    events = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def layer_of(kind: str, n: int, d: int) -> Callable[[Tensor], object]:
    """A layer of a kind, as a function of its input (1, n, d)."""
    if kind == "self-attention":
        return lambda x: attention(x[:, None], x[:, None], x[:, None], d**-0.5, None, Intervention())
    if kind == "self-attention, fused":
        return lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None])
    if kind == "multi-head layer":
        heads = MultiHeadAttention(d, HEADS, d // HEADS, d // HEADS)
        return lambda x: heads.attend(*heads.project(x), Site("encoder", 0))
    if kind == "recurrent":
        return nn.LSTM(d, d, batch_first=True)
    if kind == "convolution":
        convolution = nn.Conv1d(d, d, K, padding=1)
        return lambda x: convolution(x.mT)
    if kind == "dilated stack":
        depth = math.ceil(math.log(n, K))
        stack = nn.Sequential(*(nn.Conv1d(d, d, K, padding=K**i, dilation=K**i) for i in range(depth)))
        return lambda x: stack(x.mT)
    if kind == "restricted self-attention":
        return lambda x: restricted(x, min(R, n))
    raise AssertionError(kind)


def restricted(x: Tensor, r: int) -> Tensor:
    """Self-attention to positions at most r/2 away: blocks of r/2 queries see three blocks of keys."""
    batch, n, d = x.shape
    half = r // 2
    blocks = n // half
    padded = F.pad(x, (0, 0, half, half))
    keys = padded.unfold(1, 3 * half, half).mT  # (B, blocks, 3 half, d)
    queries = x.view(batch, blocks, half, d)
    scores = queries @ keys.mT * d**-0.5  # (B, blocks, half, 3 half)
    offset = torch.arange(3 * half)[None] - half - torch.arange(half)[:, None]
    place = torch.arange(blocks)[:, None, None] * half + torch.arange(3 * half) - half
    allowed = (offset.abs() <= half) & (place >= 0) & (place < n)
    weights = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)
    return (weights @ keys).view(batch, n, d)  # type: ignore[no-any-return]


NEAR = 8  # r of the restricted layer whose paths are measured
FORMULAS: dict[str, Callable[[int], int]] = {
    "self-attention": lambda n: 1,  # noqa: ARG005
    "recurrent": lambda n: n,
    "convolution": lambda n: math.ceil((n - 1) / (K // 2)),
    "dilated stack": lambda n: next(m for m in range(99) if K**m >= n),  # log_k n, rounded up
    "restricted self-attention": lambda n: math.ceil((n - 1) / (NEAR // 2)),
}


def path(kind: str, n: int, d: int = 8) -> int:
    """Layers until the gradient of the last position's output for the first position's input is not zero."""
    torch.manual_seed(1)
    x = torch.randn(1, n, d, dtype=torch.float64, requires_grad=True)
    state, depth = x, 0
    for further in layers_of(kind, d, x):
        state, depth = further(state), depth + 1
        (gradient,) = torch.autograd.grad(state[0, -1].sum(), x, retain_graph=True)
        if gradient[0, 0].any():
            return depth
    raise AssertionError(kind)


def layers_of(kind: str, d: int, x: Tensor) -> Iterator[Callable[[Tensor], Tensor]]:
    """As many layers of a kind as are asked for, each with weights of its own."""
    if kind == "recurrent":  # one application of the cell to all positions at once, each with its neighbour's state
        cell = nn.RNNCell(d, d).double()
        yield lambda _: cell(x[0], torch.zeros_like(x[0]))[None]
        while True:
            yield lambda state: cell(x[0], F.pad(state[0, :-1], (0, 0, 1, 0)))[None]
    for at in itertools.count():
        yield one_layer(kind, d, at)


def one_layer(kind: str, d: int, at: int) -> Callable[[Tensor], Tensor]:
    if kind == "self-attention":
        return lambda y: attention(y[:, None], y[:, None], y[:, None], d**-0.5, None, Intervention())[0][:, 0]
    if kind == "restricted self-attention":
        return lambda y: restricted(y, NEAR)
    if kind == "convolution":
        plain = nn.Conv1d(d, d, K, padding=K // 2).double()
        return lambda y: plain(y.mT).mT
    # Looks back only: between two ends that are both inside, a centred one has no way around the edges.
    wide, back = nn.Conv1d(d, d, K, dilation=K**at).double(), (K - 1) * K**at
    return lambda y: wide(F.pad(y.mT, (back, 0))).mT


def cost(measured: Sequence[MeasuredArm], kind: str, d: int, name: str = "cpu_seconds") -> list[float]:
    """What was measured of a kind at a width, by length."""
    found = (one.measurements[name] for one in measured if one.arm.configuration.get("kind") == kind
             and one.arm.configuration["d"] == d)  # fmt: skip
    return list(next(found))


def exponents(measured: Sequence[MeasuredArm], kind: str) -> tuple[Interval, Interval]:
    lengths, widths = sizes(measured)
    middle_d, middle_n = widths[len(widths) // 2], len(lengths) * 5 // 9
    half = len(lengths) // 2
    in_n = slope(lengths[half - 1 :], cost(measured, kind, middle_d)[half - 1 :])
    return in_n, slope(widths, [cost(measured, kind, d)[middle_n] for d in widths])


def sizes(measured: Sequence[MeasuredArm]) -> tuple[list[int], list[int]]:
    timed = [one.arm.configuration for one in measured if "d" in one.arm.configuration]
    return list(timed[0]["n"]), sorted({configuration["d"] for configuration in timed})


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    kinds = {one.arm.configuration.get("kind", "paths") for one in measured}
    if not {"paths", *PREDICTED, *OTHERS} <= kinds:
        return [not_measured("The costs of Table 1.", "waits for: layers")]
    lengths, widths = sizes(measured)
    findings = []
    for kind, (predicted_n, predicted_d) in PREDICTED.items():
        in_n, in_d = exponents(measured, kind)
        findings += [
            estimated(f"{kind}: time grows with n as n^{predicted_n}.", in_n, f"measured n^{in_n.value:.2f}",
                      "exponent", tolerance=0.3, predicted=predicted_n),
            estimated(f"{kind}: time grows with d as d^{predicted_d}.", in_d, f"measured d^{in_d.value:.2f}",
                      "exponent", tolerance=0.5, predicted=predicted_d),
        ]  # fmt: skip
    ratios = {
        (n, d): recurred / attended
        for d in widths
        for n, attended, recurred in zip(
            lengths, cost(measured, "multi-head layer", d), cost(measured, "recurrent", d), strict=True
        )
    }
    below, above = ([ratio for (n, d), ratio in ratios.items() if test(n, d)] for test in (_below, _far_above))
    findings += [
        compared("Self-attention is faster than recurrence where n < d.", below, 1),
        compared("It is slower where n > 4 d.", above, -1),
    ]
    counted = next(one.measurements for one in measured if "paths" in one.measurements)
    agree = all(counted["paths"][kind] == [formula(n) for n in counted["n"]] for kind, formula in FORMULAS.items())
    longest = ", ".join(f"{kind} {counted['paths'][kind][-1]}" for kind in FORMULAS)
    findings.append(
        fact("Path lengths on real layers are as in the table.", agree, f"at n = {counted['n'][-1]}: {longest}")
    )
    return findings


def _below(n: int, d: int) -> bool:
    return n < d


def _far_above(n: int, d: int) -> bool:
    return n > 4 * d


def compared(claim: str, ratios: Sequence[float], sign: int) -> Finding:
    """Whether the LSTM's time over the multi-head layer's is above 1 (sign 1) or below it (-1)."""
    values = [ratio**sign for ratio in ratios]
    wins = sum(value > 1 for value in values)
    names = ("LSTM over attention" if sign == 1 else "attention over LSTM", "1")
    finding = times_higher(claim, values, [1.0] * len(values), names)
    return replace(
        finding, because=f"{names[0]}, in {wins} of {len(values)} measured cells; the interval is over cells"
    )


def show(measured: Sequence[MeasuredArm]) -> Shown:
    if judge(measured)[0].verdict == "not measured yet":
        return Shown()
    lengths, widths = sizes(measured)
    middle = widths[len(widths) // 2]
    kinds = (*PREDICTED, *OTHERS)
    milliseconds = {kind: [1000 * value for value in cost(measured, kind, middle)] for kind in kinds}
    megabytes = {kind: [value / 2**20 for value in cost(measured, kind, middle, "peak_bytes")] for kind in kinds}
    ratio = {
        f"d = {d}": [
            r / a for a, r in zip(cost(measured, "multi-head layer", d), cost(measured, "recurrent", d), strict=True)
        ]
        for d in widths
    }
    figures = [
        Figure(f"Time of one layer, d = {middle}", lengths, milliseconds, "n", "milliseconds of one core",
               log_x=True, log_y=True),
        Figure(f"Peak memory of one layer, d = {middle}", lengths, megabytes, "n", "MB", log_x=True, log_y=True),
        Figure("LSTM's time over self-attention's, whole layers (above 1: self-attention wins)", lengths, ratio, "n",
               "ratio", log_x=True, log_y=True),
    ]  # fmt: skip
    counted = next(one.measurements for one in measured if "paths" in one.measurements)
    rows = []
    for kind in kinds:
        predicted = PREDICTED.get(kind)
        in_n, in_d = exponents(measured, kind)
        rows.append(
            {
                "layer": kind,
                "measured in n": in_n.value,
                "measured in d": in_d.value,
                "predicted": f"n^{predicted[0]} d^{predicted[1]}" if predicted else "",
                "sequential operations": f"{lengths[-1]}" if kind == "recurrent" else
                f"{math.ceil(math.log(lengths[-1], K))}" if kind == "dilated stack" else "1",
                f"layers to the far end, measured at n = {counted['n'][-1]}": counted["paths"].get(kind, [1])[-1],
                f"ms at n = {lengths[-1]}, d = {middle}": milliseconds[kind][-1],
                f"MB at n = {lengths[-1]}, d = {middle}": megabytes[kind][-1],
            }
        )  # fmt: skip
    of_one = cost(measured, "convolution", middle)[-1]
    depth = FORMULAS["convolution"](lengths[-1])
    notes = [
        f"A stack of plain convolutions with a full receptive field at n = {lengths[-1]} has {depth} layers: "
        f"{1000 * of_one * depth:,.0f} ms by multiplication of one layer's time, not run.",
        "The fused kernel never holds the n × n weights: the same exponent of time, far less memory.",
    ]
    return Shown(figures=figures, notes=notes, rows=rows)
