"""Reads the strings of Android programs, which stand in XML: strings, arrays of them, and plurals."""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from dragoman.documents.entities import keep_references, own_references, with_references
from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.lexer import (
    MarkupError,
    Token,
    attribute,
    closed_element,
    local_name,
    raw_tokens,
    text_of,
    xml_tokens,
)
from dragoman.documents.plain_text import add_tagged
from dragoman.errors import DataError

_SCOPES = frozenset(["string-array", "plurals"])
_STRINGS = frozenset(["string", "item"])
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_QUOTE_OR_SPACES = re.compile(r'"((?:[^"\\]|\\.)*+)"?|(\\.)|\s+', re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t"}
_REFERENCE = re.compile(r"\s*[@?][\w.:+]*/?[\w.]+\s*")  # to another resource


def android_pieces(chunks: Iterable[str], encoding: str = "utf-8") -> Iterator[str | Flow]:
    try:
        yield from _pieces(xml_tokens(chunks), encoding)
    except MarkupError as error:
        raise DataError(f"is damaged ({error}); save the document again") from None


def _pieces(tokens: Iterator[Token], encoding: str) -> Iterator[str | Flow]:
    root = ""
    around: list[bool] = []  # whether the lists that are open are to be translated
    for token in tokens:
        if not root and token.kind in ("start", "empty"):
            root = token.name
            if root != "resources":
                raise DataError(
                    f"its first element is <{root}>, and of XML only the strings of Android are read, which stand in "
                    f"<resources>; convert it, or name its --format"
                )
        if token.kind == "start" and token.name in _STRINGS:
            whole = closed_element(tokens, token)
            in_list = token.name == "string" or bool(around)
            stays = attribute(token.raw, "translatable") == "false" or not in_list or not all(around)
            yield from [raw_tokens(whole)] if stays else _string(whole, encoding)
            continue
        if token.name in _SCOPES and token.kind == "start":
            around.append(attribute(token.raw, "translatable") != "false")
        elif token.name in _SCOPES and token.kind == "end":
            del around[-1:]
        yield token.raw


def _string(whole: list[Token], encoding: str) -> Iterator[str | Flow]:
    start, *inner, end = whole
    raw = raw_tokens(inner)
    texts = [text_of(token) for token in inner]
    if _REFERENCE.fullmatch(raw) or not any(character.isalpha() for text in texts if text for character in text):
        yield raw_tokens(whole)
        return
    cdata = len(inner) == 1 and inner[0].kind == "other"
    quoted = re.fullmatch(r'\s*"((?:[^"\\]|\\.)*)"\s*', raw, re.DOTALL) is not None
    names = own_references(raw)
    builder = FlowBuilder()
    stream = iter(inner)
    for token in stream:
        text = text_of(token)
        if text is not None:
            if not quoted and not cdata:
                text = _without_quotes(text)
            if quoted:
                text = re.sub(r'^\s*"|(?<!\\)"\s*$', "", text)
            add_tagged(builder, _unescaped(text), str if cdata else with_references(_escape_tag, names))
        elif local_name(token) == "g" and token.kind == "start":  # <xliff:g>: what is not to be translated
            _add_kept(builder, closed_element(stream, token), with_references(_escape, names))
        elif token.kind == "start":
            builder.open(token.name, [token.raw])
        elif token.kind == "end":
            builder.close(token.name, token.raw)
        else:
            builder.add_point([token.raw])
    yield start.raw
    flow = keep_references(
        builder.flow(partial(_escape_cdata, encoding=encoding) if cdata else with_references(_escape, names)), names
    )
    flow = replace(flow, raw=raw, whole_lines=True)
    if cdata:
        flow = replace(flow, finish=lambda text: f"<![CDATA[{text}]]>")
    elif quoted:
        flow = replace(flow, finish=lambda text: f'"{text}"')
    else:
        flow = replace(flow, finish=lambda text: re.sub(r"\A(?=[@?])", r"\\", text))
    yield flow
    yield end.raw


def _add_kept(builder: FlowBuilder, element: list[Token], escape: Callable[[str], str]) -> None:
    """Adds what is not to be translated: as text for the model to see, if it comes back from that as it is written."""
    start, *inner, end = element
    raw = raw_tokens(inner)
    content = _unescaped("".join(text_of(one) or "" for one in inner))
    if escape(content) != raw:
        builder.add_point([raw_tokens(element)])
        return
    builder.open(start.name, [start.raw])
    builder.add_text(content, raw, keep=True)
    builder.close(start.name, end.raw)


def _without_quotes(text: str) -> str:
    """The text as Android shows it: without quotes that are not escaped, and outside them with single spaces."""
    return _QUOTE_OR_SPACES.sub(lambda found: (found[1] or "") if found[0][0] == '"' else found[2] or " ", text)


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _LETTERS.get(found[2], found[2])

    return _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape_text(text: str) -> str:
    text = re.sub(r"([\\'\"])", r"\\\1", text)
    return text.replace("\n", "\\n").replace("\t", "\\t")


def _escape(text: str) -> str:
    return html.escape(_escape_text(text), quote=False).replace("\u00a0", "\\u00A0")


def _escape_tag(tag: str) -> str:
    return html.escape(tag, quote=False).replace('"', '\\"').replace("'", "\\'")


def _escape_cdata(text: str, encoding: str) -> str:
    text = _escape_text(text).replace("]]>", "]] >")
    return "".join(one if _has_letter(encoding, one) else _by_number(one) for one in text)


def _has_letter(encoding: str, letter: str) -> bool:
    try:
        letter.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _by_number(letter: str) -> str:
    """The letter as Android's escape, as a CDATA section has no references to characters."""
    code = letter.encode("utf-16-be").hex().upper()
    return "".join(f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4))
