"""Messages of programs: gettext's PO, and JSON. Only the strings change; every other character stays."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dragoman.documents.flow import Flow
from dragoman.documents.lexer import scan
from dragoman.documents.plain import BLOCK, string_flow
from dragoman.errors import DataError

_JSON = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*+"\s*:)|(?P<string>"(?:[^"\\]|\\.)*+")\s*|(?P<text>[\s\d{}\[\],:.+\-eE]+|true|false|null)'
)
# No message: a path, an address, a name of the program's own, a colour.
_NO_MESSAGE = re.compile(r"\S*[_/\\.#:@=]\w\S*|[a-z]+[A-Z]\S*|[a-z]+(-[a-z]+)+|\S*\d\S*")
_ICU = re.compile(r"\{\s*\w+\s*,\s*(plural|select|selectordinal)\s*,")


def json_pieces(chunks: Iterable[str]) -> Iterator[str | Flow]:
    """The strings that are values. Keys, and strings that are no messages, stay."""
    try:
        for found in scan(chunks, _JSON):
            string = found["string"]
            if string is None or not _is_message(string):
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


def _is_message(string: str) -> bool:
    try:
        text = json.loads(string, strict=False)
        text.encode()
    except ValueError:  # a lone surrogate, or an escape that is none
        return False
    return any(map(str.isalpha, text)) and not _NO_MESSAGE.fullmatch(text.strip()) and not _ICU.search(text)


def _json_escape(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _json_escape_ascii(text: str) -> str:
    return json.dumps(text)[1:-1]


_FIELD = re.compile(
    r"^(?P<key>msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)[ \t]+"
    r'(?P<value>"(?:[^"\\]|\\.)*"(?:\s*\n[ \t]*"(?:[^"\\]|\\.)*")*)',
    re.MULTILINE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def po_pieces(chunks: Iterable[str]) -> Iterator[str | Flow]:
    """An empty msgstr is filled from its msgid; what was translated before stays, and so do comments and order."""
    for entry in scan(chunks, BLOCK):
        text = entry[0]
        fields = list(_FIELD.finditer(text))
        values = {found["key"]: _po_unescape(found["value"]) for found in fields}
        position = 0
        for found in fields:
            key = found["key"]
            if not key.startswith("msgstr") or values[key] or not values.get("msgid"):
                continue
            plural = key not in ("msgstr", "msgstr[0]")
            source = values.get("msgid_plural", values["msgid"]) if plural else values["msgid"]
            if not any(map(str.isalpha, source)):
                continue
            yield text[position : found.start("value")]
            # What stays untranslated stays empty: programs then show the msgid, and translators see what is to do.
            yield replace(string_flow(source, '""'), finish=_po_string)
            position = found.end("value")
        yield text[position:]


def _po_unescape(value: str) -> str:
    inner = "".join(found[1] for found in re.finditer(r'"((?:[^"\\]|\\.)*)"', value))
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), inner)


def _po_string(text: str) -> str:
    lines = re.findall(r".*?\n|.+", text, re.DOTALL)
    written = [f'"{_po_escape(line)}"' for line in lines] or ['""']
    return written[0] if len(written) == 1 else "\n".join(['""', *written])


def _po_escape(text: str) -> str:
    back = {character: f"\\{letter}" for letter, character in _ESCAPES.items()}
    return "".join(back.get(character, character) for character in text)
