"""Groups a model's tokens into the words that a reader sees."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.data.tokenizer import Tokenizer


@dataclass(frozen=True)
class Word:
    """A word of a text, and the tokens that spell it."""

    text: str
    start: int  # in characters of the sentence
    end: int
    first_token: int
    last_token: int  # inclusive


def words_of(
    ids: Sequence[int], tokenizer: Tokenizer, side: Literal["source", "target"] = "target"
) -> tuple[Word, ...]:
    """Groups tokens into words, which are separated by spaces and punctuation. A language token is no word; a mark of
    inline case belongs to the word that it capitalises."""
    if not ids:
        return ()
    of_source = side == "source"
    decode_batch = tokenizer.decode_source_batch if of_source else tokenizer.decode_batch
    piece_of = tokenizer.source_piece if of_source else tokenizer.piece
    whole = decode_batch([ids])[0]
    prefixes = decode_batch([ids[:count] for count in range(1, len(ids) + 1)])
    # A token that is part of a character ends where that character begins.
    ends = [_common_prefix(part, whole) for part in prefixes]
    begins = [
        index == 0 or _begins_a_word(piece_of(token), whole[start:end], whole[:start])
        for index, (token, start, end) in enumerate(zip(ids, [0, *ends], ends, strict=False))
    ]
    marks = set(tokenizer.case_marks.values())
    firsts = _first_tokens(begins, [token in marks for token in ids])
    words = []
    for first, following in zip(firsts, [*firsts[1:], len(ids)], strict=True):
        start, end = 0 if first == 0 else ends[first - 1], ends[following - 1]
        text = whole[start:end]
        start += len(text) - len(text.lstrip())
        words.append(Word(text.strip(), start, start + len(text.strip()), first, following - 1))
    if tokenizer.has_language_tokens and of_source and not words[0].text:
        words.pop(0)
    return tuple(words)


def _first_tokens(begins: Sequence[bool], is_mark: Sequence[bool]) -> list[int]:
    """The first token of each word: with the marks before it, and marks that nothing follows are no word."""
    firsts: list[int] = []
    marked: int | None = None  # the first of the marks just before
    for index, mark in enumerate(is_mark):
        first = index if marked is None else marked
        if mark:
            marked = first
            continue
        if any(begins[first : index + 1]):
            firsts.append(first)
        marked = None
    return firsts or [0]


def split_words(text: str) -> list[str]:
    """Splits a text into words by nearly the same rules, without tokens."""
    found: list[str] = []
    for part in text.split():
        begun = ""
        for character in part:
            if begun and (_stands_alone(character) or _stands_alone(begun[-1])):
                found.append(begun)
                begun = ""
            begun += character
        found.append(begun)
    return found


def _begins_a_word(piece: str, text: str, before: str) -> bool:
    if piece.startswith("▁"):
        return True
    # Part of a character, or of a word begun by its space: of which nothing is read while only a mark comes before it.
    if not text or not before or before[-1].isspace() or text[0] == " ":
        return False
    return _stands_alone(text[0]) or _stands_alone(before[-1])


def _stands_alone(character: str) -> bool:
    """Tells whether a character is a word of its own: punctuation, and letters of scripts without spaces between
    words."""
    if character in "'’-‐‑_":
        return False
    return unicodedata.category(character)[0] in "PS" or bool(re.match(r"[぀-ヿ㐀-鿿豈-﫿฀-๿]", character))


def _common_prefix(part: str, whole: str) -> int:
    """The length of the beginning that two texts share."""
    if whole.startswith(part):
        return len(part)
    return next(index for index, (a, b) in enumerate(zip(part, whole + "\0", strict=False)) if a != b)
