"""Reads XLIFF 1.0 to 1.2 and 2.0 to 2.1: the source of each unit that has no translation yet is translated into its
target. What was translated, approved or is not to be translated is copied, as are matches, notes and all else.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dragoman.documents.entities import keep_references, own_references, with_references
from dragoman.documents.flow import Flow, FlowBuilder
from dragoman.documents.lexer import (
    MarkupError,
    Token,
    attribute,
    children,
    closed_element,
    local_name,
    raw_tokens,
    text_of,
    with_attribute,
    xml_tokens,
)
from dragoman.documents.office_xml import DEEPEST, escape_xml
from dragoman.documents.plain_text import add_tagged
from dragoman.documents.settings import FormatSettings
from dragoman.errors import DataError

# Of a target (XLIFF 1) or a segment (XLIFF 2): what it holds is no translation yet.
_NOT_YET_TRANSLATED = frozenset(["new", "needs-translation", "initial"])
_SCOPES = frozenset(["file", "group", "unit"])  # what may say translate="no" for all that is in it
_PAIRED = frozenset(["g", "pc"])
# The tags that begin and end a pair which is no element, and the attributes that name the pair.
_STARTS = {"bx": ("rid", "id"), "bpt": ("rid", "id"), "sc": ("id",), "sm": ("id",)}
_ENDS = {"ex": ("rid", "id"), "ept": ("rid", "id"), "ec": ("startRef", "id"), "em": ("startRef",)}
_PAIR_OF = {"ex": "bx", "ept": "bpt", "ec": "sc", "em": "sm"}
_PROTECTED = frozenset(["protected", "x-DNT", "x-dnt"])


def xliff_pieces(chunks: Iterable[str], settings: FormatSettings) -> Iterator[str | Flow]:
    """The units one after the other, one in memory at a time."""
    try:
        yield from _pieces(xml_tokens(chunks), settings)
    except (MarkupError, RecursionError) as error:
        raise DataError(f"is damaged ({error}); save the document again") from None


def _pieces(tokens: Iterator[Token], settings: FormatSettings) -> Iterator[str | Flow]:
    version, scopes = "", [True]
    preserves = False  # white space, where the file says so for all
    for token in tokens:
        name = local_name(token)
        if token.kind == "start" and name in ("trans-unit", "segment"):
            whole = closed_element(tokens, token)
            fills = (
                scopes[-1] and attribute(token.raw, "translate") != "no" and attribute(token.raw, "approved") != "yes"
            )
            flow = _unit_flow(whole, version, preserves, settings) if fills else None
            yield flow or raw_tokens(whole)
            continue
        if token.kind == "start" and name == "xliff":
            version = attribute(token.raw, "version") or ""
        if token.kind == "start" and (name == "xliff" or name == "file"):
            preserves = (attribute(token.raw, "xml:space") or ("preserve" if preserves else "")) == "preserve"
            yield _with_language(token.raw, "trgLang" if name == "xliff" else "target-language", version, settings)
        else:
            yield token.raw
        if name in _SCOPES and token.kind == "start":
            said = attribute(token.raw, "translate")
            scopes.append(scopes[-1] if said is None else said == "yes")
        elif name in _SCOPES and token.kind == "end":
            del scopes[max(1, len(scopes) - 1) :]


def _with_language(tag: str, name: str, version: str, settings: FormatSettings) -> str:
    """The tag that says the target language of a file, which it must where there are targets."""
    if (name == "trgLang") != version.startswith("2"):
        return tag
    language = attribute(tag, name)
    settings.check_language(language, f"it says {name}: {{}}", f"correct its {name}")
    return tag if language or settings.target is None else with_attribute(tag, name, settings.target)


def _unit_flow(whole: list[Token], version: str, preserves: bool, settings: FormatSettings) -> Flow | None:
    """The unit as a flow: its source is the text, and all around it is in two tags, of which the first ends with the
    start tag of the target. None: there is nothing to translate."""
    start, *inner, end = whole
    parts = list(children(inner))
    found = {local_name(part[0]): part for part in reversed(parts) if part[0].kind in ("start", "empty")}
    source, target = found.get("source"), found.get("target")
    # XLIFF 1: the source divided into segments, which the target must have too.
    content = found.get("seg-source", source)
    if source is None or content is None or content[0].kind == "empty" or _is_translated(start, target):
        return None
    at = next(number for number, part in enumerate(parts) if part is content)
    last = at if target is None else next(number for number, part in enumerate(parts) if part is target)
    if last < at:  # in an order that the format does not have
        return None
    before = "".join(map(raw_tokens, parts[: at + 1 if target is None else last]))
    after = "".join(map(raw_tokens, parts[last + 1 :]))
    if target is None:
        before += _space_before(parts, at)
    tag = _target_tag(content[0], target, version, settings)
    builder = FlowBuilder()
    builder.add_point([_marked_segment(start.raw, version, settings) + before + tag], breaks=True)
    _add_inline(builder, content[1:-1])
    builder.add_point([f"</{_name_of(tag)}>{after}{end.raw}"], breaks=True)
    preserves = preserves or "preserve" in (attribute(start.raw, "xml:space"), attribute(source[0].raw, "xml:space"))
    names = own_references(raw_tokens(content))
    flow = keep_references(builder.flow(with_references(escape_xml, names)), names)
    return replace(flow, raw=raw_tokens(whole), whole_lines=preserves, fills=True)


def _is_translated(start: Token, target: list[Token] | None) -> bool:
    if target is None or not raw_tokens(target[1:-1]).strip():
        return False
    return (attribute(target[0].raw, "state") or attribute(start.raw, "state")) not in _NOT_YET_TRANSLATED


def _target_tag(source: Token, target: list[Token] | None, version: str, settings: FormatSettings) -> str:
    """The start tag of the target, which in XLIFF 1 says in which state the translation is."""
    if target is None:
        prefix = source.name.rpartition(":")
        tag = f"<{prefix[0]}{prefix[1]}target>"
    else:
        tag = re.sub(r"\s*/>\Z", ">", target[0].raw)
    if version.startswith("2"):
        return tag
    tag = with_attribute(tag, "state", "needs-review-translation" if settings.fuzzy else "translated")
    return with_attribute(tag, "state-qualifier", "leveraged-mt") if version == "1.2" else tag


def _marked_segment(tag: str, version: str, settings: FormatSettings) -> str:
    """The start tag of a segment of XLIFF 2, which says in which state it is; it has no word for one to look at, so
    that is said in a state of our own beside it."""
    if not version.startswith("2"):
        return tag
    tag = with_attribute(tag, "state", "translated")
    return with_attribute(tag, "subState", "dragoman:needs-review") if settings.fuzzy else tag


def _name_of(tag: str) -> str:
    found = re.match(r"<([^\s/>]+)", tag)
    return found[1] if found else "target"


def _space_before(parts: list[list[Token]], at: int) -> str:
    """The line end and the indentation before an element."""
    before = parts[at - 1] if at else []
    return before[0].raw if before and before[0].kind == "text" and not before[0].raw.strip() else ""


def _add_inline(builder: FlowBuilder, tokens: list[Token]) -> None:
    """Adds text with inline elements. Those that hold the code of another format are tags as a whole."""
    stream = iter(tokens)
    for token in stream:
        name = local_name(token)
        if (text := text_of(token)) is not None:
            add_tagged(builder, text, with_references(escape_xml, own_references(token.raw)))
        elif token.kind == "start" and name == "mrk":
            _add_marked(builder, closed_element(stream, token, DEEPEST))
        elif token.kind == "start" and name in _PAIRED:
            builder.open(f"<{name}", [token.raw])
        elif token.kind == "end":
            builder.close(f"<{name}", token.raw)
        elif token.kind in ("start", "empty"):
            whole = closed_element(stream, token) if token.kind == "start" else [token]
            _add_code(builder, name, token.raw, raw_tokens(whole))
        else:
            builder.add_point([token.raw])


def _add_code(builder: FlowBuilder, name: str, tag: str, whole: str) -> None:
    """Adds a tag that stands alone, or the beginning or the end of a pair of them."""
    named = next(
        (value for key in (*_STARTS.get(name, ()), *_ENDS.get(name, ())) if (value := attribute(tag, key))), ""
    )
    if name in _STARTS:
        builder.open(f"<{name} {named}", [whole])
    elif name in _ENDS:
        builder.close(f"<{_PAIR_OF[name]} {named}", whole)
    else:
        builder.add_point([whole])


def _add_marked(builder: FlowBuilder, whole: list[Token]) -> None:
    """Adds a stretch with a mark: a segment, a comment, or what is not to be translated."""
    start, *inner, end = whole
    kind = attribute(start.raw, "mtype") or attribute(start.raw, "type")
    if attribute(start.raw, "translate") == "no" or kind in _PROTECTED:
        texts = [text_of(token) for token in inner]
        if not all(isinstance(text, str) for text in texts):
            builder.add_point([raw_tokens(whole)])
            return
        text = "".join(text for text in texts if text)
        builder.open("<mrk", [start.raw])
        builder.add_text(text, escape_xml(text), keep=True)
        builder.close("<mrk", end.raw)
    elif kind == "seg":
        builder.add_point([start.raw], breaks=True)
        _add_inline(builder, inner)
        builder.add_point([end.raw], breaks=True)
    else:
        builder.open("<mrk", [start.raw])
        _add_inline(builder, inner)
        builder.close("<mrk", end.raw)
