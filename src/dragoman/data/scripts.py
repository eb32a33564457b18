"""Finds words in another script than a text is written in: names that are copied, not translated."""

import functools
import re
import unicodedata
from collections import Counter
from itertools import groupby

# Beyond Latin letters, marks between words, and symbols: most texts have nothing there.
_NOT_LATIN = re.compile("[^\x00-\u036f\u1e00-\u1eff\u2000-\u2bff]")
_WORD = re.compile(r"[^\W\d_]+")
# The scripts that are written together in one text count as one.
_TOGETHER = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"), "CJK")
# First words of the names of letters that belong to no script of their own: µ, ª, ℝ, 𝐛, ａ.
_NO_SCRIPTS = frozenset(
    (
        "MICRO",
        "FEMININE",
        "MASCULINE",
        "MODIFIER",
        "MATHEMATICAL",
        "DOUBLE-STRUCK",
        "SCRIPT",
        "BLACK-LETTER",
        "FULLWIDTH",
    )
)


@functools.cache
def script_of(character: str) -> str:
    """The script of a letter, by the first word of its Unicode name; empty for all other characters."""
    name = unicodedata.name(character, "").split(" ")[0] if character.isalpha() else ""
    return "" if name in _NO_SCRIPTS else _TOGETHER.get(name, name)


def main_script(text: str) -> str:
    """The script of most of a text's words, and of the first where none has more; empty where there are none."""
    counts = Counter(script_of(word[0]) for word in _words(text))
    return counts.most_common(1)[0][0] if counts else ""


def foreign_words(source: str, translation: str) -> tuple[str, ...]:
    """The words of a source in a script that neither most of it nor most of its translation is written in, without
    repeats. What stands in the script of the translation may be written in another way there."""
    if _NOT_LATIN.search(source) is None:
        return ()
    usual = {"", main_script(source), main_script(translation)}
    words = dict.fromkeys(_words(source))
    return tuple(word for word in words if len(word) > 1 and usual.isdisjoint(map(script_of, word)))


def _words(text: str) -> list[str]:
    """Chinese and Japanese put no spaces around a word in another script."""
    return [
        "".join(part)
        for word in _WORD.findall(text)
        for _, part in groupby(word, lambda character: script_of(character) == "CJK")
    ]
