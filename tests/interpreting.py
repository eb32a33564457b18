"""Interpreters for tests of documents, whose translations can be foretold: no model, no torch."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dragoman.glossary import Required
from dragoman.translate import Candidate, Translation


@dataclass(frozen=True)
class Word:
    start: int
    end: int


@dataclass(frozen=True)
class Alignment:
    """As in dragoman.explain, which would bring torch."""

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

    def translate(self, texts: Sequence[str], n_best: int = 1) -> list[Translation]:
        self.asked += texts
        more = self.next_best if n_best > 1 else lambda _: ()
        return [Translation(text, tuple(map(candidate, [self._said(text), *more(text)]))) for text in texts]

    def translate_with(self, texts: Sequence[str], required: Sequence[Sequence[Required]]) -> list[Candidate]:
        return [
            candidate(" ".join([self._said(text), *(term.forms[0] for term in terms if self.obeys)]))
            for text, terms in zip(texts, required, strict=True)
        ]

    def align(self, text: str, candidate: Candidate) -> Alignment | None:
        if not self.aligns:
            return None
        source, target = words(text), words(candidate.text)
        order = self.order(len(source))
        weights = tuple(
            tuple(0.9 if order[row % len(order)] == column else 0.1 / len(source) for column in range(len(source)))
            for row in range(len(target))
        )
        return Alignment(tuple(source), tuple(target), weights)

    def _said(self, text: str) -> str:
        parts = [text[word.start : word.end] for word in words(text)]
        order = self.order(len(parts))
        return self.say(text if order == range(len(parts)) else " ".join(parts[index] for index in order))


def candidate(text: str) -> Candidate:
    return Candidate(text, 0.0, 0.0, tuple(text.split()), None)


def careful(text: str) -> str:
    """In capitals, but for what must be copied: a translator that makes no mistake."""
    from dragoman.documents.keep import find_kept

    said, position = "", 0
    for kept in find_kept(text):
        said += text[position : kept.start].upper() + kept.text
        position = kept.end
    return said + text[position:].upper()


def backwards(count: int) -> list[int]:
    return list(reversed(range(count)))
