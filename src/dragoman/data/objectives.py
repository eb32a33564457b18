"""Makes the batches of the four tasks: which part of an example the model is given, and what it has to predict.

    translate   the target, from the source                              both halves: the paper
    continue    each token of the target, from those before it           the decoder alone: GPT
    restore     hidden tokens of the source, from all the others         the encoder alone: BERT
    classify    which class is named by the target, from the source      the encoder alone: BERT, ViT

The training loop, the loss and the model do not know the task: a batch says at which positions there are labels.
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

# Devlin et al. 2019, 3.1: 15 % of the tokens are to be predicted; of these 80 % are hidden, 10 % exchanged for others.
CHOSEN, HIDDEN, EXCHANGED = 0.15, 0.8, 0.1


class Symbols(Protocol):
    """What hiding tokens needs to know of a tokenizer."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def pad_id(self) -> int: ...
    @property
    def unk_id(self) -> int: ...


def labels_in(dataset: Dataset, rows: np.ndarray, task: Task) -> int:
    """Counts the labels of the batch of these rows without making it: the loss is divided by their number."""
    match task:
        case "translate" | "continue":
            return int(dataset.target_lengths[rows].sum()) + len(rows)  # with end symbols
        case "restore":
            return int(chosen_of(dataset.source_lengths[rows]).sum())
        case "classify":
            return len(rows)


def make_batch_for(model: ModelConfig, dataset: Dataset, rows: np.ndarray, tokenizer: Tokenizer) -> Batch:
    """Makes the batch of these rows for the model's task. Random choices come from torch's own generator, as dropout's
    do."""
    batch = make_batch(dataset, rows, tokenizer)
    empty = torch.empty(len(rows), 0, dtype=torch.long)
    match model.task:
        case "translate":
            return batch
        case "continue":
            return Batch(rows, empty, None, batch.target, batch.labels, batch.real)
        case "restore":
            hidden, real = hide(batch.source, torch.from_numpy(dataset.source_lengths[rows]), tokenizer)
            labels = batch.source.flatten()[real]
            return Batch(rows, hidden, batch.source_mask, empty, labels, real)
        case "classify":
            names = tokenizer.decode_batch(dataset.target(int(row)).tolist() for row in rows)
            labels = torch.tensor([class_of(name, model.classes) for name in names])
            ends = ends_of(batch.source, batch.source_mask, model.patch)
            return Batch(rows, batch.source, batch.source_mask, empty, labels, ends)


def class_of(name: str, classes: tuple[str, ...]) -> int:
    """The number of a class; an unknown name is an error."""
    if name not in classes:
        raise DataError(f"label {name!r}; this model tells apart: {', '.join(classes)}; correct the file")
    return classes.index(name)


def ends_of(source: Tensor, source_mask: Tensor | None, patch: int = 0) -> Tensor:
    """The positions of the end symbols among those of all sources: their states stand for the whole source. A picture
    has a position for each patch, and one for the end symbol."""
    count, width = source.shape
    if patch:
        width = (width - 1) // patch**2 + 1
    lengths = torch.full((count,), width) if source_mask is None else source_mask.sum(dim=1)
    return torch.arange(count) * width + lengths - 1


def chosen_of(lengths: np.ndarray) -> np.ndarray:
    """Computes how many tokens of a sentence are to be predicted: at least one, however short it is."""
    return np.maximum(1, np.rint(CHOSEN * lengths)).astype(np.int64)


def hide(source: Tensor, lengths: Tensor, symbols: Symbols) -> tuple[Tensor, Tensor]:
    """Hides some tokens of each source. Returns the changed source, and the positions of the tokens to be predicted
    among the B S positions.

    A hidden token becomes the unknown symbol, which no text is encoded to: rare characters are spelt in bytes.
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
