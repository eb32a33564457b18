"""Texts as the service works on them: the options they are translated with, their sentences, their translations."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from dragoman.data.glossary import CopiedKind, Glossary
from dragoman.data.segmentation import Segment, join
from dragoman.errors import UsageError
from dragoman.translation.result import Translation


class Terms:
    """The terms that a text is translated with: pairs of source and target. They are compared by a digest and hold
    their glossary, so that a large one costs no more with each batch than a small one. Making them takes time: not on
    the event loop where there may be many."""

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self.pairs = tuple(pairs)
        self.glossary = Glossary.of(self.pairs)
        self.digest = hashlib.sha256(repr(self.pairs).encode()).digest()

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Terms) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def after_pivot(self) -> "Terms":
        """The same for a text in the pivot's language, which has the terms already as they are wanted."""
        forms = (form for source, target in self.pairs for form in (target.split("|") if target.strip() else [source]))
        return Terms([(form.strip(), "") for form in dict.fromkeys(forms) if form.strip()])


NO_TERMS = Terms()


class RequestOptions(NamedTuple):
    """How a request wants its text translated; the defaults are the run's own ways."""

    beam: int | None = None
    alpha: float | None = None
    terms: Terms = NO_TERMS
    keep: tuple[CopiedKind, ...] = ()
    rate: bool = False  # with confidences, where the run is calibrated
    kept: tuple[str, ...] = ()  # stretches that a document wants copied

    def after_pivot(self) -> "RequestOptions":
        return self._replace(terms=self.terms.after_pivot)


DEFAULT_OPTIONS = RequestOptions()


class BatchKey(NamedTuple):
    """What sentences must have in common to be translated in one batch."""

    pair: str
    n_best: int
    options: RequestOptions

    @property
    def cached_as(self) -> tuple[Any, ...]:
        """What stands for this in the cache, which is not to keep the terms of every request alive."""
        return (self.pair, self.n_best, *self.options._replace(terms=NO_TERMS), self.options.terms.digest)


@dataclass(frozen=True)
class TranslatedText:
    """A text, its sentences, and a translation of each."""

    source: str
    parts: tuple[Segment, ...]
    translations: tuple[Translation, ...]

    @property
    def text(self) -> str:
        return self.nth(0)

    def nth(self, rank: int) -> str:
        """The text made of each sentence's candidate of this rank, or of its last one where it has fewer."""
        chosen = [
            translation.candidates[min(rank, len(translation.candidates) - 1)].text for translation in self.translations
        ]
        return join(self.source, list(self.parts), chosen)

    def alternatives(self, count: int) -> list[str]:
        """Up to `count` other translations of the whole text, the best first."""
        most = max((len(translation.candidates) for translation in self.translations), default=1)
        others = dict.fromkeys(other for rank in range(1, most) if (other := self.nth(rank)) != self.text)
        return list(others)[:count]


def is_translatable(text: str) -> bool:
    """Whether there is a letter in it: numbers and punctuation marks are the same in every language."""
    return any(map(str.isalpha, text))


def check_text(text: str) -> None:
    """Refuses what is not valid Unicode, before it fails in a batch with the sentences of others."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"Invalid request: character {error.start + 1} is a lone surrogate, which no Unicode text holds"
        ) from None
