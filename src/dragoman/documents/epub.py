"""Reads EPUB books: their pages, the table of contents, the title and the description."""

import html
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

from dragoman.documents.archive_file import Archive, PartReader
from dragoman.documents.entities import keep_references, own_references, unescape_xml, with_references
from dragoman.documents.flow import Flow
from dragoman.documents.html import html_pieces
from dragoman.documents.lexer import Token, attribute, raw_tokens, xml_tokens
from dragoman.documents.office_xml import escape_xml, paragraph_pieces
from dragoman.documents.settings import FormatSettings
from dragoman.errors import DataError

_CONTAINER = "META-INF/container.xml"
_PAGES, _CONTENTS = "application/xhtml+xml", "application/x-dtbncx+xml"
_ABOUT = ("dc:title", "dc:description", "dc:subject")  # in the package file
_LABEL = ("text",)  # of an entry of the table of contents


def epub_parts(archive: Archive, settings: FormatSettings) -> dict[str, PartReader]:
    package = next(
        (_path("", found) for token in xml_tokens(archive.text(_CONTAINER)) if token.name == "rootfile"
         and (found := attribute(token.raw, "full-path"))), None
    )  # fmt: skip
    if package is None or package not in archive.names:
        raise DataError(f"{archive.name}: {_CONTAINER} names no package of a book; save it again")
    readers: dict[str, PartReader] = {package: partial(_plain_pieces, names=_ABOUT)}
    for token in xml_tokens(archive.text(package)):
        if not token.name.endswith("item") or (href := attribute(token.raw, "href")) is None:
            continue
        kind, part = attribute(token.raw, "media-type"), _path(package, href)
        if kind == _PAGES:
            readers[part] = partial(html_pieces, settings=replace(settings, xhtml=True))
        elif kind == _CONTENTS:
            readers[part] = partial(_plain_pieces, names=_LABEL)
    return readers


def _path(package: str, address: str) -> str:
    """The name of a part from its address, which is seen from the package."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(html.unescape(address))))


def _plain_pieces(chunks: Iterable[str], names: tuple[str, ...]) -> Iterator[str | Flow]:
    return paragraph_pieces(xml_tokens(chunks), names, _plain)


def _plain(_: Token, tokens: list[Token]) -> Iterator[str | Flow]:
    """The content of an element as one text; with elements in it, it is copied."""
    raw = raw_tokens(tokens)
    if all(token.kind == "text" for token in tokens) and re.search(r"[^\W\d_]", raw):
        names = own_references(raw)
        flow = Flow(unescape_xml(raw), raw, escape=with_references(escape_xml, names))
        yield keep_references(flow, names)
    else:
        yield raw
