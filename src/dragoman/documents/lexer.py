"""Divides HTML and XML into tokens that together are the document, character by character: nothing is lost.

A tree would be written back in another form (attributes in other quotes, entities replaced, a <tbody> more). Tokens
are tags, text, and all else. The entities that a document declares are never looked at, so none is expanded.
"""

import html
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

from dragoman.documents.entities import unescape_xml

TokenKind = Literal["text", "start", "end", "empty", "other"]


class Token(NamedTuple):
    """A tag, a text, or something else, as it is written."""

    kind: TokenKind
    name: str
    raw: str


class MarkupError(ValueError):
    """XML that is damaged: an element without its end tag, or too many inside each other."""


# A comment that is never closed goes on to the end, as in browsers. No attempt looks further than the next tag, so that
# a page of a million opening brackets takes no longer than another.
_MARKUP = re.compile(
    r"(?P<other><!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<![^>]*(?:>|\Z))"
    r"|<(?P<slash>/?)(?P<name>[A-Za-z_][^\s/<>]*+)(?P<rest>(?:\"[^\"]*\"|'[^']*'|[^'\"<>])*+)>"
    r"|(?P<text>[^<]+|<)",
    re.DOTALL,
)
# In HTML a processing instruction ends at the first >.
_HTML = re.compile(_MARKUP.pattern.replace(r"<\?.*?(?:\?>|\Z)", r"<\?[^>]*(?:>|\Z)"), re.DOTALL)
# Elements whose content is not markup.
RAW_TEXT = ("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes")
VOID = frozenset("area base br col embed hr img input link meta source track wbr param".split())  # noqa: SIM905


def scan(chunks: Iterable[str], pattern: re.Pattern[str] | Callable[[], re.Pattern[str]]) -> Iterator[re.Match[str]]:
    """Matches a pattern again and again over text that comes in chunks. A match that ends where the text read so far
    ends is tried again with more. Text that does not match raises a ValueError."""
    incoming = iter(chunks)
    buffer, at, ended = "", 0, False
    while True:
        found = (pattern if isinstance(pattern, re.Pattern) else pattern()).match(buffer, at)
        unsure = found is None or found.end() == len(buffer) or found[0] == "<"
        if unsure and not ended:
            # As much again as was looked through in vain: a token of 100 MB is looked through twice, not for each
            # chunk.
            parts, lacking = [buffer[at:]], max(1, len(buffer) - at)
            while lacking > 0 and not ended:
                more = next(incoming, None)
                ended = more is None
                parts.append(more or "")
                lacking -= len(more or "")
            buffer, at = "".join(parts), 0
            continue
        if found is None:
            if at < len(buffer):
                raise ValueError(buffer[at : at + 20])
            return
        yield found
        at = found.end()
        if at > max(1 << 16, len(buffer) // 2):  # half at least: a buffer of any size is copied once, not for each cut
            buffer, at = buffer[at:], 0


def html_tokens(chunks: Iterable[str]) -> Iterator[Token]:
    """The tokens of HTML, names in lower case. The content of scripts and styles is never text."""
    inside: str | None = None
    tokens = _tokens(chunks, lambda: _HTML if inside is None else _raw_text(inside), html=True)
    for token in tokens:
        if token.kind == "start" and token.name in RAW_TEXT:
            inside = token.name
        elif token.kind == "end":
            inside = None
        yield token


@cache
def _raw_text(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<raw>(?:(?!</{name}[\s/>]).)++)|{_HTML.pattern}", re.DOTALL | re.IGNORECASE)


def xml_tokens(chunks: Iterable[str]) -> Iterator[Token]:
    return _tokens(chunks, _MARKUP, html=False)


def _tokens(
    chunks: Iterable[str], pattern: re.Pattern[str] | Callable[[], re.Pattern[str]], html: bool
) -> Iterator[Token]:
    text: list[str] = []
    for found in scan(chunks, pattern):
        if found["text"] is not None:
            text.append(found[0])
            continue
        if text:
            yield Token("text", "", "".join(text))
            text = []
        if found["other"] is not None or found.groupdict().get("raw") is not None:
            yield Token("other", "", found[0])
            continue
        name = found["name"].lower() if html else found["name"]
        if found["slash"]:
            yield Token("end", name, found[0])
        elif (name in VOID if html else found["rest"].endswith("/")) or (
            html and name in ("svg", "math") and found["rest"].endswith("/")
        ):
            yield Token("empty", name, found[0])
        else:
            yield Token("start", name, found[0])
    if text:
        yield Token("text", "", "".join(text))


class Tokens(Iterator[Token]):
    """An iterator of tokens to which tokens that were read can be given back."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._coming = iter(tokens)
        self._back: deque[Token] = deque()
        self._read = 0
        # For each name with an element that has no end: the numbers of its start tags without one.
        self._unclosed: dict[str, set[int]] = {}

    def __next__(self) -> Token:
        token = self._back.popleft() if self._back else next(self._coming)
        self._read += 1
        return token

    def put_back(self, tokens: Sequence[Token]) -> None:
        self._back.extendleft(reversed(tokens))
        self._read -= len(tokens)

    def whole_element(self, start: Token) -> list[Token] | None:
        """Reads the element whose start tag was just read. None: it has no end, and no further token is read. The rest
        of the document is searched once for each name, however many of its elements have no end."""
        first = self._read
        if first in self._unclosed.get(start.name, ()):
            return None
        found = element(self, start)
        if _is_closed(found):
            return found
        open_starts = [first]
        for number, token in enumerate(found[1:], start=first + 1):
            if token.name == start.name and token.kind == "start":
                open_starts.append(number)
            elif token.name == start.name and token.kind == "end":
                open_starts.pop()
        self._unclosed[start.name] = set(open_starts)
        self.put_back(found[1:])
        return None


def element(tokens: Iterator[Token], start: Token, deepest: int | None = None) -> list[Token]:
    """Reads an element from its start tag, which was just read, to its end tag or the end of the document. More than
    `deepest` elements of its name inside each other raise a MarkupError."""
    found, depth = [start], 1
    for token in tokens:
        found.append(token)
        if token.name == start.name:
            depth += {"start": 1, "end": -1}.get(token.kind, 0)
            if depth == 0:
                break
            if deepest is not None and depth > deepest:
                raise MarkupError(f"more than {deepest} <{start.name}> inside each other")
    return found


def closed_element(tokens: Iterator[Token], start: Token, deepest: int | None = None) -> list[Token]:
    """Reads an element of XML, of which the last token is its end tag; a MarkupError where it has none."""
    found = element(tokens, start, deepest)
    if not _is_closed(found):
        raise MarkupError(f"<{start.name}> has no end")
    return found


def _is_closed(found: Sequence[Token]) -> bool:
    return found[-1].kind == "end" and found[-1].name == found[0].name


def children(inner: Sequence[Token]) -> Iterator[list[Token]]:
    """What stands in an element of XML, one after the other: each element whole, and what is between them."""
    tokens = iter(inner)
    for token in tokens:
        yield closed_element(tokens, token) if token.kind == "start" else [token]


def raw_tokens(tokens: Iterable[Token]) -> str:
    return "".join(token.raw for token in tokens)


def local_name(token: Token) -> str:
    """The name without the prefix of its namespace."""
    return token.name.rpartition(":")[2]


def text_of(token: Token) -> str | None:
    """The text of a token, whether with entities or as a CDATA section; None: it is none."""
    if token.kind == "text":
        return unescape_xml(token.raw)
    found = re.fullmatch(r"<!\[CDATA\[(.*?)(?:\]\]>)?", token.raw, re.DOTALL) if token.kind == "other" else None
    return None if found is None else found[1]


def with_attribute(tag: str, name: str, value: str) -> str:
    """The tag with this attribute, in place of its value or behind the others."""
    pattern = rf"""(\s{re.escape(name)}\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s"'>]+)"""
    quoted = f'"{html.escape(value)}"'
    if re.search(pattern, tag):
        return re.sub(pattern, lambda found: found[1] + quoted, tag, count=1)
    end = re.search(r"\s*/?>\Z", tag)
    return tag if end is None else f"{tag[: end.start()]} {name}={quoted}{end[0]}"


def attribute(tag: str, name: str) -> str | None:
    """The value of an attribute as it is written, without its quotes."""
    found = re.search(rf"""\s{re.escape(name)}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", tag, re.IGNORECASE)
    return None if found is None else next(group for group in found.groups() if group is not None)
