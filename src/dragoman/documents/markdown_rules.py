"""Rules for markdown-it beyond CommonMark: formulas, footnotes (`[^1]: text`) and inline notes (`^[text]`).

A formula is `$x$` by Pandoc's rule (no space inside the dollars, no digit after them: "$5 and $10" is none; nor is
what follows US$), `$$x$$`, `\\(x\\)` or `\\[x\\]`, the last two with one backslash or two; or a block of lines that
begins with `$$`, `\\[` or `\\begin{x}`.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkLabel
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from dragoman.data.code_spans import is_formula

LONGEST_BLOCK = 50  # lines of a formula: each line that looks like the first of one is read so far, and no further

_NOTE = re.compile(r"\[\^[^\]\s]+\]:[ \t]*")
_BLOCK = re.compile(r"\$\$|\\{1,2}\[|\\begin\{(?P<name>[A-Za-z]+\*?)\}")
_INLINE = re.compile(
    r"\$\$(?!\$)(?P<display>(?:[^$\\]|\\.)+)\$\$"
    r"|(?<![^\W\d_])\$(?![\s$])(?P<dollars>(?:[^$\\]|\\.)+)(?<!\s)\$(?![\d$])"
    r"|(?P<slash>\\{1,2})(?:\((?P<round>(?:[^\\]|\\+[^\\()\[\]])+)(?P=slash)\)"
    r"|\[(?P<square>(?:[^\\]|\\+[^\\()\[\]])+)(?P=slash)\])",
    re.DOTALL,
)


def with_notes_and_formulas(markdown: MarkdownIt) -> MarkdownIt:
    interrupts = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    markdown.block.ruler.before("reference", "note", _note, interrupts)  # type: ignore[arg-type]
    markdown.block.ruler.before("fence", "formula_block", _formula_block, interrupts)  # type: ignore[arg-type]
    markdown.inline.ruler.before("escape", "formula", _formula)
    markdown.inline.ruler.before("link", "inline_note", _inline_note)
    return markdown


def _note(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Reads `[^name]: text`, and the lines after it that begin with four spaces."""
    start = state.bMarks[first] + state.tShift[first]
    label = _NOTE.match(state.src, start, state.eMarks[first])
    if label is None or state.is_code_block(first):
        return False
    if silent:
        return True
    opened = state.push("note_open", "", 1)
    opened.meta = {"text": label.end()}
    kept = state.bMarks[first], state.tShift[first], state.sCount[first], state.blkIndent, state.parentType
    state.bMarks[first], state.tShift[first], state.sCount[first] = label.end(), 0, state.blkIndent + 4
    state.blkIndent += 4
    state.parentType = "note"
    state.md.block.tokenize(state, first, last)
    state.bMarks[first], state.tShift[first], state.sCount[first], state.blkIndent, state.parentType = kept
    opened.map = [first, state.line]
    state.push("note_close", "", -1)
    return True


def _inline_note(state: StateInline, silent: bool) -> bool:
    """Reads `^[text]`, which holds no other inline note."""
    if not state.src.startswith("^[", state.pos):
        return False
    end = parseLinkLabel(state, state.pos + 1)
    text = state.src[state.pos + 2 : end]
    if end < 0 or "^[" in text:
        return False
    if not silent:
        token = state.push("inline_note", "", 0)
        token.content = f"^[{text}]"
        token.children = state.md.parseInline(text, state.env)[0].children
    state.pos = end + 1
    return True


def _formula_block(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Reads lines that begin and end with the signs of a formula, without an empty line between."""
    start = state.bMarks[first] + state.tShift[first]
    opening = _BLOCK.match(state.src, start, state.eMarks[first])
    if opening is None or state.is_code_block(first):
        return False
    mark = opening[0]
    closing = rf"\end{{{opening['name']}}}" if opening["name"] else mark.replace("[", "]")
    at = opening.end()
    for line in range(first, min(last, first + LONGEST_BLOCK)):
        text = state.src[max(at, state.bMarks[line] + state.tShift[line]) : state.eMarks[line]].rstrip()
        if line > first and (not text or state.sCount[line] < state.blkIndent):
            return False
        found = text.find(closing)
        if found >= 0:
            content = state.src[at : state.eMarks[line]].rstrip().removesuffix(closing)
            if found + len(closing) < len(text) or not (mark == "$$" or opening["name"] or is_formula(content)):
                return False
            if not silent:
                token = state.push("formula_block", "", 0)
                token.map = [first, line + 1]
                state.line = line + 1
            return True
    return False


def _formula(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    found = _INLINE.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    content = found["display"] or found["dollars"] or found["round"] or found["square"]
    if not found["display"] and not is_formula(content):
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content = found[0]
    state.pos = found.end()
    return True
