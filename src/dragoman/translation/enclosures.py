"""Quotes and brackets: which of them a translation lost, and a sentence that stands in them as a whole."""

import re
from typing import NamedTuple

_QUOTES = '"“”„‟«»「」『』'
_MARKS = {"quotes": re.compile(f"[{_QUOTES}]"), "brackets": re.compile("[()（）]")}
_PAIRS = {
    **dict.fromkeys(_QUOTES, _QUOTES),  # each language has its own: „so“, “so”, «so», »so«
    "(": ")",
    "（": "）",
}
_END = r"[.!?…。！？]?"


class Enclosed(NamedTuple):
    """A sentence that stands in quotes or brackets as a whole."""

    before: str
    inside: str
    after: str


def lost_enclosures(source: str, target: str) -> list[str]:
    """The kinds of marks of which a translation has fewer than its source. Inches and smileys make an odd number of
    marks, and say nothing."""
    lost = []
    for kind, marks in _MARKS.items():
        wanted = len(marks.findall(source))
        if wanted and wanted % 2 == 0 and len(marks.findall(target)) < wanted:
            lost.append(kind)
    return lost


def enclosed(text: str) -> Enclosed | None:
    """A sentence's parts, if it stands in one pair of quotes or brackets as a whole."""
    closings = _PAIRS.get(text[:1])
    if closings is None:
        return None
    found = re.fullmatch(rf"(.\s*)(.*?)(\s*[{re.escape(closings)}]{_END})", text, re.DOTALL)
    if found is None or not any(map(str.isalpha, found[2])):
        return None
    kind = next(marks for marks in _MARKS.values() if marks.match(text))
    return None if kind.search(found[2]) else Enclosed(*found.groups())
