"""Reads the text of DOCX files: runs of text with the same properties are joined, the others are elements in them."""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice, takewhile

from dragoman.documents.archive_file import Archive, PartReader
from dragoman.documents.flow import Flow
from dragoman.documents.lexer import Token, attribute, closed_element, xml_tokens
from dragoman.documents.office_runs import RunsBuilder
from dragoman.documents.office_styles import Styles, docx_font, docx_styles
from dragoman.documents.office_xml import DEEPEST, escape_xml, paragraph_pieces, style_name
from dragoman.documents.settings import FormatSettings

# The parts of the archive that hold text.
_PARTS = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml")
_INLINE = frozenset(["w:hyperlink", "w:ins", "w:smartTag", "w:customXml", "w:bdo", "w:dir", "w:moveTo"])
_BREAKS = frozenset(["w:tab", "w:br", "w:cr", "w:ptab"])
_DROPPED = frozenset(["w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"])  # Word makes these anew
_REMOVED = frozenset(["w:del", "w:moveFrom"])
_FIRST = 4  # tokens of a paragraph among which the name of its style is
# Properties of a run that no longer hold: the language that it was in.
_LANGUAGE = re.compile(r"<w:(?:lang|noProof)\b[^<>]*/>")


def docx_parts(archive: Archive, settings: FormatSettings) -> dict[str, PartReader]:
    styles = docx_styles(archive.text("word/styles.xml"), archive.text("word/theme/theme1.xml"), settings)
    return dict.fromkeys(filter(_PARTS.fullmatch, archive.names), lambda chunks: docx_pieces(chunks, styles))


def docx_pieces(chunks: Iterable[str], styles: Styles) -> Iterator[str | Flow]:
    return _nested_pieces(xml_tokens(chunks), styles)


def _nested_pieces(tokens: Iterator[Token], styles: Styles) -> Iterator[str | Flow]:
    return paragraph_pieces(tokens, ("w:p",), partial(_paragraph, styles))


def _paragraph(styles: Styles, _: Token, tokens: list[Token]) -> Iterator[str | Flow]:
    """Reads a paragraph. Neighbouring runs of one look (the same properties) are joined: Word cuts runs anywhere. The
    look that most of the text has is the paragraph's own; runs of other looks are elements in it."""
    properties = islice(takewhile(lambda token: token.name != "w:r", tokens), _FIRST)
    named = next((token for token in properties if token.name == "w:pStyle"), None)
    style = styles.default if named is None else style_name(named.raw, "w:val")
    if styles.stays(style):
        yield from _nested_pieces(iter(tokens), styles)
        return
    flow = _DocxFlow(styles, style)
    flow.read(iter(tokens))
    yield replace(flow.runs.flow(), raw="".join(token.raw for token in tokens))


class _DocxFlow:
    """Builds the flow of a paragraph from its runs."""

    def __init__(self, styles: Styles, style: str | None) -> None:
        self.styles, self.style = styles, style  # of the document, and of the paragraph
        self.runs = RunsBuilder(_run_around, self._is_code)
        self.field: list[str] | None = None  # the code of a field, until its result begins
        self.depth = 0

    def read(self, tokens: Iterator[Token]) -> None:
        for token in tokens:
            if token.kind == "start" and token.name == "w:r":
                self._run(closed_element(tokens, token))
            elif token.kind == "start" and token.name in _INLINE:
                self.runs.open(token.name, token.raw)
            elif token.kind == "end" and token.name in _INLINE:
                self.runs.close(token.name, token.raw)
            elif token.kind == "start" and token.name == "w:sdt":
                self._content_control(closed_element(tokens, token, DEEPEST))
            elif token.name in _DROPPED or not token.raw.strip():
                continue
            elif token.kind == "start":
                if token.name in _REMOVED:
                    self.styles.settings.left.add("text that was deleted or moved away (tracked changes)")
                self.runs.add_point(list(_nested_pieces(iter(closed_element(tokens, token)), self.styles)))
            else:
                self.runs.add_point([token.raw])

    def _run(self, tokens: list[Token]) -> None:
        """Adds a run: its text with the look of its properties, and what else is in it."""
        _start, *inner, _end = tokens
        properties = ""
        stream = iter(inner)
        for token in stream:
            if token.kind in ("start", "empty") and token.name == "w:rPr":
                whole = closed_element(stream, token) if token.kind == "start" else [token]
                properties = _LANGUAGE.sub("", "".join(part.raw for part in whole))
                properties = "" if re.fullmatch(r"<w:rPr>\s*</w:rPr>", properties) else properties
            elif token.kind == "start" and token.name == "w:t":
                content = closed_element(stream, token)
                self._text(html.unescape("".join(part.raw for part in content[1:-1])), properties)
            elif token.name in _DROPPED or not token.raw.strip():
                continue
            else:
                child = closed_element(stream, token) if token.kind == "start" else [token]
                self._child(f"<w:r>{properties}", child)

    def _child(self, before: str, child: list[Token]) -> None:
        """Adds what is in a run and is not text: it gets a run of its own."""
        name, raw = child[0].name, "".join(token.raw for token in child)
        kind = attribute(child[0].raw, "w:fldCharType") if name == "w:fldChar" else None
        whole = f"{before}{raw}</w:r>"
        if kind == "begin":
            self.depth += 1
        if self.field is not None or kind == "begin":
            self.field = self.field if self.field is not None else []
            self.field.append(whole)
            if kind == "separate" and self.depth == 1:
                self.runs.open("field", "".join(self.field))
                self.field = None
            elif kind == "end":
                self.depth -= 1
                if self.depth == 0:
                    self.runs.add_point(["".join(self.field)])
                    self.field = None
            return
        if kind == "end":
            self.depth = max(0, self.depth - 1)
            self.runs.close("field", whole)
            return
        if name in _BREAKS:
            self.runs.add_point([whole], breaks=True)
            return
        self.runs.add_point([before, *_nested_pieces(iter(child), self.styles), "</w:r>"])

    def _text(self, text: str, look: str) -> None:
        if self.field is not None:  # inside a nested field's code
            self.field.append(f'<w:r>{look}<w:t xml:space="preserve">{escape_xml(text)}</w:t></w:r>')
        else:
            self.runs.add_text(text, look)

    def _is_code(self, look: str) -> bool:
        named, font = (re.search(rf"<{tag}\b[^<>]*>", look) for tag in ("w:rStyle", "w:rFonts"))
        style = named and style_name(named[0], "w:val")
        if self.styles.stays(style):
            return True
        own = docx_font(font and font[0], self.styles.theme)
        return self.styles.font_stays(own, self.styles.font(style), self.styles.font(self.style))

    def _content_control(self, tokens: list[Token]) -> None:
        """Adds a content control as an element around its content."""
        content = next((i for i, token in enumerate(tokens) if token.name == "w:sdtContent"), None)
        if content is None or tokens[content].kind != "start":
            self.runs.add_point(["".join(token.raw for token in tokens)])
            return
        stream = iter(tokens[content + 1 :])
        inner = closed_element(stream, tokens[content])
        self.runs.open("w:sdt", "".join(token.raw for token in tokens[: content + 1]))
        self.read(iter(inner[1:-1]))
        self.runs.close("w:sdt", inner[-1].raw + "".join(token.raw for token in stream))


def _run_around(look: str) -> tuple[str, str]:
    return f'<w:r>{look}<w:t xml:space="preserve">', "</w:t></w:r>"
