"""Splits pairs into training, validation and test text that share no sentence.

A pair is held out together with every pair that shares its source or its target sentence, with the pairs that share
theirs, and so on: whole connected components. Two sentences count as the same if their words are the same, whatever
their case, accents and punctuation, because a model that was trained on `Go!` knows `Go.` in the test. Components are
drawn uniformly, so every sentence has the same chance to be held out; only components larger than what is still to be
drawn are passed over.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.data.corpus import SentencePair

HeldOut = dict[str, list[str]]  # a source sentence and all its references, in the order of the corpus


@dataclass(frozen=True)
class Split:
    """The three parts; held-out sentences come with all their references."""

    train: list[SentencePair]
    valid: HeldOut
    test: HeldOut


def split_pairs(pairs: Sequence[SentencePair], valid_sentences: int, test_sentences: int, seed: int) -> Split:
    """Holds out so many source sentences for validation and test, or as many as whole components allow below that.

    The choice depends on the seed and the sentences only, not on the order of the pairs.
    """
    components = components_of(pairs)
    # Drawn by the hash of a sentence: the same on every machine and Python, unlike random.shuffle or hash().
    names = {root: min(identity_of(source) for source, _ in members) for root, members in components.items()}
    order = sorted(components, key=lambda root: hashlib.sha256(f"{seed} {names[root]}".encode()).digest())
    held_out: dict[str, HeldOut] = {}
    taken: set[int] = set()
    for part, wanted in (("test", test_sentences), ("valid", valid_sentences)):
        held_out[part] = {}
        for root in order:
            sources = {source for source, _ in components[root]}
            if root not in taken and len(held_out[part]) + len(sources) <= wanted:
                taken.add(root)
                for source, target in components[root]:
                    held_out[part].setdefault(source, []).append(target)
    train = [pair for root, members in components.items() if root not in taken for pair in members]
    return Split(train, held_out["valid"], held_out["test"])


def components_of(pairs: Sequence[SentencePair]) -> dict[int, list[SentencePair]]:
    """Groups pairs into connected components: an equal source or an equal target joins two pairs."""
    parent = list(range(len(pairs)))

    def root_of(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first_with: dict[tuple[int, str], int] = {}
    for index, pair in enumerate(pairs):
        for side, text in enumerate(pair):
            other = first_with.setdefault((side, identity_of(text)), index)
            parent[root_of(index)] = root_of(other)
    components: dict[int, list[SentencePair]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        components[root_of(index)].append(pair)
    return components


def identity_of(text: str) -> str:
    """What two sentences must share to count as the same: their words, without case, accents and punctuation."""
    plain = text.casefold()
    if not plain.isascii():  # most English sentences skip this slower part
        plain = unicodedata.normalize("NFKD", plain).casefold().replace("œ", "oe").replace("æ", "ae")
        plain = plain.replace("ʼ", "'")  # a letter by its category, but an apostrophe as a user sees it
        plain = "".join(c for c in plain if not unicodedata.combining(c))
    words = re.findall(r"\w+", plain)
    return " ".join(words) if words else text
