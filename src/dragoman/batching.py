"""Batches: pairs of like length under a token budget on both sides, in an order that (seed, epoch) alone decides.

A step's budget (the paper's 25,000 + 25,000 tokens) may be more than memory holds: it is filled with micro-batches,
each of like length, drawn at random. Within a micro-batch nearly all sources have the same length, so that nearly
none needs a mask.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.dataset import Dataset
from dragoman.tokenizer import Tokenizer


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as the model takes them. Ids are padded at the end; masks and indices say what is real."""

    rows: np.ndarray  # which pairs of the dataset these are
    source: Tensor  # (B, S): tokens, then the end symbol
    source_mask: Tensor | None  # (B, S), True at tokens; None: no padding
    target: Tensor  # (B, T): the start symbol, then tokens
    labels: Tensor  # (N,): tokens, then the end symbol, of the real positions
    real: Tensor | None  # (N,): where those are among the B T positions; None: everywhere

    @property
    def tokens(self) -> int:
        return self.labels.shape[0]

    def real_states(self, states: Tensor) -> Tensor:
        """The states (B, T, D) at real positions: (N, D)."""
        flat = states.flatten(0, 1)
        return flat if self.real is None else flat.index_select(0, self.real)

    def to(self, device: torch.device) -> "Batch":
        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        return Batch(
            self.rows,
            self.source.to(device, non_blocking=True),
            moved(self.source_mask),
            self.target.to(device, non_blocking=True),
            self.labels.to(device, non_blocking=True),
            moved(self.real),
        )


def pad(sequences: Sequence[np.ndarray | Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor | None]:
    """Ids (B, longest), and the mask of what is not padding, or None where nothing is."""
    lengths = np.array([len(s) for s in sequences])
    if (lengths == lengths[0]).all():
        return torch.from_numpy(np.array(sequences, dtype=np.int64)), None
    ids = np.full((len(sequences), lengths.max()), pad_id, dtype=np.int64)
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    mask = np.arange(lengths.max()) < lengths[:, None]
    return torch.from_numpy(ids), torch.from_numpy(mask)


def make_batch(dataset: Dataset, rows: np.ndarray, tokenizer: Tokenizer) -> Batch:
    """One micro-batch from the dataset's ids, with start and end symbols put on."""
    sources = [np.append(dataset.source(int(i)), tokenizer.eos_id) for i in rows]
    targets = [dataset.target(int(i)) for i in rows]
    source, source_mask = pad(sources, tokenizer.pad_id)
    target, target_mask = pad([np.append(tokenizer.bos_id, t) for t in targets], tokenizer.pad_id)
    labels = np.concatenate([np.append(t, tokenizer.eos_id) for t in targets]).astype(np.int64)
    real = None if target_mask is None else target_mask.flatten().nonzero().squeeze(1)
    return Batch(rows, source, source_mask, target, torch.from_numpy(labels), real)


def plan_epoch(
    dataset: Dataset, batch_tokens: int, micro_batch_tokens: int, seed: int, epoch: int
) -> list[list[np.ndarray]]:
    """The steps of an epoch, each a list of micro-batches, each the rows of its pairs.

    A pair of a corpus of weight 2 comes twice, one of weight 0.5 every other epoch on average.
    """
    random = np.random.default_rng([seed, epoch])
    rows = random.permutation(_weighted_rows(dataset, random))
    source, target = dataset.source_lengths[rows] + 1, dataset.target_lengths[rows] + 1  # with the end symbol
    # Ties keep the random order of the permutation. Target lengths rise and fall in turn from one source length to
    # the next, so that a batch that spans two source lengths does not span all target lengths.
    order = np.lexsort((np.where(source % 2 == 0, target, -target), source))
    rows, source, target = rows[order], source[order], target[order]
    budget = min(micro_batch_tokens, batch_tokens)
    micro_batches = _cut(rows, source, target, budget)
    shuffled = [micro_batches[i] for i in random.permutation(len(micro_batches))]
    if micro_batch_tokens >= batch_tokens:
        return [[rows] for rows in shuffled]
    return _accumulate(shuffled, dataset, batch_tokens)


def _weighted_rows(dataset: Dataset, random: np.random.Generator) -> np.ndarray:
    rows = np.arange(len(dataset))
    weights = np.asarray(dataset.weights)
    if (weights == 1).all():
        return rows
    expected = weights[dataset.corpus]
    times = np.floor(expected + random.random(len(dataset))).astype(np.int64)
    return np.repeat(rows, times)


def _cut(rows: np.ndarray, source: np.ndarray, target: np.ndarray, budget: int) -> list[np.ndarray]:
    """Runs of the sorted rows, each as long as its padded size stays within the budget on both sides."""
    batches, start = [], 0
    while start < len(rows):
        most = max(1, budget // int(source[start]))
        window = slice(start, start + most)
        longest = np.maximum.accumulate(np.maximum(source[window], target[window]))
        fits = longest * np.arange(1, len(longest) + 1) <= budget
        # A pair longer than the budget goes alone: it was within the length limit that the user set.
        count = max(1, int(fits.sum()))
        batches.append(rows[start : start + count])
        start += count
    return batches


def _accumulate(micro_batches: list[np.ndarray], dataset: Dataset, batch_tokens: int) -> list[list[np.ndarray]]:
    steps: list[list[np.ndarray]] = []
    filled = batch_tokens
    for rows in micro_batches:
        tokens = max(int(dataset.source_lengths[rows].sum()), int(dataset.target_lengths[rows].sum())) + len(rows)
        if filled + tokens > batch_tokens:
            steps.append([])
            filled = 0
        steps[-1].append(rows)
        filled += tokens
    return steps
