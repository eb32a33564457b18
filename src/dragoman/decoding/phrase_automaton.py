"""Required words as an automaton over token ids: which of them an output holds, what it lacks, whether it may end.

A form can be spelt in tokens in more than one way: with the space before it, or without one after a bracket or an
apostrophe. After its last token the word must be over, or it was another word: "Haus" is not in "Hausboot". Which
occurrence counts for which requirement need not be decided early: a state is the set of all readings of the prefix.

With inline case (data/casing.py) a mark belongs to what follows it, so that no spelling begins after one; and what
comes after ⇪ in the same word is in capitals, so that a form without a capital is not written there.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.data.casing import MARKS, UPPER, reaches_over
from dragoman.data.glossary import Required, capitalised, is_spaceless, is_word_character
from dragoman.data.tokenizer import Tokenizer

_SENTENCE_ENDS = ".!?…:"
_CLOSING = ".,;:!?…)]}»”%"


class Spelling(NamedTuple):
    """One way to write a form in tokens, and where it counts."""

    ids: tuple[int, ...]
    after_any: bool  # False: only where no word is under way
    sentence_start: bool  # only where a sentence may begin
    whole: bool  # the word must be over after it


class Reading(NamedTuple):
    """One way to understand a prefix."""

    left: tuple[int, ...]  # how often each requirement is still to be met
    under_way: tuple[int, int, int] | None  # of a word that is being written: requirement, spelling, tokens so far


class PhraseState(NamedTuple):
    """What of a prefix matters to the requirements."""

    last: int | None  # token
    readings: frozenset[Reading]
    capitals: bool = False  # ⇪ holds for a letter that comes next


@dataclass(frozen=True)
class Borders:
    """For every piece of the vocabulary, whether a word is over before it and whether one may begin after it."""

    over_before: tuple[bool, ...]  # a word that comes before this piece is over
    open_after: tuple[bool, ...]  # a word without a space may begin after this piece
    sentence_after: tuple[bool, ...]  # a sentence may begin after this piece
    space_after: tuple[bool, ...]  # a word after this piece should have a space before it, though it counts without
    case: "CaseBorders | None"  # None: plain casing

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Borders":
        pieces = [tokenizer.piece(index) for index in range(tokenizer.vocab_size)]
        marks = set(tokenizer.case_marks.values())
        # A mark is as part of a letter, but for the space before it.
        plain = [_text_of(piece.rstrip(MARKS) if index in marks else piece) for index, piece in enumerate(pieces)]
        return cls(
            tuple(bool(piece) and not is_word_character(piece[0]) for piece in plain),
            tuple(bool(piece) and not is_word_character(piece[-1]) for piece in plain),
            tuple(bool(piece) and piece[-1] in _SENTENCE_ENDS for piece in plain),
            tuple(bool(piece) and piece[-1] in _CLOSING for piece in plain),
            CaseBorders.of(tokenizer, pieces) if marks else None,
        )


@dataclass(frozen=True)
class CaseBorders:
    """What each piece does with the marks of inline case."""

    marks: frozenset[int]
    upper: frozenset[int]  # the marks after which letters are capitals, up to the end of the word
    spaced: frozenset[int]  # the pieces that begin with a space
    within: frozenset[int]  # the pieces that do not end the capitals, but for a space at their beginning
    space: tuple[int, ...]  # the space alone, if it is a piece: after it a word may begin that may not after a mark

    @classmethod
    def of(cls, tokenizer: Tokenizer, pieces: Sequence[str]) -> "CaseBorders":
        marks = tokenizer.case_marks
        texts = [_text_of(piece).removeprefix("▁") for piece in pieces]
        return cls(
            frozenset(marks.values()),
            frozenset(token for mark, token in marks.items() if mark.endswith(UPPER)),
            frozenset(token for token, piece in enumerate(pieces) if piece.startswith("▁")),
            frozenset(token for token, text in enumerate(texts) if not text or reaches_over(text)),
            tuple(token for token, piece in enumerate(pieces) if piece == "▁"),
        )

    def capitals_after(self, before: bool, last: int | None, token: int) -> bool:
        """Whether ⇪ holds for a letter after this token. `before`: whether it did so before it."""
        if token in self.marks:
            return token in self.upper
        in_the_word = token not in self.spaced or last in self.marks
        return before and in_the_word and token in self.within


class Phrases:
    """The automaton of all words that one output must hold. It never changes: states go in and come out."""

    def __init__(self, required: Sequence[Required], tokenizer: Tokenizer, borders: Borders) -> None:
        counts: dict[Required, int] = {}
        for term in required:
            counts[term] = counts.get(term, 0) + 1
        self._borders = borders
        self._eos = tokenizer.eos_id
        self._spellings = [spellings(term, tokenizer) for term in counts]
        # In tokens. A spelling that cannot stand anywhere needs up to two more before it.
        self._shortest = [
            min(len(one.ids) + 2 * (one.sentence_start or not one.after_any) for one in ways)
            for ways in self._spellings
        ]
        self.start = PhraseState(None, frozenset({Reading(tuple(counts.values()), None)}))
        # Results that were computed before: a search asks the same for every row and step.
        self._advanced: dict[tuple[PhraseState, int], PhraseState] = {}
        self._missing: dict[PhraseState, int] = {}
        self._wanted: dict[PhraseState, frozenset[int]] = {}
        self._missing_after: dict[tuple[PhraseState, bool, bool], int] = {}

    def hold(self, ids: Iterable[int]) -> bool:
        """Whether an output has all that is required."""
        state = self.start
        for token in ids:
            state = self.advance(state, token)
        return self.missing(self.advance(state, self._eos)) == 0

    def missing(self, state: PhraseState) -> int:
        """The least number of tokens that are still needed; at 0 the output may end."""
        if state not in self._missing:
            self._missing[state] = min(self._needed(reading, state.last) for reading in state.readings)
        return self._missing[state]

    def missing_after(self, state: PhraseState, token: int) -> int:
        if token in self.wanted(state):
            return self.missing(self.advance(state, token))
        # Of all other tokens it only matters whether a word is over before them, and one may begin after them.
        key = (state, self._borders.over_before[token], self._is_mark(token))
        if key not in self._missing_after:
            self._missing_after[key] = self.missing(self.advance(state, token))
        return self._missing_after[key]

    def wanted(self, state: PhraseState) -> frozenset[int]:
        """Tokens that begin or continue a required word."""
        if state not in self._wanted:
            self._wanted[state] = frozenset(self._further_tokens(state))
        return self._wanted[state]

    def _is_mark(self, token: int | None) -> bool:
        return self._borders.case is not None and token in self._borders.case.marks

    def _further_tokens(self, state: PhraseState) -> set[int]:
        found: set[int] = set()
        for left, under_way in state.readings:
            if under_way is not None:
                term, spelling, depth = under_way
                ids = self._spellings[term][spelling].ids
                if depth < len(ids):
                    found.add(ids[depth])
                    continue
                left = _one_less(left, term)
            if any(left) and (case := self._borders.case) is not None and state.last in case.marks:
                found.update(case.space)
            found |= {
                spelling.ids[0]
                for term, count in enumerate(left)
                if count
                for spelling in self._spellings[term]
                if self._may_begin(spelling, state.last, state.capitals)
                and not self._runs_on(term, spelling, state.last)
            }
        return found

    def _runs_on(self, term: int, spelling: Spelling, last: int | None) -> bool:
        """Whether the spelling would follow a full stop without a space although one with a space is as short. An
        output that has it counts, but it is not wanted."""
        if last is None or not self._borders.space_after[last] or spelling.after_any or spelling.sentence_start:
            return False
        return any(other.after_any and len(other.ids) <= len(spelling.ids) + 2 for other in self._spellings[term])

    def advance(self, state: PhraseState, token: int) -> PhraseState:
        """The state after one more token."""
        key = (state, token)
        if key not in self._advanced:
            readings = {new for reading in state.readings for new in self._read(reading, state, token)}
            case = self._borders.case
            capitals = case is not None and case.capitals_after(state.capitals, state.last, token)
            self._advanced[key] = PhraseState(token, frozenset(_best(readings)), capitals)
        return self._advanced[key]

    def _read(self, reading: Reading, state: PhraseState, token: int) -> Iterable[Reading]:
        """All readings of the prefix with one more token that continue this reading."""
        left, under_way = reading
        if under_way is not None:
            term, number, depth = under_way
            spelling = self._spellings[term][number]
            if depth < len(spelling.ids):
                if spelling.ids[depth] == token:
                    yield self._further(left, term, number, depth + 1)
                return
            if token != self._eos and not self._borders.over_before[token]:
                return  # it was the beginning of a longer word
            left = _one_less(left, term)
        yield Reading(left, None)
        for term, count in enumerate(left):
            if count:
                for number, spelling in enumerate(self._spellings[term]):
                    if spelling.ids[0] == token and self._may_begin(spelling, state.last, state.capitals):
                        yield self._further(left, term, number, 1)

    def _further(self, left: tuple[int, ...], term: int, number: int, depth: int) -> Reading:
        """The reading in which so many tokens (`depth`) of a spelling are written."""
        spelling = self._spellings[term][number]
        if depth == len(spelling.ids) and not spelling.whole:
            return Reading(_one_less(left, term), None)
        return Reading(left, (term, number, depth))

    def _may_begin(self, spelling: Spelling, last: int | None, capitals: bool) -> bool:
        if self._is_mark(last) or (capitals and not spelling.after_any and not self._is_mark(spelling.ids[0])):
            return False
        if spelling.sentence_start:
            return last is None or self._borders.sentence_after[last]
        return spelling.after_any or last is None or self._borders.open_after[last]

    def _needed(self, reading: Reading, last: int | None) -> int:
        left, under_way = reading
        needed = sum(count * length for count, length in zip(left, self._shortest, strict=True))
        if under_way is None:
            return needed + (needed > 0 and self._is_mark(last))
        term, number, depth = under_way
        return needed - self._shortest[term] + len(self._spellings[term][number].ids) - depth


def spellings(term: Required, tokenizer: Tokenizer) -> list[Spelling]:
    """Every way to write the forms of a required word in tokens."""
    found: dict[tuple[int, ...], Spelling] = {}
    for form in term.forms:
        whole = not is_spaceless(form[-1])
        for word, sentence_start in ((form, False), (capitalised(form), True)):
            ids = tuple(tokenizer.encode_target(word))
            spaced = tokenizer.piece(ids[0]).startswith("▁")
            found.setdefault(ids, Spelling(ids, spaced or is_spaceless(word[0]), sentence_start, whole))
            if spaced and not sentence_start and (bare := _without_space(word, tokenizer)):
                found.setdefault(bare, Spelling(bare, is_spaceless(word[0]), False, whole))
    return list(found.values())


def _without_space(form: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids of the form as it is written after a bracket; none if bracket and form share a token."""
    ids = tokenizer.encode_target(f"({form}")
    for count in range(1, len(ids)):
        if tokenizer.decode(ids[:count]) == "(":
            bare = ids[count:]
            return tuple(bare) if tokenizer.decode(ids) == f"({form}" else ()
    return ()


def _text_of(piece: str) -> str:
    """The piece as text; empty for a special symbol and for a byte that may be part of a letter: a word neither ends
    nor begins there."""
    if len(piece) > 2 and piece.startswith("<") and piece.endswith(">"):
        byte = int(piece[1:-1], 16) if re.fullmatch("<0x[0-9A-F]{2}>", piece) else 128
        return chr(byte) if byte < 128 else ""
    return piece


def _one_less(left: tuple[int, ...], term: int) -> tuple[int, ...]:
    return (*left[:term], left[term] - 1, *left[term + 1 :])


def _best(readings: set[Reading]) -> Iterable[Reading]:
    """The readings without those to which another is equal or better in everything."""
    return [
        one
        for one in readings
        if not any(
            other is not one
            and other.under_way == one.under_way
            and other.left != one.left
            and all(a <= b for a, b in zip(other.left, one.left, strict=True))
            for other in readings
        )
    ]
