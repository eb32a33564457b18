"""Reads the inline part of Markdown: emphasis, links, code, notes and HTML tags, at their places in a paragraph."""

import re
from dataclasses import replace
from functools import partial

from markdown_it.token import Token

from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.html import COPIED, LONGEST_COPIED, stays
from dragoman.documents.lexer import VOID
from dragoman.documents.settings import FormatSettings

_NOTE = re.compile(r"\[\^[^\[\]\s]+\]|^\[[ xX]\](?=\s)")
# What other dialects have at the beginning of a line: alerts, admonitions, fenced boxes, definitions of terms.
_LINE_MARK = re.compile(r"\[!\w+\][-+]?\Z|(?:!!!|\?\?\?)\+?[ \t]+[\w-]+|:{3,}.*|:[ \t]+(?=\S)")
# Where such things are not known they go on as a paragraph; so do notes.
_LINE_OF_ITS_OWN = re.compile(r"\[[^\]\n]+\]:|:{3}|:[ \t]")
_LINK_TAIL = re.compile(r"\]\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)|\]\[(?:[^\[\]\\]|\\.)*\]|\]")
_IMAGE = re.compile(r"!\[((?:[^\[\]\\]|\\.)*)(" + _LINK_TAIL.pattern + ")")
_PLAIN_ALT = re.compile(r"[^*_`\\\[\]<>&]*[^\W\d_][^*_`\\\[\]<>&]*")  # letters, and no markup
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)")


def inline_builder(content: str, tokens: list[Token], prefix: str, settings: FormatSettings) -> FlowBuilder | None:
    """A builder with the text and the tags of a paragraph. None: not every token was found again in the source."""
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
        """Adds code or a formula. The model reads a short one and must copy it; any other is one tag."""
        if not is_short or len(text) > LONGEST_COPIED or "\n" in text:
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
        inner = inline_builder(text, token.children or [], "", self.settings)
        if inner is None:
            return None
        flow = inner.flow(partial(escape, cell=True, strict=True))
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
    return name if opens and (stays(name, tag, settings) or name in COPIED) else ""


def _matched(pattern: str, text: str, at: int) -> str | None:
    found = re.compile(pattern, re.DOTALL).match(text, at)
    return found[0] if found else None


def escape(text: str, cell: bool, strict: bool) -> str:
    """Escapes characters that Markdown would take for its own; `strict`: those too that it seldom does."""
    text = re.sub(r"\\(?=[!-/:-@\[-`{-~])|[*`]|<(?=[A-Za-z/!?])|&(?=#?\w+;)", r"\\\g<0>", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    if strict:
        text = re.sub(r"[\[\]~$]", r"\\\g<0>", text)
        text = re.sub(r"^([#>+=-])", r"\\\1", text)
        text = re.sub(r"^(\d+)([.)])", r"\1\\\2", text)
    return text.replace("|", r"\|") if cell else text


def _without_markup(text: str) -> str:
    return re.sub(r"[\[\]\\`*<]", "", text)
