"""Reads sentence pairs from TSV, CSV, XLSX, JSON lines, TMX, XLIFF, PO, MO, two aligned files, or a folder of these.

lxml reads TMX and XLIFF, polib PO and MO, openpyxl XLSX; `pip install 'dragoman[formats]'` installs them.
"""

import csv
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig
from dragoman.data.corpus import SentencePair, no_such_file, raw_pairs, read_lines
from dragoman.data.tables import SAMPLE, Row, layout_of, xlsx_rows
from dragoman.data.tmx_xliff import tmx_units, xliff_units
from dragoman.errors import DataError, UsageError

_MOST_BAD_LINES = 0.01  # the share of a file; with more it is not the format that it was taken for
_MOST_NAMED = 10  # unread files of a folder that are named to the user
_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
_KEYS = (
    ("source", "target"),
    ("src", "tgt"),
    ("original", "translation"),
    ("input", "output"),
    ("text", "translation"),
)


@dataclass
class PairCollection:
    """The pairs that were read, and what was left out. `languages`: as the files name them, where they do."""

    pairs: list[SentencePair] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    languages: tuple[str, str] | None = None
    skipped: Counter[str] = field(default_factory=Counter)  # how many pairs were left out, by the reason
    passed_over: dict[Path, str] = field(default_factory=dict)  # the reason for each unread file of a folder
    notes: list[str] = field(default_factory=list)  # which columns and rows of a table were taken for what
    turned: bool = False  # the file that is being read has source and target the other way round than asked for

    def add(self, pair: tuple[Any, Any]) -> None:
        """Adds a pair; where both sides have the same number of lines, one pair for each line."""
        sides = [str(side or "").replace("\t", " ").splitlines() for side in (reversed(pair) if self.turned else pair)]
        if len(sides[0]) != len(sides[1]):
            sides = [[" ".join(lines)] for lines in sides]
        for source, target in zip(*sides, strict=True):
            if source.strip() and target.strip():
                self.pairs.append((source.strip(), target.strip()))
            else:
                self.skipped["not translated"] += 1

    def is_lines_of(self, paths: Sequence[Path]) -> bool:
        """Whether pair n is line n of the one file that was given."""
        return len(paths) == 1 and has_lines(paths[0]) and not self.skipped and not self.notes

    def remarks(self) -> list[str]:
        """What was left out, in lines for the user."""
        named = list(self.passed_over.items())
        lines = [f"{path}: passed over, because {why}" for path, why in named[:_MOST_NAMED]]
        lines += [f"and {len(named) - _MOST_NAMED:,} more files passed over"] if len(named) > _MOST_NAMED else []
        return [*lines, *self.notes, *(f"{count:,} left out: {why}" for why, count in self.skipped.items())]

    def name_languages(self, source: str | None, target: str | None, wanted: "WantedLanguages" = None) -> None:
        """Notes the languages that a file names; the first file that names them decides. Where the opposite direction
        is wanted, the pairs of this file are turned round."""
        if source and target:
            languages = (_plain_code(source), _plain_code(target))
            self.turned = wanted is not None and languages == (_plain_code(wanted[1]), _plain_code(wanted[0]))
            self.languages = self.languages or (languages[::-1] if self.turned else languages)


WantedLanguages = tuple[str, str] | None  # the languages asked for, where a file has several


def read_any(paths: Sequence[Path], wanted: WantedLanguages = None, without: Path | None = None) -> PairCollection:
    """Reads the pairs of a file, of two aligned files, or of all files in a folder except those below `without`."""
    found = PairCollection()
    for files in files_of(paths, wanted, without, found.passed_over):
        if len(files) == 2:
            _read_aligned(files[0], files[1], found, wanted)
        else:
            _read_file(files[0], found, wanted)
    if not found.pairs:
        reasons = "; ".join(f"{count:,} {why}" for why, count in found.skipped.items()) or "no pairs"
        raise DataError(f"{', '.join(map(str, paths))}: nothing to learn from ({reasons}); give translated sentences")
    return found


def files_of(
    paths: Sequence[Path],
    wanted: WantedLanguages = None,
    without: Path | None = None,
    passed_over: dict[Path, str] | None = None,
) -> list[tuple[Path, ...]]:
    """The files to read, in order: each one file, or two that are aligned. Unread files of a folder go into
    `passed_over`, with the reason."""
    if len(paths) == 2 and not any(path.is_dir() or _reader(path) or why_not_read(path) for path in paths):
        return [(paths[0], paths[1])]
    passed_over = {} if passed_over is None else passed_over
    return [
        files
        for path in paths
        for files in (_files_in(path, wanted, without, passed_over) if path.is_dir() else [(path,)])
    ]


def has_lines(path: Path) -> bool:
    """Whether each pair is a line of the file, so that sort, awk and cut work on it."""
    kind = _reader(path)
    return (
        not path.is_dir() and path.suffix != ".gz" and (kind is _read_tsv or (kind is None and not why_not_read(path)))
    )


def why_not_read(path: Path) -> str | None:
    """What an unreadable kind of file is, and what to do about it; None: it is of no such kind."""
    match path.suffix.lower():
        case ".xls" | ".ods" | ".numbers":
            return "this format of spreadsheets is not read; save it as .xlsx, or as CSV in UTF-8"
        case ".docx" | ".doc" | ".odt" | ".rtf" | ".pdf" | ".pptx":
            return "a document has no sentence pairs; give a table or a translation memory"
        case ".zip" | ".7z" | ".rar" | ".tar" | ".tgz" | ".bz2" | ".xz" | ".zst":
            return "an archive is not read; unpack it first"
        case _:
            return None


def _read_file(path: Path, found: PairCollection, wanted: WantedLanguages) -> None:
    if not path.exists():
        raise no_such_file(str(path))
    if _reader(path) is None and (why := why_not_read(path)):
        raise DataError(f"{path}: {why}")
    found.files.append(path)
    found.turned = False
    (_reader(path) or _read_tsv)(path, found, wanted)


def _reader(path: Path) -> Callable[[Path, PairCollection, WantedLanguages], None] | None:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    match suffixes[-1] if suffixes else "":
        case ".tsv" | ".tab":
            return _read_tsv
        case ".csv":
            return _read_csv
        case ".xlsx" | ".xlsm":
            return _read_xlsx
        case ".jsonl" | ".ndjson" | ".json":
            return _read_json
        case ".tmx":
            return _read_tmx
        case ".xlf" | ".xliff" | ".sdlxliff" | ".mxliff":
            return _read_xliff
        case ".po" | ".pot" | ".mo":
            return _read_po
        case _:
            return None


# Endings of common files that look like language codes.
_NO_LANGUAGE = {".md", ".py", ".sh", ".js", ".log", ".txt", ".pdf", ".zip", ".xml", ".yml", ".rst", ".htm", ".bak"}


def _files_in(
    folder: Path, wanted: WantedLanguages, without: Path | None, passed_over: dict[Path, str]
) -> list[tuple[Path, ...]]:
    """Every file of a known format, and pairs of plain files that have one name: news.en and news.de."""
    plain: dict[Path, list[Path]] = {}
    found: list[tuple[Path, ...]] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue  # hidden, such as .git
        if without is not None and path.resolve().is_relative_to(without.resolve()):
            continue
        if _reader(path) is not None:
            found.append((path,))
            continue
        stem = path.with_suffix("") if path.suffix == ".gz" else path
        may_be_language = stem.suffix.lower() not in _NO_LANGUAGE and why_not_read(stem) is None
        if may_be_language and _LANGUAGE_CODE.fullmatch(stem.suffix.lstrip(".")):
            plain.setdefault(stem.with_suffix(""), []).append(path)
        else:
            passed_over[path] = (
                why_not_read(path)
                or f"files {f'ending in {path.suffix}' if path.suffix else 'without an ending'} are not read"
            )
    for name, files in plain.items():
        if len(files) > 2 and wanted is not None:
            files = [path for code in wanted for path in files if _suffix_code(path) == code]
        if len(files) == 2:
            found.append(tuple(_in_order(files, wanted)))
        elif len(files) == 1:
            passed_over[files[0]] = "there is no second file of that name, in another language"
        else:
            raise DataError(
                f"{name}.*: {len(files)} files of one name; give the two that are translations of each other, or name "
                f"their languages with --source-language and --target-language"
            )
    if not found:
        raise DataError(
            f"{folder}: no .tsv, .csv, .xlsx, .jsonl, .tmx, .xlf, .po or .mo in it, nor two files like a.en, a.de"
        )
    return found


def _in_order(files: Sequence[Path], wanted: WantedLanguages) -> Sequence[Path]:
    return sorted(files, key=lambda path: wanted is not None and _suffix_code(path) != wanted[0])


def _suffix_code(path: Path) -> str:
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lstrip(".")


def _read_aligned(source: Path, target: Path, found: PairCollection, wanted: WantedLanguages) -> None:
    found.files += [source, target]
    found.turned = False
    codes = [_suffix_code(path) for path in (source, target)]
    if all(map(_LANGUAGE_CODE.fullmatch, codes)) and codes[0] != codes[1]:
        found.name_languages(codes[0], codes[1], wanted)
    _add_lines(source, raw_pairs(CorpusConfig(source=str(source), target=str(target))), found, wanted)


def _read_tsv(path: Path, found: PairCollection, wanted: WantedLanguages) -> None:
    _add_lines(path, raw_pairs(CorpusConfig(pairs=str(path))), found, wanted)


def _add_lines(
    path: Path, lines: Iterable[Sequence[bytes]], found: PairCollection, wanted: WantedLanguages = None
) -> None:
    bad: Counter[str] = Counter()
    read = 0

    def rows() -> Iterator[Row]:
        nonlocal read
        for columns in lines:
            read += 1
            if len(columns) < 2:
                bad["without a tab"] += 1
                continue
            try:
                yield [column.decode() for column in columns]
            except UnicodeDecodeError:
                bad["not UTF-8"] += 1

    _add_table(path, rows(), found, wanted)
    for why, count in bad.items():
        if count > max(1, _MOST_BAD_LINES * read):
            raise DataError(
                f"{path}: {count:,} of {read:,} lines are {why}; give a source, a tab and a target on each line, in "
                f"UTF-8 (iconv -f ITS_ENCODING -t UTF-8 converts)"
            )
    found.skipped.update(bad)


def _read_csv(path: Path, found: PairCollection, wanted: WantedLanguages) -> None:
    lines = read_lines(path)
    first = next(lines, "").removeprefix("\ufeff")
    separator = max(",;\t", key=first.count)
    try:
        rows = csv.reader((f"{line}\n" for line in chain([first], lines)), delimiter=separator)
        _add_table(path, (row for row in rows if row), found, wanted)
    except csv.Error as error:
        raise DataError(f"{path}: cannot be read as CSV ({error}); save it again as CSV in UTF-8") from None


def _read_xlsx(path: Path, found: PairCollection, wanted: WantedLanguages) -> None:
    _need("openpyxl", path)
    for rows in xlsx_rows(path):
        _add_table(path, rows, found, wanted)


def _add_table(path: Path, table: Iterable[Row], found: PairCollection, wanted: WantedLanguages) -> None:
    """Adds the two columns of text of a table, without its heading."""
    rows = iter(table)
    sample = list(islice(rows, SAMPLE))
    layout = layout_of(sample, wanted)
    if layout.languages:
        found.name_languages(*layout.languages, wanted)
    if layout.heading:
        found.notes.append(f"{path}: the first row is a heading ({_shown(sample[0])})")
    if (layout.source, layout.target) != (0, 1):
        found.notes.append(f"{path}: the texts are taken from columns {layout.source + 1} and {layout.target + 1}")
    needed = max(layout.source, layout.target) + 1
    for row in chain(sample[layout.heading :], rows):
        if len(row) < needed:
            found.skipped["without two columns"] += 1
        else:
            found.add((row[layout.source], row[layout.target]))


def _shown(row: Row) -> str:
    text = ", ".join(cell.strip() for cell in row)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _read_json(path: Path, found: PairCollection, wanted: WantedLanguages) -> None:
    lines = list(read_lines(path))
    values: Iterable[Any]
    if path.suffix.lower() == ".json" or (lines and lines[0].strip() == "["):
        values = _parsed("\n".join(lines), path, 1)
        if not isinstance(values, list):
            raise DataError(f"{path}: not a list; give one of objects with a source and a target")
    else:
        values = (_parsed(line, path, number) for number, line in enumerate(lines, start=1) if line.strip())
    for number, value in enumerate(values, start=1):
        found.add(_pair_in(value, wanted, path, number))
        if number == 1 and isinstance(value, dict) and isinstance(value.get("translation"), dict):
            found.name_languages(*(wanted or list(value["translation"])[:2]))


def _parsed(text: str, path: Path, number: int) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{number}: not valid JSON ({error}); one object a line is expected") from None


def _pair_in(value: Any, wanted: WantedLanguages, path: Path, number: int) -> tuple[Any, Any]:
    """The pair in {"source", "target"} or the like, {"translation": {"en", "de"}}, {"en", "de"}, or a list of two."""
    if isinstance(value, list) and len(value) == 2:
        return value[0], value[1]
    if isinstance(value, dict):
        if isinstance(value.get("translation"), dict):
            value = value["translation"]
        for keys in ((wanted,) if wanted else ()) + _KEYS:
            if all(isinstance(value.get(key), str) for key in keys):
                return value[keys[0]], value[keys[1]]
        texts = [key for key in value if isinstance(value[key], str) and _LANGUAGE_CODE.fullmatch(key)]
        if len(texts) == 2:
            return value[texts[0]], value[texts[1]]
    raise DataError(
        f'{path}:{number}: no pair in it; write {{"source": "...", "target": "..."}}, or name its languages with '
        f"--source-language and --target-language"
    )


def _read_tmx(path: Path, found: PairCollection, wanted: WantedLanguages) -> None:
    _need("lxml", path)
    for unit in tmx_units(path):
        texts: dict[str, str] = {}
        for code, text in unit.texts:
            texts.setdefault(_plain_code(code or f"#{len(texts)}"), text)
        codes = [_plain_code(code) for code in wanted] if wanted else list(texts)
        if not wanted and unit.source_language is not None:
            source = _plain_code(unit.source_language)
            codes.sort(key=lambda code: code != source)  # the source first, whatever the order
        if len(texts) > 2 and not wanted:
            raise DataError(
                f"{path}: a unit in {len(texts)} languages ({', '.join(texts)}); choose two with --source-language and "
                f"--target-language"
            )
        if len(codes) < 2 or any(code not in texts for code in codes[:2]):
            found.skipped["not translated"] += 1
            continue
        if "#" not in "".join(codes[:2]):
            found.name_languages(codes[0], codes[1])
        found.add((texts[codes[0]], texts[codes[1]]))


def _read_xliff(path: Path, found: PairCollection, wanted: WantedLanguages) -> None:
    _need("lxml", path)
    file: int | None = None
    for unit in xliff_units(path):
        if unit.file != file:  # each <file> in it may have languages of its own
            file = unit.file
            found.turned = False
            found.name_languages(*unit.languages, wanted)
        if unit.source and unit.target:
            found.add((unit.source, unit.target))
        else:
            found.skipped["not translated"] += 1


def _read_po(path: Path, found: PairCollection, wanted: WantedLanguages) -> None:
    _need("polib", path)
    import polib

    try:
        entries = polib.mofile(str(path)) if path.suffix == ".mo" else polib.pofile(str(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error}); check it with: msgfmt --check") from None
    found.name_languages("en", entries.metadata.get("Language"), wanted)
    for entry in entries:
        if entry.obsolete or "fuzzy" in entry.flags:
            found.skipped["fuzzy or obsolete"] += 1
        elif entry.msgid_plural:
            forms = entry.msgstr_plural
            found.add((entry.msgid, forms.get(0, "")))
            found.add((entry.msgid_plural, forms.get(1, forms.get(0, ""))))
        else:
            found.add((entry.msgid, entry.msgstr))


def _need(module: str, path: Path) -> None:
    if importlib.util.find_spec(module) is None:
        raise UsageError(f"{path}: reading this format needs {module}; install it: pip install 'dragoman[formats]'")


def _plain_code(code: str) -> str:
    """The language without its country: en for en-GB, en_US and EN."""
    return re.split("[-_]", code.strip())[0].lower()
