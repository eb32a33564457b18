"""Sentences translated so that nothing is lost: addresses, placeholders, numbers and marks are there, or it is said.

What the plain translation lost is looked for in the next best ones; then other words stand in for it; then the search
is told to write it; then the sentence is translated around it, piece by piece; where even that fails the source stays.
Which way a sentence went is told with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from dragoman.documents.flow import Flow, Item, Sentence, untranslated
from dragoman.documents.interpreter import Interpreter
from dragoman.documents.keep import added, find_kept, lost
from dragoman.documents.standins import SCHEMES, Scheme, masked
from dragoman.documents.tags import place_marks, places_in, without_alignment
from dragoman.glossary import Required
from dragoman.translate import Candidate, Translation

# plain: the best translation; other: a next best one; stand-in: of the sentence with words in place of what must stay;
# required: searched for with what was lost; pieces: translated around what must stay; source: not translated.
How = Literal["plain", "other", "stand-in", "required", "pieces", "source"]

NEXT_BEST = 4
# A translation is that much longer than its source only when the search ran away.
LONGEST = 3.0


@dataclass(frozen=True)
class Said:
    """What became of a sentence."""

    items: tuple[Item, ...]
    how: How
    notes: tuple[str, ...]  # what was wrong with the translations that were not taken, and with this one


@dataclass(frozen=True)
class _Faults:
    grave: tuple[str, ...]  # not to be given to anyone
    slight: tuple[str, ...]  # a number too many may be a number word: said, but not refused


@dataclass(frozen=True)
class _Choice:
    sentence: Sentence  # of those with the same text and the same stretches to copy, the first
    plain: Candidate
    notes: tuple[str, ...]
    candidate: Candidate | None = None  # None: not found yet
    how: How = "plain"
    scheme: Scheme | None = None  # which words stand in

    @property
    def text(self) -> str:
        return self.sentence.text


_Key = tuple[str, tuple[str, ...]]


def translate_sentences(batch: Sequence[tuple[Flow, Sentence]], interpreter: Interpreter) -> list[Said]:
    """One answer for each, in order. Each different sentence is translated once."""
    different: dict[_Key, Sentence] = {}
    for _, sentence in batch:
        different.setdefault((sentence.text, sentence.kept), sentence)
    texts = list(dict.fromkeys(text for text, _ in different))
    plain = dict(zip(texts, interpreter.translate(texts), strict=True))
    choices: dict[_Key, _Choice] = {}
    for key, sentence in different.items():
        best = plain[sentence.text].candidates[0]
        faults = _faults(sentence.text, best.text, sentence.kept)
        notes = faults.grave + faults.slight
        # What the translator itself finds wrong (a loop, a copy) it has tried to mend already: it is said, no more.
        choice = _Choice(sentence, best, (*notes, *plain[sentence.text].faults))
        choices[key] = choice if notes else replace(choice, candidate=best)
    left = {key: why for key in different if (why := _why_left(plain[key[0]], interpreter.min_confidence))}
    for key in left:
        del choices[key]
    for attempt in (_next_best, _stand_ins, _with_required):
        missing = {key: choice for key, choice in choices.items() if choice.candidate is None}
        if missing:
            choices |= attempt(missing, interpreter)
    for key, choice in choices.items():
        if choice.candidate is None and not _faults(choice.text, choice.plain.text, choice.sentence.kept).grave:
            choices[key] = replace(choice, candidate=choice.plain)
    return [
        Said((interpreter.mark, *untranslated(flow, one)), "source", left[one.text, one.kept])
        if (one.text, one.kept) in left
        else _finish(flow, one, choices[one.text, one.kept], interpreter)
        for flow, one in batch
    ]


def _why_left(translation: Translation, min_confidence: float | None) -> tuple[str, ...]:
    if min_confidence is None or not translation.is_doubtful(min_confidence):
        return ()
    sure = () if translation.confidence is None else (f"confidence {translation.confidence:.2f}",)
    return (*sure, *translation.faults)


def _next_best(choices: dict[_Key, _Choice], interpreter: Interpreter) -> dict[_Key, _Choice]:
    texts = list(dict.fromkeys(choice.text for choice in choices.values()))
    found = dict(zip(texts, interpreter.translate(texts, NEXT_BEST), strict=True))
    better = {}
    for key, choice in choices.items():
        for candidate in found[choice.text].candidates:
            faults = _faults(choice.text, candidate.text, choice.sentence.kept)
            if not faults.grave and not faults.slight:
                better[key] = replace(choice, candidate=candidate, how="other")
                break
    return better


def _stand_ins(choices: dict[_Key, _Choice], interpreter: Interpreter) -> dict[_Key, _Choice]:
    better: dict[_Key, _Choice] = {}
    for scheme in SCHEMES:
        left = ((key, choice.sentence) for key, choice in choices.items() if key not in better)
        tried = {key: mask for key, sentence in left if (mask := masked(sentence, scheme))}
        texts = list(dict.fromkeys(mask.sentence.text for mask in tried.values()))
        found = dict(zip(texts, interpreter.translate(texts), strict=True)) if texts else {}
        for key, mask in tried.items():
            (candidate, *_), choice = found[mask.sentence.text].candidates, choices[key]
            (said,) = mask.unmasked([candidate.text])
            if mask.copied(candidate.text) and not _faults(choice.text, str(said), choice.sentence.kept).grave:
                better[key] = replace(choice, candidate=candidate, how="stand-in", scheme=scheme)
    return better


def _with_required(choices: dict[_Key, _Choice], interpreter: Interpreter) -> dict[_Key, _Choice]:
    # What was lost can be required; what was added cannot be forbidden.
    by_text: dict[str, tuple[str, ...]] = {}
    for choice in choices.values():
        if find_kept(choice.text, choice.sentence.kept):
            by_text[choice.text] = by_text.get(choice.text, ()) + choice.sentence.kept
    required = [[_required(found.kind == "number", found.text) for found in find_kept(*one)] for one in by_text.items()]
    found = dict(zip(by_text, interpreter.translate_with(list(by_text), required), strict=True)) if by_text else {}
    return {
        key: replace(choice, candidate=found[choice.text], how="required")
        for key, choice in choices.items()
        if choice.text in found and not _faults(choice.text, found[choice.text].text, choice.sentence.kept).grave
    }


def _required(is_number: bool, text: str) -> Required:
    """A number may be written with the other language's marks."""
    other = text.translate(str.maketrans(".,", ",.")) if is_number else text
    return Required((text,) if other == text else (text, other))


def _finish(flow: Flow, sentence: Sentence, choice: _Choice, interpreter: Interpreter) -> Said:
    notes = choice.notes
    if choice.candidate is not None:
        mask = masked(sentence, choice.scheme) if choice.scheme else None
        if choice.candidate.text == sentence.text:
            return Said(tuple(untranslated(flow, sentence)), choice.how, notes)
        items, remarks = _placed(flow, mask.sentence if mask else sentence, choice.candidate, interpreter)
        notes += remarks
        if items is not None:
            return Said(mask.unmasked(items) if mask else items, choice.how, notes)
    pieces = _in_pieces(flow, sentence, interpreter)
    said = "".join(item for item in pieces if isinstance(item, str))
    if said == sentence.text:
        return Said(tuple(untranslated(flow, sentence)), "pieces", notes)
    if not _faults(sentence.text, said, sentence.kept).grave:
        return Said(tuple(pieces), "pieces", notes)
    return Said(tuple(untranslated(flow, sentence)), "source", notes)


def _placed(
    flow: Flow, sentence: Sentence, candidate: Candidate, interpreter: Interpreter
) -> tuple[tuple[Item, ...] | None, tuple[str, ...]]:
    if not sentence.marks:
        return (candidate.text,), ()
    alignment = interpreter.align(sentence.text, candidate)
    notes: tuple[str, ...] = ()
    if alignment is None or not alignment.target_words:  # a person's own words have no tokens
        words = without_alignment(sentence, candidate.text)
        notes = ("tags placed by the order of the words: no alignment",)
        placed = place_marks(flow, sentence, candidate.text, *words)
    else:
        placed = place_marks(
            flow, sentence, candidate.text, alignment.source_words, alignment.target_words, alignment.weights
        )
    if placed is None:
        return None, ("too few words to divide",)
    if placed.empty:
        notes += (f"{placed.empty} tags hold no words",)
    return placed.items, notes


def _in_pieces(flow: Flow, sentence: Sentence, interpreter: Interpreter) -> list[Item]:
    """Translated between the marks and between what must stay, in the order of the source."""
    place = places_in(sentence)
    edges = {0, len(sentence.text)}
    stays = find_kept(sentence.text, sentence.kept)
    edges |= {edge for kept in stays for edge in (kept.start, kept.end)}
    marks = [(place(flow.marks[number].at), number) for number in sentence.marks]
    edges |= {at for at, _ in marks}
    order = sorted(edges)
    stretches = [
        (first, sentence.text[first:last], any(kept.start <= first < kept.end for kept in stays))
        for first, last in pairwise(order)
    ]
    texts = [text.strip() for _, text, is_kept in stretches if not is_kept and any(map(str.isalpha, text))]
    found = iter(interpreter.translate(texts) if texts else [])
    items: list[Item] = []
    for first, text, is_kept in stretches:
        items += [number for at, number in marks if at == first]
        if not is_kept and any(map(str.isalpha, text)):
            said = _like(text.strip(), next(found).text)
            text = text[: len(text) - len(text.lstrip())] + said + text[len(text.rstrip()) :]
        items.append(text)
    return [*items, *(number for at, number in marks if at == len(sentence.text))]


def _like(piece: str, said: str) -> str:
    """A piece is no sentence: the full stop and the capital that a model gives it go."""
    if piece[-1:] not in ".!?…:;" and said[-1:] in ".!?" and len(said) > 1:
        said = said[:-1].rstrip()
    if piece[:1].islower() and said[:1].isupper() and said[1:2].islower():
        said = said[:1].lower() + said[1:]
    return said or piece


def _faults(source: str, target: str, kept: Sequence[str]) -> _Faults:
    grave = [f"lost: {word}" for word in lost(source, target, kept)]
    words, numbers = added(source, target, kept)
    grave += [f"added: {word}" for word in words]
    if not target.strip():
        grave.append("empty")
    if len(target) > LONGEST * len(source) + 40:
        grave.append("far too long")
    return _Faults(tuple(grave), tuple(f"added: {number}" for number in numbers))
