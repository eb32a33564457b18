"""Translates through a third language, the pivot: English into French, and that French into German, where no run
translates from English into German. A sentence at a time: what must come through does so in both steps, or the
sentence stays as it was.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypedDict, Unpack, get_args

from dragoman.config import SearchConfig
from dragoman.data.glossary import Required, Requirements
from dragoman.errors import UsageError
from dragoman.progress import Say, discard
from dragoman.translation.confidence import WordConfidence
from dragoman.translation.line import cut_line, translate_lines, translation_of_line
from dragoman.translation.result import Candidate, How, SourceSentence, Translation
from dragoman.translation.translator import WINDOW, Translator


def is_pivotal(translation: Translation) -> bool:
    """Whether a first step gave a text to go on with: a sentence that was left as it was is in the wrong language."""
    return translation.how != "source"


def through_pivot(first: Translation, second: Translation | None) -> Translation:
    """The translation that two steps make: from the first one's source into the second one's text.

    A sentence that either step left as it was is left as it was: half of the way would be in the pivot's language.
    `second` None: there was no second step. The confidence is the product of both; what a person corrected is sure. A
    word is as sure as it is in the second step, times the first."""
    if second is None or not is_pivotal(second):
        notes = first.notes if second is None else (*first.notes, *second.notes)
        unchanged = Candidate(first.source, 0.0, 0.0, (), None)
        return Translation(first.source, (unchanged,), how="source", notes=tuple(dict.fromkeys(notes)))
    sure, then = _sureness(first), _sureness(second)
    return Translation(
        first.source,
        second.candidates,
        tuple(dict.fromkeys((*first.defects, *second.defects))),
        tuple(dict.fromkeys((*first.repaired, *second.repaired))),
        None if sure is None or then is None or _is_by_hand(first, second) else sure * then,
        () if sure is None else _times(second.words, sure),
        first.corrected and second.corrected,
        second.suggestions,
        max((first.how, second.how), key=get_args(How).index),
        tuple(dict.fromkeys((*first.notes, *second.notes))),
        pivot_text=first.text,
    )


def _sureness(translation: Translation) -> float | None:
    return 1.0 if translation.corrected else translation.confidence


def _is_by_hand(first: Translation, second: Translation) -> bool:
    """Whether no step has a confidence that was measured."""
    return first.confidence is None and second.confidence is None


def _times(words: Sequence[WordConfidence], sure: float) -> tuple[WordConfidence, ...]:
    return tuple(word._replace(confidence=word.confidence * sure) for word in words)


class SentenceOptions(TypedDict, total=False):
    """How sentences are translated; `Translator.translate_stream` says what each means."""

    seed: int
    scores: bool
    repair: bool
    rate: bool
    protect: bool
    tell: Say


@dataclass(frozen=True)
class PivotTranslator:
    """Two translators in a row: `PivotTranslator(en_fr, fr_de)` translates from English into German."""

    first: Translator
    second: Translator

    @property
    def search(self) -> SearchConfig:
        """The search settings of the first step."""
        return self.first.search

    def translate(self, lines: Sequence[str], required: Requirements | None = None) -> list[str]:
        """One translation a line, in the order given. `required`: what each must hold, as `Glossary(...).required`."""
        if isinstance(lines, str):  # a sequence of strings too: it would be translated letter by letter
            raise UsageError("translate() got a string; give a list of lines")
        return [translation.text for translation in self.translate_stream(lines, scores=False, required=required)]

    def translate_stream(
        self,
        lines: Iterable[str],
        n_best: int = 1,
        seed: int = 0,
        window: int = WINDOW,
        warn: Callable[[str], None] = warnings.warn,
        scores: bool = True,
        first_line: int = 1,
        required: Requirements | None = None,
        repair: bool = True,
        rate: bool = False,
        whole: bool = False,
        protect: bool = True,
        tell: Say = discard,
    ) -> Iterator[Translation]:
        """Yields a translation for each line, in order; its `pivot_text` is the line in the pivot's language. All
        arguments as of `Translator.translate_stream`; n_best: so many of the second step, from the best of the
        first."""
        if required is not None and (self.first.search.sampling or self.second.search.sampling):
            raise UsageError("required words and sampling: a draw obeys nobody; search, or require nothing")
        lines = iter(lines)
        while chunk := list(islice(lines, window)):
            translate = partial(
                self.translate_sentences,
                n_best=n_best,
                required=required,
                seed=seed + first_line,
                scores=scores,
                repair=repair,
                rate=rate,
                protect=protect,
                tell=tell,
            )
            cut = partial(self.first.cut, warn=warn, whole=whole)
            yield from translate_lines(chunk, first_line, cut, translate, warn)
            first_line += len(chunk)

    def translate_sentences(
        self,
        sentences: Sequence[SourceSentence],
        n_best: int = 1,
        *,
        required: Requirements | None = None,
        **options: Unpack[SentenceOptions],
    ) -> list[Translation]:
        """Sentences that were cut already, as `Translator.translate_sentences`. What a translation must hold, its text
        in the pivot's language holds, too."""
        firsts = self.first.translate_sentences(sentences, required=required, **options)
        pivotal = [index for index, first in enumerate(firsts) if is_pivotal(first)]
        cut = [cut_line(firsts[index].text, self.second.fits, self.second.language, whole=True) for index in pivotal]
        parts = [
            SourceSentence(segment.text, sentences[index].kept)
            for index, line in zip(pivotal, cut, strict=True)
            for segment in line.segments
        ]
        wanted: dict[str, tuple[Required, ...]] = {}
        if required is not None:
            wanted = {firsts[index].text: tuple(required(sentences[index].text)) for index in pivotal}
        held = (lambda text: wanted.get(text, ())) if any(wanted.values()) else None
        found = iter(self.second.translate_sentences(parts, n_best, required=held, **options))
        seconds = {
            index: translation_of_line(firsts[index].text, line.segments, list(islice(found, len(line.segments))))
            for index, line in zip(pivotal, cut, strict=True)
        }
        return [through_pivot(first, seconds.get(index)) for index, first in enumerate(firsts)]
