"""Reads the terms of a glossary: from TSV, CSV, or TBX (version 2, ISO 30042:2008, and version 3, ISO 30042:2019).

TBX groups the terms of one concept by language. Every source term of a concept may be translated by every target term
of it but those that are marked as deprecated or superseded.
"""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.data.corpus import read_lines
from dragoman.data.language_codes import same_language
from dragoman.errors import DataError, missing_package

Term = tuple[str, str]  # a source term, and its target forms with | between them; none: not translated

_HEADINGS = {"source", "source term", "source_term", "src", "term"}
_NOT_USED = re.compile(r"(deprecated|superseded|obsolete|notRecommended)", re.IGNORECASE)
_STATUS = {"administrativeStatus", "normativeAuthorization"}
_CONCEPTS, _LANGUAGES, _SECTIONS = ("termEntry", "conceptEntry"), ("langSet", "langSec"), ("tig", "ntig", "termSec")


def terms_in(path: Path, languages: tuple[str, str] | None = None) -> list[Term]:
    """The terms of a file, by the ending of its name. `languages`: source and target; where they are not known, a TBX
    file must have two."""
    match path.suffix.lower():
        case ".tbx":
            return list(_tbx_terms(path, languages))
        case ".csv":
            return list(_csv_terms(path))
        case _:
            return list(_tsv_terms(path))


def _tsv_terms(path: Path) -> Iterator[Term]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip() or line.startswith("# "):
            continue
        columns = line.split("\t")
        if len(columns) > 2 or not columns[0].strip():
            raise DataError(
                f"{path}: line {number}: {len(columns)} columns; write a source term, a tab and its target "
                f"(forms separated by |; none: not translated)"
            )
        yield columns[0], columns[1] if len(columns) == 2 else ""


def _csv_terms(path: Path) -> Iterator[Term]:
    """Two columns, with commas or semicolons, and perhaps a heading; what stands after them (languages, as DeepL's
    files have) is not read."""
    lines = list(read_lines(path))
    first = next((line for line in lines if line.strip()), "")
    delimiter = max(",;\t", key=first.count)
    try:
        rows = [row for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter, strict=True) if row]
    except csv.Error as error:
        raise DataError(f"{path}: not valid CSV ({error}); save it again in the program it is from") from None
    for number, row in enumerate(rows, start=1):
        source, target = row[0].strip(), row[1].strip() if len(row) > 1 else ""
        if number == 1 and source.lower() in _HEADINGS:
            continue
        if not source:
            raise DataError(f"{path}: row {number}: no source term; write a source term and its target")
        yield source, target


def _tbx_terms(path: Path, languages: tuple[str, str] | None) -> Iterator[Term]:
    concepts = list(_concepts(path))
    found = list(dict.fromkeys(code for concept in concepts for code in concept))
    source, target = languages or _two_of(path, found)
    codes = [[code for code in found if same_language(code, wanted)] for wanted in (source, target)]
    for wanted, known in zip((source, target), codes, strict=True):
        if not known:
            raise DataError(f"{path}: no terms in {wanted}; it has {', '.join(found) or 'no terms at all'}")
    for concept in concepts:
        sources, targets = ([term for code in known for term in concept.get(code, [])] for known in codes)
        forms = [text for text, used in targets if used]
        if forms:
            yield from ((text, "|".join(forms)) for text, _ in sources)


def _two_of(path: Path, found: list[str]) -> tuple[str, str]:
    if len(found) != 2:
        raise DataError(
            f"{path}: terms in {len(found)} languages ({', '.join(found)}); the run does not say which two: give "
            f"--source-language and --target-language"
        )
    return found[0], found[1]


def _concepts(path: Path) -> Iterator[dict[str, list[tuple[str, bool]]]]:
    """Each concept: by language its terms, and whether each is to be used."""
    try:
        from dragoman.data.tmx_xliff import elements_of, forget, language_of, local_name
    except ModuleNotFoundError as error:
        raise DataError(str(missing_package(error) or error)) from None
    for _, event, element in elements_of(path, ("tbx", "martif"), _CONCEPTS):
        if event != "end":
            continue
        concept: dict[str, list[tuple[str, bool]]] = {}
        for section in (child for child in element if local_name(child) in _LANGUAGES):
            code = language_of(section) or ""
            terms = [_term(one) for one in section.iter() if local_name(one) in _SECTIONS]
            concept.setdefault(code, []).extend((text, used) for text, used in terms if text)
        yield concept
        forget(element)


def _term(section: Any) -> tuple[str, bool]:
    """The term of a section, and whether it is to be used."""
    text, used = "", True
    for element in section.iter():
        name = str(element.tag).rpartition("}")[2]
        content = " ".join("".join(element.itertext()).split())
        if name == "term" and not text:
            text = content
        if {name, element.get("type")} & _STATUS and _NOT_USED.search(content):
            used = False
    return text, used
