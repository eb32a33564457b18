"""Inline case: capitals as marks before lower-case letters, so that a word has the same subwords in any casing.

⇧  the next letter is a capital: Two is ⇧ two, iPhone is i⇧phone
⇪  the letters of this word from here on are capitals: NASA is ⇪ nasa
⇩  the capitals end here: HTTPs is ⇪ http⇩s

A mark before a word that follows a space, or begins the text, is a word of its own; any other mark stands right before
its letter. Only letters that come back from lower case as they were are changed, so that nothing is lost: not ß, İ or
ǅ. The text has no marks of its own: piece_codec.py escapes them before.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from itertools import groupby, pairwise

TITLE, UPPER, LOWER = "⇧", "⇪", "⇩"
MARKS = TITLE + UPPER + LOWER
# How a vocabulary has the marks: a space before one belongs to it, as it does with a tag.
MARK_PIECES = (f"▁{TITLE}", TITLE, f"▁{UPPER}", UPPER, LOWER)

# What ⇪ reaches over: letters, digits, _, apostrophes, and the combining marks of scripts that have cases.
_IN_WORD = r"\w'’\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_WORD = rf"[{_IN_WORD}]+"
_ONLY_IN_WORD = re.compile(_WORD)
_ASCII_WITH_CAPITALS = re.compile(r"(?<![\w'])[a-z0-9_']*+[A-Z][\w']*")
_MARKED = re.compile(rf"(?:(?:(?<= )|\A)[{MARKS}]*([{MARKS}]) |([{MARKS}]))([{_IN_WORD}]*)")
_ANY_MARK = re.compile(f"[{MARKS}]")


class InlineCase:
    """Writes capitals as marks and lower-case letters, and back."""

    def __init__(self, kept: Collection[str] = ()) -> None:
        """kept: words that stay as they are: the tags, which are pieces of the vocabulary as a whole."""
        capitalised = sorted((word for word in kept if word != word.lower()), key=len, reverse=True)
        self._kept = frozenset(capitalised)
        tags = "|".join(map(re.escape, capitalised))
        self._word = re.compile(rf"(?:(?<= )|\A)(?:{tags})(?= |\Z)|{_WORD}" if tags else _WORD)

    def fold(self, text: str) -> str:
        """Writes a text without marks in lower case, with marks."""
        # Of most text only the words that have a capital are looked at.
        words = _ASCII_WITH_CAPITALS if text.isascii() and not self._kept else self._word
        return words.sub(self._folded, text)

    def _folded(self, found: re.Match[str]) -> str:
        word, start = found[0], found.start()
        if word == word.lower() or word in self._kept:
            return word
        marks = _marks_of(word)
        if 0 in marks and (start == 0 or found.string[start - 1] == " "):
            marks[0] += " "
        return "".join(marks.get(at, "") + (_lowered(letter) or letter) for at, letter in enumerate(word))

    @staticmethod
    def restore(text: str) -> str:
        """Gives the text back that was folded. A model may write marks anywhere: one that capitalises nothing
        disappears, with the space after it if it is a word of its own."""
        if not _ANY_MARK.search(text):
            return text
        end = len(text.rstrip(f" {MARKS}"))
        if trailing := _ANY_MARK.search(text, end):
            text = text[: trailing.start()].removesuffix(" ")
        return _MARKED.sub(_capitalised, text)


def reaches_over(text: str) -> bool:
    """Tells whether ⇪ holds for a letter that comes after this text: it ends with the word."""
    return _ONLY_IN_WORD.fullmatch(text) is not None


def _marks_of(word: str) -> dict[int, str]:
    """The marks of a word, each by the place of the letter that it stands before."""
    cased = [
        (at, _lowered(letter) is not None) for at, letter in enumerate(word) if _lowered(letter) or _raised(letter)
    ]
    stretches = [(capitals, [at for at, _ in part]) for capitals, part in groupby(cased, key=lambda one: one[1])]
    marks: dict[int, str] = {}
    for (capitals, places), (_, small) in pairwise([*stretches, (False, [])]):
        if not capitals:
            continue
        first, last = places[0], places[-1]
        if first == last:
            marks[first] = TITLE
        elif len(small) > 1 and small[0] == last + 1:  # HTTPServer: the last capital begins the next part
            marks[first] = UPPER if len(places) > 2 else TITLE
            marks[last] = TITLE
        else:
            marks[first] = UPPER
            if small:
                marks[small[0]] = LOWER
    return marks


def _capitalised(found: re.Match[str]) -> str:
    mark, letters = found[1] or found[2], found[3]
    if mark == LOWER or not letters:
        return letters
    end = 1 if mark == TITLE else len(letters)
    return "".join(_raised(letter) or letter for letter in letters[:end]) + letters[end:]


@lru_cache(maxsize=4096)
def _lowered(letter: str) -> str | None:
    """The small letter of a capital; None for anything else, and where the way back leads elsewhere."""
    small = letter.lower()
    return small if small != letter and len(small) == 1 and small.upper() == letter else None


@lru_cache(maxsize=4096)
def _raised(letter: str) -> str | None:
    """The capital of a small letter; None for anything else, and where the way back leads elsewhere."""
    capital = letter.upper()
    return capital if capital != letter and len(capital) == 1 and capital.lower() == letter else None
