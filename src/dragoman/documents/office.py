"""DOCX and ODT: the paragraphs in their XML. All other parts of the file, and of the XML, are copied as they are."""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice, takewhile

from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.html import LONGESTCOPIED
from dragoman.documents.lexer import Token, attribute, closed_element, xml_tokens
from dragoman.documents.office_styles import Styles, docx_font

# Which parts of the archives hold text.
DOCX_PARTS = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml")
ODT_PARTS = re.compile(r"(content|styles)\.xml")

# From the start of a paragraph, and what is in it.
_Paragraph = Callable[[Token, list[Token]], Iterator[str | Flow]]
DEEPEST = 50  # paragraphs, or content controls, in each other: each is read once for every one that it stands in


def docx_pieces(chunks: Iterable[str], styles: Styles) -> Iterator[str | Flow]:
    return _docx_pieces(xml_tokens(chunks), styles)


def odt_pieces(chunks: Iterable[str], styles: Styles) -> Iterator[str | Flow]:
    return _odt_pieces(xml_tokens(chunks), styles)


def _pieces(tokens: Iterator[Token], paragraphs: tuple[str, ...], paragraph: _Paragraph) -> Iterator[str | Flow]:
    """One paragraph in memory at a time."""
    for token in tokens:
        yield from _described(token) if token.name in _DESCRIBED else (token.raw,)
        if token.kind == "start" and token.name in paragraphs:
            *inner, end = closed_element(tokens, token, DEEPEST)[1:]
            yield from paragraph(token, inner)
            yield end.raw


# Pictures, shapes and tables of DOCX: the texts that are read out in their place.
_DESCRIBED = frozenset(
    [
        "wp:docPr",
        "pic:cNvPr",
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


def _described(token: Token) -> Iterator[str | Flow]:
    position = 0
    for found in _DESCRIPTION.finditer(token.raw):
        group = 2 if found[2] is not None else 3
        yield token.raw[position : found.start(group)]
        yield Flow(html.unescape(found[group]), found[group], escape=_in_attribute, whole_lines=True)
        position = found.end(group)
    yield token.raw[position:]


def _in_attribute(text: str) -> str:
    return html.escape(text).replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")


def _around(text: str) -> tuple[str, str, str]:
    """The space before it, the text itself, and the space after it."""
    bare = text.strip()
    start = text.index(bare)
    return text[:start], bare, text[start + len(bare) :]


def _style(tag: str, name: str, family: str = "") -> str | None:
    value = attribute(tag, name)
    return None if value is None else family + html.unescape(value)


# ODT


_ODT_INLINE = frozenset(["text:span", "text:a", "text:meta", "text:ruby", "text:ruby-base"])
_ODT_BREAKS = frozenset(["text:tab", "text:line-break"])
_ODT_DESCRIPTIONS = ("svg:title", "svg:desc")  # of pictures and shapes


def _odt_pieces(tokens: Iterator[Token], styles: Styles) -> Iterator[str | Flow]:
    return _pieces(tokens, ("text:p", "text:h", *_ODT_DESCRIPTIONS), partial(_odt_paragraph, styles))


def _odt_paragraph(styles: Styles, start: Token, tokens: list[Token]) -> Iterator[str | Flow]:
    style = _style(start.raw, "text:style-name", "paragraph:")
    if styles.stays(style):
        yield from _odt_pieces(iter(tokens), styles)
        return
    builder = FlowBuilder()
    stream = iter(tokens)
    code = [styles.font_stays(styles.font(style))]  # of the paragraph, and of what is open in it
    for token in stream:
        if token.kind == "text":
            _odt_text(builder, token.raw, code[-1])
        elif token.kind == "start" and token.name in _ODT_INLINE:
            builder.open(token.name, [token.raw])
            code.append(_odt_span_stays(token, styles, code[-1]))
        elif token.kind == "end":
            builder.close(token.name, token.raw)
            del code[max(1, len(code) - 1) :]
        elif token.kind == "start":
            # A note, a frame, a field: its own paragraphs are flows of their own.
            builder.add_point(list(_odt_pieces(iter(closed_element(stream, token)), styles)))
        else:
            builder.add_point([token.raw], breaks=token.name in _ODT_BREAKS)
    yield replace(builder.flow(_xml_escape), whole_lines=start.name in _ODT_DESCRIPTIONS)


def _odt_text(builder: FlowBuilder, raw: str, code: bool) -> None:
    if not code or not raw.strip():
        builder.add_text(html.unescape(raw), raw)
        return
    before, bare, after = _around(raw)
    builder.add_text(before, before)
    if len(bare) > LONGESTCOPIED:
        builder.add_point([bare])
    else:
        builder.add_text(html.unescape(bare), bare, keep=True)
    builder.add_text(after, after)


def _odt_span_stays(token: Token, styles: Styles, around: bool) -> bool:
    style = _style(token.raw, "text:style-name", "text:")
    if styles.stays(style):
        return True
    font = styles.font(style)
    return around if font is None else styles.font_stays(font)


# DOCX


_DOCX_INLINE = frozenset(["w:hyperlink", "w:ins", "w:smartTag", "w:customXml", "w:bdo", "w:dir", "w:moveTo"])
_DOCX_BREAKS = frozenset(["w:tab", "w:br", "w:cr", "w:ptab"])
_PASSING = frozenset(["w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"])  # Word makes these anew
# Of a run's properties: the language it was in, which it is no longer.
_FIRST = 4  # tokens of a paragraph among which the name of its style is
_LANGUAGE = re.compile(r"<w:(?:lang|noProof)\b[^<>]*/>")


def _docx_pieces(tokens: Iterator[Token], styles: Styles) -> Iterator[str | Flow]:
    return _pieces(tokens, ("w:p",), partial(_docx_paragraph, styles))


def _docx_paragraph(styles: Styles, _: Token, tokens: list[Token]) -> Iterator[str | Flow]:
    """Runs of one look are joined: Word cuts them anywhere. The look that most of the text has is the paragraph's;
    other looks are elements in it."""
    properties = islice(takewhile(lambda token: token.name != "w:r", tokens), _FIRST)
    named = next((token for token in properties if token.name == "w:pStyle"), None)
    style = styles.default if named is None else _style(named.raw, "w:val")
    if styles.stays(style):
        yield from _docx_pieces(iter(tokens), styles)
        return
    flow = _DocxFlow(styles, style)
    flow.read(iter(tokens))
    yield replace(flow.finished(), raw="".join(token.raw for token in tokens))


class _DocxFlow:
    def __init__(self, styles: Styles, style: str | None) -> None:
        self.styles, self.style = styles, style  # of the document, and of the paragraph
        self.builder = FlowBuilder()
        self.looks: Counter[str] = Counter()
        self.stretches: dict[int, str] = {}  # elements that only stand for a look
        self.look: str | None = None  # of the open stretch
        self.code: list[str] | None = None  # its text, where that is not to be translated
        self.field: list[str] | None = None  # the code of a field, until its result begins
        self.depth = 0

    def read(self, tokens: Iterator[Token]) -> None:
        for token in tokens:
            if token.kind == "start" and token.name == "w:r":
                self._run(closed_element(tokens, token))
            elif token.kind == "start" and token.name in _DOCX_INLINE:
                self._end_look()
                self.builder.open(token.name, [token.raw])
            elif token.kind == "end" and token.name in _DOCX_INLINE:
                self._end_look()
                self.builder.close(token.name, token.raw)
            elif token.kind == "start" and token.name == "w:sdt":
                self._content_control(closed_element(tokens, token, DEEPEST))
            elif token.name in _PASSING or not token.raw.strip():
                continue
            elif token.kind == "start":
                self._point(list(_docx_pieces(iter(closed_element(tokens, token)), self.styles)))
            else:
                self._point([token.raw])

    def finished(self) -> Flow:
        self._end_look()
        base = self.looks.most_common(1)[0][0] if self.looks else ""
        flow = self.builder.flow(_xml_escape)
        styles: dict[int | None, tuple[str, str]] = {None: _run_around(base)}
        styles |= {number: _run_around(look) for number, look in self.stretches.items()}
        # What has the paragraph's look needs no element.
        plain = {number for number, look in self.stretches.items() if look == base}
        marks = tuple(mark for mark in flow.marks if mark.element is None or mark.element not in plain)
        return replace(flow, styles=styles, marks=marks)

    def _run(self, tokens: list[Token]) -> None:
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
            elif token.name in _PASSING or not token.raw.strip():
                continue
            else:
                child = closed_element(stream, token) if token.kind == "start" else [token]
                self._child(f"<w:r>{properties}", child)

    def _child(self, before: str, child: list[Token]) -> None:
        """Anything in a run that is not text: in a run of its own."""
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
        if name in _DOCX_BREAKS:
            self._end_look()
            self.builder.add_point([whole], breaks=True)
            return
        self._point([before, *_docx_pieces(iter(child), self.styles), "</w:r>"])

    def _text(self, text: str, look: str) -> None:
        if self.field is not None:  # inside a nested field's code
            self.field.append(f'<w:r>{look}<w:t xml:space="preserve">{_xml_escape(text)}</w:t></w:r>')
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
        style = named and _style(named[0], "w:val")
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
        """The model reads it and must copy it; if it is long it is passed by."""
        before, code, after = _around(text)
        self.builder.add_text(before, before)
        if len(code) > LONGESTCOPIED:
            self.builder.add_point([_xml_escape(code).join(_run_around(look))])
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


def _xml_escape(text: str) -> str:
    return html.escape(text, quote=False)
