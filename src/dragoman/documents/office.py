"""DOCX and ODT: the paragraphs in their XML. All other parts of the file, and of the XML, are copied as they are."""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.lexer import Token, attribute, element, xml_tokens

# Which parts of the archives hold text.
DOCX_PARTS = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml")
ODT_PARTS = re.compile(r"(content|styles)\.xml")

_Paragraph = Callable[[list[Token]], Iterator[str | Flow]]
DEEPEST = 50  # paragraphs, or content controls, in each other: each is read once for every one that it stands in


def docx_pieces(chunks: Iterable[str]) -> Iterator[str | Flow]:
    return _pieces(xml_tokens(chunks), ("w:p",), _docx_paragraph)


def odt_pieces(chunks: Iterable[str]) -> Iterator[str | Flow]:
    return _pieces(xml_tokens(chunks), ("text:p", "text:h"), _odt_paragraph)


def _pieces(tokens: Iterator[Token], paragraphs: tuple[str, ...], paragraph: _Paragraph) -> Iterator[str | Flow]:
    """One paragraph in memory at a time."""
    for token in tokens:
        yield token.raw
        if token.kind == "start" and token.name in paragraphs:
            *inner, end = element(tokens, token, DEEPEST)[1:]
            yield from paragraph(inner)
            yield end.raw


# ODT


_ODT_INLINE = frozenset(["text:span", "text:a", "text:meta", "text:ruby", "text:ruby-base"])
_ODT_BREAKS = frozenset(["text:tab", "text:line-break"])


def _odt_paragraph(tokens: list[Token]) -> Iterator[str | Flow]:
    builder = FlowBuilder()
    stream = iter(tokens)
    for token in stream:
        if token.kind == "text":
            builder.add_text(html.unescape(token.raw), token.raw)
        elif token.kind == "start" and token.name in _ODT_INLINE:
            builder.open(token.name, [token.raw])
        elif token.kind == "end":
            builder.close(token.name, token.raw)
        elif token.kind == "start":
            # A note, a frame, a field: its own paragraphs are flows of their own.
            builder.add_point(list(_pieces(iter(element(stream, token)), ("text:p", "text:h"), _odt_paragraph)))
        else:
            builder.add_point([token.raw], breaks=token.name in _ODT_BREAKS)
    yield builder.flow(_xml_escape)


# DOCX


_DOCX_INLINE = frozenset(["w:hyperlink", "w:ins", "w:smartTag", "w:customXml", "w:bdo", "w:dir", "w:moveTo"])
_DOCX_BREAKS = frozenset(["w:tab", "w:br", "w:cr", "w:ptab"])
_PASSING = frozenset(["w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"])  # Word makes these anew
# Of a run's properties: the language it was in, which it is no longer.
_LANGUAGE = re.compile(r"<w:(?:lang|noProof)\b[^<>]*/>")


def _docx_paragraph(tokens: list[Token]) -> Iterator[str | Flow]:
    """Runs of one look are joined: Word cuts them anywhere. The look that most of the text has is the paragraph's;
    other looks are elements in it."""
    flow = _DocxFlow()
    flow.read(iter(tokens))
    yield replace(flow.finished(), raw="".join(token.raw for token in tokens))


class _DocxFlow:
    def __init__(self) -> None:
        self.builder = FlowBuilder()
        self.looks: Counter[str] = Counter()
        self.stretches: dict[int, str] = {}  # elements that only stand for a look
        self.look: str | None = None  # of the open stretch
        self.field: list[str] | None = None  # the code of a field, until its result begins
        self.depth = 0

    def read(self, tokens: Iterator[Token]) -> None:
        for token in tokens:
            if token.kind == "start" and token.name == "w:r":
                self._run(element(tokens, token))
            elif token.kind == "start" and token.name in _DOCX_INLINE:
                self._end_look()
                self.builder.open(token.name, [token.raw])
            elif token.kind == "end" and token.name in _DOCX_INLINE:
                self._end_look()
                self.builder.close(token.name, token.raw)
            elif token.kind == "start" and token.name == "w:sdt":
                self._content_control(element(tokens, token, DEEPEST))
            elif token.name in _PASSING or not token.raw.strip():
                continue
            elif token.kind == "start":
                self._point(list(docx_tokens_pieces(element(tokens, token))))
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
                whole = element(stream, token) if token.kind == "start" else [token]
                properties = _LANGUAGE.sub("", "".join(part.raw for part in whole))
                properties = "" if re.fullmatch(r"<w:rPr>\s*</w:rPr>", properties) else properties
            elif token.kind == "start" and token.name == "w:t":
                content = element(stream, token)
                self._text(html.unescape("".join(part.raw for part in content[1:-1])), properties)
            elif token.name in _PASSING or not token.raw.strip():
                continue
            else:
                child = element(stream, token) if token.kind == "start" else [token]
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
        self._point([before, *docx_tokens_pieces(child), "</w:r>"])

    def _text(self, text: str, look: str) -> None:
        if self.field is not None:  # inside a nested field's code
            self.field.append(f'<w:r>{look}<w:t xml:space="preserve">{_xml_escape(text)}</w:t></w:r>')
            return
        if not text:
            return
        # Spaces have no look of their own.
        if text.strip() or self.look is None:
            if look != self.look:
                self._end_look()
                self.stretches[self.builder.open("look", [""])] = look
                self.look = look
            self.looks[look] += len(text.strip())
        self.builder.add_text(text, text)

    def _end_look(self) -> None:
        if self.look is not None:
            self.builder.close("look", "")
            self.look = None

    def _point(self, raw: list[str | Flow]) -> None:
        self._end_look()
        self.builder.add_point(raw)

    def _content_control(self, tokens: list[Token]) -> None:
        content = next((i for i, token in enumerate(tokens) if token.name == "w:sdtContent"), None)
        if content is None or tokens[content].kind != "start":
            self._point(["".join(token.raw for token in tokens)])
            return
        stream = iter(tokens[content + 1 :])
        inner = element(stream, tokens[content])
        self._end_look()
        self.builder.open("w:sdt", ["".join(token.raw for token in tokens[: content + 1])])
        self.read(iter(inner[1:-1]))
        self._end_look()
        self.builder.close("w:sdt", inner[-1].raw + "".join(token.raw for token in stream))


def docx_tokens_pieces(tokens: list[Token]) -> Iterator[str | Flow]:
    return _pieces(iter(tokens), ("w:p",), _docx_paragraph)


def _run_around(look: str) -> tuple[str, str]:
    return f'<w:r>{look}<w:t xml:space="preserve">', "</w:t></w:r>"


def _xml_escape(text: str) -> str:
    return html.escape(text, quote=False)
