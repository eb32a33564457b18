"""What must be the same in a translation: addresses, placeholders and numbers. Found, and looked for again."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.glossary import KEPT_PATTERNS

Kind = Literal["url", "e-mail", "placeholder", "number", "code"]

_EXACT: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("url", re.compile(KEPT_PATTERNS["urls"])),
    ("e-mail", re.compile(KEPT_PATTERNS["emails"])),
    ("placeholder", re.compile(KEPT_PATTERNS["placeholders"])),
)
_NUMBER = re.compile(r"\d+(?:[.,'’  ]\d+)*(?: \d{3}(?!\d))*")
_SEPARATORS = re.compile(r"[.,'’  \s]")


@dataclass(frozen=True)
class Kept:
    kind: Kind
    text: str
    start: int
    end: int


def find_kept(text: str, also: Sequence[str] = ()) -> list[Kept]:
    """In the order of the text, none inside another. `also`: stretches that the format says are to be copied."""
    found: list[Kept] = []
    free = list(text)

    def take(kind: Kind, start: int, end: int) -> None:
        if start < end and "\0" not in free[start:end]:
            found.append(Kept(kind, text[start:end], start, end))
            free[start:end] = "\0" * (end - start)

    for stretch in sorted(set(also), key=len, reverse=True):
        for match in re.finditer(re.escape(stretch), text):
            take("code", match.start(), match.end())
    for kind, pattern in _EXACT:
        for match in pattern.finditer(text):
            take(kind, match.start(), match.end())
    for match in _NUMBER.finditer("".join(free)):
        take("number", match.start(), match.end())
    return sorted(found, key=lambda kept: kept.start)


def has_words(text: str, also: Sequence[str] = ()) -> bool:
    """Whether there is a letter that need not be copied."""
    if not any(map(str.isalpha, text)):
        return False
    position = 0
    for kept in find_kept(text, also):
        if any(map(str.isalpha, text[position : kept.start])):
            return True
        position = kept.end
    return any(map(str.isalpha, text[position:]))


def lost(source: str, target: str, also: Sequence[str] = ()) -> list[str]:
    """What of the source the target has not, or not as often: one entry for each."""
    return _missing(find_kept(source, also), find_kept(target, also), target)


def added(source: str, target: str, also: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """What the target has and the source has not: addresses and placeholders, and numbers."""
    extra = _missing(find_kept(target, also), find_kept(source, also), source)
    numbers = [text for text in extra if _NUMBER.fullmatch(text)]
    return [text for text in extra if text not in numbers], numbers


def _missing(wanted: Sequence[Kept], there: Sequence[Kept], text: str) -> list[str]:
    missing = []
    numbers = Counter(digits(kept.text) for kept in there if kept.kind == "number")
    exact = Counter(kept.text for kept in wanted if kept.kind != "number")
    missing += [word for word, count in exact.items() for _ in range(count - text.count(word))]
    for kept in wanted:
        if kept.kind == "number":
            value = digits(kept.text)
            if not numbers[value]:
                missing.append(kept.text)
            numbers[value] -= 1 if numbers[value] else 0
    return missing


def digits(number: str) -> str:
    """1,000.50 and 1.000,50 are one number: languages differ in the marks."""
    return "".join(str(unicodedata.digit(character)) for character in _SEPARATORS.sub("", number))
