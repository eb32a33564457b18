"""Reads DrawingML, the text of slides, shapes, diagrams and charts in the formats of Microsoft Office."""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dragoman.documents.flow import Flow
from dragoman.documents.lexer import Token, closed_element, raw_tokens, xml_tokens
from dragoman.documents.office_runs import RunsBuilder
from dragoman.documents.office_xml import escape_xml, paragraph_pieces

# What a run's properties say of the text that it had: its language, and what a spelling checker thought of it.
_OF_THE_TEXT = re.compile(r'\s(?:lang|altLang|dirty|err|noProof|smtClean|smtId)="[^"]*"')
_PLAIN = ("c:v", "p:text")  # elements whose whole content is text: values that a chart shows, old comments
_NO_CHILDREN = "<a:rPr/>"


def drawing_pieces(chunks: Iterable[str]) -> Iterator[str | Flow]:
    return paragraph_pieces(_marked_values(xml_tokens(chunks)), ("a:p", *_PLAIN), _paragraph)


def _marked_values(tokens: Iterator[Token]) -> Iterator[Token]:
    """Gives the numbers of a chart another name than its texts: both are <c:v>."""
    is_text = False
    for token in tokens:
        if token.name == "c:strCache":
            is_text = token.kind == "start"
        yield token._replace(name="number") if token.name == "c:v" and not is_text else token


def _paragraph(start: Token, tokens: list[Token]) -> Iterator[str | Flow]:
    if start.name in _PLAIN:
        raw = raw_tokens(tokens)
        yield Flow(html.unescape(raw), raw, escape=escape_xml, whole_lines=True)
        return
    runs = RunsBuilder(_around)
    stream = iter(tokens)
    for token in stream:
        whole = closed_element(stream, token) if token.kind == "start" else [token]
        raw = raw_tokens(whole)
        if token.name == "a:r" and token.kind == "start":
            _add_run(runs, whole[1:-1])
        elif raw.strip():
            runs.add_point([raw], breaks=token.name == "a:br")
    yield replace(runs.flow(), raw=raw_tokens(tokens))


def _add_run(runs: RunsBuilder, inner: list[Token]) -> None:
    stream = iter(inner)
    look = ""
    for token in stream:
        whole = closed_element(stream, token) if token.kind == "start" else [token]
        if token.name == "a:rPr":
            look = _OF_THE_TEXT.sub("", raw_tokens(whole))
            look = "" if look == _NO_CHILDREN or re.fullmatch(r"<a:rPr>\s*</a:rPr>", look) else look
        elif token.name == "a:t" and token.kind == "start":
            runs.add_text(html.unescape(raw_tokens(whole[1:-1])), look)


def _around(look: str) -> tuple[str, str]:
    return f"<a:r>{look}<a:t>", "</a:t></a:r>"
