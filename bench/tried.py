"""What was tried to make training faster, each against what we do: times of the same work by turns, on one machine.

A ratio above 1 means that what was tried is faster. What paid is in src/dragoman; the rest stays here, so that it can
be measured again.
"""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import report
from contestants.batches import plan
from contestants.ours import Contestant
from dragoman.model.dropout import Dropout
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.transformer import MultiHeadAttention, causal_mask
from dragoman.processes import keep_freed_memory
from rounds import Spread
from shapes import SHAPES, multi30k

Work = Callable[[], Any]


@dataclass(frozen=True)
class Trial:
    what: str
    ratios: list[float]  # time of the other / time of what was tried
    note: str = ""


def by_turns(what: str, tried: Work, other: Work, num_rounds: int, repeats: int = 1, note: str = "") -> Trial:
    """Which of the two goes first changes from round to round; round 0 is to warm up."""
    found = []
    for number in range(num_rounds + 1):
        times: dict[Work, float] = {}
        for work in (tried, other) if number % 2 else (other, tried):
            began = time.perf_counter()
            for _ in range(repeats):
                work()
            times[work] = time.perf_counter() - began
        if number:
            found.append(times[other] / times[tried])
    return Trial(what, found, note)


class _DropAddNorm(torch.autograd.Function):
    """LayerNorm(x + Dropout(y)) as one node, its backward pass by hand."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, gain: Tensor, bias: Tensor, threshold: int, epsilon: float) -> Tensor:
        draws = torch.empty((y.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = draws.view(torch.uint8)[: y.numel()].view(y.shape).ge_(threshold)
        mask = kept.to(y.dtype).mul_(256 / (256 - threshold))
        total = torch.addcmul(x, y, mask)
        out, mean, inverse = torch.native_layer_norm(total, gain.shape, gain, bias, epsilon)
        ctx.save_for_backward(total, mask, mean, inverse, gain, bias)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        total, mask, mean, inverse, gain, bias = ctx.saved_tensors
        grad, grad_gain, grad_bias = torch.ops.aten.native_layer_norm_backward(
            grads[0], total, gain.shape, mean, inverse, gain, bias, [True, True, True]
        )
        return grad, grad * mask, grad_gain, grad_bias, None, None


def residual_dropout_norm(num_rounds: int, positions: int, width: int) -> Trial:
    x, y = (torch.randn(positions, width, requires_grad=True) for _ in range(2))
    norm, dropout, grad = nn.LayerNorm(width), Dropout(0.3), torch.randn(positions, width)

    def tried() -> None:
        _DropAddNorm.apply(x, y, norm.weight, norm.bias, 77, norm.eps).backward(grad)  # type: ignore[no-untyped-call]

    what = f"LayerNorm(x + Dropout(y)) with its backward pass by hand, {positions:,} x {width}"
    return by_turns(
        what, tried, lambda: norm(dropout(y, onto=x)).backward(grad), num_rounds, 10, "of these nodes alone"
    )


def masks_of_bool(num_rounds: int, positions: int, width: int) -> Trial:
    """As dropout's mask was made before: each step of it element by element."""
    count = positions * width

    def draws() -> Tensor:
        return torch.empty(count // 8, dtype=torch.int64).random_(-(2**63), None).view(torch.uint8)

    def tried() -> Tensor:
        return (draws() >= 77).to(torch.float32).mul_(256 / 179)

    def ours() -> Tensor:
        return draws().ge_(77).to(torch.float32).mul_(256 / 179)

    what = f"dropout's mask as a tensor of bool, {positions:,} x {width}"
    return by_turns(what, tried, ours, num_rounds, 10, "of the mask alone")


def joint_projections(num_rounds: int) -> Trial:
    """Queries, keys and values of a self-attention by one product, in training steps of tiny."""
    text, shape = multi30k(), SHAPES["tiny"]
    steps, contestant, apart = plan(text, shape.batch_tokens), Contestant(shape, text), MultiHeadAttention.project

    def jointly(attention: MultiHeadAttention, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return apart(attention, x, attention.joint_weight())

    def tried() -> None:
        MultiHeadAttention.project = jointly  # type: ignore[assignment]
        try:
            contestant.train(steps[:2])
        finally:
            MultiHeadAttention.project = apart  # type: ignore[method-assign]

    what = "queries, keys and values by one product, whole training steps, tiny"
    return by_turns(what, tried, lambda: contestant.train(steps[:2]), num_rounds)


def losses(num_rounds: int, rows: int, width: int) -> list[Trial]:
    weight = torch.randn(8000, width, requires_grad=True)
    states = torch.randn(rows, width, requires_grad=True)
    labels = torch.randint(8000, (rows,))

    def ours() -> None:
        smoothed_cross_entropy(states, weight, labels, 0.1)[0].backward()

    def plain() -> None:
        F.cross_entropy(states @ weight.T, labels, label_smoothing=0.1, reduction="sum").backward()

    size = f"{rows:,} x {width}, V 8,000"
    trials = []
    if hasattr(F, "linear_cross_entropy"):

        def tried() -> None:
            F.linear_cross_entropy(states, weight, labels, label_smoothing=0.1, reduction="sum").backward()

        trials.append(by_turns(f"F.linear_cross_entropy, {size}", tried, ours, num_rounds, note="against our loss"))
    trials.append(
        by_turns(f"plain product and F.cross_entropy, {size}", plain, ours, num_rounds, note="against our loss")
    )
    return trials


def plain_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_causal: bool = False, scale: float = 1.0
) -> Tensor:
    """Equation 1 by plain products. A mask that is added needs nothing in the backward pass."""
    scores = (query * scale) @ key.mT
    if is_causal:
        mask = causal_mask(query.shape[2], query.device)
    if mask is not None:
        scores += torch.zeros(mask.shape, dtype=scores.dtype).masked_fill_(~mask, -math.inf)
    return scores.softmax(dim=-1) @ value


def short_attention(num_rounds: int, length: int) -> Trial:
    count = 4096 // length
    joint = torch.randn(count, length, 3 * 128, requires_grad=True)
    grad = torch.randn(count, length, 128)

    def run(attend: Callable[..., Tensor]) -> None:
        heads = (part.view(count, length, 4, 32).transpose(1, 2) for part in joint.split(128, dim=-1))
        attend(*heads, is_causal=True, scale=32**-0.5).transpose(1, 2).flatten(2).backward(grad)

    what = f"plain products in place of the fused attention kernel, length {length}"
    fused = F.scaled_dot_product_attention
    return by_turns(what, lambda: run(plain_attention), lambda: run(fused), num_rounds, 3, "of attention alone")


def short_attention_in_whole_steps(num_rounds: int, longest: int) -> Trial:
    """The same in training steps of tiny, each step once in either way, in turn first."""
    text, shape = multi30k(), SHAPES["tiny"]
    steps = plan(text, shape.batch_tokens)
    short = [step for step in steps if max(text.train.source_lengths[step[0]]) < longest]
    contestant, fused = Contestant(shape, text), F.scaled_dot_product_attention

    def chosen(query: Tensor, key: Tensor, *rest: Any, **options: Any) -> Tensor:
        is_short = query.shape[2] * key.shape[2] <= longest**2
        return (plain_attention if is_short else fused)(query, key, *rest, **options)

    def tried() -> None:
        F.scaled_dot_product_attention = chosen
        try:
            contestant.train(short[:2])
        finally:
            F.scaled_dot_product_attention = fused

    what = f"plain products for attention up to {longest} x {longest}, whole training steps, tiny"
    return by_turns(what, tried, lambda: contestant.train(short[:2]), num_rounds)


def compiled(num_rounds: int) -> Trial:
    """torch.compile of the model with a handful of fixed shapes, each compiled before the clock starts."""
    text, shape = multi30k(), SHAPES["tiny"]
    model = Contestant(shape, text).model
    lengths = (12, 16)
    batches = [torch.randint(4, 8000, (2, 2048 // n, n)) for n in lengths]
    states = torch.compile(model.states, dynamic=False)

    def work(function: Callable[..., Tensor]) -> None:
        for source, target in batches:
            function(source, target).sum().backward()

    began = time.perf_counter()
    work(states)
    spent = time.perf_counter() - began
    note = f"{len(lengths)} shapes took {spent:.0f} s to compile"
    what = "torch.compile with fixed shapes, model without loss, tiny"
    return by_turns(what, lambda: work(states), lambda: work(model.states), num_rounds, note=note)


def run(threads: int, num_rounds: int = 5, compiles: bool = True) -> None:
    about = report.machine() | {"command": report.command(), "threads": threads}
    keep_freed_memory()
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    trials = [short_attention(num_rounds, length) for length in (8, 15, 20, 30, 60)]
    trials.append(short_attention_in_whole_steps(num_rounds, 20))
    trials += [residual_dropout_norm(num_rounds, 4096, width) for width in (128, 512)]
    trials += [masks_of_bool(num_rounds, 4096, 128), joint_projections(num_rounds)]
    trials += losses(num_rounds, 1500, 128)
    if compiles:
        trials.append(compiled(num_rounds))
    report.write_raw("tried", {"about": about, "trials": [vars(trial) for trial in trials]})
    rows = [[trial.what, str(Spread.of(trial.ratios)), verdict(trial), trial.note] for trial in trials]
    text = "\n".join([
        "## What was tried for training",
        "",
        report.heading(about),
        "Times as fast as what it would replace. Two processes of one thread are in the tables of training above.",
        "",
        report.table(["tried", "times as fast", "", ""], rows),
    ])  # fmt: skip
    report.write_section(report.PAGE, "tried", text)


def verdict(trial: Trial) -> str:
    middle = statistics.median(trial.ratios)
    return "pays" if middle > 1.03 else "does not pay" if middle < 0.97 else "even"
