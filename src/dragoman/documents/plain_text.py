"""Reads plain text (paragraphs, lists and lines), and single strings that may hold tags."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dragoman.data.segmentation import paragraphs
from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.lexer import scan

# Up to the next empty line, and no more than some hundred lines: what is in memory at a time.
BLOCK = re.compile(r"(?:[^\n]*\n){1,200}?(?:[ \t\r]*\n)+|(?:[^\n]*\n){200}|.+", re.DOTALL)
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*+)((?:\"[^\"]*\"|'[^']*'|[^'\"<>])*+)>")
_CLOSING = re.compile(r"</([A-Za-z][\w.-]*+)>")


def text_pieces(chunks: Iterable[str]) -> Iterator[str | Flow]:
    """The paragraphs of a text as flows, a block of them in memory at a time."""
    for block in scan(chunks, BLOCK):
        text = block[0]
        position = 0
        for paragraph in paragraphs(text):
            content = text[paragraph.start : paragraph.end]
            yield text[position : paragraph.start]
            yield Flow(content, content, wrap=paragraph.wrap)
            position = paragraph.end
        yield text[position:]


def string_flow(text: str, raw: str) -> Flow:
    """The flow of a message of a program. No sentence goes across the end of a line; tags are inline tags."""
    builder = FlowBuilder()
    add_tagged(builder, text)
    return replace(builder.flow(), raw=raw, whole_lines=True)


def add_tagged(builder: FlowBuilder, text: str, written: Callable[[str], str] = str) -> None:
    """Adds text with tags, and tells how the format writes a tag. A start tag that is never closed stands alone."""
    position = 0
    last_closing = {found[1]: found.start() for found in _CLOSING.finditer(text)}
    for found in _TAG.finditer(text):
        builder.add_text(text[position : found.start()], text[position : found.start()])
        position = found.end()
        if found[1]:
            builder.close(found[2], written(found[0]))
        elif found[3].endswith("/") or last_closing.get(found[2], -1) < found.end():
            builder.add_point([written(found[0])])
        else:
            builder.open(found[2], [written(found[0])])
    builder.add_text(text[position:], text[position:])
