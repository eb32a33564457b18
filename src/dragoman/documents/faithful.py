"""Sentences translated so that nothing is lost: addresses, placeholders, numbers and marks are there, or it is said.

What the plain translation lost is looked for in the next best ones, then required of the search, then translated
around, piece by piece; where even that fails the source stays. Which way a sentence went is told with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from dragoman.documents.flow import Flow, Item, Sentence, untranslated
from dragoman.documents.interpreter import Interpreter
from dragoman.documents.keep import added, find_kept, lost
from dragoman.documents.tags import place_marks, places_in, without_alignment
from dragoman.glossary import Required
from dragoman.translate import Candidate

# plain: the best translation; other: a next best one; required: searched for with what was lost; pieces: translated
# around what must stay; source: not translated.
How = Literal["plain", "other", "required", "pieces", "source"]

NEXT_BEST = 4


@dataclass(frozen=True)
class Said:
    """What became of a sentence."""

    items: tuple[Item, ...]
    how: How
    notes: tuple[str, ...]  # what was wrong with the translations that were not taken, and with this one


@dataclass(frozen=True)
class _Faults:
    grave: tuple[str, ...]  # not to be given to anyone
    slight: tuple[str, ...]


def translate_sentences(batch: Sequence[tuple[Flow, Sentence]], interpreter: Interpreter) -> list[Said]:
    """One answer for each, in order. Each different sentence is translated once."""
    wanted = list(dict.fromkeys((sentence.text, sentence.kept) for _, sentence in batch))
    texts = list(dict.fromkeys(text for text, _ in wanted))
    plain = dict(zip(texts, interpreter.translate(texts), strict=True))
    chosen: dict[tuple[str, tuple[str, ...]], tuple[Candidate | None, How, tuple[str, ...]]] = {}
    for text, kept in wanted:
        candidate = plain[text][0]
        faults = _faults(text, candidate.text, kept)
        ok = not faults.grave and not faults.slight
        chosen[text, kept] = (candidate if ok else None), "plain", faults.grave + faults.slight
    _try_next_best(chosen, interpreter)
    _try_required(chosen, interpreter)
    for key, (found, _, notes) in chosen.items():
        if found is None and not _faults(key[0], plain[key[0]][0].text, key[1]).grave:
            chosen[key] = plain[key[0]][0], "plain", notes  # a number too many may be a number word: said, not refused
    return [_finish(flow, sentence, *chosen[sentence.text, sentence.kept], interpreter) for flow, sentence in batch]


_Chosen = dict[tuple[str, tuple[str, ...]], tuple[Candidate | None, How, tuple[str, ...]]]


def _try_next_best(chosen: _Chosen, interpreter: Interpreter) -> None:
    open_ones = [key for key, (candidate, _, _) in chosen.items() if candidate is None]
    texts = list(dict.fromkeys(text for text, _ in open_ones))
    found = dict(zip(texts, interpreter.translate(texts, NEXT_BEST), strict=True)) if texts else {}
    for text, kept in open_ones:
        notes = chosen[text, kept][2]
        for candidate in found[text]:
            faults = _faults(text, candidate.text, kept)
            if not faults.grave and not faults.slight:
                chosen[text, kept] = candidate, "other", notes
                break


def _try_required(chosen: _Chosen, interpreter: Interpreter) -> None:
    # Only what was lost can be required; what was added cannot be forbidden.
    open_ones = [key for key, (candidate, _, _) in chosen.items() if candidate is None and find_kept(*key)]
    if not open_ones:
        return
    by_text: dict[str, tuple[str, ...]] = {}
    for text, kept in open_ones:
        by_text[text] = by_text.get(text, ()) + kept
    required = [[_required(found.kind == "number", found.text) for found in find_kept(*one)] for one in by_text.items()]
    found = dict(zip(by_text, interpreter.translate_with(list(by_text), required), strict=True))
    for text, kept in open_ones:
        if not _faults(text, found[text].text, kept).grave:
            chosen[text, kept] = found[text], "required", chosen[text, kept][2]


def _required(is_number: bool, text: str) -> Required:
    """A number may be written with the other language's marks."""
    other = text.translate(str.maketrans(".,", ",.")) if is_number else text
    return Required((text,) if other == text else (text, other))


def _finish(
    flow: Flow,
    sentence: Sentence,
    candidate: Candidate | None,
    how: How,
    notes: tuple[str, ...],
    interpreter: Interpreter,
) -> Said:
    if candidate is not None:
        if not sentence.marks:
            return Said((candidate.text,), how, notes)
        placed, remarks = _placed(flow, sentence, candidate, interpreter)
        if placed is not None:
            return Said(placed, how, notes + remarks)
        notes += remarks
    items = _in_pieces(flow, sentence, interpreter)
    said = "".join(item for item in items if isinstance(item, str))
    if not _faults(sentence.text, said, sentence.kept).grave:
        return Said(tuple(items), "pieces", notes)
    return Said(tuple(untranslated(flow, sentence)), "source", notes)


def _placed(
    flow: Flow, sentence: Sentence, candidate: Candidate, interpreter: Interpreter
) -> tuple[tuple[Item, ...] | None, tuple[str, ...]]:
    alignment = interpreter.align(sentence.text, candidate)
    notes: tuple[str, ...] = ()
    if alignment is None:
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
            said = _like(text.strip(), next(found)[0].text)
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
    return _Faults(tuple(grave), tuple(f"added: {number}" for number in numbers))
