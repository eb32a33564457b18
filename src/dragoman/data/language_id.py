"""Detects the language of a text."""

import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DetectedLanguage:
    """A language that a text may be in, and how sure that is."""

    language: str
    confidence: float  # 0 to 100


@functools.cache
def _identifier() -> Any:
    """Loads the model of py3langid, once: that takes a second. A detector restricts a copy of it to its languages."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class LanguageDetector:
    """Tells which of some languages a text is in, with py3langid. Its model is part of the package: nothing is
    fetched."""

    def __init__(self, languages: Sequence[str]) -> None:
        self._identifier = copy.copy(_identifier())
        known = set(self._identifier.labels)
        # A language that the model does not know is never detected.
        self.languages = [code for code in languages if code in known]
        if self.languages:
            self._identifier.set_languages(self.languages)

    def detect(self, texts: Sequence[str]) -> list[DetectedLanguage]:
        """Gives the up to three most probable languages of the texts together, the most probable first. Longer texts
        weigh more."""
        weights = [len(text) for text in texts]
        if not self.languages or not any(any(map(str.isalpha, text)) for text in texts):
            return [DetectedLanguage("en", 0.0)]
        total: dict[str, float] = {}
        for text, weight in zip(texts, weights, strict=True):
            for language, probability in self._identifier.rank(text) if weight else ():
                total[str(language)] = total.get(str(language), 0.0) + float(probability) * weight
        shares = {language: round(100 * value / sum(weights)) for language, value in total.items()}
        ranked = sorted(shares.items(), key=lambda entry: -entry[1])
        return [
            DetectedLanguage(language, float(share))
            for language, share in ranked[:3]
            if share or language == ranked[0][0]
        ]


def detect_pair(pairs: Sequence[tuple[str, str]], sample: int = 200) -> tuple[str, str] | None:
    """Detects the languages of the two sides from a sample of the pairs. None: not sure, or both sides are in the
    same language."""
    sampled = pairs[:: max(1, len(pairs) // sample)]
    detector = LanguageDetector(known_languages())
    source, target = (detector.detect([" ".join(pair[side] for pair in sampled)])[0] for side in (0, 1))
    sure = min(source.confidence, target.confidence) >= 50 and source.language != target.language
    return (source.language, target.language) if sure else None


def known_languages() -> list[str]:
    """The codes of all languages that can be detected."""
    return list(_identifier().labels)
