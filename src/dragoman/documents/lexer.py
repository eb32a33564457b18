"""HTML and XML as tokens that together are the document, character by character: nothing is parsed away.

A tree would be written back in another form (attributes in other quotes, entities replaced, a <tbody> more). Only what
matters here is told apart: tags, text, and all else. Entities of a document's own are never looked at, so none expands.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Literal, NamedTuple

Kind = Literal["text", "start", "end", "empty", "other"]


class Token(NamedTuple):
    kind: Kind
    name: str
    raw: str


# What is never closed goes on to the end, as browsers have it; and no attempt looks further than the next tag, so that
# a page of a million opening brackets takes no longer than another.
_MARKUP = re.compile(
    r"(?P<other><!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<![^>]*>)"
    r"|<(?P<slash>/?)(?P<name>[A-Za-z_][^\s/>]*)(?P<rest>(?:\"[^\"]*\"|'[^']*'|[^'\"<>])*+)>"
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
        if at > 1 << 16:
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


def element(tokens: Iterator[Token], start: Token) -> list[Token]:
    """The tokens of an element from its start, which was read, to its end or the end of all."""
    found, depth = [start], 1
    for token in tokens:
        found.append(token)
        if token.name == start.name:
            depth += {"start": 1, "end": -1}.get(token.kind, 0)
            if depth == 0:
                break
    return found


def attribute(tag: str, name: str) -> str | None:
    """The value as written, without its quotes."""
    found = re.search(rf"""\s{re.escape(name)}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", tag, re.IGNORECASE)
    return None if found is None else next(group for group in found.groups() if group is not None)
