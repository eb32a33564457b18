"""Translates sentences with inline tags. The translator keeps what must be copied; this keeps the tags.

Tags are placed by attention. Where they cannot be, the text between them is translated piece by piece; where that fails
too, the source stays. Each translated sentence tells which way was taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.documents.flow import Flow, Sentence, TextOrTag, untranslated
from dragoman.documents.sentence_translator import SentenceTranslator
from dragoman.documents.tag_placement import place_tags
from dragoman.documents.word_alignment import AlignedWords, places_in, without_alignment
from dragoman.translation.defects import far_too_long
from dragoman.translation.fallbacks import losses_of, stretches, translate_stretches
from dragoman.translation.masking import Masked
from dragoman.translation.result import Candidate, How, SourceSentence, Translation


@dataclass(frozen=True)
class TranslatedSentence:
    """A sentence as it is written into the document, and how it was translated."""

    items: tuple[TextOrTag, ...]
    how: How
    notes: tuple[str, ...]  # what was wrong with the translations that were not taken, and with this one


def translate_sentences(
    batch: Sequence[tuple[Flow, Sentence]], translator: SentenceTranslator
) -> list[TranslatedSentence]:
    """Translates sentences in order. Sentences that are the same are translated once."""
    asked = [_source_sentence(sentence) for _, sentence in batch]
    different = list(dict.fromkeys(asked))
    found = dict(zip(different, translator.translate(different), strict=True))
    return [_finish(flow, sentence, found[one], translator) for (flow, sentence), one in zip(batch, asked, strict=True)]


def _finish(
    flow: Flow, sentence: Sentence, translation: Translation, translator: SentenceTranslator
) -> TranslatedSentence:
    # Defects that the translator found (a loop, a copy) it has tried to repair already: they are only noted.
    defects = (defect for defect in translation.defects if defect != "lost" and defect not in translation.notes)
    similar = (f"{one.score:.0%} like {one.source!r}, which was {one.target!r}" for one in translation.suggestions)
    notes = (*translation.notes, *defects, *similar)
    if why := _why_left(translation, translator.min_confidence):
        return TranslatedSentence((translator.mark, *untranslated(flow, sentence)), "source", why)
    if translation.how == "source" or translation.text == sentence.text:
        return TranslatedSentence(tuple(untranslated(flow, sentence)), translation.how, notes)
    if translation.how != "pieces" or not sentence.tags:
        mask, candidate = translation.stand_in or (None, translation.candidates[0])
        items, remarks = _placed(flow, _masked_sentence(sentence, mask), candidate, translator)
        notes += remarks
        if items is not None:
            return TranslatedSentence(_unmasked(items, mask), translation.how, notes)
    pieces = _in_pieces(flow, sentence, translator)
    text = "".join(item for item in pieces if isinstance(item, str))
    if text == sentence.text:
        return TranslatedSentence(tuple(untranslated(flow, sentence)), "pieces", notes)
    if text.strip() and not far_too_long(sentence.text, text) and not losses_of(_source_sentence(sentence), text).grave:
        return TranslatedSentence(tuple(pieces), "pieces", notes)
    return TranslatedSentence(tuple(untranslated(flow, sentence)), "source", notes)


def _source_sentence(sentence: Sentence) -> SourceSentence:
    return SourceSentence(sentence.text, sentence.kept)


def _why_left(translation: Translation, min_confidence: float | None) -> tuple[str, ...]:
    """The reasons to leave a sentence untranslated for lack of confidence; empty: there are none."""
    if min_confidence is None or not translation.is_doubtful(min_confidence):
        return ()
    sure = () if translation.confidence is None else (f"confidence {translation.confidence:.2f}",)
    return (*sure, *translation.defects)


def _masked_sentence(sentence: Sentence, mask: Masked | None) -> Sentence:
    """The sentence as the model was given it, with stand-ins in it."""
    if mask is None:
        return sentence
    origin = tuple(sentence.origin[place] for place in mask.origins())
    return replace(sentence, text=mask.text, origin=origin, kept=mask.words)


def _unmasked(items: Sequence[TextOrTag], mask: Masked | None) -> tuple[TextOrTag, ...]:
    if mask is None:
        return tuple(items)
    return tuple(mask.unmasked(item) if isinstance(item, str) else item for item in items)


def _placed(
    flow: Flow, sentence: Sentence, candidate: Candidate, translator: SentenceTranslator
) -> tuple[tuple[TextOrTag, ...] | None, tuple[str, ...]]:
    if not sentence.tags:
        return (candidate.text,), ()
    alignment = translator.align(sentence.text, candidate)
    notes: tuple[str, ...] = ()
    if alignment is None or not alignment.target_words:  # a person's own words have no tokens
        words = without_alignment(sentence, candidate.text)
        notes = ("tags placed by the order of the words: no alignment",)
    else:
        words = AlignedWords(alignment.source_words, alignment.target_words, alignment.weights)
    placed = place_tags(flow, sentence, candidate.text, words)
    if placed is None:
        return None, ("too few words to divide",)
    if placed.empty:
        notes += (f"{placed.empty} {'tag holds' if placed.empty == 1 else 'tags hold'} no words",)
    return placed.items, notes


def _in_pieces(flow: Flow, sentence: Sentence, translator: SentenceTranslator) -> list[TextOrTag]:
    """Translates the text between tags and between what must be copied, in the order of the source."""
    place = places_in(sentence)
    tags: dict[int, list[TextOrTag]] = {}
    for number in sentence.tags:
        tags.setdefault(place(flow.tags[number].at), []).append(number)
    parts = stretches(_source_sentence(sentence), tags)
    texts, _ = translate_stretches(
        parts, lambda wanted: translator.translate([SourceSentence(text) for text in wanted])
    )
    items: list[TextOrTag] = []
    for part, text in zip(parts, texts, strict=True):
        items += [*tags.get(part.start, ()), text]
    return [*items, *tags.get(len(sentence.text), ())]
