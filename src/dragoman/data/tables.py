"""Finds the two columns of text in a table (CSV, TSV, XLSX) and its heading, and reads the rows of XLSX files."""

import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import DataError

Row = Sequence[str]
SAMPLE = 200  # rows by which columns are judged
_MOST_COLUMNS = 64  # of a sheet; what lies further to the right is not read
_MOST_BYTES = 512 * 2**20  # of an XLSX file, unpacked
_MOST_RATIO = 200  # unpacked to packed: sheets of repeated text come to some 30
_SMALL_PART = 2**20  # bytes below which a ratio says nothing
_MOST_PARTS = 10_000
_MOSTLY = 0.8  # of a column's cells make it what it is

_SOURCE = "source src original sourcetext input from quelle quelltext ausgangstext fuente origen origine originale"
_TARGET = (
    "target tgt translation targettext output to ziel zieltext übersetzung cible traduction destino traducción "
    "traduzione"
)
_BESIDE = (
    "id no nr number row line key context comment comments note notes status domain date author file filename string "
    "text sentence segment sentences segments language lang phrase term"
)
_LANGUAGES = {
    "ar": "arabic العربية", "bg": "bulgarian български", "ca": "catalan català", "cs": "czech čeština",
    "da": "danish dansk", "de": "german deutsch allemand", "el": "greek ελληνικά",
    "en": "english englisch anglais inglés",
    "eo": "esperanto", "es": "spanish español spanisch espagnol", "et": "estonian eesti", "fa": "persian فارسی",
    "fi": "finnish suomi", "fr": "french français französisch francés", "he": "hebrew עברית", "hi": "hindi हिन्दी",
    "hr": "croatian hrvatski", "hu": "hungarian magyar", "id": "indonesian",
    "it": "italian italiano italienisch italien",
    "ja": "japanese 日本語", "ko": "korean 한국어", "lt": "lithuanian", "lv": "latvian", "nb": "norwegian norsk",
    "nl": "dutch nederlands", "pl": "polish polski", "pt": "portuguese português", "ro": "romanian română",
    "ru": "russian русский", "sk": "slovak slovenčina", "sl": "slovenian", "sr": "serbian", "sv": "swedish svenska",
    "tr": "turkish türkçe", "uk": "ukrainian українська", "vi": "vietnamese", "zh": "chinese 中文",
}  # fmt: skip
_CODES = {word: code for code, words in _LANGUAGES.items() for word in (code, *words.split())}
_SOURCE_WORDS, _TARGET_WORDS, _BESIDE_WORDS = (frozenset(words.split()) for words in (_SOURCE, _TARGET, _BESIDE))
_LOCALE = re.compile(r"[a-z]{2,3}[-_][A-Za-z]{2,4}")  # en-GB

# A cell that identifies a row and holds no text: 17, a-17, menu.file.open, 3f2504e0-4f89-11d3, https://..., 2024-05-01.
_ID = re.compile(
    r"[\W\d_]*|[A-Za-z]{0,8}[-_.:#/ ]?\d[\d._:/-]*|[0-9a-fA-F-]{8,}|\w+([.:/-]\w+)*[.:/]\w+|\w*_\w*|\w+://\S+"
)
_LONGEST_ID = 100  # characters


@dataclass(frozen=True)
class Layout:
    """The columns of a table that hold the pairs."""

    source: int
    target: int
    heading: bool  # whether the first row names the columns
    languages: tuple[str, str] | None  # as the heading names them


def layout_of(rows: Sequence[Row], wanted: tuple[str, str] | None = None) -> Layout:
    """Finds the layout of a table from its first rows: a heading by its words, columns by what most of their cells are.

    A heading that names a source and a target, or two languages, decides; else the first two columns of text are taken.
    """
    if not rows:
        return Layout(0, 1, False, None)
    first, width = rows[0], max(map(len, rows))
    languages = [_language_in(cell) for cell in first]
    heading = is_heading(first)
    body = rows[1:] if heading else rows
    texts = [column for column in range(width) if _is_text([row[column] for row in body if column < len(row)])]
    texts = texts if len(texts) >= 2 else list(range(width))
    named = _by_heading(first, languages, texts, wanted) if heading else None
    source, target = named or (texts[0], texts[1] if len(texts) > 1 else 1)
    both = (languages[source], languages[target]) if heading and max(source, target) < len(first) else (None, None)
    known = (both[0], both[1]) if both[0] and both[1] and both[0] != both[1] else None
    return Layout(source, target, heading, known)


def is_heading(row: Row) -> bool:
    """Whether every cell is a word that names a column. "English" beside "anglais" is a pair of texts, not a heading:
    both name one language."""
    cells = [cell for cell in row if cell.strip()]
    if len(cells) < 2 or not all(_names_a_column(cell) for cell in cells):
        return False
    languages = [code for code in map(_language_in, cells) if code]
    if len(languages) == len(cells) == 2:
        return languages[0] != languages[1]
    return True


def _words(cell: str) -> list[str]:
    return [word for word in re.split(r"[\W\d_]+", cell.strip().lower()) if word]


def _names_a_column(cell: str) -> bool:
    words = _words(cell)
    if _LOCALE.fullmatch(cell.strip()):
        return words[0] in _CODES
    known = _SOURCE_WORDS | _TARGET_WORDS | _BESIDE_WORDS | _CODES.keys()
    return 0 < len(words) <= 4 and all(word in known for word in words)


def _language_in(cell: str) -> str | None:
    """The language that a cell of a heading names. `id` and `no` mean a number more often than a language."""
    words = _words(cell)
    if words in (["id"], ["no"]):
        return None
    if _LOCALE.fullmatch(cell.strip()):
        words = words[:1]
    found = {_CODES[word] for word in words if word in _CODES and not (word in ("id", "no", "to") and len(words) > 1)}
    return found.pop() if len(found) == 1 else None


def _by_heading(
    first: Row, languages: Sequence[str | None], texts: Sequence[int], wanted: tuple[str, str] | None
) -> tuple[int, int] | None:
    if wanted is not None:
        places = [next((c for c in texts if c < len(first) and languages[c] == code[:2]), None) for code in wanted]
        if places[0] is not None and places[1] is not None:
            return places[0], places[1]
    sides = [
        next((c for c in texts if c < len(first) and words & set(_words(first[c]))), None)
        for words in (_SOURCE_WORDS, _TARGET_WORDS)
    ]
    if sides[0] is not None and sides[1] is not None and sides[0] != sides[1]:
        return sides[0], sides[1]
    spoken = [c for c in texts if c < len(first) and languages[c]]
    return (spoken[0], spoken[1]) if len(spoken) >= 2 else None


def _is_text(cells: Sequence[str]) -> bool:
    """Whether a column holds text: not ids, numbers, keys or dates, nor one of a few values such as a status."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    if not filled or len(filled) < (1 - _MOSTLY) * len(cells):
        return False
    if len(filled) >= 20 and len(set(filled)) <= max(3, len(filled) // 50):
        return False
    ids = sum(len(cell) <= _LONGEST_ID and _ID.fullmatch(cell) is not None for cell in filled)
    return ids < _MOSTLY * len(filled)


# XLSX


def xlsx_rows(path: Path) -> Iterator[list[Row]]:
    """Reads the rows of each visible sheet, as text."""
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    _refuse_bombs(path)
    try:
        book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            for sheet in book.worksheets:
                if sheet.sheet_state != "visible":
                    continue
                sheet.reset_dimensions()  # a file may declare fewer rows than it has
                rows = sheet.iter_rows(max_col=_MOST_COLUMNS, values_only=True)
                yield _as_wide_as_filled(
                    [["" if cell is None else str(cell) for cell in row] for row in rows if any(row)]
                )
        finally:
            book.close()
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, OSError, SyntaxError) as error:
        raise DataError(f"{path}: cannot be read ({error}); save it again as .xlsx, or as CSV in UTF-8") from None


def _as_wide_as_filled(rows: list[list[str]]) -> list[Row]:
    """Cuts off the columns after the last one that any row fills."""
    width = max((number for row in rows for number, cell in enumerate(row, 1) if cell), default=0)
    return [row[:width] for row in rows]


def _refuse_bombs(path: Path) -> None:
    """Refuses files that unpack to far more than their size, or that have a document type, which may multiply text. No
    program writes such files."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            large = sum(part.file_size for part in parts) > _MOST_BYTES or len(parts) > _MOST_PARTS
            dense = any(
                part.file_size > _SMALL_PART and part.file_size > _MOST_RATIO * max(1, part.compress_size)
                for part in parts
            )
            if large or dense:
                raise DataError(
                    f"{path}: unpacks to far more than a table of sentences has (up to {_MOST_BYTES >> 20} MB and "
                    f"{_MOST_RATIO} times its size are read); save it as CSV in UTF-8"
                )
            for part in parts:
                if part.filename.endswith((".xml", ".rels")):
                    with archive.open(part) as stream:
                        if b"<!DOCTYPE" in stream.read(2**16):
                            raise DataError(f"{path}: {part.filename} has a document type, which no XLSX file has")
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError) as error:
        raise DataError(f"{path}: no XLSX file ({error}); save it again as .xlsx, or as CSV in UTF-8") from None
