"""Reads the text of HTML: a flow is what stands between block tags. Code, scripts and the like are copied."""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import islice

from dragoman.documents.entities import keep_references, own_references, unescape_xml, with_references
from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.lexer import RAW_TEXT, Token, Tokens, attribute, element, html_tokens, xml_tokens
from dragoman.documents.office_xml import escape_xml
from dragoman.documents.settings import DEFAULTS, FormatSettings

_INLINE = frozenset(
    """a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q s small span strike strong sub sup time
    u""".split()  # noqa: SIM905
)
_POINTS = frozenset(["img", "wbr"])
COPIED = frozenset(["code", "kbd", "samp", "tt", "var"])
_UNTOUCHED = frozenset([*RAW_TEXT, "pre", "svg", "math", "object", "audio", "video", "canvas"])
_SPOKEN = re.compile(
    r"""(\s(?:alt|title|placeholder|aria-label|summary|label)\s*=\s*)(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE
)
_DESCRIPTION = re.compile(r"""(\scontent\s*=\s*)(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
LONGEST_NOTE = 8  # tags and texts that a note's number may consist of, its end too
LONGEST_COPIED = 60  # characters: longer code in a sentence is one tag, which the model does not see


def html_pieces(chunks: Iterable[str], settings: FormatSettings = DEFAULTS) -> Iterator[str | Flow]:
    """The pieces of a page, or of a part of one."""
    tokens = Tokens(xml_tokens(chunks) if settings.xhtml else html_tokens(chunks))
    builder = FlowBuilder()
    while (token := next(tokens, None)) is not None:
        if _add_inline(builder, token, tokens, settings):
            continue
        yield from flow_of(builder, settings)
        builder = FlowBuilder()
        if token.kind == "start" and (stays(token.name, token.raw, settings) or token.name in _UNTOUCHED):
            yield from (inner.raw for inner in element(tokens, token))
        else:
            yield from tag_pieces(token, settings)
    yield from flow_of(builder, settings)


def _add_inline(builder: FlowBuilder, token: Token, tokens: Tokens, settings: FormatSettings) -> bool:
    """Adds what belongs to the flow: text, inline tags, code, line breaks, comments. False: it ends the flow."""
    match token.kind:
        case "text":
            builder.add_text(_unescaped(token.raw, settings), token.raw)
        case "start":
            return _add_start_tag(builder, token, tokens, settings)
        case "end" if token.name in _INLINE | COPIED:
            builder.close(token.name, token.raw)
        case "empty" if token.name in _POINTS | _INLINE | COPIED:
            builder.add_point(tag_pieces(token, settings))
        case "empty" if token.name == "br":
            builder.add_point([token.raw], breaks=True)
        case "other" if token.raw.startswith("<!--"):
            builder.add_point([token.raw])
        case _:
            return False
    return True


def _add_start_tag(builder: FlowBuilder, token: Token, tokens: Tokens, settings: FormatSettings) -> bool:
    if token.name not in _INLINE | COPIED:
        return False
    if stays(token.name, token.raw, settings) or token.name in COPIED:
        whole = tokens.whole_element(token)
        if whole is not None:
            _copy(builder, whole, settings)
        else:  # never closed: a tag like others
            builder.open(token.name, [token.raw])
    elif not (token.name == "sup" and _add_note_number(builder, token, tokens)):
        builder.open(token.name, tag_pieces(token, settings))
    return True


def _add_note_number(builder: FlowBuilder, sup: Token, tokens: Tokens) -> bool:
    """Adds the number of a note as one tag: as a word of the sentence the model would count things with it."""
    ahead = list(islice(tokens, LONGEST_NOTE))
    end = next((i for i, one in enumerate(ahead) if one.kind == "end" and one.name == "sup"), 0)
    is_number = end > 0 and not any(_has_letters(one) for one in ahead[:end])
    if is_number:
        builder.add_point([sup.raw, *(one.raw for one in ahead[: end + 1])])
        ahead = ahead[end + 1 :]
    tokens.put_back(ahead)
    return is_number


def stays(name: str, tag: str, settings: FormatSettings) -> bool:
    """Whether the page, or the user, says that an element is not to be translated."""
    if (attribute(tag, "translate") or "").lower() == "no":
        return True
    classes = (attribute(tag, "class") or "").split()
    return "notranslate" in classes or settings.protects(name, *classes)


def flow_of(builder: FlowBuilder, settings: FormatSettings = DEFAULTS) -> Iterator[str | Flow]:
    """The flow that was built, if anything was added to it."""
    if builder.raw:
        names = own_references("".join(builder.raw), xhtml=True) if settings.xhtml else frozenset[str]()
        escaped = with_references(escape_xml, names) if settings.xhtml else escape
        yield keep_references(builder.flow(escaped), names)


def tag_pieces(token: Token, settings: FormatSettings = DEFAULTS) -> list[str | Flow]:
    """A tag in pieces: the values of its attributes that people read are flows."""
    pattern = _SPOKEN
    if token.name == "meta":
        named = attribute(token.raw, "name") or attribute(token.raw, "property") or ""
        pattern = _DESCRIPTION if re.search(r"(^|:)(description|title)$", named) else re.compile(r"(?!)")
    pieces: list[str | Flow] = []
    position = 0
    for found in pattern.finditer(token.raw) if token.kind in ("start", "empty") else ():
        group = 2 if found[2] is not None else 3
        value = found[group]
        if any(map(str.isalpha, value)):
            names = own_references(value, xhtml=True) if settings.xhtml else frozenset[str]()
            flow = Flow(_unescaped(value, settings), value, escape=with_references(_in_quotes, names))
            pieces += [token.raw[position : found.start(group)], keep_references(flow, names)]
            position = found.end(group)
    return [*pieces, token.raw[position:]]


def _has_letters(token: Token) -> bool:
    """Whether a token has letters, or is something that may hold some: a picture, a block."""
    if token.kind == "text":
        return any(map(str.isalpha, html.unescape(token.raw)))
    return token.name not in _INLINE


def escape(text: str) -> str:
    return html.escape(text, quote=False).replace("\u00a0", "&nbsp;")


def _unescaped(raw: str, settings: FormatSettings) -> str:
    return unescape_xml(raw, xhtml=True) if settings.xhtml else html.unescape(raw)


def _in_quotes(text: str) -> str:
    return html.escape(text, quote=True)


def _copy(builder: FlowBuilder, tokens: list[Token], settings: FormatSettings) -> None:
    """Adds code in a sentence, which the model reads and must copy. If it is long or has tags inside, it is one tag."""
    start, *inner = tokens
    text = _unescaped("".join(token.raw for token in inner[:-1]), settings)
    plain = len(inner) == 2 and inner[0].kind == "text" and inner[1].kind == "end"
    if plain and len(text) <= LONGEST_COPIED and "\n" not in text and text.strip() == text:
        builder.open(start.name, [start.raw])
        builder.add_text(text, inner[0].raw, keep=True)
        builder.close(start.name, inner[1].raw)
    else:
        builder.add_point(["".join(token.raw for token in tokens)])
