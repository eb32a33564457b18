"""Cuts a sentence where its clauses are likely to end: by punctuation alone, in any language."""

import re
from typing import NamedTuple

from dragoman.translation.lengths import letters

LEAST_LETTERS = 12  # of a clause, and
LEAST_WORDS = 4  # so many words where words have spaces: "red, white and blue" is a list
_SENTENCE_OR_CLAUSE_END = re.compile(r"([;.!?…]+)(\s+)|(?<=\w)(,)(\s+)|([；，。！？]+)()")


class Clause(NamedTuple):
    """A part of a sentence, and the mark and the space after it."""

    text: str
    mark: str
    space: str


def clauses(sentence: str) -> list[Clause]:
    """The sentence's clauses, none of them too short to be one; all together they are the sentence."""
    found: list[Clause] = []
    start = 0
    for end in _SENTENCE_OR_CLAUSE_END.finditer(sentence):
        if _may_be_one(sentence[start : end.start()]) and _may_be_one(sentence[end.end() :]):
            mark, space = (group for group in end.groups() if group is not None)
            found.append(Clause(sentence[start : end.start()], mark, space))
            start = end.end()
    return [*found, Clause(sentence[start:], "", "")]


def _may_be_one(text: str) -> bool:
    return letters(text) >= LEAST_LETTERS and (not text.isascii() or len(text.split()) >= LEAST_WORDS)
