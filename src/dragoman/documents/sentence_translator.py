"""Translates the sentences of documents and aligns their words. Loads torch when the first alignment is asked for."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from dragoman.data.glossary import Requirements
from dragoman.decoding.engines import ComputeType, EngineName
from dragoman.errors import has_torch
from dragoman.translation.confidence import require_calibration
from dragoman.translation.result import Candidate, SourceSentence, Translation
from dragoman.translation.translator import Translator

if TYPE_CHECKING:
    from dragoman.inspection.alignment import Alignment
    from dragoman.inspection.explain import Explainer


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
        load_explainer: "Callable[[], Explainer | None]",
        rules: Requirements | None = None,
        language: str | None = None,
        min_confidence: float | None = None,
        mark: str = "",
    ) -> None:
        self.translator = translator
        self.language = language
        self.min_confidence, self.mark = min_confidence, mark
        self.rules = rules
        self._load_explainer = load_explainer
        self._explainers: list[Explainer | None] = []

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
        return cls(translator, lambda: explainer_of(translator, run), rules, language, min_confidence, mark)

    def fits(self, text: str) -> bool:
        return self.translator.fits(text)

    def translate(self, sentences: Sequence[SourceSentence]) -> list[Translation]:
        return self.translator.translate_sentences(
            sentences, scores=False, required=self.rules, rate=self.min_confidence is not None
        )

    def align(self, text: str, candidate: Candidate) -> "Alignment | None":
        if not self._explainers:
            self._explainers.append(self._load_explainer())
        explainer = self._explainers[0]
        return None if explainer is None else explainer.align(text, candidate.tokens)


def explainer_of(translator: Translator, run: Path) -> "Explainer | None":
    """An explainer that shares the weights of the translator; None: the model gives no alignment, or torch is not there
    to ask it."""
    if not has_torch():
        return None
    from dragoman.data.dataset import validation_pairs
    from dragoman.inspection.alignment import CALIBRATION_SENTENCES
    from dragoman.inspection.explain import Explainer
    from dragoman.model.transformer import Transformer

    reference = translator.reference
    if len(reference.models) != 1 or not isinstance(reference.models[0], Transformer):
        return None
    return Explainer(reference, translator.search, validation_pairs(run, CALIBRATION_SENTENCES), translator.tag)
