"""Texts as the service works on them: the options they are translated with, their sentences, their translations."""

from dataclasses import dataclass
from typing import NamedTuple

from dragoman.data.glossary import CopiedKind
from dragoman.data.segmentation import Segment, join
from dragoman.errors import UsageError
from dragoman.translation.result import Translation


class RequestOptions(NamedTuple):
    """How a request wants its text translated; the defaults are the run's own ways."""

    beam: int | None = None
    alpha: float | None = None
    terms: tuple[tuple[str, str], ...] = ()  # a glossary: source and target
    keep: tuple[CopiedKind, ...] = ()
    rate: bool = False  # with confidences, where the run is calibrated
    kept: tuple[str, ...] = ()  # stretches that a document wants copied

    def after_pivot(self) -> "RequestOptions":
        """The same for a text in the pivot's language, which has the terms already as they are wanted."""
        forms = (form for source, target in self.terms for form in (target.split("|") if target.strip() else [source]))
        return self._replace(terms=tuple((form.strip(), "") for form in dict.fromkeys(forms) if form.strip()))


DEFAULT_OPTIONS = RequestOptions()


class BatchKey(NamedTuple):
    """What sentences must have in common to be translated in one batch."""

    pair: str
    n_best: int
    options: RequestOptions


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
