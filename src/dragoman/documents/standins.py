"""Words that stand in for what must be copied.

A model that never saw an address writes nonsense around it; a name or a number in its place is copied, and the rest of
the sentence is translated as it should be.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dragoman.documents.flow import Item, Sentence
from dragoman.documents.keep import Kept, find_kept

# Names, which most models copy; numbers, which nearly all do, in every script. Whether they were copied is looked at:
# nothing depends on a model knowing them.
_NAMES = ("Tom", "Boston", "John", "Paris", "Smith", "Berlin", "Anna", "London")
_NUMBERS = ("741", "852", "963", "417", "528", "639", "174", "285")
# Placeholders that a number will come for: the words around it agree with one.
_COUNT = re.compile(r"%.*[diufgx]|.*(?:count|num|total|number|\bn\b).*", re.IGNORECASE)

Scheme = Literal["fitting", "numbers"]
SCHEMES: tuple[Scheme, ...] = ("fitting", "numbers")


@dataclass(frozen=True)
class Masked:
    """A sentence in which words stand in for others."""

    sentence: Sentence
    back: tuple[tuple[str, str], ...]  # stand-in, what it stands for

    def unmasked(self, items: Sequence[Item]) -> tuple[Item, ...]:
        return tuple(self._text(item) if isinstance(item, str) else item for item in items)

    def copied(self, translation: str) -> bool:
        """Whether every stand-in came back, once."""
        return all(translation.count(word) == 1 for word, _ in self.back)

    def _text(self, text: str) -> str:
        for word, real in self.back:
            text = text.replace(word, real)
        return text


def masked(sentence: Sentence, scheme: Scheme) -> Masked | None:
    """None: there is nothing to mask, or more than there are words."""
    wanted = [kept for kept in find_kept(sentence.text, sentence.kept) if kept.kind != "number"]
    names, numbers = ([word for word in words if word not in sentence.text] for words in (_NAMES, _NUMBERS))
    pairs: list[tuple[Kept, str]] = []
    for kept in wanted:
        counts = scheme == "numbers" or (kept.kind == "placeholder" and _COUNT.fullmatch(kept.text))
        free = numbers if counts else names
        if not free:
            return None
        pairs.append((kept, free.pop(0)))
    if not pairs:
        return None
    text, position = "", 0
    origin: list[int] = []
    for kept, word in pairs:
        text += sentence.text[position : kept.start] + word
        origin += [*sentence.origin[position : kept.start], *[sentence.origin[kept.start]] * len(word)]
        position = kept.end
    text += sentence.text[position:]
    origin += sentence.origin[position:]
    stand_in = replace(sentence, text=text, origin=tuple(origin), kept=tuple(word for _, word in pairs))
    return Masked(stand_in, tuple((word, kept.text) for kept, word in pairs))
