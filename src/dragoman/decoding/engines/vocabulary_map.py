"""Learns a vocabulary map (shortlist) from the training pairs: the likely target pieces of each source piece. Imports
no torch.

CTranslate2 can leave all other pieces out of the last product and the softmax, where a small model spends much of its
time. The likely pieces of a source piece are those that IBM model 1 (Brown et al. 1993) translates it to, and the piece
itself, since names and numbers are copied; the most frequent target pieces are likely everywhere. A piece that is left
out cannot be written, so `quantize` keeps a map only where that costs next to no BLEU.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.data.dataset import Dataset
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError
from dragoman.files import write_atomically
from dragoman.run_directory import RunDirectory

LINKS = 8_000_000  # pairs of a source and a target piece to learn from: they take some 500 MB
ITERATIONS = 4
COMMON = 100  # target pieces that are always likely
MOST = 20  # pieces for one source piece ...
LEAST_PROBABILITY = 0.002  # ... and none less probable than this

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class VocabularyMap:
    """The likely target pieces of each source piece."""

    common: tuple[int, ...]  # likely whatever the source
    likely: tuple[tuple[int, ...], ...]  # of each source piece, the most probable first


def training_pairs(run: RunDirectory) -> Dataset:
    """The token ids that the run was trained on; a DataError where they are no longer there."""
    found = sorted((run.path / "data").glob("*/train/about.json"))
    if not found:
        raise DataError(f"{run.path}: its prepared text (data/) is not there; prepare it: dragoman train, as before")
    return Dataset.open(found[-1].parent, [corpus.weight for corpus in run.read_config().data.train])


def learn(dataset: Dataset, vocab_size: int, links: int = LINKS) -> VocabularyMap:
    """Learns a map by the EM algorithm of IBM model 1, from so many links at most."""
    sources, targets, groups = _links(dataset, vocab_size, links)
    pairs, link_pairs = np.unique(sources * vocab_size + targets, return_inverse=True)
    pair_sources, pair_targets = np.divmod(pairs, vocab_size)
    probabilities: Floats = np.ones(len(pairs))
    for _ in range(ITERATIONS):
        # Each target piece is divided among the source pieces of its sentence, then each source piece's shares are
        # its new probabilities.
        shares = probabilities[link_pairs]
        shares /= np.bincount(groups, shares)[groups]
        counts = np.bincount(link_pairs, shares, minlength=len(pairs))
        probabilities = counts / np.bincount(pair_sources, counts)[pair_sources]
    likely: list[list[int]] = [[piece] for piece in range(vocab_size)]
    kept = np.flatnonzero((probabilities >= LEAST_PROBABILITY) & (pair_sources < vocab_size))
    order = kept[np.lexsort((pair_targets[kept], -probabilities[kept], pair_sources[kept]))]
    for source, target in zip(pair_sources[order].tolist(), pair_targets[order].tolist(), strict=True):
        if len(likely[source]) <= MOST and target != source:
            likely[source].append(target)
    frequencies = np.zeros(vocab_size, dtype=np.int64)
    for begin in range(0, len(dataset.target_ids), 1 << 22):
        frequencies += np.bincount(dataset.target_ids[begin : begin + (1 << 22)], minlength=vocab_size)
    most = np.argsort(-frequencies, kind="stable")[:COMMON]
    common = tuple(int(piece) for piece in most if frequencies[piece])
    return VocabularyMap(common, tuple(map(tuple, likely)))


def _links(dataset: Dataset, vocab_size: int, most: int) -> tuple[Ints, Ints, Ints]:
    """Every source piece of a sentence with every target piece: the two, and the number of the target piece.

    A piece that is in no vocabulary, `vocab_size`, is added to every source: it explains what none of the others does
    (the NULL word of IBM model 1). From a large corpus, every n-th pair is taken.
    """

    def pairs() -> Iterator[tuple[Ints, Ints]]:
        size = (dataset.source_lengths.astype(np.int64) + 1) @ dataset.target_lengths.astype(np.int64)
        for index in range(0, len(dataset), max(1, -(-int(size) // most))):
            source = np.unique(dataset.source(index).astype(np.int64))
            yield np.append(source, vocab_size), dataset.target(index).astype(np.int64)

    sources, targets, groups, number = [], [], [], 0
    for source, target in pairs():
        sources.append(np.tile(source, len(target)))
        targets.append(np.repeat(target, len(source)))
        groups.append(np.repeat(np.arange(number, number + len(target)), len(source)))
        number += len(target)
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(groups)


def write(path: Path, found: VocabularyMap, tokenizer: Tokenizer) -> None:
    """Writes the map as CTranslate2 reads it: source piece, tab, target pieces; the line of the common pieces has no
    source piece. The marks of inline case are likely everywhere: any word may be written with a capital."""
    names = [tokenizer.piece(piece) for piece in range(tokenizer.vocab_size)]
    # The few pieces that hold one of the format's own signs cannot be named in it.
    sayable = [not set(name) & set(" \t\r\n") for name in names]
    common = tuple(dict.fromkeys((*found.common, *tokenizer.case_marks.values())))
    lines = [("", common), *((name, found.likely[piece]) for piece, name in enumerate(names) if sayable[piece])]
    text = "".join(f"{name}\t{' '.join(names[p] for p in pieces if sayable[p])}\n" for name, pieces in lines)
    write_atomically(path, text.encode())
