"""Replaces what must be copied by stand-in words, and puts it back into the translation.

A model that never saw an address writes nonsense around it. A name or a number in its place is copied, and the rest of
the sentence is translated as it should be.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.data.glossary import inside_a_word
from dragoman.data.protected_spans import ProtectedSpan, protected_spans

# Names, which most models copy; common numbers, which small models know; rare ones, which most others copy in every
# script. It is checked whether they were copied, so nothing depends on a model knowing them.
_NAMES = ("Tom", "Boston", "John", "Paris", "Smith", "Berlin", "Anna", "London")
_COMMON = ("10", "20", "30", "50", "15", "100", "12", "40")
_RARE = ("741", "852", "963", "417", "528", "639", "174", "285")
# Placeholders that a number will replace: the words around must agree with a number.
_COUNT = re.compile(r"\A%.*[diufgx]\Z|count|num|total|\bn\b", re.IGNORECASE)

# The stand-ins for numbers, and for all the rest.
Scheme = Literal["common", "rare", "numbers", "names"]
SCHEMES: dict[Scheme, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "common": (_COMMON, _NAMES),
    "rare": (_RARE, _NAMES),
    "numbers": (_RARE, _RARE),
    "names": (_NAMES, _NAMES),
}


@dataclass(frozen=True)
class Masked:
    """A sentence in which words stand in for what must be copied."""

    text: str
    stand_ins: tuple[tuple[str, ProtectedSpan], ...]  # the word, and what it stands for in the sentence

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for word, _ in self.stand_ins)

    def unmasked(self, translation: str) -> str:
        """The translation with what must be copied in place of the stand-ins."""
        for word, span in self.stand_ins:
            for start in reversed(_places(translation, word)):
                translation = translation[:start] + span.text + translation[start + len(word) :]
        return translation

    def copied(self, translation: str) -> bool:
        """Whether every stand-in came back, once."""
        return all(len(_places(translation, word)) == 1 for word in self.words)

    def origins(self) -> list[int]:
        """For each character of the text, and for its end, the place in the sentence."""
        origins: list[int] = []
        position = 0
        for word, span in self.stand_ins:
            origins += [*range(position, span.start), *[span.start] * len(word)]
            position = span.end
        return [*origins, *range(position, position + len(self.text) - len(origins) + 1)]


def masked(text: str, also: Sequence[str], scheme: Scheme) -> Masked | None:
    """The text with stand-ins; None: there is nothing to mask, or more than there are words."""
    free = {words: [word for word in words if word not in text] for words in SCHEMES[scheme]}
    for_numbers, for_others = (free[words] for words in SCHEMES[scheme])
    stand_ins: list[tuple[str, ProtectedSpan]] = []
    pieces: list[str] = []
    position = 0
    for span in protected_spans(text, also):
        words = for_numbers if span.kind == "number" or _is_count(span) else for_others
        if not words:
            return None
        stand_ins.append((words.pop(0), span))
        pieces += [text[position : span.start], stand_ins[-1][0]]
        position = span.end
    return Masked("".join((*pieces, text[position:])), tuple(stand_ins)) if stand_ins else None


def _is_count(span: ProtectedSpan) -> bool:
    return span.kind == "placeholder" and _COUNT.search(span.text) is not None


def _places(text: str, word: str) -> list[int]:
    """Where a word stands by itself."""
    found = (match.start() for match in re.finditer(re.escape(word), text))
    return [start for start in found if not inside_a_word(text, start) and not inside_a_word(text, start + len(word))]
