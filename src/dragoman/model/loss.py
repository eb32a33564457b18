"""Label-smoothed cross-entropy (5.4) over the projection before the softmax: a sum, and so to be divided by tokens.

The smoothed target gives 1 - ε to the right token and spreads ε over all V tokens, the right one included, as
torch's F.cross_entropy does. The logits are never held whole: rows go through in chunks, and each chunk's gradient is
formed from its exponentials, in their place, in the forward pass.

Of two passes over the same labels, `consistent_cross_entropy` also takes how far their predictions differ, likewise by
chunks.
"""

from typing import NamedTuple

import torch
from torch import Tensor

# Rows of logits held at once: with V = 37,000 and float32 that is 76 MB.
CHUNK_ROWS = 512
# Of the exponentials of a row's logits: between these, none of them that counts is outside of float32.
SMALLEST_TOTAL, LARGEST_TOTAL = 1e-25, 1e30


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        smoothing: float,
        wants_grad: bool,
        wants_weight_grad: bool,
    ) -> tuple[Tensor, Tensor]:
        vocab_size = weight.shape[0]
        # The uniform part of the target enters loss and gradient only through these two sums.
        weight_mean = weight.mean(dim=0)  # (D,)
        states_sum = states.sum(dim=0)  # (D,)
        smoothed, plain = states.new_zeros(()), states.new_zeros(())
        grad_states = torch.empty_like(states) if wants_grad else states
        grad_weight = torch.zeros_like(weight) if wants_weight_grad else None  # None: frozen
        grad_bias = torch.zeros_like(bias) if bias is not None and wants_weight_grad else None
        room = states.new_empty(min(CHUNK_ROWS, states.shape[0]), vocab_size)  # one for all chunks stays in the cache
        for start in range(0, states.shape[0], CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            chunk, label = states[rows], labels[rows, None]
            logits = _logits(chunk, weight, bias, room[: chunk.shape[0]])  # (rows, V)
            right = logits.gather(1, label)
            # Most rows need no shift to stay in range: that spares a pass for their highest logit. And what is divided
            # by the total is (rows, D), not (rows, V).
            total = logits.exp_().sum(dim=1, keepdim=True)
            log_total = total.log()
            if not bool(((total > SMALLEST_TOTAL) & (total < LARGEST_TOTAL)).all()):
                _logits(chunk, weight, bias, logits)
                highest = logits.amax(dim=1, keepdim=True)
                total = logits.sub_(highest).exp_().sum(dim=1, keepdim=True)
                log_total = total.log() + highest
            if wants_grad:  # d loss / d logits = probabilities - smoothed target
                torch.mm(logits, weight, out=grad_states[rows])
                grad_states[rows] /= total
                if grad_weight is not None:
                    grad_weight.addmm_(logits.T, chunk / total)
                if grad_bias is not None:
                    grad_bias.addmv_(logits.T, 1 / total.squeeze(1))
            plain += (log_total - right).sum()
            smoothed += (log_total - (1 - smoothing) * right).sum() - smoothing * (chunk @ weight_mean).sum()
        if bias is not None:
            smoothed -= smoothing * labels.shape[0] * bias.mean()
        if wants_grad:
            grad_states -= (1 - smoothing) * weight.index_select(0, labels) + smoothing * weight_mean
        if grad_weight is not None:
            grad_weight.index_add_(0, labels, states, alpha=smoothing - 1)
            grad_weight -= smoothing / vocab_size * states_sum
        if grad_bias is not None:
            grad_bias -= smoothing / vocab_size * labels.shape[0]
            grad_bias.index_add_(0, labels, grad_bias.new_ones(labels.shape[0]), alpha=smoothing - 1)
        ctx.save_for_backward(grad_states, grad_weight, grad_bias)  # type: ignore[arg-type]
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if found is None else found * grads[0] for found in ctx.saved_tensors]  # type: ignore[attr-defined]
        return *scaled, None, None, None, None


def _logits(states: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor | None = None) -> Tensor:
    logits = torch.mm(states, weight.T, out=out)
    return logits if bias is None else logits.add_(bias)


def smoothed_cross_entropy(
    states: Tensor,  # (N, D), real positions only
    weight: Tensor,  # (V, D), the projection before the softmax
    labels: Tensor,  # (N,)
    smoothing: float,
    bias: Tensor | None = None,  # (V,), added to the logits
) -> tuple[Tensor, Tensor]:
    """The smoothed loss to minimise and the plain negative log-likelihood to report, each summed over the N tokens."""
    wanted = _wanted(states, weight, bias)
    return _SmoothedCrossEntropy.apply(states, weight, bias, labels, smoothing, *wanted)  # type: ignore[no-any-return,no-untyped-call]


class Terms(NamedTuple):
    """What each term of the loss of two passes is multiplied by."""

    first: float  # the cross-entropy of the first pass
    second: float  # of the second pass
    from_first: float  # KL(first || second), the divergence of the second pass's distribution from the first's
    from_second: float  # KL(second || first)


class _ConsistentCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        smoothing: float,
        terms: Terms,
        wants_grad: bool,
        wants_weight_grad: bool,
    ) -> tuple[Tensor, Tensor]:
        loss, plain = states.new_zeros(()), states.new_zeros(())
        grad_states = torch.empty_like(states) if wants_grad else states
        grad_weight = torch.zeros_like(weight) if wants_weight_grad else None  # None: frozen
        grad_bias = torch.zeros_like(bias) if bias is not None and wants_weight_grad else None
        at_once = max(1, CHUNK_ROWS // 8)  # there are eight tensors of this size, in place of one, to stay in the cache
        for start in range(0, labels.shape[0], at_once):
            chunk_labels = labels[start : start + at_once, None]
            passes = [slice(first + start, first + start + len(chunk_labels)) for first in (0, labels.shape[0])]
            # Their logarithms, as a difference of divergences that are nearly zero would be lost in the exponentials.
            log_p, log_q = (_logits(states[rows], weight, bias).log_softmax(dim=1) for rows in passes)
            for log_probabilities, share in ((log_p, terms.first), (log_q, terms.second)):
                if share:
                    nll = -log_probabilities.gather(1, chunk_labels).sum()
                    plain += share * nll
                    loss += share * ((1 - smoothing) * nll - smoothing * log_probabilities.mean(dim=1).sum())
            difference = log_p - log_q  # (rows, V)
            p, q = log_p.exp_(), log_q.exp_()
            of_p, of_q = ((one * difference).sum(dim=1, keepdim=True) for one in (p, q))  # KL(p || q), -KL(q || p)
            loss += terms.from_first * of_p.sum() - terms.from_second * of_q.sum()
            if not wants_grad:
                continue
            uniform = smoothing / weight.shape[0]
            # d KL(p || q) / d logits is p (log p/q - KL) in the first pass and q - p in the second.
            factor = terms.first + terms.from_second - terms.from_first * of_p
            grad_p = torch.addcmul(-terms.from_second * q, p, terms.from_first * difference + factor)
            factor = terms.second + terms.from_first + terms.from_second * of_q
            grad_q = torch.addcmul(-terms.from_first * p, q, factor - terms.from_second * difference)
            for rows, gradient, share in zip(passes, (grad_p, grad_q), terms[:2], strict=True):
                if share:  # less the smoothed target
                    gradient -= share * uniform
                    gradient.scatter_add_(
                        1, chunk_labels, gradient.new_full(chunk_labels.shape, share * (smoothing - 1))
                    )
                torch.mm(gradient, weight, out=grad_states[rows])
                if grad_weight is not None:
                    grad_weight.addmm_(gradient.T, states[rows])
                if grad_bias is not None:
                    grad_bias += gradient.sum(dim=0)
        ctx.save_for_backward(grad_states, grad_weight, grad_bias)  # type: ignore[arg-type]
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if found is None else found * grads[0] for found in ctx.saved_tensors]  # type: ignore[attr-defined]
        return *scaled, None, None, None, None, None


def consistent_cross_entropy(
    states: Tensor,  # (2N, D), real positions only: those of the first pass, then those of the second
    weight: Tensor,  # (V, D), the projection before the softmax
    labels: Tensor,  # (N,), of both passes
    smoothing: float,
    terms: Terms,
    bias: Tensor | None = None,  # (V,), added to the logits
) -> tuple[Tensor, Tensor]:
    """Not in the paper: the smoothed loss of two passes over the same labels and the divergence of their predictions,
    as `terms` weighs them, and the plain negative log-likelihood to report, each summed over the N tokens."""
    wanted = _wanted(states, weight, bias)
    return _ConsistentCrossEntropy.apply(states, weight, bias, labels, smoothing, terms, *wanted)  # type: ignore[no-any-return,no-untyped-call]


def _wanted(states: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[bool, bool]:
    """Whether any gradient is wanted, and whether the weight's is: inside a function torch has them switched off."""
    of_weight = torch.is_grad_enabled() and (weight.requires_grad or (bias is not None and bias.requires_grad))
    return of_weight or (torch.is_grad_enabled() and states.requires_grad), of_weight
