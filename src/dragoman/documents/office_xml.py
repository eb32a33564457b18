"""What the formats of offices have in common: paragraphs in XML that is copied as it is, but for the text in them."""

import html
import re
from collections.abc import Callable, Iterator

from dragoman.documents.flow import Flow
from dragoman.documents.lexer import Token, attribute, closed_element, local_name, raw_tokens

# Gives the pieces of a paragraph from its start tag and the tokens in it.
ParagraphReader = Callable[[Token, list[Token]], Iterator[str | Flow]]
DEEPEST = 50  # paragraphs, or content controls, in each other: each is read once for every one that it stands in

# Pictures, shapes and tables of DOCX: programs read these attributes aloud in their place.
_DESCRIBED = frozenset(
    [
        "wp:docPr",
        "pic:cNvPr",
        "p:cNvPr",
        "xdr:cNvPr",
        "v:shape",
        "v:rect",
        "v:roundrect",
        "v:oval",
        "v:line",
        "w:tblCaption",
        "w:tblDescription",
    ]
)
_DESCRIPTION = re.compile(r"""(\s(?:descr|title|alt|w:val)\s*=\s*)(?:"([^"]*)"|'([^']*)')""")


def paragraph_pieces(
    tokens: Iterator[Token],
    names: tuple[str, ...],
    read_paragraph: ParagraphReader,
    is_copied: Callable[[Token], bool] = lambda _: False,
    local_names: tuple[str, ...] = (),
) -> Iterator[str | Flow]:
    """Reads the paragraphs, which are the elements of these names (`local_names`: with any prefix), and copies all
    else, also what is in the elements of which `is_copied` says so. One paragraph is in memory at a time."""
    for token in tokens:
        if token.kind == "start" and is_copied(token):
            yield raw_tokens(closed_element(tokens, token, DEEPEST))
            continue
        yield from _described_pieces(token) if token.name in _DESCRIBED else (token.raw,)
        if token.kind == "start" and (token.name in names or local_name(token) in local_names):
            *inner, end = closed_element(tokens, token, DEEPEST)[1:]
            yield from read_paragraph(token, inner)
            yield end.raw


def _described_pieces(token: Token) -> Iterator[str | Flow]:
    """A tag with the values of its descriptions as flows."""
    position = 0
    for found in _DESCRIPTION.finditer(token.raw):
        group = 2 if found[2] is not None else 3
        yield token.raw[position : found.start(group)]
        yield Flow(html.unescape(found[group]), found[group], escape=_escape_attribute, whole_lines=True)
        position = found.end(group)
    yield token.raw[position:]


def _escape_attribute(text: str) -> str:
    return html.escape(text).replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")


def escape_xml(text: str) -> str:
    return html.escape(text, quote=False)


def split_spaces(text: str) -> tuple[str, str, str]:
    """The space before a text, the text itself, and the space after it."""
    bare = text.strip()
    start = text.index(bare)
    return text[:start], bare, text[start + len(bare) :]


def style_name(tag: str, name: str, family: str = "") -> str | None:
    """The style that a tag names in an attribute, as the styles of the document are called."""
    value = attribute(tag, name)
    return None if value is None else family + html.unescape(value)
