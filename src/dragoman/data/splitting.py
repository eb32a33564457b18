"""Training, validation and test text that share no sentence.

A pair is held out together with every pair that shares its source or its target sentence, and with theirs, and so on:
by connected component. Two sentences count as the same when their words are the same, whatever their case, accents and
punctuation, because `Go!` in training gives away `Go.` in the test. Components are drawn uniformly, which gives every
sentence the same chance to be held out; the only ones left out are those larger than what is still to be drawn.
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
    train: list[SentencePair]
    valid: HeldOut
    test: HeldOut


def split_pairs(pairs: Sequence[SentencePair], valid_sentences: int, test_sentences: int, seed: int) -> Split:
    """Hold out so many source sentences, or as near below as whole components allow; see the module's head.

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
    """The pairs by connected component, where pairs are joined by an equal source or an equal target."""
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
    """What makes two sentences the same one for the split: their words, without case, accents and punctuation."""
    plain = text.casefold()
    if not plain.isascii():  # worth a branch: most English is, and this is done for every sentence
        plain = unicodedata.normalize("NFKD", plain).casefold().replace("œ", "oe").replace("æ", "ae")
        plain = "".join(c for c in plain if not unicodedata.combining(c))
    words = re.findall(r"\w+", plain)
    return " ".join(words) if words else text
