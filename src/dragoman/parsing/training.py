"""Prepares the training of a parser: treebanks become pairs of a sentence and its symbols, for the usual trainer."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.config import CorpusConfig, RunConfig
from dragoman.errors import DataError, UsageError
from dragoman.files import write_atomically
from dragoman.parsing.trees import Tree, read_stripped
from dragoman.parsing.vocabulary import Units, Vocabulary, learn_vocabulary, target_text


@dataclass(frozen=True)
class Treebanks:
    """The trees that a parser is trained on. Silver trees are the output of another parser."""

    train: Sequence[Path]
    valid: Path
    silver: Sequence[Path] = ()
    silver_weight: float = 1.0  # how often a silver tree is seen in an epoch
    limit: int | None = None  # train on so many trees, chosen at random


def prepare_run(banks: Treebanks, config: RunConfig, out: Path, units: Units) -> RunConfig:
    """Writes pairs and vocabulary into the run's directory; returns the configuration that trains on them."""
    gold = _sample(_read(banks.train), banks.limit)
    silver, valid_trees = _read(banks.silver), _read([banks.valid])
    tokenizer = learn_vocabulary([*gold, *silver], units, config.model.vocab_size or 6000)
    directory = out / "trees"
    vocabulary_path = directory / "vocabulary.model"
    write_atomically(vocabulary_path, tokenizer.model_bytes)
    vocabulary = Vocabulary(tokenizer)

    def pairs(name: str, trees: Sequence[Tree]) -> str:
        path = directory / f"{name}.tsv"
        lines = (f"{vocabulary.source_text(tree.words())}\t{target_text(tree)}\n" for tree in trees)
        write_atomically(path, "".join(lines).encode())
        return str(path)

    corpora = [CorpusConfig(pairs=pairs("train", gold))]
    if silver:
        corpora.append(CorpusConfig(pairs=pairs("silver", silver), weight=banks.silver_weight))
    valid = CorpusConfig(pairs=pairs("valid", valid_trees))
    data = replace(config.data, train=tuple(corpora), valid=(valid,), tokenizer=str(vocabulary_path))
    return replace(config, data=data)


def _read(paths: Sequence[Path]) -> list[Tree]:
    trees: list[Tree] = []
    for path in paths:
        found = read_stripped(path)
        if not found:
            raise DataError(f"{path}: no tree in it; a tree is written (LABEL (TAG word) ...)")
        trees += found
    return trees


def _sample(trees: list[Tree], limit: int | None) -> list[Tree]:
    """A random sample that does not depend on the run's seed, so that the members of an ensemble share a vocabulary."""
    if limit is None:
        return trees
    if not 1 <= limit <= len(trees):
        raise UsageError(
            f"parse train: --sentences {limit}, but there are {len(trees)} trees; ask for 1 to {len(trees)}"
        )
    chosen = sorted(random.Random(0).sample(range(len(trees)), limit))
    return [trees[i] for i in chosen]
