"""References to the entities of XML. Those that a document declares itself (`&app;`) are copied as they are written, as
what they stand for is never looked at.
"""

import html
import re
from collections.abc import Callable
from dataclasses import replace
from html.entities import html5

from dragoman.documents.flow import Flow

_REFERENCE = re.compile(r"&(#[0-9]+|#x[0-9A-Fa-f]+|[^\W\d][\w.:-]*);")
_NO_REFERENCES = re.compile(r"<!\[CDATA\[.*?\]\]>|<!--.*?-->", re.DOTALL)
_PREDEFINED = frozenset(["amp", "lt", "gt", "quot", "apos"])


def unescape_xml(raw: str, xhtml: bool = False) -> str:
    """The text with the characters in place of the references that every document may have; `xhtml`: HTML's too."""
    return _REFERENCE.sub(lambda found: html.unescape(found[0]) if _is_known(found[1], xhtml) else found[0], raw)


def own_references(raw: str, xhtml: bool = False) -> frozenset[str]:
    """The names in all other references, which the document declares itself."""
    names = _REFERENCE.findall(_NO_REFERENCES.sub("", raw)) if "&" in raw else ()
    return frozenset(name for name in names if not _is_known(name, xhtml))


def with_references(escape: Callable[[str], str], names: frozenset[str]) -> Callable[[str], str]:
    """Escapes as `escape` does, but for references with these names."""
    if not names:
        return escape
    escaped = re.compile(f"&amp;({'|'.join(map(re.escape, sorted(names)))});")
    return lambda text: escaped.sub(r"&\1;", escape(text))


def keep_references(flow: Flow, names: frozenset[str]) -> Flow:
    """The flow, of which references with these names are to be copied."""
    if not names:
        return flow
    spans = [found.span() for found in _REFERENCE.finditer(flow.text) if found[1] in names]
    free = (one for one in spans if not any(start < one[1] and one[0] < end for start, end in flow.kept))
    return replace(flow, kept=tuple(sorted([*flow.kept, *free])))


def _is_known(name: str, xhtml: bool) -> bool:
    return name[0] == "#" or name in _PREDEFINED or (xhtml and f"{name};" in html5)
