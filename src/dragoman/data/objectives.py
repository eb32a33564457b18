"""Makes the batches of the four tasks: what of an example the model is given, and what it has to predict.

    translate   the target, from the source                              both halves: the paper
    continue    each token of the target, from those before it           the decoder alone: GPT
    restore     hidden tokens of the source, from all the others         the encoder alone: BERT
    classify    which class is named by the target, from the source      the encoder alone: BERT, ViT

The loop, the loss and the model know none of them: a batch says at which positions there is a label, and which.
"""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dragoman.config import ModelConfig, Task
from dragoman.data.batching import Batch, make_batch
from dragoman.data.dataset import Dataset
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError

# Devlin et al. 2019, 3.1: of every 100 tokens 15 are to be found; of these 80 % are hidden, and 10 % are others.
CHOSEN, HIDDEN, EXCHANGED = 0.15, 0.8, 0.1


class Symbols(Protocol):
    """What a batch needs to know of a tokenizer."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def pad_id(self) -> int: ...
    @property
    def unk_id(self) -> int: ...


def labels_in(dataset: Dataset, rows: np.ndarray, task: Task) -> int:
    """How many labels the batch of these rows has, whoever makes it: what the loss is divided by."""
    match task:
        case "translate" | "continue":
            return int(dataset.target_lengths[rows].sum()) + len(rows)  # with end symbols
        case "restore":
            return int(chosen_of(dataset.source_lengths[rows]).sum())
        case "classify":
            return len(rows)


def make_batch_for(model: ModelConfig, dataset: Dataset, rows: np.ndarray, tokenizer: Tokenizer) -> Batch:
    """The batch of these rows. What is random in it is drawn from torch's own generator, as dropout is."""
    batch = make_batch(dataset, rows, tokenizer)
    nothing = torch.empty(len(rows), 0, dtype=torch.long)
    match model.task:
        case "translate":
            return batch
        case "continue":
            return Batch(rows, nothing, None, batch.target, batch.labels, batch.real)
        case "restore":
            hidden, real = hide(batch.source, torch.from_numpy(dataset.source_lengths[rows]), tokenizer)
            labels = batch.source.flatten()[real]
            return Batch(rows, hidden, batch.source_mask, nothing, labels, real)
        case "classify":
            names = tokenizer.decode_batch(dataset.target(int(row)).tolist() for row in rows)
            labels = torch.tensor([class_of(name, model.classes) for name in names])
            ends = ends_of(batch.source, batch.source_mask, model.patch)
            return Batch(rows, batch.source, batch.source_mask, nothing, labels, ends)


def class_of(name: str, classes: tuple[str, ...]) -> int:
    if name not in classes:
        raise DataError(f"label {name!r}; this model tells apart: {', '.join(classes)}; correct the file")
    return classes.index(name)


def ends_of(source: Tensor, source_mask: Tensor | None, patch: int = 0) -> Tensor:
    """Where the end symbols are among the positions of all sources: their states stand for the whole of each. A
    picture has as many positions as patches, and one."""
    count, width = source.shape
    if patch:
        width = (width - 1) // patch**2 + 1
    lengths = torch.full((count,), width) if source_mask is None else source_mask.sum(dim=1)
    return torch.arange(count) * width + lengths - 1


def chosen_of(lengths: np.ndarray) -> np.ndarray:
    """How many tokens of a sentence are to be found: always some, however short it is."""
    return np.maximum(1, np.rint(CHOSEN * lengths)).astype(np.int64)


def hide(source: Tensor, lengths: Tensor, symbols: Symbols) -> tuple[Tensor, Tensor]:
    """The source with some of its tokens hidden, and where the chosen ones are among the B S positions.

    The unknown symbol stands for what is hidden: no text is encoded to it, as rare characters are spelt in bytes.
    """
    inside = torch.arange(source.shape[1]) < lengths[:, None]  # neither the end symbol nor padding
    rank = torch.rand(source.shape).masked_fill(~inside, 2.0).argsort(dim=1).argsort(dim=1)
    real = (rank < torch.from_numpy(chosen_of(lengths.numpy()))[:, None]).flatten().nonzero().squeeze(1)
    lot = torch.rand(len(real))
    others = torch.randint(symbols.vocab_size, (len(real),))
    changed = source.flatten()[real]
    changed = torch.where(lot < HIDDEN + EXCHANGED, others, changed)
    changed = torch.where(lot < HIDDEN, symbols.unk_id, changed)
    return source.flatten().index_copy(0, real, changed).view(source.shape), real
