"""Sentence translators for tests of documents, whose translations can be foretold: no model, no torch."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from dragoman.data.glossary import Required
from dragoman.translation.defects import Defect, far_too_long
from dragoman.translation.fallbacks import translate_protected
from dragoman.translation.lengths import ANY_PAIR, UsualLengths
from dragoman.translation.result import Candidate, SourceSentence, Translation

if TYPE_CHECKING:
    from dragoman.decoding.alignment import Alignment as ModelAlignment


@dataclass(frozen=True)
class Word:
    start: int
    end: int


@dataclass(frozen=True)
class Alignment:
    """As in dragoman.inspection.alignment, which would bring torch."""

    source_words: tuple[Word, ...]
    target_words: tuple[Word, ...]
    weights: tuple[tuple[float, ...], ...]


def words(text: str) -> list[Word]:
    return [Word(found.start(), found.end()) for found in re.finditer(r"\w+|[^\w\s]", text)]


@dataclass
class Scripted:
    """Says what `say` says, with words in an order of its own: `order[i]` is the source of the i-th target word."""

    say: Callable[[str], str]
    order: Callable[[int], Sequence[int]] = range
    aligns: bool = True
    next_best: Callable[[str], Sequence[str]] = lambda _: ()
    obeys: bool = False  # whether required words come
    language: str | None = "en"
    min_confidence: float | None = None
    mark: str = ""
    asked: list[str] = field(default_factory=list)

    def fits(self, text: str) -> bool:
        return len(text) < 400

    def translate(self, sentences: Sequence[SourceSentence]) -> list[Translation]:
        return translate_protected(sentences, Searching(self))

    def search(self, text: str, n_best: int, required: Sequence[Required]) -> Translation:
        self.asked.append(text)
        forced = [term.forms[0] for term in required if self.obeys]
        found = [" ".join([self._said(text), *forced]), *(self.next_best(text) if n_best > 1 else ())]
        defects: tuple[Defect, ...] = ("runaway",) if far_too_long(text, found[0]) else ()
        return Translation(text, tuple(map(candidate, found)), defects)

    def align(self, text: str, candidate: Candidate) -> "ModelAlignment | None":
        if not self.aligns:
            return None
        source, target = words(text), words(candidate.text)
        order = self.order(len(source))
        weights = tuple(
            tuple(0.9 if order[row % len(order)] == column else 0.1 / len(source) for column in range(len(source)))
            for row in range(len(target))
        )
        return cast("ModelAlignment", Alignment(tuple(source), tuple(target), weights))

    def _said(self, text: str) -> str:
        parts = [text[word.start : word.end] for word in words(text)]
        order = self.order(len(parts))
        return self.say(text if order == range(len(parts)) else " ".join(parts[index] for index in order))


@dataclass
class Searching:
    """What stands behind a scripted translator: its plain translations."""

    scripted: Scripted
    lengths: UsualLengths = ANY_PAIR

    def translate(
        self, texts: Sequence[str], n_best: int = 1, required: Sequence[Sequence[Required]] | None = None
    ) -> list[Translation]:
        both = zip(texts, required or [()] * len(texts), strict=True)
        return [self.scripted.search(text, n_best, terms) for text, terms in both]


def candidate(text: str) -> Candidate:
    return Candidate(text, 0.0, 0.0, tuple(text.split()), None)


def careful(text: str) -> str:
    """In capitals, but for what must be copied: a translator that makes no mistake."""
    from dragoman.data.protected_spans import protected_spans

    said, position = "", 0
    for kept in protected_spans(text):
        said += text[position : kept.start].upper() + kept.text
        position = kept.end
    return said + text[position:].upper()


def backwards(count: int) -> list[int]:
    return list(reversed(range(count)))
