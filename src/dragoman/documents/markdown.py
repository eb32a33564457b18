"""Markdown: markdown-it says what is a paragraph, a heading, a cell, and what in it is emphasis, a link, code; the text
is found again at its place in the source, so that everything else stays as it was written.

A paragraph that would be read otherwise after its translation (a line that begins like a list, a star too many) is not
given out: `sound` asks markdown-it again.
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
from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.html import COPIED, LONGESTCOPIED, html_pieces, stays
from dragoman.documents.lexer import VOID
from dragoman.documents.markdown_rules import with_notes_and_formulas
from dragoman.documents.settings import FormatSettings

CHUNK = 1 << 15  # characters parsed at a time
_DEFINITION = re.compile(r"^ {0,3}\[(?!\^)((?:[^\[\]\\]|\\.)+)\]:[ \t]*\S", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HTML_OPEN = re.compile(r" {0,3}<(script|pre|style|textarea|!--)", re.IGNORECASE)
_HTML_CLOSE = re.compile(r"</(script|pre|style|textarea)>|-->", re.IGNORECASE)
_NOTE = re.compile(r"\[\^[^\[\]\s]+\]|^\[[ xX]\](?=\s)")
# What other dialects have at the beginning of a line: alerts, admonitions, fenced boxes, definitions of terms.
_LINE_MARK = re.compile(r"\[!\w+\][-+]?\Z|(?:!!!|\?\?\?)\+?[ \t]+[\w-]+|:{3,}.*|:[ \t]+(?=\S)")
# Where such things are not known they go on as a paragraph; so do notes.
_LINE_OF_ITS_OWN = re.compile(r"\[[^\]\n]+\]:|:{3}|:[ \t]")
_LINK_TAIL = re.compile(r"\]\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)|\]\[(?:[^\[\]\\]|\\.)*\]|\]")
_IMAGE = re.compile(r"!\[((?:[^\[\]\\]|\\.)*)(" + _LINK_TAIL.pattern + ")")
_PLAIN_ALT = re.compile(r"[^*_`\\\[\]<>&]*[^\W\d_][^*_`\\\[\]<>&]*")  # letters, and no markup
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)")

_BlockKind = Literal["paragraph", "heading", "cell"]
_References = dict[str, dict[str, str]]


def find_references(chunks: Iterable[str]) -> _References:
    """The names of all link definitions: whether [this] is a link is decided anywhere in the document."""
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
    for number, chunk in enumerate(_chunks(chunks)):
        front = re.match(r"---[ \t]*\n.*?\n(---|\.\.\.)[ \t]*\n", chunk, re.DOTALL) if number == 0 else None
        if front:
            yield front[0]
            chunk = chunk[front.end() :]
        yield from _chunk_pieces(chunk, references, settings)


def _chunks(chunks: Iterable[str]) -> Iterator[str]:
    """Cut before a line of text that follows an empty one, outside of code and HTML."""
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
        if not spans:  # written in a way in which it is not found again: it stays
            continue
        (start, _), (_, end) = spans[0], spans[-1]
        # A line may go on with a quotation without its mark; not all of them need to.
        prefixes = [text[starts[first + i] : span[0]] for i, span in enumerate(spans) if i]
        prefix = max(prefixes, key=lambda one: one.count(">"), default="")
        yield text[position:start]
        yield _flow(token, text[start:end], kind, prefix, [text[a:b] for a, b in spans], references, settings)
        position = end
    yield text[position:]


def _find(content: str, lines: list[str], starts: list[int], position: int) -> Iterator[tuple[int, int]]:
    """Where the lines of an inline text stand in the lines of the source."""
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
    builder = _inline_tags(content, token.children or [], prefix, settings)
    if builder is None:  # written in a way that was not understood: left, and listed
        return Flow(content, raw, sound=lambda _: False)
    wrap = None
    if len(lines) > 1:
        wrap = Wrap(max(60, len(prefix) + max(map(len, lines))), prefix, "\n")
    escape = partial(_escape, cell=kind == "cell", strict=False)
    sound = _soundness(content, kind, prefix, references)
    strict = partial(_escape, cell=kind == "cell", strict=True)
    return replace(builder.flow(escape), raw=raw, wrap=wrap, sound=sound, strict_escape=strict)


def _inline_tags(content: str, tokens: list[Token], prefix: str, settings: FormatSettings) -> FlowBuilder | None:
    """The text and the tags of a paragraph. None: not every token was found again in the source."""
    reader = _InlineReader(content, prefix, settings)
    return reader.builder if all(map(reader.read, tokens)) and reader.at == len(content) else None


class _InlineReader:
    """Finds the inline tokens of markdown-it again in their source, and gives a flow builder what they are.

    Each `_read_...` method takes one type of token and returns how it is written in the source; None: it does not
    stand where the reader is.
    """

    def __init__(self, content: str, prefix: str, settings: FormatSettings) -> None:
        self.content, self.prefix, self.settings = content, prefix, settings
        self.builder = FlowBuilder()
        self.at = 0  # in the content
        self.open_links: list[int] = []  # where each begins
        self.in_autolink = False
        self.untranslated = ""  # the open HTML element whose text is not translated
        self.at_line_start = True
        self.after_line_mark = False  # the line began with the mark of an alert or a box, so that the next is apart

    def read(self, token: Token) -> bool:
        """False: the token is not known, or not what the source has here."""
        name, _, edge = token.type.rpartition("_")
        if read := getattr(self, f"_read_{token.type}", None):
            raw = read(token)
        elif edge == "open":
            raw = token.markup
            self.builder.open(name, [raw])
        elif edge == "close":
            raw = token.markup
            self.builder.close(name, raw)
        else:
            return False
        if raw is None or not self.content.startswith(raw, self.at):
            return False
        self.at += len(raw)
        self.at_line_start = token.type in ("softbreak", "hardbreak")
        return True

    def _read_text(self, token: Token) -> str:
        text = token.content
        mark = _LINE_MARK.match(text) if self.at_line_start else None
        if mark:
            self.builder.add_point([mark[0]])
            self.after_line_mark = self.after_line_mark or not mark[0].startswith(": ")
        _add_text(self.builder, text[mark.end() if mark else 0 :], keep=self.in_autolink or bool(self.untranslated))
        return text

    def _read_text_special(self, token: Token) -> str:
        self.builder.add_text(token.content, token.markup)
        return token.markup

    def _read_softbreak(self, _: Token) -> str | None:
        raw = _matched(r" *\n *", self.content, self.at)
        if self.after_line_mark or _LINE_OF_ITS_OWN.match(self.content, self.at + len(raw or "")):
            self.builder.add_point([f"\n{self.prefix}"], breaks=True)
            self.after_line_mark = False
        else:
            self.builder.add_text(f"\n{self.prefix}", raw or "")
        return raw

    def _read_hardbreak(self, _: Token) -> str | None:
        raw = _matched(r"(?: {2,}|\\)\n *", self.content, self.at)
        self.builder.add_point([(raw or "").rstrip(" ") + self.prefix], breaks=True)
        return raw

    def _read_code_inline(self, token: Token) -> str | None:
        fence = token.markup
        raw = _matched(rf"{fence}(?!`).*?(?<!`){fence}(?!`)", self.content, self.at)
        if raw is not None:
            code = raw[len(fence) : -len(fence)]
            self._add_verbatim(raw, code, fence, is_short=code == token.content)
        return raw

    def _read_formula(self, token: Token) -> str:
        self._add_verbatim(token.content, token.content, "", is_short=True)
        return token.content

    def _add_verbatim(self, raw: str, text: str, fence: str, is_short: bool) -> None:
        """Short code and formulas are read by the model, which must copy them; the others are passed by."""
        if not is_short or len(text) > LONGESTCOPIED or "\n" in text:
            self.builder.add_point([raw.replace("\n", f"\n{self.prefix}")])
            return
        self.builder.verbatim.add(self.builder.open("verbatim", [fence]))
        self.builder.add_text(text, text, keep=True)
        self.builder.close("verbatim", fence)

    def _read_html_inline(self, token: Token) -> str:
        _add_html_tag(self.builder, token.content)
        self.untranslated = _untranslated_after(token.content, self.untranslated, self.settings)
        return token.content

    def _read_inline_note(self, token: Token) -> str | None:
        """`^[text]`: its text is a flow of its own."""
        text = token.content[2:-1]
        inner = _inline_tags(text, token.children or [], "", self.settings)
        if inner is None:
            return None
        flow = inner.flow(partial(_escape, cell=True, strict=True))
        self.builder.add_point(["^[", replace(flow, raw=text.replace("\n", f"\n{self.prefix}")), "]"])
        return token.content

    def _read_image(self, _: Token) -> str | None:
        found = _IMAGE.match(self.content, self.at)
        if found is None:
            return None
        alt: str | Flow = found[1]
        if _PLAIN_ALT.fullmatch(found[1]):
            alt = Flow(found[1], found[1], escape=_without_markup)
        self.builder.add_point(["![", alt, found[2]])
        return found[0]

    def _read_link_open(self, token: Token) -> str:
        self.in_autolink = token.markup == "autolink"
        raw = "<" if self.in_autolink else "["
        self.open_links.append(self.at)
        link = self.builder.open("link", [raw])
        if self.in_autolink:
            self.builder.verbatim.add(link)
        return raw

    def _read_link_close(self, _: Token) -> str | None:
        text = self.content[self.open_links.pop() + 1 : self.at]
        raw = ">" if self.in_autolink else _matched(_LINK_TAIL.pattern, self.content, self.at)
        self.in_autolink = False
        # A link by its own text keeps its name when the text changes.
        named = raw if raw not in ("]", "][]") or text.startswith("^") else f"][{text}]"
        self.builder.close("link", named or "")
        return raw


def _add_text(builder: FlowBuilder, text: str, keep: bool) -> None:
    position = 0
    for found in _NOTE.finditer(text) if not keep else ():
        if found[0][1] != "^" and builder.length:  # a box to tick stands at the beginning
            continue
        builder.add_text(text[position : found.start()], text[position : found.start()])
        builder.add_point([found[0]])
        position = found.end()
    builder.add_text(text[position:], text[position:], keep)


def _add_html_tag(builder: FlowBuilder, raw: str) -> None:
    found = _TAG.match(raw)
    if found is None or raw.endswith("/>") or found[2].lower() in VOID:
        builder.add_point([raw], breaks=raw.lower().startswith("<br"))
    elif found[1]:
        builder.close(found[2].lower(), raw)
    else:
        builder.open(found[2].lower(), [raw])


def _untranslated_after(tag: str, untranslated: str, settings: FormatSettings) -> str:
    """The name of the HTML element in which nothing is translated after this tag; empty: there is none."""
    found = _TAG.match(tag)
    name = found[2].lower() if found else ""
    if untranslated:
        return "" if found and found[1] and name == untranslated else untranslated
    opens = bool(found) and not tag.startswith("</") and not tag.endswith("/>") and name not in VOID
    return name if opens and (name in COPIED or stays(name, tag, settings)) else ""


def _matched(pattern: str, text: str, at: int) -> str | None:
    found = re.compile(pattern, re.DOTALL).match(text, at)
    return found[0] if found else None


def _escape(text: str, cell: bool, strict: bool) -> str:
    """What Markdown would take for its own. Not strict: only what nearly always is."""
    text = re.sub(r"\\(?=[!-/:-@\[-`{-~])|[*`]|<(?=[A-Za-z/!?])|&(?=#?\w+;)", r"\\\g<0>", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    if strict:
        text = re.sub(r"[\[\]~$]", r"\\\g<0>", text)
        text = re.sub(r"^([#>+=-])", r"\\\1", text)
        text = re.sub(r"^(\d+)([.)])", r"\1\\\2", text)
    return text.replace("|", r"\|") if cell else text


def _without_markup(text: str) -> str:
    return re.sub(r"[\[\]\\`*<]", "", text)


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
    """Every token but text, with what it holds and what it stands in: order aside, which languages change."""
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
    """All references, and room for what is found beside them. No copy: each paragraph would have one."""
    return {"references": ChainMap({}, references)}


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    return with_notes_and_formulas(markdown)
