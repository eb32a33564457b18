"""Trains on two passes of each batch whose predictions must agree. Not in the paper.

    r-drop       the same batch twice, each time with other dropout (Liang et al. 2021)
    simcut-unk   the batch, and the batch with <unk> for some tokens of both sides (after SimCut: Gao et al. 2022)

Both passes go through the model as one batch of twice as many rows. What is drawn comes from torch's own generator, as
dropout does, and so from the seed of the micro-batch.
"""

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor, nn

from dragoman.config import TrainConfig
from dragoman.data.batching import Batch
from dragoman.model.loss import Terms, consistent_cross_entropy, smoothed_cross_entropy


class Unknown(Protocol):
    """What the second pass needs to know of a tokenizer."""

    @property
    def unk_id(self) -> int: ...
    @property
    def source_unk_id(self) -> int: ...


def passes_of(batch: Batch, settings: TrainConfig, tokenizer: Unknown) -> Batch:
    """Returns the batch that the model is given: the batch itself, or one of both passes, the second after the first.
    The labels stay those of one pass."""
    if settings.consistency == "none":
        return batch
    positions = batch.target.numel() or batch.source.numel()  # those of an encoder alone are the source's
    source, target = batch.source, batch.target
    if settings.consistency == "simcut-unk":
        source = _cut(source, settings.cutoff, tokenizer.source_unk_id)
        target = _cut(target, settings.cutoff, tokenizer.unk_id)
    return replace(
        batch,
        source=torch.cat((batch.source, source)),
        source_mask=None if batch.source_mask is None else batch.source_mask.repeat(2, 1),
        target=torch.cat((batch.target, target)),
        real=None if batch.real is None else torch.cat((batch.real, batch.real + positions)),
    )


def _cut(ids: Tensor, share: float, unk_id: int) -> Tensor:
    """Puts the unknown symbol in the place of tokens drawn at random."""
    return ids.masked_fill(torch.rand(ids.shape) < share, unk_id)


def loss_of(states: Tensor, batch: Batch, output: nn.Linear, settings: TrainConfig) -> tuple[Tensor, Tensor]:
    """Returns the loss to minimise and the plain one to report, each summed over the batch's labels. `states`: at the
    positions of the labels, of all passes."""
    weighed, smoothing = terms(settings), settings.label_smoothing
    if weighed is None:
        return smoothed_cross_entropy(states, output.weight, batch.labels, smoothing, output.bias)
    return consistent_cross_entropy(states, output.weight, batch.labels, smoothing, weighed, output.bias)


def terms(settings: TrainConfig) -> Terms | None:
    """Returns how the loss of two passes is made up. R-Drop's sum of two losses is halved, so that its size is that of
    one pass."""
    weight = settings.consistency_weight
    match settings.consistency:
        case "none":
            return None
        case "r-drop":  # (CE + CE + weight (KL + KL) / 2) / 2
            return Terms(0.5, 0.5, weight / 4, weight / 4)
        case "simcut-unk":
            return Terms(1.0, 0.0, weight, 0.0)
