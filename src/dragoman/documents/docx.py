"""Reads the text of DOCX files: runs of text with the same properties are joined, the others are elements in them."""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice, takewhile

from dragoman.documents.archive_file import Archive, PartReader
from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.html import LONGEST_COPIED
from dragoman.documents.lexer import Token, attribute, closed_element, xml_tokens
from dragoman.documents.office_styles import Styles, docx_font, docx_styles
from dragoman.documents.office_xml import DEEPEST, escape_xml, paragraph_pieces, split_spaces, style_name
from dragoman.documents.settings import FormatSettings

# The parts of the archive that hold text.
_PARTS = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml")
_INLINE = frozenset(["w:hyperlink", "w:ins", "w:smartTag", "w:customXml", "w:bdo", "w:dir", "w:moveTo"])
_BREAKS = frozenset(["w:tab", "w:br", "w:cr", "w:ptab"])
_DROPPED = frozenset(["w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"])  # Word makes these anew
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
    yield replace(flow.finished(), raw="".join(token.raw for token in tokens))


class _DocxFlow:
    """Builds the flow of a paragraph from its runs."""

    def __init__(self, styles: Styles, style: str | None) -> None:
        self.styles, self.style = styles, style  # of the document, and of the paragraph
        self.builder = FlowBuilder()
        self.looks: Counter[str] = Counter()
        self.stretches: dict[int, str] = {}  # the look of each element that is there only for its look
        self.look: str | None = None  # of the stretch of text that is open
        self.code: list[str] | None = None  # its text, where that is not to be translated
        self.field: list[str] | None = None  # the code of a field, until its result begins
        self.depth = 0

    def read(self, tokens: Iterator[Token]) -> None:
        for token in tokens:
            if token.kind == "start" and token.name == "w:r":
                self._run(closed_element(tokens, token))
            elif token.kind == "start" and token.name in _INLINE:
                self._end_look()
                self.builder.open(token.name, [token.raw])
            elif token.kind == "end" and token.name in _INLINE:
                self._end_look()
                self.builder.close(token.name, token.raw)
            elif token.kind == "start" and token.name == "w:sdt":
                self._content_control(closed_element(tokens, token, DEEPEST))
            elif token.name in _DROPPED or not token.raw.strip():
                continue
            elif token.kind == "start":
                self._point(list(_nested_pieces(iter(closed_element(tokens, token)), self.styles)))
            else:
                self._point([token.raw])

    def finished(self) -> Flow:
        self._end_look()
        base = self.looks.most_common(1)[0][0] if self.looks else ""
        flow = self.builder.flow(escape_xml)
        styles: dict[int | None, tuple[str, str]] = {None: _run_around(base)}
        styles |= {number: _run_around(look) for number, look in self.stretches.items()}
        # What has the paragraph's look needs no element.
        plain = {number for number, look in self.stretches.items() if look == base}
        tags = tuple(tag for tag in flow.tags if tag.element is None or tag.element not in plain)
        return replace(flow, styles=styles, tags=tags)

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
                self._end_look()
                self.builder.open("field", ["".join(self.field)])
                self.field = None
            elif kind == "end":
                self.depth -= 1
                if self.depth == 0:
                    self._point(["".join(self.field)])
                    self.field = None
            return
        if kind == "end":
            self.depth = max(0, self.depth - 1)
            self._end_look()
            self.builder.close("field", whole)
            return
        if name in _BREAKS:
            self._end_look()
            self.builder.add_point([whole], breaks=True)
            return
        self._point([before, *_nested_pieces(iter(child), self.styles), "</w:r>"])

    def _text(self, text: str, look: str) -> None:
        if self.field is not None:  # inside a nested field's code
            self.field.append(f'<w:r>{look}<w:t xml:space="preserve">{escape_xml(text)}</w:t></w:r>')
            return
        if not text:
            return
        # Spaces have no look of their own.
        if (text.strip() or self.look is None) and look != self.look:
            self._end_look()
            self.look = look
            if self._is_code(look):
                self.code = []
            else:
                self.stretches[self.builder.open("look", [""])] = look
        if self.code is not None:
            self.code.append(text)
            return
        if text.strip():
            self.looks[look] += len(text.strip())
        self.builder.add_text(text, text)

    def _is_code(self, look: str) -> bool:
        named, font = (re.search(rf"<{tag}\b[^<>]*>", look) for tag in ("w:rStyle", "w:rFonts"))
        style = named and style_name(named[0], "w:val")
        if self.styles.stays(style):
            return True
        own = docx_font(font and font[0], self.styles.theme)
        return self.styles.font_stays(own, self.styles.font(style), self.styles.font(self.style))

    def _end_look(self) -> None:
        if self.look is not None and self.code is not None:
            self._add_code("".join(self.code), self.look)
        elif self.look is not None:
            self.builder.close("look", "")
        self.look = self.code = None

    def _add_code(self, text: str, look: str) -> None:
        """Adds code, which the model reads and must copy; where it is long, it is one tag."""
        before, code, after = split_spaces(text)
        self.builder.add_text(before, before)
        if len(code) > LONGEST_COPIED:
            self.builder.add_point([escape_xml(code).join(_run_around(look))])
        elif code:
            self.stretches[self.builder.open("look", [""])] = look
            self.builder.add_text(code, code, keep=True)
            self.builder.close("look", "")
            self.looks[look] += len(code)
        self.builder.add_text(after, after)

    def _point(self, raw: list[str | Flow]) -> None:
        self._end_look()
        self.builder.add_point(raw)

    def _content_control(self, tokens: list[Token]) -> None:
        """Adds a content control as an element around its content."""
        content = next((i for i, token in enumerate(tokens) if token.name == "w:sdtContent"), None)
        if content is None or tokens[content].kind != "start":
            self._point(["".join(token.raw for token in tokens)])
            return
        stream = iter(tokens[content + 1 :])
        inner = closed_element(stream, tokens[content])
        self._end_look()
        self.builder.open("w:sdt", ["".join(token.raw for token in tokens[: content + 1])])
        self.read(iter(inner[1:-1]))
        self._end_look()
        self.builder.close("w:sdt", inner[-1].raw + "".join(token.raw for token in stream))


def _run_around(look: str) -> tuple[str, str]:
    return f'<w:r>{look}<w:t xml:space="preserve">', "</w:t></w:r>"
