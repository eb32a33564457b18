"""Statistics of attention heads, measured on the weights of one sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.model.probe import AttentionKind


@dataclass(frozen=True)
class HeadStatistics:
    """Means over the rows of one head. None: the statistic has no meaning for this kind of attention."""

    entropy: float  # in nats; 0: each row attends to one token
    diagonal: float  # weight on the row's own position; in cross-attention on the source position as far along
    previous: float | None  # weight on the position before it, from the second row on
    end: float | None  # weight on the source's end symbol
    start: float | None  # weight on the start symbol, which the decoder is fed first
    distance: float  # tokens between the row's position (as for the diagonal) and the attended ones


def head_statistics(weights: Tensor, kind: AttentionKind, ends_source: bool = True) -> tuple[HeadStatistics, ...]:
    """The statistics of every head of a sub-layer, from its weights in a trace: (H, queries, keys). `ends_source`:
    whether the source's last token is the end symbol."""
    weights = weights.double()
    queries, keys = weights.shape[1:]
    entropy = torch.special.entr(weights).sum(dim=-1).mean(dim=-1)  # (H,)
    own = diagonal_of(queries, keys, kind)
    diagonal = weights[:, torch.arange(queries), own].mean(dim=-1)
    far = (torch.arange(keys)[None, :] - own[:, None]).abs().double()
    distance = (weights * far).sum(dim=-1).mean(dim=-1)
    previous: Sequence[float] | None = None
    if kind != "cross" and queries > 1:
        previous = weights.diagonal(offset=-1, dim1=1, dim2=2).mean(dim=-1).tolist()
    end = weights[:, :, -1].mean(dim=-1).tolist() if kind != "decoder" and ends_source else None
    start = weights[:, :, 0].mean(dim=-1).tolist() if kind == "decoder" else None
    return tuple(
        HeadStatistics(
            entropy=entropy[head].item(),
            diagonal=diagonal[head].item(),
            previous=previous[head] if previous else None,
            end=end[head] if end else None,
            start=start[head] if start else None,
            distance=distance[head].item(),
        )
        for head in range(weights.shape[0])
    )


def diagonal_of(queries: int, keys: int, kind: AttentionKind) -> Tensor:
    """The column of each row's own position; in cross-attention, the column at the same share of the sequence."""
    if kind != "cross" or queries == 1:
        return torch.arange(queries)
    return (torch.arange(queries, dtype=torch.float64) * (keys - 1) / (queries - 1)).round().long()
