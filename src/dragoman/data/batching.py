"""Makes batches: pairs of similar length within a token budget on both sides, in an order that depends on (seed, epoch)
alone.

A step's budget (the paper's 25,000 + 25,000 tokens) may be more than memory can hold, so a step consists of
micro-batches that are drawn at random, each of pairs of similar length. Within a micro-batch nearly all sources have
the same length, so that few need a mask.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import torch
from torch import Tensor

from dragoman.data.dataset import Dataset
from dragoman.data.tokenizer import Tokenizer

PART_PAIRS = 2_000_000  # pairs handled at a time: limits the memory that planning takes beyond the rows themselves


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as tensors for the model. Ids are padded at the end; masks and indices say what is real."""

    rows: np.ndarray  # which pairs of the dataset these are
    source: Tensor  # (B, S): tokens, then the end symbol
    source_mask: Tensor | None  # (B, S), True at tokens; None: no padding
    target: Tensor  # (B, T): the start symbol, then tokens
    labels: Tensor  # (N,): tokens, then the end symbol, without padding
    real: Tensor | None  # (N,): the positions of the labels among the B T positions; None: all of them

    @property
    def tokens(self) -> int:
        """The number of labels."""
        return self.labels.shape[0]

    def real_states(self, states: Tensor) -> Tensor:
        """Selects the states (B, T, D) at the positions of labels: (N, D)."""
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
    """Pads sequences to the longest: ids (B, longest), and a mask that is True where there is no padding, or None where
    there is none at all."""
    lengths = np.array([len(s) for s in sequences])
    if (lengths == lengths[0]).all():
        return torch.from_numpy(np.array(sequences, dtype=np.int64)), None
    ids = np.full((len(sequences), lengths.max()), pad_id, dtype=np.int64)
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    mask = np.arange(lengths.max()) < lengths[:, None]
    return torch.from_numpy(ids), torch.from_numpy(mask)


def make_batch(dataset: Dataset, rows: np.ndarray, tokenizer: Tokenizer) -> Batch:
    """Makes one micro-batch from rows of the dataset, and adds start and end symbols."""
    sources = [dataset.source(int(i)) for i in rows]
    if tokenizer.ends_source:
        sources = [np.append(ids, tokenizer.eos_id) for ids in sources]
    targets = [dataset.target(int(i)) for i in rows]
    source, source_mask = pad(sources, tokenizer.pad_id)
    target, target_mask = pad([np.append(tokenizer.bos_id, t) for t in targets], tokenizer.pad_id)
    labels = np.concatenate([np.append(t, tokenizer.eos_id) for t in targets]).astype(np.int64)
    real = None if target_mask is None else target_mask.flatten().nonzero().squeeze(1)
    return Batch(rows, source, source_mask, target, torch.from_numpy(labels), real)


class EpochPlan(Sequence[list[np.ndarray]]):
    """The steps of an epoch. Each is a list of micro-batches, and a micro-batch is the row numbers of its pairs.

    Takes four bytes for each pair and sixteen for each micro-batch; the arrays of a step are made on access.
    """

    def __init__(self, rows: np.ndarray, starts: np.ndarray, order: np.ndarray, per_step: int) -> None:
        self._rows = rows  # of all micro-batches, one after the other
        self._starts = starts  # where each micro-batch begins in `rows`, and the end of the last
        self._order = order  # of the micro-batches
        self._per_step = per_step

    def __len__(self) -> int:
        return -(-len(self._order) // self._per_step)

    @overload
    def __getitem__(self, index: int) -> list[np.ndarray]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[list[np.ndarray]]: ...
    def __getitem__(self, index: int | slice) -> list[np.ndarray] | Sequence[list[np.ndarray]]:
        if isinstance(index, slice):
            first, last, stride = index.indices(len(self))
            if stride != 1:
                return [self[step] for step in range(first, last, stride)]
            order = self._order[first * self._per_step : last * self._per_step]
            return EpochPlan(self._rows, self._starts, order, self._per_step)
        step = range(len(self))[index]
        batches = self._order[step * self._per_step : (step + 1) * self._per_step]
        return [self._rows[self._starts[i] : self._starts[i + 1]].astype(np.int64) for i in batches]


def plan_epoch(dataset: Dataset, batch_tokens: int, micro_batch_tokens: int, seed: int, epoch: int) -> EpochPlan:
    """Plans the steps of an epoch. The plan depends on these arguments alone.

    A pair of a corpus with weight 2 is used twice, one with weight 0.5 in every second epoch on average.
    """
    random = np.random.default_rng([seed, epoch])
    rows = _weighted_rows(dataset, random)
    random.shuffle(rows)
    rows = _sort_by_length(rows, dataset)
    per_step = micro_batches_per_step(batch_tokens, micro_batch_tokens)
    starts = _cut(rows, dataset, batch_tokens // per_step)
    return EpochPlan(rows, starts, random.permutation(len(starts) - 1), per_step)


def micro_batches_per_step(batch_tokens: int, micro_batch_tokens: int) -> int:
    """Computes the number of micro-batches of a step. It is the same for all steps but an epoch's last, so that
    processes that divide them get equal shares."""
    return max(1, math.ceil(batch_tokens / micro_batch_tokens))


def _weighted_rows(dataset: Dataset, random: np.random.Generator) -> np.ndarray:
    """The rows of an epoch in order, each as often as its corpus's weight says; fractions are drawn at random."""
    kind = np.uint32 if len(dataset) <= 2**32 else np.uint64
    weights = np.asarray(dataset.weights)
    if (weights == 1).all():
        return np.arange(len(dataset), dtype=kind)
    parts = []
    for start in range(0, len(dataset), PART_PAIRS):
        expected = weights[dataset.corpus[start : start + PART_PAIRS]]
        times = np.floor(expected + random.random(len(expected))).astype(np.int64)
        parts.append(np.repeat(np.arange(start, start + len(expected), dtype=kind), times))
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def _sort_by_length(rows: np.ndarray, dataset: Dataset) -> np.ndarray:
    """Sorts rows by source length, then target length; ties keep their order.

    Target lengths rise for one source length and fall for the next, so that a batch with two source lengths does not
    have all target lengths. A few source lengths are sorted at a time: sorting everything at once would take several
    times the memory of the rows.
    """
    source_lengths = np.empty(len(rows), np.int32)
    counts = np.zeros(int(dataset.source_lengths.max(initial=0)) + 1, np.int64)
    for start in range(0, len(rows), PART_PAIRS):
        part = dataset.source_lengths[rows[start : start + PART_PAIRS]]
        source_lengths[start : start + PART_PAIRS] = part
        counts += np.bincount(part, minlength=len(counts))
    ends = np.cumsum(counts)
    result = np.empty_like(rows)
    low = filled = 0
    while filled < len(rows):
        high = max(low + 1, int(np.searchsorted(ends, filled + PART_PAIRS, side="right")))
        inside = rows[(source_lengths >= low) & (source_lengths < high)]
        source, target = dataset.source_lengths[inside], dataset.target_lengths[inside]
        order = np.lexsort((np.where(source % 2 == 1, target, -target), source))
        result[filled : filled + len(inside)] = inside[order]
        filled += len(inside)
        low = high
    return result


def _cut(rows: np.ndarray, dataset: Dataset, budget: int) -> np.ndarray:
    """Cuts the sorted rows into micro-batches, each as large as the budget allows, padding counted, on both sides.

    Returns where each one begins, and the end of the last.
    """
    starts = array("q")
    begin = 0
    while begin < len(rows):
        part = rows[begin : begin + max(PART_PAIRS, budget)]
        source, target = dataset.source_lengths[part] + 1, dataset.target_lengths[part] + 1  # with the end symbol
        start = 0
        while start < len(part):
            window = slice(start, start + max(1, budget // int(source[start])))
            if window.stop > len(part) and begin + len(part) < len(rows):
                break  # the next part begins here
            longest = np.maximum.accumulate(np.maximum(source[window], target[window]))
            starts.append(begin + start)
            # A pair longer than the budget is a batch of its own: it is within the length limit that the user set.
            start += max(1, int((longest * np.arange(1, len(longest) + 1) <= budget).sum()))
        begin += start
    starts.append(len(rows))
    return np.array(starts)
