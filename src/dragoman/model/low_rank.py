"""Low-rank additions to frozen projections (Hu et al. 2022: LoRA), for fine-tuning. Not in the paper.

A projection's weight becomes W + scale · U D, with W frozen and only the thin matrices learned: U (out, rank) and D
(rank, in). The sum is formed once a step and kept as the weight itself, so a model with additions is a plain model to
all that reads weights: decoding, validation, saving. The forward pass is the plain product with that sum; only the
backward pass knows the factors, and forms their gradients without that of the whole matrix, a third of the work.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.transformer import FeedForward, MultiHeadAttention, Transformer

SCALE = 2.0  # of the product of the factors: the usual alpha = 2 rank


class Factors(NamedTuple):
    """What learns of a projection, and the weight that it is added to. Not parameters of the model, whose names are a
    format of files."""

    up: nn.Parameter  # (out, rank); zero at first, so that the model begins as it was
    down: nn.Parameter  # (rank, in)
    frozen: Tensor  # (out, in)


class _ProductWithSum(torch.autograd.Function):
    """x (W + scale U D)^T, given the sum itself, with the gradients of x, U and D."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, x: Tensor, weight: Tensor, up: Tensor, down: Tensor
    ) -> Tensor:
        ctx.save_for_backward(x, weight, up, down)
        return F.linear(x, weight)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, up, down = ctx.saved_tensors  # type: ignore[attr-defined]
        wants_x = ctx.needs_input_grad[0]  # type: ignore[attr-defined]
        rows, inputs = grads[0].flatten(0, -2), x.flatten(0, -2)  # (N, out), (N, in)
        grad_up = torch.mm(rows.T, torch.mm(inputs, down.T)).mul_(SCALE)
        grad_down = torch.mm(torch.mm(rows, up).T, inputs).mul_(SCALE)
        return (torch.matmul(grads[0], weight) if wants_x else None), None, grad_up, grad_down


class LowRankLinear(nn.Module):
    """A projection with a low-rank addition. It takes the place of an nn.Linear, with its names."""

    def __init__(self, plain: nn.Linear, rank: int) -> None:
        super().__init__()
        self.in_features, self.out_features = plain.in_features, plain.out_features
        self.weight = plain.weight.requires_grad_(False)  # the sum
        self.bias = None if plain.bias is None else plain.bias.requires_grad_(False)
        up, down = self.weight.new_zeros(self.out_features, rank), self.weight.new_zeros(rank, self.in_features)
        self.factors = Factors(nn.Parameter(up), nn.Parameter(down), self.weight.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        up, down, _ = self.factors
        product: Tensor = _ProductWithSum.apply(x, self.weight, up, down)  # type: ignore[no-untyped-call]
        return product if self.bias is None else product.add_(self.bias)

    @torch.no_grad()
    def start(self, generator: torch.Generator) -> None:
        """Begins an addition of nothing to the weight that is there now."""
        up, down, frozen = self.factors
        frozen.copy_(self.weight)
        up.zero_()
        bound = 1 / math.sqrt(down.shape[1])
        down.copy_(torch.empty(down.shape).uniform_(-bound, bound, generator=generator))

    @torch.no_grad()
    def merge(self) -> None:
        """Makes the weight the sum again, after a change of the factors."""
        up, down, frozen = self.factors
        torch.addmm(frozen, up, down, alpha=SCALE, out=self.weight)


class LowRankFeedForward(nn.Module):
    """FeedForward with low-rank additions. It takes its place, with its names."""

    def __init__(self, plain: FeedForward, rank: int) -> None:
        super().__init__()
        self.activation = plain.activation
        self.w_1, self.w_2 = LowRankLinear(plain.w_1, rank), LowRankLinear(plain.w_2, rank)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(self.activation(self.w_1(x)))  # type: ignore[no-any-return]


def add_low_rank(model: Transformer, rank: int) -> dict[str, LowRankLinear]:
    """Gives every projection of attention and feed-forward layers an addition; returns them by name. All of the model's
    own parameters are frozen."""
    model.requires_grad_(False)
    for module in list(model.modules()):
        if isinstance(module, MultiHeadAttention):
            for name in ("w_q", "w_k", "w_v", "w_o"):
                setattr(module, name, LowRankLinear(getattr(module, name), rank))
        elif isinstance(getattr(module, "feed_forward", None), FeedForward):
            module.feed_forward = LowRankFeedForward(module.feed_forward, rank)  # type: ignore[arg-type]
    return {name: module for name, module in model.named_modules() if isinstance(module, LowRankLinear)}
