"""Reads the cues of SRT and WebVTT. A sentence that goes on in the next cue is translated as one and divided again."""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dragoman.data.segmentation import Wrap
from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.lexer import scan
from dragoman.documents.plain_text import BLOCK

_CUE = re.compile(r"((?:[^\n]*\n)??[^\n]*-->[^\n]*\n)((?:.*\S)?)(\s*)", re.DOTALL)
# Tags, the time tags of WebVTT, and the positions that players of SRT understand.
_MARK = re.compile(r"<(?P<slash>/?)(?P<name>[A-Za-z]*)(?P<rest>[^<>\n]*)>|\{\\[^{}\n]*\}")
_ENDS = re.compile(r"[.!?…:;♪。！？\"”»)\]-]\s*$")
WIDTH = 42  # characters of a line, unless the file has longer ones
MOST_JOINED = 4  # cues


def subtitle_pieces(chunks: Iterable[str], vtt: bool) -> Iterator[str | Flow]:
    """Each cue is a flow; cues that share a sentence are one."""
    escape: Callable[[str], str] = (lambda text: html.escape(text, quote=False)) if vtt else str
    unescape: Callable[[str], str] = html.unescape if vtt else str
    waiting: list[re.Match[str]] = []
    for block in scan(chunks, BLOCK):
        cue = _CUE.fullmatch(block[0])
        if waiting and not (cue and _goes_on(waiting[-1][2], cue[2]) and len(waiting) < MOST_JOINED):
            yield from _flow(waiting, escape, unescape)
            waiting = []
        if cue is None or not cue[2].strip():
            yield block[0]
        else:
            waiting.append(cue)
    if waiting:
        yield from _flow(waiting, escape, unescape)


def _goes_on(text: str, following: str) -> bool:
    plain, after = _MARK.sub("", text).strip(), _MARK.sub("", following).strip()
    return bool(plain) and not _ENDS.search(plain) and after[:1].islower()


def _flow(
    cues: list[re.Match[str]], escape: Callable[[str], str], unescape: Callable[[str], str]
) -> Iterator[str | Flow]:
    builder = FlowBuilder()
    width = WIDTH
    lines = 1
    newline = "\n"
    for number, cue in enumerate(cues):
        head, text, _ = cue.groups()
        if number:
            # The end of one cue and the head of the next stand between two words.
            builder.add_text(" ", "")
            builder.add_point([cues[number - 1][3] + head], divides=True)
        else:
            yield head
        if "\r\n" in text:
            newline = "\r\n"
        own_lines = text.splitlines()
        lines = max(lines, len(own_lines))
        width = max(width, *(len(_MARK.sub("", line)) for line in own_lines))
        for index, line in enumerate(own_lines):
            if index:
                speaks = bool(re.match(r"\s*[-–—]", _MARK.sub("", line)))
                if speaks:
                    builder.add_point([newline], breaks=True)
                else:
                    builder.add_text("\n", newline)
            if dash := re.match(r"\s*[-–—]\s*", line):  # who speaks is no part of what is said
                builder.add_point([dash[0]], breaks=True)
            _add_line(builder, line[dash.end() if dash else 0 :], unescape)
    flow = builder.flow(escape)
    yield replace(flow, wrap=Wrap(width, "", newline) if lines > 1 else None)
    yield cues[-1][3]


def _add_line(builder: FlowBuilder, line: str, unescape: Callable[[str], str]) -> None:
    position = 0
    for found in _MARK.finditer(line):
        builder.add_text(unescape(line[position : found.start()]), line[position : found.start()])
        position = found.end()
        name = found["name"]
        if name and found["slash"]:
            builder.close(name, found[0])
        elif name:
            builder.open(name, [found[0]])
        else:
            builder.add_point([found[0]])
    builder.add_text(unescape(line[position:]), line[position:])
