"""Reads translation memories and bilingual files in XML: TMX 1.1 to 1.4, XLIFF 1.0 to 1.2 and 2.0 to 2.1.

lxml parses them unit by unit, so that a file of any size takes constant memory. Nothing outside the file is read, and a
file that declares entities of its own is refused: none is expanded. The text of a segment is all text in it, that of
inline elements too: what they hold is the markup or the placeholder that they stand for.
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from dragoman.errors import DataError

_XML = "{http://www.w3.org/XML/1998/namespace}"
_SAFE = {"resolve_entities": False, "load_dtd": False, "no_network": True, "remove_comments": True, "remove_pis": True}
_NOT_YET_TRANSLATED = ("new", "needs-translation", "initial")  # states of a target in XLIFF 1, of a segment in XLIFF 2


@dataclass(frozen=True)
class TmxUnit:
    """The texts of one translation unit in the order of the file, each with the language code that the file gives."""

    source_language: str | None  # of the whole file, where its header names one
    texts: tuple[tuple[str | None, str], ...]


@dataclass(frozen=True)
class XliffUnit:
    """A source and its target; empty where there is none, or where the file says that it is not translated yet."""

    languages: tuple[str | None, str | None]  # of the <file> that holds it
    file: int  # number of that <file>
    source: str
    target: str


def tmx_units(path: Path) -> Iterator[TmxUnit]:
    source_language: str | None = None
    for name, event, element in elements_of(path, "tmx", ("header", "tu")):
        if name == "header" and event == "start":
            source_language = element.get("srclang")
        elif name == "tu" and event == "end":
            variants = [child for child in element if local_name(child) == "tuv"]
            yield TmxUnit(
                source_language, tuple((language_of(one), _text_of(one, "seg", "preserve")) for one in variants)
            )
            forget(element)


def xliff_units(path: Path) -> Iterator[XliffUnit]:
    """XLIFF 1 has its languages on each <file> and a text in each <trans-unit>; XLIFF 2 has them on the root, and a
    <unit> has one text or several in its <segment>s."""
    languages: tuple[str | None, str | None] = (None, None)
    file = 0
    for name, event, element in elements_of(path, "xliff", ("xliff", "file", "group", "trans-unit", "unit")):
        if event == "end":
            if name == "trans-unit":
                yield XliffUnit(languages, file, *_source_and_target(element))
            elif name == "unit":
                for segment in (child for child in element if local_name(child) == "segment"):
                    yield XliffUnit(languages, file, *_source_and_target(segment))
            forget(element)
        elif name == "xliff":
            languages = element.get("srcLang"), element.get("trgLang")
        elif name == "file":
            file += 1
            if "source-language" in element.attrib:
                languages = element.get("source-language"), element.get("target-language")


def _source_and_target(segment: Any) -> tuple[str, str]:
    target = next((child for child in segment if local_name(child) == "target"), None)
    state = segment.get("state") if target is None else target.get("state") or segment.get("state")
    translation = "" if state in _NOT_YET_TRANSLATED else _text_of(segment, "target", "default")
    return _text_of(segment, "source", "default"), translation


def elements_of(path: Path, roots: str | Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    """The elements of these names, each as it starts, with its attributes, and as it ends, with all that is in it."""
    from lxml import etree

    with _explained(path):
        with _opened(path) as stream:
            _, first = next(iter(etree.iterparse(stream, events=("start",), **_SAFE)))
            _check_root(path, first, (roots,) if isinstance(roots, str) else roots)
        with _opened(path) as stream:
            tags = [f"{{*}}{name}" for name in names]  # each version has another namespace, and some files have none
            for event, element in etree.iterparse(stream, events=("start", "end"), tag=tags, **_SAFE):
                yield local_name(element), event, element


def _check_root(path: Path, root: Any, expected: Sequence[str]) -> None:
    if local_name(root) not in expected:
        raise DataError(
            f"{path}: its first element is <{local_name(root)}>, and in a file of this kind it is <{expected[0]}>; "
            "correct the ending of its name"
        )
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and next(declared.iterentities(), None) is not None:
        raise DataError(f"{path}: declares entities of its own, and none is expanded; write their text in their place")


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (SyntaxError, OSError, EOFError, zlib.error) as error:  # a SyntaxError: lxml says so that XML is damaged
        why = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
        raise DataError(f"{path}: cannot be read ({why}); save it again in the program it is from") from None


def _text_of(element: Any, name: str, usual_spaces: str) -> str:
    """The text of the first child of a name. Spaces are kept or joined as the nearest xml:space says."""
    child = next((child for child in element if local_name(child) == name), None)
    if child is None:
        return ""
    text = "".join(child.itertext())
    declared = (one.get(f"{_XML}space") for one in (child, *child.iterancestors()))
    spaces = next((value for value in declared if value is not None), usual_spaces)
    return text if spaces == "preserve" else " ".join(text.split())


def language_of(variant: Any) -> str | None:
    """TMX 1.4 writes xml:lang, 1.1 wrote lang."""
    found = variant.get(f"{_XML}lang") or variant.get("lang")
    return None if found is None else str(found)


def local_name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def forget(element: Any) -> None:
    """Frees an element that was read, and its siblings before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]
