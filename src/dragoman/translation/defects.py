"""Finds plain defects of a translation without knowing the language: it loops, copies, runs away, is short or empty.

Everything is compared with the source: what is repeated there may be repeated in the translation.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from dragoman.translation.lengths import ANY_PAIR, UsualLengths, letters

# lost: what must be copied is not there; short: so much shorter than usual that something is likely to be missing
Defect = Literal["loop", "copy", "runaway", "short", "empty", "lost"]

LONGEST_PERIOD = 16  # the most tokens of a stretch that is looked for again and again
RUNAWAY = 3  # a runaway is more than so many times as long as the source, and this many more:
RUNAWAY_TOKENS = 12
RUNAWAY_LETTERS = 40
COPIED = 0.7  # the share of the source's words that makes a copy
CROWD = 4  # the least number of times that one word stands in a translation which it crowds
_WORD = re.compile(r"[^\W\d_]+")


class TokenizedText(NamedTuple):
    """A text and its token ids, those of case marks left out: they repeat where no word does."""

    ids: Sequence[int]
    text: str


def defects_of(
    source: TokenizedText, target: TokenizedText, finished: bool = True, lengths: UsualLengths = ANY_PAIR
) -> tuple[Defect, ...]:
    """All defects of a translation. `finished`: False where the search had to cut it at the maximum length."""
    found: list[Defect] = []
    if source.text.strip() and not target.text.strip():
        found.append("empty")
    elif lengths.is_short(source.text, target.text):
        found.append("short")
    if loops(source.ids, target.ids) or crowded(source.text, target.text):
        found.append("loop")
    many = len(target.ids) > RUNAWAY * len(source.ids) + RUNAWAY_TOKENS
    if not finished or many or far_too_long(source.text, target.text):
        found.append("runaway")
    if copies(source.text, target.text):
        found.append("copy")
    return tuple(found)


def far_too_long(source: str, target: str) -> bool:
    """Whether a translation has many times the letters of its source."""
    if len(target) <= RUNAWAY * len(source) + RUNAWAY_LETTERS:  # nearly always
        return False
    return letters(target) > RUNAWAY * letters(source) + RUNAWAY_LETTERS


def loops(source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether the same tokens come three times in a row (one token: five times), or the same four tokens in three
    places, and the source has nothing of the kind."""
    # Nearly always it ends here: every loop has some pair of tokens three times, and so at least three more tokens than
    # different ones.
    if len(target) - len(set(target)) < 3 or max(Counter(pairwise(target)).values()) < 3:
        return False
    again = _repeats(target)
    if again >= 3 and again > _repeats(source) + 1:
        return True
    return _places(target) >= max(3, _places(source) + 1)


def crowded(source: str, target: str) -> bool:
    """Whether one word is more than a third of all words, in a row or not, and the source has none so often."""
    found = _WORD.findall(target.casefold())
    if len(found) - len(set(found)) < CROWD - 1:  # nearly always: no word stands there so often
        return False
    words = Counter(found)
    most = max(words.values())
    if most < CROWD or 3 * most <= len(found):
        return False
    return most > max(Counter(_WORD.findall(source.casefold())).values(), default=0) + 1


def copies(source: str, target: str) -> bool:
    """Whether most words of the source stand in the translation as they are. Names and words of two letters do not
    count."""
    translated = _WORD.findall(target)
    words = _WORD.findall(source)
    if set(translated).isdisjoint(words):  # nearly always
        return False
    words = [word for word in words if len(word) > 2 and word.islower()]
    if len(words) < 3:
        return False
    return (Counter(words) & Counter(translated)).total() >= COPIED * len(words)


def _repeats(ids: Sequence[int]) -> int:
    """How often in a row the most repeated stretch comes; a single token is counted from its third time on."""
    most = 1
    for period in range(1, min(LONGEST_PERIOD, len(ids) // 2) + 1):
        run = 0
        for one, other in zip(ids, ids[period:], strict=False):
            run = run + 1 if one == other else 0
            if run:
                most = max(most, run // period + 1 - (2 if period == 1 else 0))
    return most


def _places(ids: Sequence[int], size: int = 4) -> int:
    """In how many places the most frequent stretch of `size` tokens stands."""
    counts = Counter(tuple(ids[start : start + size]) for start in range(len(ids) - size + 1))
    return max(counts.values(), default=0)
