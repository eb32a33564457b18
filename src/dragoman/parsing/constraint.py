"""Constrained decoding: which symbols may follow a prefix, so that the output is a tree over exactly the words.

Nothing is repaired afterwards. The length limit is part of the constraint: a bracket may open only while enough tokens
are left for the remaining words and all closing brackets, so every allowed prefix can be completed. Punctuation gets
punctuation tags and other words do not: EVALB deletes words by their tags, and would compare the wrong words.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.parsing.linearise import Shape, SymbolKind

if TYPE_CHECKING:  # the vocabulary imports this module, and is used where torch is not loaded
    from dragoman.decoding.constraints import Constrain

_PUNCTUATION_TAGS = {",", ":", "``", "''", "."}
_ALWAYS_PUNCTUATION = re.compile(r"[,.;:?!…\"“”]+|``|''|--+|—")
_PERHAPS_PUNCTUATION = re.compile(r"[-–'‘’*•+]+|\[[.…]+\]")


@dataclass(frozen=True)
class TreeSymbols:
    """The ids of tree symbols in a vocabulary."""

    meaning: Mapping[int, tuple[SymbolKind, str]]
    opens: tuple[int, ...]
    words: tuple[int, ...]
    closes: Mapping[str, int]  # by label
    places: tuple[int, ...]  # the place marks, in order

    @classmethod
    def of(cls, meaning: Mapping[int, tuple[SymbolKind, str]], places: Sequence[int]) -> "TreeSymbols":
        closes = {label: i for i, (kind, label) in meaning.items() if kind == "close"}
        return cls(
            meaning,
            # A label without a closing bracket in the vocabulary could not be closed.
            tuple(i for i, (kind, label) in meaning.items() if kind == "open" and label in closes),
            tuple(i for i, (kind, _) in meaning.items() if kind == "word"),
            closes,
            tuple(places),
        )

    def tags_for(self, word: str) -> tuple[int, ...]:
        """The tags that a word may have: for a comma, those of punctuation; for most words, all others; a dash and a
        single quote may have any."""
        if _ALWAYS_PUNCTUATION.fullmatch(word):
            fitting = tuple(i for i in self.words if self.meaning[i][1] in _PUNCTUATION_TAGS)
        elif _PERHAPS_PUNCTUATION.fullmatch(word):
            fitting = self.words
        else:
            fitting = tuple(i for i in self.words if self.meaning[i][1] not in _PUNCTUATION_TAGS)
        return fitting or self.words  # a small treebank may have none of these tags


def well_formed(
    symbols: TreeSymbols, eos_id: int, sentences: Sequence[Sequence[str]], max_lengths: Sequence[int]
) -> "Constrain":
    """The constraint for the search: output i is a tree over sentences[i], of at most max_lengths[i] tokens."""
    tags = [[symbols.tags_for(word) for word in words] for words in sentences]

    def constrain(sentence: int, prefix: Sequence[int]) -> Sequence[int]:
        shape = Shape()
        for token in prefix:
            if token in symbols.meaning:
                shape.add(*symbols.meaning[token])
        if prefix and prefix[-1] in symbols.words:
            return [symbols.places[(shape.words - 1) % len(symbols.places)]]
        words_left = len(tags[sentence]) - shape.words
        room = max_lengths[sentence] - len(prefix) - len(shape.open) - 2 * words_left
        allowed: list[int] = []
        if words_left:
            allowed += tags[sentence][shape.words]
            if room >= 2:  # the bracket and its end
                allowed += symbols.opens
        if shape.open and not shape.empty:
            allowed.append(symbols.closes[shape.open[-1]])
        if not shape.open and not words_left:
            allowed.append(eos_id)
        return allowed

    return constrain
