"""Translates the sentences of documents and aligns their words. What aligns is loaded when it is first needed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from dragoman.data.glossary import Requirements
from dragoman.decoding.engines import ComputeType, EngineName
from dragoman.documents.aligner import Aligner, aligner_of
from dragoman.translation.confidence import require_calibration
from dragoman.translation.result import Candidate, SourceSentence, Translation
from dragoman.translation.translator import Translator

if TYPE_CHECKING:
    from dragoman.decoding.alignment import Alignment


class SentenceTranslator(Protocol):
    """What documents need of a translator."""

    @property
    def language(self) -> str | None:
        """Code of the source language, where it is known."""
        ...

    @property
    def min_confidence(self) -> float | None:
        """Sentences with less confidence are left untranslated, with `mark` before them. None: no sentence is."""
        ...

    @property
    def mark(self) -> str: ...

    def fits(self, text: str) -> bool:
        """Whether a sentence is short enough to be translated as one."""
        ...

    def translate(self, sentences: Sequence[SourceSentence]) -> list[Translation]:
        """The translation of each sentence, which has all that must be copied; else the sentence itself."""
        ...

    def align(self, text: str, candidate: Candidate) -> "Alignment | None":
        """Which words of a sentence and its translation belong together; None: this model does not tell."""
        ...


class RunSentenceTranslator:
    """Translates sentences with a run. The engine for constraints and alignment is loaded when it is first needed."""

    def __init__(
        self,
        translator: Translator,
        load_aligner: Callable[[], Aligner | None],
        rules: Requirements | None = None,
        language: str | None = None,
        min_confidence: float | None = None,
        mark: str = "",
    ) -> None:
        self.translator = translator
        self.language = language
        self.min_confidence, self.mark = min_confidence, mark
        self.rules = rules
        self._load_aligner = load_aligner
        self._aligners: list[Aligner | None] = []

    @classmethod
    def load(
        cls,
        run: Path,
        *,
        engine: EngineName = "auto",
        compute_type: ComputeType | None = None,
        rules: Requirements | None = None,
        language: str | None = None,
        to: str | None = None,
        min_confidence: float | None = None,
        mark: str = "",
        **search: float,
    ) -> Self:
        translator = Translator.load(
            run,
            engine=engine,
            compute_type=compute_type,
            vocabulary_map=None,
            checkpoint=None,
            to=to,
            source=language,
            **search,
        )
        if min_confidence is not None:
            require_calibration(translator.calibration, run)
        return cls(translator, lambda: aligner_of(translator, run), rules, language, min_confidence, mark)

    def fits(self, text: str) -> bool:
        return self.translator.fits(text)

    def translate(self, sentences: Sequence[SourceSentence]) -> list[Translation]:
        return self.translator.translate_sentences(
            sentences, scores=False, required=self.rules, rate=self.min_confidence is not None
        )

    def align(self, text: str, candidate: Candidate) -> "Alignment | None":
        if not self._aligners:
            self._aligners.append(self._load_aligner())
        aligner = self._aligners[0]
        return None if aligner is None else aligner.align(text, candidate.tokens)
