"""Reads the text of Markdown. markdown-it finds paragraphs, headings and cells, and in them emphasis, links and code;
each is then found again at its place in the source, so that everything else is copied as it was written.

A translation that markdown-it would read as another structure (a line that begins like a list, a star too many) is not
used: `sound` of the flow checks it.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from dragoman.data.segmentation import Wrap
from dragoman.documents.flow import Flow
from dragoman.documents.html import html_pieces
from dragoman.documents.markdown_inline import escape, inline_builder
from dragoman.documents.markdown_rules import with_notes_and_formulas
from dragoman.documents.settings import FormatSettings

CHUNK = 1 << 15  # characters parsed at a time
_DEFINITION = re.compile(r"^ {0,3}\[(?!\^)((?:[^\[\]\\]|\\.)+)\]:[ \t]*\S", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HTML_OPEN = re.compile(r" {0,3}<(script|pre|style|textarea|!--)", re.IGNORECASE)
_HTML_CLOSE = re.compile(r"</(script|pre|style|textarea)>|-->", re.IGNORECASE)

_BlockKind = Literal["paragraph", "heading", "cell"]
_References = dict[str, dict[str, str]]


def find_references(chunks: Iterable[str]) -> _References:
    """The names of all link definitions: whether [this] is a link may be decided anywhere in the document."""
    found: _References = {}
    begun: list[str] = []
    for chunk in chunks:
        whole, newline, rest = chunk.rpartition("\n")
        if newline:
            found |= _names("".join((*begun, whole, newline)))
            begun = []
        begun.append(rest)
    return found | _names("".join(begun))


def _names(text: str) -> _References:
    return {normalizeReference(match[1]): {"href": "x", "title": ""} for match in _DEFINITION.finditer(text)}


def markdown_pieces(chunks: Iterable[str], references: _References, settings: FormatSettings) -> Iterator[str | Flow]:
    """The pieces of a document, of which a chunk is parsed at a time. Front matter is copied."""
    for number, chunk in enumerate(_chunks(chunks)):
        front = re.match(r"---[ \t]*\n.*?\n(---|\.\.\.)[ \t]*\n", chunk, re.DOTALL) if number == 0 else None
        if front:
            yield front[0]
            chunk = chunk[front.end() :]
        yield from _chunk_pieces(chunk, references, settings)


def _chunks(chunks: Iterable[str]) -> Iterator[str]:
    """Divides a document before lines of text that follow an empty one, outside of code and HTML."""
    lines: list[str] = []
    size, fence, in_html = 0, "", False
    for line in _lines(chunks):
        is_text = line[:1].isalnum() and not re.match(r"\d+[.)]\s", line)
        if size > CHUNK and is_text and not fence and not in_html and not lines[-1].strip():
            yield "".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        elif in_html or _HTML_OPEN.match(line):
            in_html = not _HTML_CLOSE.search(line)
    if lines:
        yield "".join(lines)


def _lines(chunks: Iterable[str]) -> Iterator[str]:
    begun: list[str] = []
    for chunk in chunks:
        *whole, rest = chunk.split("\n")
        for line in whole:
            yield "".join((*begun, line, "\n"))
            begun = []
        begun.append(rest)
    if last := "".join(begun):
        yield last


def _chunk_pieces(text: str, references: _References, settings: FormatSettings) -> Iterator[str | Flow]:
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    position = begins = 0
    kind: _BlockKind = "paragraph"
    for token in _markdown().parse(text, _environment(references)):
        if token.type.endswith("_open"):
            opened = token.type.removesuffix("_open")
            kind = "heading" if opened == "heading" else "cell" if opened in ("th", "td") else "paragraph"
            begins = token.meta["text"] if opened == "note" else begins  # a note's name may be a word of its text
        if token.map is None or token.type not in ("inline", "html_block"):
            continue
        first, last = token.map
        if token.type == "html_block":
            end = min(starts[last], len(text))
            yield text[position : starts[first]]
            yield from html_pieces([text[starts[first] : end]], settings)
            position = end
            continue
        # In a cell a bar is written with a backslash, which the parser takes away.
        content = token.content.replace("|", r"\|") if kind == "cell" else token.content
        spans = list(_find(content, lines[first:last], starts[first:last], max(begins, position)))
        if not spans:  # not found again in the source: it is copied
            continue
        (start, _), (_, end) = spans[0], spans[-1]
        # Not every line of a quotation needs its sign before it.
        prefixes = [text[starts[first + i] : span[0]] for i, span in enumerate(spans) if i]
        prefix = max(prefixes, key=lambda one: one.count(">"), default="")
        yield text[position:start]
        yield _flow(token, text[start:end], kind, prefix, [text[a:b] for a, b in spans], references, settings)
        position = end
    yield text[position:]


def _find(content: str, lines: list[str], starts: list[int], position: int) -> Iterator[tuple[int, int]]:
    """Finds the lines of an inline text in the lines of the source; stops at the first that is not found."""
    parts = content.split("\n")
    if len(parts) > len(lines):
        return
    for part, line, start in zip(parts, lines, starts, strict=False):
        part = part.strip(" \t")
        at = line.find(part, max(0, position - start)) if len(parts) == 1 else line.rfind(part)
        if at < 0:
            return
        yield start + at, start + at + len(part)


def _flow(
    token: Token,
    raw: str,
    kind: _BlockKind,
    prefix: str,
    lines: list[str],
    references: _References,
    settings: FormatSettings,
) -> Flow:
    content = token.content
    builder = inline_builder(content, token.children or [], prefix, settings)
    if builder is None:  # not understood: left untranslated, and listed in the report
        return Flow(content, raw, sound=lambda _: False)
    wrap = None
    if len(lines) > 1:
        wrap = Wrap(max(60, len(prefix) + max(map(len, lines))), prefix, "\n")
    usual, strict = (partial(escape, cell=kind == "cell", strict=is_strict) for is_strict in (False, True))
    sound = _soundness(content, kind, prefix, references)
    return replace(builder.flow(usual), raw=raw, wrap=wrap, sound=sound, strict_escape=strict)


def _soundness(content: str, kind: _BlockKind, prefix: str, references: _References) -> Callable[[str], bool]:
    def sound(written: str) -> bool:
        written = written.replace(f"\n{prefix}", "\n")
        if kind == "cell":
            if "\n" in written or re.search(r"(?<!\\)(\\\\)*\|", written):
                return False
            written = written.replace(r"\|", "|")
        before = {"paragraph": "", "heading": "# ", "cell": "# "}[kind]
        blocks = _markdown().parse(before + written, _environment(references))
        if [block.type for block in blocks if block.type != "inline"] != {
            "": ["paragraph_open", "paragraph_close"],
            "# ": ["heading_open", "heading_close"],
        }[before]:
            return False
        (inline,) = [block for block in blocks if block.type == "inline"]
        source = _markdown().parseInline(content, _environment(references))[0]
        return _signature(inline.children or []) == _signature(source.children or [])

    return sound


def _signature(tokens: list[Token]) -> list[tuple[Any, ...]]:
    """The tokens that are not text, each with what it holds and the elements around it. Sorted, as a translation may
    change their order."""
    found: list[tuple[Any, ...]] = []
    path: list[str] = []
    for token in tokens:
        if token.nesting < 0:
            path.pop()
        if token.type not in ("text", "text_special", "softbreak"):
            held = token.content if token.type in ("code_inline", "html_inline", "formula") else ""
            held += str(_signature(token.children or [])) if token.type == "inline_note" else ""
            found.append((token.type, token.markup, str(token.attrs.get("href", token.attrs.get("src"))), held, *path))
        if token.nesting > 0:
            path.append(token.type)
    return sorted(found)


def _environment(references: _References) -> dict[str, Any]:
    """What markdown-it needs to know: all references, without a copy of them for each paragraph."""
    return {"references": ChainMap({}, references)}


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    return with_notes_and_formulas(markdown)
