"""Batches: pairs of like length under a token budget on both sides, in an order that (seed, epoch) alone decides.

A step's budget (the paper's 25,000 + 25,000 tokens) may be more than memory holds: it is filled with micro-batches,
each of like length, drawn at random. Within a micro-batch nearly all sources have the same length, so that nearly
none needs a mask.
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

PART_PAIRS = 2_000_000  # pairs looked at together: what a plan takes beyond its rows is bounded by this


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


class EpochPlan(Sequence[list[np.ndarray]]):
    """The steps of an epoch, each a list of micro-batches, each the rows of its pairs.

    Four bytes a pair and sixteen a micro-batch; the arrays of a step are made when it is asked for.
    """

    def __init__(self, rows: np.ndarray, starts: np.ndarray, order: np.ndarray, per_step: int) -> None:
        self._rows = rows  # of all micro-batches, one after the other
        self._starts = starts  # where each one begins among them, and the end of the last
        self._order = order  # in which they come
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
            left = self._order[first * self._per_step : last * self._per_step]
            return EpochPlan(self._rows, self._starts, left, self._per_step)
        step = range(len(self))[index]
        batches = self._order[step * self._per_step : (step + 1) * self._per_step]
        return [self._rows[self._starts[i] : self._starts[i + 1]].astype(np.int64) for i in batches]


def plan_epoch(dataset: Dataset, batch_tokens: int, micro_batch_tokens: int, seed: int, epoch: int) -> EpochPlan:
    """The steps of an epoch, a function of these arguments alone.

    A pair of a corpus of weight 2 comes twice, one of weight 0.5 every other epoch on average.
    """
    random = np.random.default_rng([seed, epoch])
    rows = _weighted_rows(dataset, random)
    random.shuffle(rows)
    rows = _sort_by_length(rows, dataset)
    per_step = micro_batches_per_step(batch_tokens, micro_batch_tokens)
    starts = _cut(rows, dataset, batch_tokens // per_step)
    return EpochPlan(rows, starts, random.permutation(len(starts) - 1), per_step)


def micro_batches_per_step(batch_tokens: int, micro_batch_tokens: int) -> int:
    """The same number in every step (but an epoch's last), so that processes that share them have equal shares."""
    return max(1, math.ceil(batch_tokens / micro_batch_tokens))


def _weighted_rows(dataset: Dataset, random: np.random.Generator) -> np.ndarray:
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
    """By source, then target length; ties keep their order.

    Target lengths rise and fall in turn from one source length to the next, so that a batch that spans two source
    lengths does not span all target lengths. Some source lengths are sorted at a time: sorting all at once would take
    several times the memory of the rows.
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
    """Runs of the sorted rows, each as long as its padded size stays within the budget on both sides.

    Where each one begins, and the end of the last.
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
            # A pair longer than the budget goes alone: it was within the length limit that the user set.
            start += max(1, int((longest * np.arange(1, len(longest) + 1) <= budget).sum()))
        begin += start
    starts.append(len(rows))
    return np.array(starts)
