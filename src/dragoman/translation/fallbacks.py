"""Sentences translated so that nothing is lost: addresses, placeholders, numbers and emoji are there, or it is said.

What the plain translation lost is looked for in the next best ones; then other words stand in for it; then the search
is told to write it; then the sentence is translated around it, piece by piece; where even that fails the source stays.
Which way a sentence went is told with it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dragoman.data.glossary import Required
from dragoman.data.protected_spans import ProtectedSpan, difference, protected_spans
from dragoman.translation.defects import Defect, crowded, far_too_long
from dragoman.translation.masking import SCHEMES, masked
from dragoman.translation.result import Candidate, How, PlainTranslator, SourceSentence, Translation

NEXT_BEST = 4
# Of a token, on average. What a model was made to write and believes less than this is no sentence: so it goes around
# words that it never saw.
LEAST_LOG_PROBABILITY = -1.5


@dataclass(frozen=True)
class Losses:
    """What is wrong with a translation as a carrier of its source."""

    grave: tuple[str, ...]  # not to be given to anyone
    slight: tuple[str, ...]  # said, but not refused: a number too many may be a number word, a $ "dollars"


_Found = dict[SourceSentence, Translation]
_Way = Callable[[_Found, PlainTranslator], _Found]


def translate_protected(
    sentences: Sequence[SourceSentence],
    plain: PlainTranslator,
    n_best: int = 1,
    *,
    as_it_comes: Callable[[str], bool] = lambda _: False,
) -> list[Translation]:
    """One translation for each, in order. Each different sentence is translated once. What is empty or ran away is not
    given either, but of a text that is wanted `as_it_comes`."""
    different = list(dict.fromkeys(sentences))
    first = _translations((sentence.text for sentence in different), lambda texts: plain.translate(texts, n_best))
    found: _Found = {}
    spoiled: _Found = {}
    for sentence in different:
        translation, losses = first[sentence.text], losses_of(sentence, first[sentence.text].text)
        notes = (*losses.grave, *losses.slight, *(() if as_it_comes(sentence.text) else _unusable(translation)))
        if notes:
            spoiled[sentence] = replace(translation, notes=notes)
        else:
            found[sentence] = translation
    for how, way in _WAYS.items():
        better = way(spoiled, plain) if spoiled else {}
        found |= {sentence: _told(sentence, spoiled.pop(sentence), one, how) for sentence, one in better.items()}
    found |= {sentence: _left(sentence, one) for sentence, one in spoiled.items()}
    return [found[sentence] for sentence in sentences]


def _unusable(translation: Translation) -> list[Defect]:
    """Why it cannot be given to anyone, whatever it holds. Loops and copies can be read, and are said."""
    return [defect for defect in translation.defects if defect in ("runaway", "empty")]


def losses_of(sentence: SourceSentence, target: str) -> Losses:
    differs = difference(sentence.text, target, sentence.kept)
    grave = [f"lost: {text}" for text in differs.lost] + [f"added: {text}" for text in differs.added]
    slight = [f"added: {number}" for number in differs.numbers_added] + [f"lost: {sign}" for sign in differs.signs_lost]
    return Losses(tuple(grave), tuple(slight))


@dataclass(frozen=True)
class Stretch:
    """A part of a sentence that is translated by itself, or stays."""

    start: int
    text: str
    stays: bool


def stretches(sentence: SourceSentence, cuts: Iterable[int] = ()) -> list[Stretch]:
    """The sentence cut at these places and around all that must stay."""
    text, stay = sentence.text, protected_spans(sentence.text, sentence.kept)
    edges = {0, len(text), *cuts} | {edge for span in stay for edge in (span.start, span.end)}
    found, number = [], 0
    for first, last in pairwise(sorted(edges)):
        while number < len(stay) and stay[number].end <= first:
            number += 1
        found.append(Stretch(first, text[first:last], number < len(stay) and stay[number].start <= first))
    return found


def translate_stretches(
    parts: Sequence[Stretch], translate: Callable[[Sequence[str]], Sequence[Translation]]
) -> tuple[list[str], list[Translation]]:
    """Their texts, each with the space around it as it was; and what was asked of the translator for them."""
    wanted = [part for part in parts if not part.stays and any(map(str.isalpha, part.text))]
    asked = list(translate([part.text.strip() for part in wanted])) if wanted else []
    said = {part.start: _like(part.text, one.text) for part, one in zip(wanted, asked, strict=True)}
    return [said.get(part.start, part.text) for part in parts], asked


def _next_best(spoiled: _Found, plain: PlainTranslator) -> _Found:
    more = _translations((sentence.text for sentence in spoiled), lambda texts: plain.translate(texts, NEXT_BEST))
    better: _Found = {}
    for sentence, first in spoiled.items():
        for candidate in more[sentence.text].candidates:
            said = sentence.text, candidate.text
            if candidate.text == first.text or not candidate.text.strip() or far_too_long(*said) or crowded(*said):
                continue
            if losses_of(sentence, candidate.text) == Losses((), ()):
                better[sentence] = replace(more[sentence.text], candidates=(candidate,), words=(), defects=())
                break
    return better


def _stand_ins(spoiled: _Found, plain: PlainTranslator) -> _Found:
    better: _Found = {}
    reserve: _Found = {}
    for scheme in SCHEMES:
        left = [sentence for sentence in spoiled if sentence not in better]
        tried = {sentence: mask for sentence in left if (mask := masked(*sentence, scheme))}
        said = _translations((mask.text for mask in tried.values()), plain.translate)
        for sentence, mask in tried.items():
            translation = said[mask.text]
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
    # What was lost can be required; what was added cannot be forbidden.
    asked = {sentence: spans for sentence in spoiled if (spans := protected_spans(*sentence))}
    if not asked:
        return {}
    required = [[_required(span) for span in spans] for spans in asked.values()]
    said = plain.translate([sentence.text for sentence in asked], 1, required)
    return {
        sentence: one
        for sentence, one in zip(asked, said, strict=True)
        if losses_of(sentence, one.text) == Losses((), ()) and not one.defects and _is_believed(one.candidates[0])
    }


def _is_believed(candidate: Candidate) -> bool:
    return candidate.log_probability >= LEAST_LOG_PROBABILITY * (len(candidate.tokens) + 1)


def _required(span: ProtectedSpan) -> Required:
    """A number may be written with the other language's marks."""
    other = span.text.translate(str.maketrans(".,", ",.")) if span.kind == "number" else span.text
    return Required((span.text,) if other == span.text else (span.text, other))


def _best_but_for_a_remark(spoiled: _Found, _: PlainTranslator) -> _Found:
    return {
        sentence: one
        for sentence, one in spoiled.items()
        if not losses_of(sentence, one.text).grave and not _unusable(one)
    }


def _in_pieces(spoiled: _Found, plain: PlainTranslator) -> _Found:
    better: _Found = {}
    for sentence in spoiled:
        texts, asked = translate_stretches(stretches(sentence), plain.translate)
        if asked and not any(map(_unusable, asked)) and not losses_of(sentence, "".join(texts)).grave:
            better[sentence] = Translation(
                sentence.text,
                (_without_tokens("".join(texts), [one.candidates[0] for one in asked]),),
                defects=tuple(dict.fromkeys(defect for one in asked for defect in one.defects)),
                confidence=min((one.confidence for one in asked if one.confidence is not None), default=None),
            )
    return better


_WAYS: dict[How, _Way] = {
    "other": _next_best,
    "stand-in": _stand_ins,
    "required": _with_required,
    "plain": _best_but_for_a_remark,
    "pieces": _in_pieces,
}


def _translations(
    texts: Iterable[str], translate: Callable[[Sequence[str]], Sequence[Translation]]
) -> dict[str, Translation]:
    order = list(dict.fromkeys(texts))
    return dict(zip(order, translate(order), strict=True)) if order else {}


def _told(sentence: SourceSentence, spoiled: Translation, better: Translation, how: How) -> Translation:
    """The better translation first, with why it was looked for; after it those that were asked for."""
    others = tuple(one for one in spoiled.candidates[1:] if one.text != better.text)
    notes = tuple(dict.fromkeys((*spoiled.notes, *better.notes)))
    no_longer = (defect for defect in (*spoiled.defects, *_lost(sentence, spoiled)) if defect not in better.defects)
    repaired = tuple(dict.fromkeys((*better.repaired, *no_longer)))
    return replace(better, candidates=(better.candidates[0], *others), how=how, notes=notes, repaired=repaired)


def _left(sentence: SourceSentence, spoiled: Translation) -> Translation:
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


def _like(piece: str, said: str) -> str:
    """A piece is no sentence: the full stop and the capital that a model gives it go. The space around it stays."""
    bare = piece.strip()
    if bare[-1:] not in ".!?…:;" and said[-1:] in ".!?" and len(said) > 1:
        said = said[:-1].rstrip()
    if bare[:1].islower() and said[:1].isupper() and said[1:2].islower():
        said = said[:1].lower() + said[1:]
    return piece[: len(piece) - len(piece.lstrip())] + (said or bare) + piece[len(piece.rstrip()) :]
