"""Reads the text files of a Marian model: its settings in YAML, and vocabularies in YAML or with one piece a line.

The YAML is flat, one entry a line, as Marian and OPUS-MT write it, and that form is all that is read: PyYAML would be a
package of its own for that, and takes a U+2028 in a piece for the end of a line, as Marian does not.
"""

import re
from collections.abc import Mapping

_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", " ": " ",
    '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
MarianOptions = Mapping[str, str | list[str]]


def read_settings(content: bytes) -> MarianOptions:
    """The entries of a YAML file: texts, and lists of texts. What is nested deeper is left out."""
    found: dict[str, str | list[str]] = {}
    last: list[str] = []  # the list that the next item belongs to
    for line in _lines(content):
        entry = line.strip()
        if entry == "-" or entry.startswith("- "):
            last.append(_text(entry[1:].strip()))
        elif not line.startswith((" ", "\t")):
            key, colon, value = entry.partition(":")
            if not colon:
                raise ValueError(f"{entry[:40]!r} is no entry of a YAML file")
            value = value.strip()
            last = []
            found[key] = _text(value) if value and value != "[]" else last
    return found


def read_pieces(name: str, content: bytes) -> dict[str, int]:
    """The ids of the pieces in a vocabulary; a ValueError says what is wrong with it."""
    return _yaml_pieces(content) if name.endswith((".yml", ".yaml")) else _listed_pieces(content)


def _listed_pieces(content: bytes) -> dict[str, int]:
    """A vocabulary with one piece a line, whose ids are the numbers of the lines."""
    pieces = content.decode().removesuffix("\n").split("\n")
    ids = {piece.removesuffix("\r"): index for index, piece in enumerate(pieces)}
    if len(ids) != len(pieces) or "" in ids:
        raise ValueError("a line is empty, or there twice")
    return ids


def _yaml_pieces(content: bytes) -> dict[str, int]:
    """A vocabulary as YAML: `piece: 12`, or for a long piece `? piece` and `: 12` on the next line."""
    ids: dict[str, int] = {}
    long: str | None = None
    for line in _lines(content):
        if line.startswith("? "):
            long = line[2:]
            continue
        key, colon, value = line.rpartition(":")
        value = value.strip(" ")
        if not (colon and value.isascii() and value.isdigit()) or (long is not None and key):
            raise ValueError(f"{line[:40]!r} is no entry of a vocabulary")
        piece = _text((key if long is None else long).strip(" "))
        if piece in ids:
            raise ValueError(f"{piece[:40]!r} is there twice")
        ids[piece], long = int(value), None
    return ids


def _lines(content: bytes) -> list[str]:
    """The lines, without comments and empty ones."""
    lines = (line.removesuffix("\r") for line in content.decode().split("\n"))
    return [line for line in lines if line.strip(" ") and not line.startswith("#") and line not in ("---", "...")]


def _text(scalar: str) -> str:
    """The text that a YAML scalar stands for."""
    if scalar[:1] not in ('"', "'"):
        return scalar
    if len(scalar) < 2 or scalar[-1] != scalar[0]:
        raise ValueError(f"the quotation {scalar[:40]!r} does not end on its line")
    inside = scalar[1:-1]
    return _ESCAPED.sub(_unescaped, inside) if scalar[0] == '"' else inside.replace("''", "'")


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        number = int(code[1:], 16)
        if 0xD800 <= number < 0xE000:
            raise ValueError(f"{match[0]!r} is no character")
        return chr(number)
    if code not in _ESCAPES:
        raise ValueError(f"{match[0]!r} is no escape of YAML")
    return _ESCAPES[code]
