"""Reads the messages of Java programs in .properties files. Values change; keys, comments and order are copied."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from dragoman.documents.flow import Flow
from dragoman.documents.json_strings import is_message
from dragoman.documents.lexer import scan
from dragoman.documents.plain_text import string_flow

_LINE = re.compile(
    r"(?P<other>[ \t\f]*+(?:[#!][^\r\n]*+)?(?:\r\n|\n|\r|\Z))"
    r"|(?P<key>[ \t\f]*+(?:\\(?:\r\n|[\s\S])|[^\\\s:=])*+"
    r"(?:[ \t\f]|\\\r?\n[ \t\f]*+)*+[:=]?(?:[ \t\f]|\\\r?\n[ \t\f]*+)*+)"
    r"(?P<value>(?:\\(?:\r\n|[\s\S])|[^\\\r\n])*+\\?)(?P<end>\r\n|\n|\r|\Z)"
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|\r?\n[ \t\f]*+|(.)|\Z)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_PATTERN = re.compile(r"\{\d+\s*[,}]")  # of MessageFormat, in which an apostrophe is written as two


def properties_pieces(chunks: Iterable[str], ascii_only: bool) -> Iterator[str | Flow]:
    """`ascii_only`: other characters are written as \\uXXXX, which every version of Java reads."""
    for found in scan(chunks, _LINE):
        if not found[0]:
            return
        value = found["value"]
        text = None if value is None else _unescaped(value)
        if text is None or not is_message(text):
            yield found[0]
            continue
        apostrophes = _PATTERN.search(text) is not None
        if apostrophes and re.search(r"(?<!')'(?:'')*(?!')", text):  # quotes something: {0} may be no placeholder
            yield found[0]
            continue
        yield found["key"]
        flow = string_flow(text.replace("''", "'") if apostrophes else text, value)
        yield replace(flow, finish=partial(_escaped, ascii_only=ascii_only, apostrophes=apostrophes))
        yield found["end"]


def _unescaped(value: str) -> str | None:
    """The text of a value; None: it has half of a character."""

    def character(found: re.Match[str]) -> str:
        if found[1] is not None:
            return chr(int(found[1], 16))
        return "" if found[2] is None else _LETTERS.get(found[2], found[2])

    try:
        return _ESCAPE.sub(character, value).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None


def _escaped(text: str, ascii_only: bool, apostrophes: bool) -> str:
    text = text.replace("\\", "\\\\").replace("'", "''" if apostrophes else "'")
    for letter, character in _LETTERS.items():
        text = text.replace(character, f"\\{letter}")
    text = f"\\{text}" if text.startswith(" ") else text
    return "".join(_reference(one) if ord(one) > 126 else one for one in text) if ascii_only else text


def _reference(character: str) -> str:
    units = character.encode("utf-16-be").hex().upper()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
