"""Reads the strings of programs for Apple's systems: .strings, and .stringsdict with their plurals."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dragoman.documents.entities import keep_references, own_references, with_references
from dragoman.documents.flow import Flow
from dragoman.documents.json_strings import is_message
from dragoman.documents.lexer import MarkupError, Token, closed_element, raw_tokens, scan, text_of, xml_tokens
from dragoman.documents.office_xml import escape_xml
from dragoman.documents.plain_text import string_flow
from dragoman.errors import DataError

_PART = re.compile(
    r"(?P<other>\s+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|//[^\r\n]*+)"
    r'|(?P<head>(?:"(?:[^"\\]|\\[\s\S])*+"|[\w.$/-]++)\s*+=\s*+)"(?P<value>(?:[^"\\]|\\[\s\S])*+)"(?P<end>\s*+;)'
    r'|(?P<same>"(?:[^"\\]|\\[\s\S])*+"\s*+;)'
)
_ESCAPE = re.compile(r"\\(?:[Uu]([0-9A-Fa-f]{4})|([\s\S]))")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
_FORMS = frozenset(["zero", "one", "two", "few", "many", "other", "NSStringLocalizedFormatKey"])
_VARIABLE = re.compile(r"%(?:\d+\$)?#@\w+@")  # where a form is put in


def strings_pieces(chunks: Iterable[str]) -> Iterator[str | Flow]:
    try:
        for found in scan(chunks, _PART):
            value = found["value"]
            text = None if value is None else _unescaped(value)
            if value is None or text is None or not is_message(text):
                yield found[0]
                continue
            yield f'{found["head"]}"'
            yield replace(_flow(text, value), finish=_escaped)
            yield f'"{found["end"]}'
    except ValueError as error:
        raise DataError(f"no strings at {str(error)!r}; correct the file") from None


def stringsdict_pieces(chunks: Iterable[str]) -> Iterator[str | Flow]:
    tokens = xml_tokens(chunks)
    key = ""
    try:
        for token in tokens:
            if token.kind != "start" or token.name not in ("key", "string"):
                yield token.raw
                continue
            whole = closed_element(tokens, token)
            text = "".join(text_of(one) or "" for one in whole[1:-1])
            if token.name == "key" or key not in _FORMS or not is_message(_VARIABLE.sub("", text)):
                key = text if token.name == "key" else key
                yield raw_tokens(whole)
            else:
                yield from _form(token, whole, text)
    except MarkupError as error:
        raise DataError(f"is damaged ({error}); save the document again") from None


def _form(start: Token, whole: list[Token], text: str) -> Iterator[str | Flow]:
    yield start.raw
    raw = raw_tokens(whole[1:-1])
    names = own_references(raw)
    yield replace(keep_references(_flow(text, raw), names), finish=with_references(escape_xml, names))
    yield whole[-1].raw


def _flow(text: str, raw: str) -> Flow:
    return replace(string_flow(text, raw), kept=tuple(found.span() for found in _VARIABLE.finditer(text)))


def _unescaped(value: str) -> str | None:
    def character(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _LETTERS.get(found[2], found[2])

    try:
        text = _ESCAPE.sub(character, value).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:  # half of a character
        return None
    return text


def _escaped(text: str) -> str:
    text = re.sub(r'([\\"])', r"\\\1", text)
    return text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
