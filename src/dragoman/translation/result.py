"""The result of a translation: the text, its candidates, how it was found and how sure it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from dragoman.data.glossary import Required
from dragoman.translation.confidence import WordConfidence
from dragoman.translation.defects import Defect
from dragoman.translation.lengths import UsualLengths
from dragoman.translation.masking import Masked

if TYPE_CHECKING:
    from dragoman.translation.translation_memory import Suggestion

# plain: the best translation; other: a next best one; stand-in: of the sentence with words in place of what must stay;
# required: searched for with what was lost; pieces: translated around what must stay, or clause by clause; source: not
# translated.
How = Literal["plain", "other", "stand-in", "required", "pieces", "source"]


@dataclass(frozen=True)
class Candidate:
    """One translation of a line."""

    text: str
    score: float  # log-probability over the length penalty: what the search ranks by
    log_probability: float
    tokens: tuple[str, ...]
    # One more than tokens: the end symbol's. None: the engine knows only their sum; Translator.score gives them.
    token_log_probabilities: tuple[float, ...] | None


@dataclass(frozen=True)
class Translation:
    """A text, and its translations, best first. An empty text has one, which is empty."""

    source: str
    candidates: tuple[Candidate, ...]
    defects: tuple[Defect, ...] = ()  # of the best candidate
    repaired: tuple[Defect, ...] = ()  # defects of an earlier attempt, which the best candidate has not
    confidence: float | None = None  # where it was asked for, and the run is calibrated
    words: tuple[WordConfidence, ...] = ()
    corrected: bool = False  # by a person: it comes from the translation memory
    suggestions: "tuple[Suggestion, ...]" = ()  # corrections of similar sentences
    how: How = "plain"
    notes: tuple[str, ...] = ()  # what was wrong with the translations that were not taken, and with this one
    # Of a sentence with stand-ins: the sentence that was translated, and its translation.
    stand_in: tuple[Masked, Candidate] | None = None
    pivot_text: str | None = None  # of a translation through another language: the text in that language

    @property
    def text(self) -> str:
        return self.candidates[0].text

    def is_doubtful(self, min_confidence: float) -> bool:
        """Whether it is less sure than that, or has a defect. An empty line is never doubtful."""
        unsure = self.confidence is not None and self.confidence < min_confidence
        return bool(self.source.strip()) and (unsure or bool(self.defects))


class SourceSentence(NamedTuple):
    """A sentence to translate."""

    text: str
    kept: tuple[str, ...] = ()  # stretches that must be copied, beside those that every text may have


class PlainTranslator(Protocol):
    """Translates sentences without checking that what must be copied is there."""

    @property
    def lengths(self) -> UsualLengths:
        """How long its translations usually are."""
        ...

    def translate(
        self, texts: Sequence[str], n_best: int = 1, required: Sequence[Sequence[Required]] | None = None
    ) -> list[Translation]:
        """`required`: what the translation of each text must hold."""
        ...
