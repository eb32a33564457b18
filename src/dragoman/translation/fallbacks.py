"""Translates sentences so that addresses, placeholders, numbers and emoji are not lost, or the loss is reported.

If the plain translation lost one, these are tried in order: the next best translations; the inside of quotes or
brackets that stand around the whole sentence; other words that stand in for what must be copied; a search that is
required to write it; translating the sentence around it, piece by piece. Where all fail, the source stays. What is far
too short goes the same way, and clause by clause, but is taken where all fail. Each translation says how it was found.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dragoman.data.glossary import Required
from dragoman.data.protected_spans import ProtectedSpan, difference, protected_spans
from dragoman.data.scripts import foreign_words
from dragoman.translation.clauses import clauses
from dragoman.translation.defects import Defect, crowded, far_too_long
from dragoman.translation.enclosures import Enclosed, enclosed, lost_enclosures
from dragoman.translation.masking import SCHEMES, masked
from dragoman.translation.result import Candidate, How, PlainTranslator, SourceSentence, Translation

NEXT_BEST = 4
# Of a token, on average. A model that must write words it never saw makes nonsense around them, and gives it less than
# this.
LEAST_LOG_PROBABILITY = -1.5
# Space and marks between a piece's words and what must stay beside them: a model would drop the marks, and the words
# would run into what stays.
_EDGE = " \t\r\n\u00a0\u202f-–—−+±=≈~<>*/,"
_BEFORE_WORDS, _AFTER_WORDS = _EDGE + ")]", _EDGE + "(["


@dataclass(frozen=True)
class Losses:
    """What a translation lost of what must be copied, or added to it."""

    grave: tuple[str, ...]  # such a translation is not used
    # Only reported: an added number may have been a number word, a lost $ be "dollars", and quotes stand elsewhere.
    slight: tuple[str, ...]


_NO_LOSSES = Losses((), ())


_Found = dict[SourceSentence, Translation]
_Fallback = Callable[[_Found, PlainTranslator], _Found]


def translate_protected(
    sentences: Sequence[SourceSentence],
    plain: PlainTranslator,
    n_best: int = 1,
    *,
    as_it_comes: Callable[[str], bool] = lambda _: False,
) -> list[Translation]:
    """One translation for each sentence, in order; equal sentences are translated once. What is empty or ran away is
    not used either, except where `as_it_comes` says that any translation of the text is wanted."""
    different = list(dict.fromkeys(sentences))
    first = _translations((sentence.text for sentence in different), lambda texts: plain.translate(texts, n_best))
    found: _Found = {}
    spoiled: _Found = {}
    asked = {sentence: _with_foreign_words(sentence, first[sentence.text].text) for sentence in different}
    for sentence in asked.values():
        translation, losses = first[sentence.text], losses_of(sentence, first[sentence.text].text)
        wrong = () if as_it_comes(sentence.text) else (*_unusable(translation), *_short(translation))
        notes = (*losses.grave, *losses.slight, *wrong)
        if notes:
            spoiled[sentence] = replace(translation, notes=notes)
        else:
            found[sentence] = translation
    for how, way in FALLBACKS:
        better = way(spoiled, plain) if spoiled else {}
        found |= {sentence: _with_notes(sentence, spoiled.pop(sentence), one, how) for sentence, one in better.items()}
    found |= {sentence: _left(sentence, one) for sentence, one in spoiled.items()}
    return [found[asked[sentence]] for sentence in sentences]


def _with_foreign_words(sentence: SourceSentence, translation: str) -> SourceSentence:
    """Names in a script of neither side must be copied as well."""
    return sentence._replace(kept=(*sentence.kept, *foreign_words(sentence.text, translation)))


def _unusable(translation: Translation) -> list[Defect]:
    """The defects for which a translation is not used. Loops and copies can be read, and are only reported."""
    return [defect for defect in translation.defects if defect in ("runaway", "empty")]


def _short(translation: Translation) -> list[Defect]:
    """What is short is used if nothing better is found."""
    return [defect for defect in translation.defects if defect == "short"]


def losses_of(sentence: SourceSentence, target: str) -> Losses:
    """Compares what must be copied in a sentence and in its translation."""
    differs = difference(sentence.text, target, sentence.kept)
    grave = [f"lost: {text}" for text in differs.lost] + [f"added: {text}" for text in differs.added]
    slight = [f"added: {number}" for number in differs.numbers_added]
    slight += [f"lost: {lost}" for lost in (*differs.signs_lost, *lost_enclosures(sentence.text, target))]
    return Losses(tuple(grave), tuple(slight))


@dataclass(frozen=True)
class Stretch:
    """A part of a sentence that is translated by itself, or stays."""

    start: int
    text: str
    stays: bool


def stretches(sentence: SourceSentence, cuts: Iterable[int] = ()) -> list[Stretch]:
    """The sentence cut at these places and around everything that must stay."""
    text, spans = sentence.text, protected_spans(sentence.text, sentence.kept)
    edges = {0, len(text), *cuts} | {edge for span in spans for edge in (span.start, span.end)}
    found, number = [], 0
    for first, last in pairwise(sorted(edges)):
        while number < len(spans) and spans[number].end <= first:
            number += 1
        found.append(Stretch(first, text[first:last], number < len(spans) and spans[number].start <= first))
    return found


def translate_stretches(
    parts: Sequence[Stretch], translate: Callable[[Sequence[str]], Sequence[Translation]]
) -> tuple[list[str], list[Translation]]:
    """The text of each stretch in the translation, with the space and the marks around it as they were; and the
    translations made for them."""
    wanted = [part for part in parts if not part.stays and any(map(str.isalpha, part.text))]
    translations = list(translate([_words_of(part.text) for part in wanted])) if wanted else []
    texts = {part.start: _like(part.text, one.text) for part, one in zip(wanted, translations, strict=True)}
    return [texts.get(part.start, part.text) for part in parts], translations


def _next_best(spoiled: _Found, plain: PlainTranslator) -> _Found:
    """The first of the next best candidates that lost nothing."""
    more = _translations((sentence.text for sentence in spoiled), lambda texts: plain.translate(texts, NEXT_BEST))
    better: _Found = {}
    for sentence, first in spoiled.items():
        for candidate in more[sentence.text].candidates:
            short = plain.lengths.is_short(sentence.text, candidate.text)
            if candidate.text == first.text or short or not _is_readable(sentence.text, candidate.text):
                continue
            if losses_of(sentence, candidate.text) == _NO_LOSSES:
                better[sentence] = replace(more[sentence.text], candidates=(candidate,), words=(), defects=())
                break
    return better


def _inside(spoiled: _Found, plain: PlainTranslator) -> _Found:
    """Translations of what stands inside quotes or brackets that are around the whole sentence and were lost."""
    parts = {
        sentence: part
        for sentence, one in spoiled.items()
        if lost_enclosures(sentence.text, one.text) and (part := enclosed(sentence.text)) is not None
    }
    inner = [SourceSentence(part.inside, sentence.kept) for sentence, part in parts.items()]
    found = translate_protected(inner, plain) if inner else []
    return {
        sentence: _wrapped(sentence, part, one)
        for (sentence, part), one in zip(parts.items(), found, strict=True)
        if one.how != "source"
    }


def _wrapped(sentence: SourceSentence, part: Enclosed, inside: Translation) -> Translation:
    text = f"{part.before}{inside.text}{part.after}"
    return replace(
        inside,
        source=sentence.text,
        candidates=(_without_tokens(text, inside.candidates[:1]),),
        words=(),
        stand_in=None,
    )


def _is_readable(source: str, target: str) -> bool:
    return bool(target.strip()) and not far_too_long(source, target) and not crowded(source, target)


def _stand_ins(spoiled: _Found, plain: PlainTranslator) -> _Found:
    """Translations of the sentences with other words in place of what must be copied."""
    better: _Found = {}
    reserve: _Found = {}  # with slight losses
    for scheme in SCHEMES:
        left = [sentence for sentence in spoiled if sentence not in better]
        tried = {sentence: mask for sentence in left if (mask := masked(*sentence, scheme))}
        translations = _translations((mask.text for mask in tried.values()), plain.translate)
        for sentence, mask in tried.items():
            translation = translations[mask.text]
            candidate = translation.candidates[0]
            text = mask.unmasked(candidate.text)
            losses = losses_of(sentence, text)
            if mask.copied(candidate.text) and not translation.defects and not losses.grave:
                found = reserve if losses.slight else better
                found[sentence] = replace(
                    translation,
                    source=sentence.text,
                    candidates=(replace(candidate, text=text, tokens=(), token_log_probabilities=None),),
                    words=(),
                    stand_in=(mask, candidate),
                )
    return reserve | better


def _with_required(spoiled: _Found, plain: PlainTranslator) -> _Found:
    """Translations that were required to hold what must be copied. (What was added cannot be forbidden.)"""
    asked = {sentence: spans for sentence in spoiled if (spans := protected_spans(*sentence))}
    if not asked:
        return {}
    required = [[_required(span) for span in spans] for spans in asked.values()]
    translations = plain.translate([sentence.text for sentence in asked], 1, required)
    return {
        sentence: one
        for sentence, one in zip(asked, translations, strict=True)
        if losses_of(sentence, one.text) == _NO_LOSSES and not one.defects and _is_believed(one.candidates[0])
    }


def _is_believed(candidate: Candidate) -> bool:
    return candidate.log_probability >= LEAST_LOG_PROBABILITY * (len(candidate.tokens) + 1)


def _required(span: ProtectedSpan) -> Required:
    """The span as a required word; a number may be written with the other language's decimal mark."""
    other = span.text.translate(str.maketrans(".,", ",.")) if span.kind == "number" else span.text
    return Required((span.text,) if other == span.text else (span.text, other))


def _clause_by_clause(spoiled: _Found, plain: PlainTranslator) -> _Found:
    """Translations of the clauses of what came out far too short, put together, if all of them are sound."""
    better: _Found = {}
    for sentence, first in spoiled.items():
        parts = clauses(sentence.text)
        if not _short(first) or len(parts) == 1:
            continue
        found = translate_protected([SourceSentence(part.text, sentence.kept) for part in parts], plain)
        both = zip(parts, found, strict=True)
        text = "".join(_like(part.text, one.text) + part.mark + part.space for part, one in both)
        sound = not any(one.defects or one.how == "source" for one in found) and _is_readable(sentence.text, text)
        if sound and losses_of(sentence, text) == _NO_LOSSES and not plain.lengths.is_short(sentence.text, text):
            better[sentence] = _put_together(sentence, text, found)
    return better


def _put_together(sentence: SourceSentence, text: str, pieces: Sequence[Translation]) -> Translation:
    return Translation(
        sentence.text,
        (_without_tokens(text, [one.candidates[0] for one in pieces]),),
        defects=tuple(dict.fromkeys(defect for one in pieces for defect in one.defects)),
        confidence=min((one.confidence for one in pieces if one.confidence is not None), default=None),
    )


def _with_slight_losses(spoiled: _Found, _: PlainTranslator) -> _Found:
    """The plain translations whose losses are slight."""
    return {
        sentence: one
        for sentence, one in spoiled.items()
        if not losses_of(sentence, one.text).grave and not _unusable(one)
    }


def _in_pieces(spoiled: _Found, plain: PlainTranslator) -> _Found:
    """Translations of what stands between the spans that must stay."""
    better: _Found = {}
    for sentence in spoiled:
        texts, pieces = translate_stretches(stretches(sentence), plain.translate)
        if pieces and not any(map(_unusable, pieces)) and not losses_of(sentence, "".join(texts)).grave:
            better[sentence] = _put_together(sentence, "".join(texts), pieces)
    return better


FALLBACKS: tuple[tuple[How, _Fallback], ...] = (
    ("other", _next_best),
    ("pieces", _inside),
    ("stand-in", _stand_ins),
    ("required", _with_required),
    ("pieces", _clause_by_clause),
    ("plain", _with_slight_losses),
    ("pieces", _in_pieces),
)


def _translations(
    texts: Iterable[str], translate: Callable[[Sequence[str]], Sequence[Translation]]
) -> dict[str, Translation]:
    order = list(dict.fromkeys(texts))
    return dict(zip(order, translate(order), strict=True)) if order else {}


def _with_notes(sentence: SourceSentence, spoiled: Translation, better: Translation, how: How) -> Translation:
    """The better translation with notes of what was wrong before it; after it the other candidates asked for."""
    others = tuple(one for one in spoiled.candidates[1:] if one.text != better.text)
    notes = tuple(dict.fromkeys((*spoiled.notes, *better.notes)))
    no_longer = (defect for defect in (*spoiled.defects, *_lost(sentence, spoiled)) if defect not in better.defects)
    repaired = tuple(dict.fromkeys((*better.repaired, *no_longer)))
    return replace(better, candidates=(better.candidates[0], *others), how=how, notes=notes, repaired=repaired)


def _left(sentence: SourceSentence, spoiled: Translation) -> Translation:
    """The source in place of its translation."""
    return replace(
        spoiled,
        candidates=(_without_tokens(sentence.text, []),),
        defects=tuple(dict.fromkeys((*spoiled.defects, *_lost(sentence, spoiled)))),
        confidence=None if spoiled.confidence is None else 0.0,
        words=(),
        how="source",
    )


def _lost(sentence: SourceSentence, spoiled: Translation) -> list[Defect]:
    return ["lost"] if losses_of(sentence, spoiled.text).grave else []


def _without_tokens(text: str, parts: Sequence[Candidate]) -> Candidate:
    return Candidate(text, sum(one.score for one in parts), sum(one.log_probability for one in parts), (), None)


def _like(piece: str, translation: str) -> str:
    """The translation of a piece with the piece's punctuation, capitals and what surrounds it: a model ends it like a
    sentence, which it is not."""
    bare = _words_of(piece)
    if bare[-1:] not in ".!?…:;" and translation[-1:] in ".!?" and len(translation) > 1:
        translation = translation[:-1].rstrip()
    if bare[:1].islower() and translation[:1].isupper() and translation[1:2].islower():
        translation = translation[:1].lower() + translation[1:]
    before, after = piece[: -len(piece.lstrip(_BEFORE_WORDS))], piece[len(piece.rstrip(_AFTER_WORDS)) :]
    return before + (translation or bare) + after


def _words_of(piece: str) -> str:
    return piece.lstrip(_BEFORE_WORDS).rstrip(_AFTER_WORDS)
