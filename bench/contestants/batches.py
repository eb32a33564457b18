"""The batches of the peers: the same rows as ours, as a good loop would make them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batching import make_batch, plan_epoch
from dragoman.data.dataset import Prepared

Step = Sequence[np.ndarray]  # micro-batches, each the rows of its pairs


@dataclass(frozen=True)
class PaddedBatch:
    """As ours, with the labels also in rows, for losses that want them so."""

    source: Tensor  # (B, S)
    source_mask: Tensor | None  # (B, S), True at tokens; None: no padding
    target: Tensor  # (B, T): from the start symbol on
    labels: Tensor  # (B, T): up to the end symbol, padded
    real_labels: Tensor  # (N,)
    real: Tensor | None  # (N,) among B T; None: all

    @property
    def tokens(self) -> int:
        return self.real_labels.shape[0]

    def at_real_positions(self, states: Tensor) -> Tensor:
        flat = states.flatten(0, 1)
        return flat if self.real is None else flat.index_select(0, self.real)


def padded_batch(text: Prepared, rows: np.ndarray) -> PaddedBatch:
    batch = make_batch(text.train, rows, text.tokenizer)
    labels = torch.full(batch.target.shape, text.tokenizer.pad_id)
    if batch.real is None:
        labels.view(-1).copy_(batch.labels)
    else:
        labels.view(-1).index_copy_(0, batch.real, batch.labels)
    return PaddedBatch(batch.source, batch.source_mask, batch.target, labels, batch.labels, batch.real)


def plan(text: Prepared, batch_tokens: int, micro_batch_tokens: int | None = None) -> list[Step]:
    """The steps of one epoch, the same for every contestant."""
    return list(plan_epoch(text.train, batch_tokens, micro_batch_tokens or batch_tokens, seed=1, epoch=0))


def cycle(steps: list[Step], first: int, count: int) -> Iterator[Step]:
    return (steps[number % len(steps)] for number in range(first, first + count))
