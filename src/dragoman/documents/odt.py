"""Reads the text of ODT, ODS and ODP files: paragraphs, headings, cells, and the descriptions of pictures."""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from dragoman.documents.archive_file import Archive, PartReader
from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.html import LONGEST_COPIED
from dragoman.documents.lexer import Token, attribute, closed_element, xml_tokens
from dragoman.documents.office_styles import Styles, odt_styles
from dragoman.documents.office_xml import escape_xml, paragraph_pieces, split_spaces, style_name
from dragoman.documents.settings import FormatSettings

_PARTS = re.compile(r"(?:Object [^/]+/)?(?:content|styles)\.xml")  # of the archive, that hold text
_INLINE = frozenset(["text:span", "text:a", "text:meta", "text:ruby", "text:ruby-base"])
_BREAKS = frozenset(["text:tab", "text:line-break"])
_VALUES = frozenset(["float", "percentage", "currency", "date", "time", "boolean"])  # of cells: no text
_DESCRIPTIONS = ("svg:title", "svg:desc")  # of pictures and shapes


def odt_parts(archive: Archive, settings: FormatSettings) -> dict[str, PartReader]:
    parts = filter(_PARTS.fullmatch, archive.names)
    if archive.document_format == "ods":
        settings.left.add("names of sheets")
    styles = {part: odt_styles(archive.text("styles.xml"), archive.text(part), settings) for part in parts}
    return {part: partial(odt_pieces, styles=own) for part, own in styles.items()}


def odt_pieces(chunks: Iterable[str], styles: Styles) -> Iterator[str | Flow]:
    return _nested_pieces(xml_tokens(chunks), styles)


def _nested_pieces(tokens: Iterator[Token], styles: Styles) -> Iterator[str | Flow]:
    return paragraph_pieces(tokens, ("text:p", "text:h", *_DESCRIPTIONS), partial(_paragraph, styles), _is_value)


def _is_value(token: Token) -> bool:
    """Whether a cell holds a formula, or a value with the text that it is shown as."""
    if token.name != "table:table-cell":
        return False
    return attribute(token.raw, "table:formula") is not None or attribute(token.raw, "office:value-type") in _VALUES


def _paragraph(styles: Styles, start: Token, tokens: list[Token]) -> Iterator[str | Flow]:
    style = style_name(start.raw, "text:style-name", "paragraph:")
    if styles.stays(style):
        yield from _nested_pieces(iter(tokens), styles)
        return
    builder = FlowBuilder()
    stream = iter(tokens)
    code = [styles.font_stays(styles.font(style))]  # of the paragraph, and of what is open in it
    for token in stream:
        if token.kind == "text":
            _add_text(builder, token.raw, code[-1])
        elif token.kind == "start" and token.name in _INLINE:
            builder.open(token.name, [token.raw])
            code.append(_span_stays(token, styles, code[-1]))
        elif token.kind == "end":
            builder.close(token.name, token.raw)
            del code[max(1, len(code) - 1) :]
        elif token.kind == "start":
            # A note, a frame, a field: its own paragraphs are flows of their own.
            builder.add_point(list(_nested_pieces(iter(closed_element(stream, token)), styles)))
        else:
            builder.add_point([token.raw], breaks=token.name in _BREAKS)
    yield replace(builder.flow(escape_xml), whole_lines=start.name in _DESCRIPTIONS)


def _add_text(builder: FlowBuilder, raw: str, code: bool) -> None:
    if not code or not raw.strip():
        builder.add_text(html.unescape(raw), raw)
        return
    before, bare, after = split_spaces(raw)
    builder.add_text(before, before)
    if len(bare) > LONGEST_COPIED:
        builder.add_point([bare])
    else:
        builder.add_text(html.unescape(bare), bare, keep=True)
    builder.add_text(after, after)


def _span_stays(token: Token, styles: Styles, around: bool) -> bool:
    style = style_name(token.raw, "text:style-name", "text:")
    if styles.stays(style):
        return True
    font = styles.font(style)
    return around if font is None else styles.font_stays(font)
