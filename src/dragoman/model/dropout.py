"""Dropout from packed random bytes: on a CPU, torch's own draws a double for every element and costs a fifth of a step.

One 64-bit draw decides eight elements, so the probability is rounded to a multiple of 1/256 (0.1 becomes 26/256 =
0.1016); the kept elements are scaled by exactly the inverse of the share that is kept, so the mean is unchanged.
"""

import torch
from torch import Tensor, nn


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, onto: Tensor | None, threshold: int) -> Tensor:
        count = x.numel()
        draws = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        # Compared in place, bytes stay bytes: torch makes a tensor of bool, and numbers of one, element by element.
        kept = draws.view(torch.uint8)[:count].view(x.shape).ge_(threshold)
        scaled_mask = kept.to(x.dtype).mul_(256 / (256 - threshold))
        ctx.save_for_backward(scaled_mask)
        return x * scaled_mask if onto is None else torch.addcmul(onto, x, scaled_mask)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor, Tensor | None, None]:
        (scaled_mask,) = ctx.saved_tensors  # type: ignore[attr-defined]
        wanted = ctx.needs_input_grad  # type: ignore[attr-defined]
        return grads[0] * scaled_mask, grads[0] if wanted[1] else None, None


class Dropout(nn.Module):
    """Section 5.4. Random numbers come from torch's global generator, as those of nn.Dropout do."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor, onto: Tensor | None = None) -> Tensor:
        """onto: what the result is added to, in the same pass over memory."""
        if not self.training or self.probability == 0:
            return x if onto is None else onto + x
        if x.device.type != "cpu":  # elsewhere torch's fused kernel is the fast one
            dropped = nn.functional.dropout(x, self.probability)
            return dropped if onto is None else onto + dropped
        # From 1 to 255, so that a small probability does not become none, nor a large one all.
        threshold = min(255, max(1, round(self.probability * 256)))
        return _ByteDropout.apply(x, onto, threshold)  # type: ignore[no-any-return,no-untyped-call]

    def extra_repr(self) -> str:
        return f"probability={self.probability}"
