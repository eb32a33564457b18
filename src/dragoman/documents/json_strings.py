"""Reads the messages of programs in JSON files. Only strings change; every other character is copied."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dragoman.documents.flow import Flow
from dragoman.documents.lexer import scan
from dragoman.documents.plain_text import string_flow
from dragoman.errors import DataError

_JSON = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*+"\s*:)|(?P<string>"(?:[^"\\]|\\.)*+")\s*|(?P<text>[\s\d{}\[\],:.+\-eE]+|true|false|null)'
)
# Not a message: a path, an address, an identifier, a colour.
_NO_MESSAGE = re.compile(r"\S*[_/\\.#:@=]\w\S*|[a-z]+[A-Z]\S*|[a-z]+(-[a-z]+)+|\S*\d\S*")
_ICU = re.compile(r"\{\s*\w+\s*,\s*(plural|select|selectordinal)\s*,")


def json_pieces(chunks: Iterable[str]) -> Iterator[str | Flow]:
    """Strings that are values are flows. Keys, and strings that are no messages, are copied."""
    try:
        for found in scan(chunks, _JSON):
            string = found["string"]
            if string is None or not _holds_message(string):
                yield found[0]
                continue
            raw = string[1:-1]
            ascii_only = "\\u" in raw and raw.isascii()
            yield '"'
            # Escaped as a whole: a tag's own quotes are as much a part of the string as its text.
            flow = string_flow(json.loads(string, strict=False), raw)
            yield replace(flow, finish=_json_escape_ascii if ascii_only else _json_escape)
            yield '"' + found[0][len(string) :]
    except ValueError as error:
        raise DataError(f"not JSON at {str(error)!r}; correct the file") from None


def _holds_message(string: str) -> bool:
    try:
        text = json.loads(string, strict=False)
        text.encode()
    except ValueError:  # a lone surrogate, or an escape that is none
        return False
    return is_message(text)


def is_message(text: str) -> bool:
    """Whether the text of a string is for people, and no identifier, address or the like."""
    return any(map(str.isalpha, text)) and not _NO_MESSAGE.fullmatch(text.strip()) and not _ICU.search(text)


def _json_escape(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _json_escape_ascii(text: str) -> str:
    return json.dumps(text)[1:-1]
