"""Splits raw English text into words as treebanks write them."""

import re

_OPENING = re.compile(r'(?:(?<=^)|(?<=[\s(\[{]))"')
_SPLITS = (
    (re.compile(r"(\.\.\.|--|[;:@#$%&?!()\[\]{}…—])"), r" \1 "),
    (re.compile(r",(?!\d)"), " , "),
    # A stop ends a sentence only at the end of the line; elsewhere it is part of an abbreviation.
    (re.compile(r"(?<=[^.\s])\.(?=[\"')\]]*\s*$)"), " . "),
    (re.compile(r"(?i)(?<=\w)(n['’]t|['’](?:s|m|d|ll|re|ve))(?!\w)"), r" \1"),
    (re.compile(r"(?<=\w)(['’])(?=\s|$)"), r" \1"),
    (re.compile(r"(?i)\b(can)(not)\b|\b(gon)(na)\b|\b(wan)(na)\b"), lambda m: " ".join(filter(None, m.groups()))),
)


def split_words(text: str) -> list[str]:
    """The words of a text: punctuation and clitics apart, double quotes as `` and '', brackets as -LRB- and -RRB-."""
    text = _OPENING.sub(" `` ", text.strip()).replace('"', " '' ")
    for pattern, replacement in _SPLITS:
        text = pattern.sub(replacement, text)
    return [{"(": "-LRB-", ")": "-RRB-"}.get(word, word) for word in text.split()]
