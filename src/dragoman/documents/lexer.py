"""HTML and XML as tokens that together are the document, character by character: nothing is parsed away.

A tree would be written back in another form (attributes in other quotes, entities replaced, a <tbody> more). Only what
matters here is told apart: tags, text, and all else. Entities of a document's own are never looked at, so none expands.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

Kind = Literal["text", "start", "end", "empty", "other"]


class Token(NamedTuple):
    kind: Kind
    name: str
    raw: str


class MarkupError(ValueError):
    """XML that no program opens: an element without its end, or too many in each other."""


# What is never closed goes on to the end, as browsers have it; and no attempt looks further than the next tag, so that
# a page of a million opening brackets takes no longer than another.
_MARKUP = re.compile(
    r"(?P<other><!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<![^>]*(?:>|\Z))"
    r"|<(?P<slash>/?)(?P<name>[A-Za-z_][^\s/<>]*+)(?P<rest>(?:\"[^\"]*\"|'[^']*'|[^'\"<>])*+)>"
    r"|(?P<text>[^<]+|<)",
    re.DOTALL,
)
# In HTML a processing instruction ends at the first >.
_HTML = re.compile(_MARKUP.pattern.replace(r"<\?.*?(?:\?>|\Z)", r"<\?[^>]*(?:>|\Z)"), re.DOTALL)
# What these hold is no markup.
RAW_TEXT = ("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes")
VOID = frozenset("area base br col embed hr img input link meta source track wbr param".split())  # noqa: SIM905


def scan(chunks: Iterable[str], pattern: re.Pattern[str] | Callable[[], re.Pattern[str]]) -> Iterator[re.Match[str]]:
    """Matches, one after the other, over text that comes in chunks. A match that ends with what is there may go on with
    what comes: it is looked for again then. Text that does not match is a ValueError."""
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
    """Names in lower case; the content of scripts and styles is no text, whatever it looks like."""
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
    """Tokens of which some may be looked at and put back. Of each the number in its order is known."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._coming = iter(tokens)
        self._back: deque[Token] = deque()
        self._read = 0
        # Of names whose elements were looked for in vain: which of their starts have no end.
        self._unclosed: dict[str, set[int]] = {}

    def __next__(self) -> Token:
        token = self._back.popleft() if self._back else next(self._coming)
        self._read += 1
        return token

    def put_back(self, tokens: Sequence[Token]) -> None:
        self._back.extendleft(reversed(tokens))
        self._read -= len(tokens)

    def whole_element(self, start: Token) -> list[Token] | None:
        """The element of the start that was just read; None: it has no end, and no further token is read. All that
        comes is looked through once for a name, however many of its elements have no end."""
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
    """The tokens of an element from its start, which was read, to its end or the end of all. More of its name in each
    other than `deepest` are a MarkupError."""
    found, depth = [start], 1
    for token in tokens:
        found.append(token)
        if token.name == start.name:
            depth += {"start": 1, "end": -1}.get(token.kind, 0)
            if depth == 0:
                break
            if deepest is not None and depth > deepest:
                raise MarkupError(f"more than {deepest} {start.name} in each other")
    return found


def closed_element(tokens: Iterator[Token], start: Token, deepest: int | None = None) -> list[Token]:
    """The same in XML, where every element has an end: its start and its end at least. Else a MarkupError."""
    found = element(tokens, start, deepest)
    if not _is_closed(found):
        raise MarkupError(f"<{start.name}> has no end")
    return found


def _is_closed(found: Sequence[Token]) -> bool:
    return found[-1].kind == "end" and found[-1].name == found[0].name


def attribute(tag: str, name: str) -> str | None:
    """The value as written, without its quotes."""
    found = re.search(rf"""\s{re.escape(name)}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", tag, re.IGNORECASE)
    return None if found is None else next(group for group in found.groups() if group is not None)
