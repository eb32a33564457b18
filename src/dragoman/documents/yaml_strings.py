"""Reads the messages of programs in YAML. Values change; keys, comments, anchors, order and the style of quotes stay.

A lexer over lines, not a reader of all YAML: what it does not know (collections in braces, aliases, tags of other
types) is copied.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from dragoman.data.segmentation import Wrap
from dragoman.documents.flow import Flow
from dragoman.documents.json_strings import is_message
from dragoman.documents.plain_text import string_flow

# What stands before a value: indentation, marks of items, a key, an anchor, a tag of a string.
_HEAD = re.compile(
    r"(?P<indent> *+)(?P<items>(?:- +)*+)"
    r"(?P<key>(?:\"(?:[^\"\\]|\\.)*+\"|'(?:[^']|'')*+'|[^\s#\"'\[\]{},&*!|>%@`-][^#\r\n]*?)[ \t]*:(?=\s|\Z))?[ \t]*+"
    r"(?P<properties>(?:(?:&\S++|!!str)[ \t]++)*+)"
)
_BLOCK = re.compile(r"(?P<style>[|>])[-+]?(?P<indent>[1-9]?)[-+]?[ \t]*+(?:#[^\r\n]*+)?\r?\n?\Z")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\[\s\S])*+)"(?P<rest>[ \t]*+(?:#[^\r\n]*+)?\r?\n?)\Z')
_SINGLE = re.compile(r"'((?:[^']|'')*+)'(?P<rest>[ \t]*+(?:#[^\r\n]*+)?\r?\n?)\Z")
_CLOSED = re.compile(r"\"(?:[^\"\\]|\\[\s\S])*+\"|'(?:[^']|'')*+'")
_PLAIN = re.compile(
    r"(?P<text>[^\s#\[\]{},&*!|>%@`\"'](?:[^\s#]|[ \t]++[^\s#]|(?<!\s)#)*+)(?P<rest>[ \t]*+(?:#[^\r\n]*+)?\r?\n?)\Z"
)
_NO_TEXT = re.compile(r"(?i:true|false|yes|no|on|off|y|n|null|~)|[-+.\d][\d_.,:eExXoO+-]*")
_UNSAFE = re.compile(r"\A[\s\[\]{},&*!|>%@`\"'#?:-]|:(?=\s|\Z)|\s#|\s\Z|[\r\n\t]")
# A collection in braces or brackets, and what stands inside one. A quote inside a word is a letter like others.
_OPENING = re.compile(r"(?:[!&]\S*+[ \t]++)*+(?=[\[{])")
_IN_BRACKETS = re.compile(
    r"(?P<sign>[\[\]{}\"'])|#[^\n]*+|[!&][^\s,\[\]{}]*+"
    r"|[^\s\[\]{},:\"'#](?:[^\[\]{},:#\n]|:(?=[^\s,\[\]{}])|(?<!\s)#)*+|[\s\S]"
)
_QUOTE_END = {
    '"': re.compile(r'(?:[^"\\]|\\[\s\S])*+\\?(?P<closed>"?)'),
    "'": re.compile(r"(?:[^']|'')*+(?P<closed>'?)"),
}
_LINE_ENDS = re.compile(r"[ \t]*+\r?\n(?P<empty>(?:[ \t]*+\r?\n)*+)[ \t]*+")
_MOST_LINES = 200  # of a value: a quote that is never closed is not looked for to the end of the document


def yaml_pieces(chunks: Iterable[str]) -> Iterator[str | Flow]:
    lines = _Lines(chunks)
    while (line := lines.next()) is not None:
        found = _HEAD.match(line)
        if found is None or line.startswith(("%", "---", "...", "#")):
            yield line
            continue
        if opening := _OPENING.match(line, found.end()):
            yield from _in_brackets(lines, line, opening.end())
            continue
        if not (found["key"] or found["items"]):
            yield line
            continue
        value = line[found.end() :]
        block = _BLOCK.match(value)
        if block is not None:
            yield line
            depth = len(found["indent"]) + (len(found["items"]) if found["key"] else 0)
            yield from _block(lines, depth, block)
        elif value[:1] in ("'", '"'):
            yield found[0]
            yield from _quoted(lines, value)
        else:
            depth = len(found["indent"]) + (len(found["items"]) if found["key"] else 0)
            yield found[0]
            yield from _plain(lines, value, depth)


class _Lines:
    """The lines of a text that comes in chunks, of which the next can be looked at."""

    def __init__(self, chunks: Iterable[str]) -> None:
        self._lines = _lines(chunks)
        self._waiting: list[str] = []

    def next(self) -> str | None:
        return self._waiting.pop() if self._waiting else next(self._lines, None)

    def put_back(self, lines: list[str]) -> None:
        self._waiting += reversed(lines)

    def below(self, depth: int) -> list[str]:
        """The lines that belong to a value: those further in than its key, and empty ones between them."""
        found: list[str] = []
        while (line := self.next()) is not None:
            bare = line.lstrip(" ")
            if bare.strip() and len(line) - len(bare) <= depth:
                self.put_back([line])
                break
            found.append(line)
        while found and not found[-1].strip():
            self.put_back([found.pop()])
        return found


def _lines(chunks: Iterable[str]) -> Iterator[str]:
    parts: list[str] = []
    for chunk in chunks:
        *whole, rest = chunk.split("\n")
        for line in whole:
            yield "".join((*parts, line, "\n"))
            parts = []
        parts.append(rest)
    if last := "".join(parts):
        yield last


def _in_brackets(lines: _Lines, line: str, position: int) -> Iterator[str]:
    """The lines of a collection in brackets up to the one where its last bracket is closed."""
    depth, quote = 0, ""
    while True:
        while position < len(line):
            if quote:
                found = _QUOTE_END[quote].match(line, position)
                quote = "" if found is None or found["closed"] else quote
            else:
                found = _IN_BRACKETS.match(line, position)
                sign = (found and found["sign"]) or ""
                quote = sign if sign in _QUOTE_END else ""
                depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign, 0)
                if depth == 0:
                    yield line
                    return
            position = len(line) if found is None else found.end()
        yield line
        following = lines.next()
        if following is None:
            return
        line, position = following, 0


def _block(lines: _Lines, depth: int, header: re.Match[str]) -> Iterator[str | Flow]:
    """A text in lines of its own. Where their ends count, no sentence goes across one; else it is wrapped again. The
    ends of lines that are further in than the others (lists, code) always count."""
    found = lines.below(depth)
    first = next((line for line in found if line.strip()), "")
    base = depth + int(header["indent"]) if header["indent"] else len(first) - len(first.lstrip(" "))
    paragraph: list[str] = []
    for line in (*found, ""):
        alone = header["style"] == "|" or line[base : base + 1] in (" ", "\t")
        if paragraph and (alone or not line.strip()):
            yield from _lines_flow(paragraph)
            paragraph = []
        if not line.strip():
            yield line
        elif alone:
            yield from _lines_flow([line])
        else:
            paragraph.append(line)


def _lines_flow(lines: list[str]) -> Iterator[str | Flow]:
    first = lines[0]
    indent = first[: len(first) - len(first.lstrip(" "))]
    whole = "".join(lines)
    text = whole[len(indent) :].rstrip()
    newline = "\r\n" if first.endswith("\r\n") else "\n"
    width = max(len(line.rstrip()) for line in lines)
    yield indent
    yield Flow(text, text, wrap=Wrap(width, indent, newline) if len(lines) > 1 else None)
    yield whole[len(indent) + len(text) :]


def _quoted(lines: _Lines, value: str) -> Iterator[str | Flow]:
    pattern = _DOUBLE if value[0] == '"' else _SINGLE
    taken = [value]
    found = pattern.match(value)
    # The first quote that is not escaped ends the value, whatever stands behind it.
    closed = _CLOSED.match(value) is not None
    while found is None and not closed and len(taken) < _MOST_LINES and (line := lines.next()) is not None:
        taken.append(line)
        if value[0] in line:
            found = pattern.match("".join(taken))
            closed = _CLOSED.match("".join(taken)) is not None
    if found is None:
        lines.put_back(taken[1:])
        yield taken[0]
        return
    raw = found[1]
    folded = _folded(raw)
    text = _double_text(folded) if value[0] == '"' else folded.replace("''", "'")
    if text is None or not is_message(text):
        yield "".join(taken)
        return
    ascii_only = "\\u" in raw and raw.isascii()
    yield value[0]
    finish = (
        (lambda said: json.dumps(said, ensure_ascii=ascii_only)[1:-1]) if value[0] == '"' else partial(_single, raw=raw)
    )
    yield replace(string_flow(text, raw), finish=finish)
    yield value[0] + found["rest"]


def _folded(raw: str) -> str:
    """The text of a value that goes over several lines: one end of a line is a space, an empty line is a line break."""
    return _LINE_ENDS.sub(lambda found: "\n" * found["empty"].count("\n") or " ", raw)


def _single(text: str, raw: str) -> str:
    """Line breaks can only be written as empty lines; what follows them is as far in as before."""
    inner = re.search(r"(?P<newline>\r?\n)(?P<indent>[ \t]*+)(?![ \t\r\n])", raw)
    newline, indent = (inner["newline"], inner["indent"]) if inner else ("\n", "")
    return re.sub(r"\n+", lambda found: newline * (len(found[0]) + 1) + indent, text.replace("'", "''"))


def _double_text(raw: str) -> str | None:
    """The text of a double-quoted value; None: it has an escape that JSON does not know."""
    try:
        text = json.loads(f'"{raw}"', strict=False)
        text.encode()
    except ValueError:
        return None
    return str(text)


def _plain(lines: _Lines, value: str, depth: int) -> Iterator[str | Flow]:
    found = _PLAIN.match(value)
    if found is None:
        yield value
        return
    following = lines.below(depth) if "#" not in found["rest"] else []
    if any(_HEAD.match(line)["key"] or line.lstrip().startswith(("#", "- ")) for line in following):  # type: ignore[index]
        lines.put_back(following)
        following = []
    raw = found["text"]
    rest = found["rest"]
    if following:
        whole = "".join((value, *following))
        raw = whole.rstrip()
        rest = whole[len(raw) :]
    text = _folded(raw)
    # A comment ends the value; it would become text.
    if (following and re.search(r"\s#", raw)) or _NO_TEXT.fullmatch(text) or not is_message(text):
        yield "".join((value, *following))
        return
    yield replace(string_flow(text, raw), finish=_plain_or_quoted)
    yield rest


def _plain_or_quoted(text: str) -> str:
    """A translation that would be read as something else without quotes gets them."""
    if _UNSAFE.search(text) or _NO_TEXT.fullmatch(text):
        return json.dumps(text, ensure_ascii=False)
    return text
