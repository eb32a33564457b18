"""Reads tables of text, CSV and TSV: the cells of the columns that were asked for are translated, or of all."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from dragoman.documents.flow import Flow
from dragoman.documents.json_strings import is_message
from dragoman.documents.lexer import scan
from dragoman.documents.plain_text import string_flow
from dragoman.documents.settings import FormatSettings
from dragoman.errors import UsageError

_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'"(?:[^"]|"")*+"')


def delimiter_of(line: str) -> str:
    """The sign that stands most often between the cells of the first line."""
    bare = _QUOTED.sub("", line)
    return max(_DELIMITERS, key=bare.count)


def table_pieces(
    read: Callable[[], Iterable[str]], settings: FormatSettings, delimiter: str | None
) -> Iterator[str | Flow]:
    if delimiter is None:
        delimiter = delimiter_of(next((line for chunk in read() for line in chunk.splitlines()[:1]), ""))
    cell = re.compile(
        rf'(?P<cell>"(?:[^"]|"")*+"(?=[{delimiter}\r\n]|\Z)|[^{delimiter}\r\n]*+)(?P<end>[{delimiter}]|\r\n|\n|\r|\Z)'
    )
    names: list[str] = []
    wanted: frozenset[int] | None = None
    column = row = 0
    for found in scan(read(), cell):
        if not found[0]:
            return
        raw, end = found["cell"], found["end"]
        text = raw[1:-1].replace('""', '"') if raw.startswith('"') and len(raw) > 1 else raw
        if row == 0:
            names.append(text.strip().lstrip("\ufeff"))
        is_text = is_message(text) and (column in wanted if wanted is not None else row > 0)
        if is_text:
            yield replace(
                string_flow(text, raw), finish=partial(_written, quoted=raw.startswith('"'), delimiter=delimiter)
            )
            yield end
        else:
            yield found[0]
        column += 1
        if end != delimiter:
            if row == 0:
                wanted = _wanted(settings.columns, names)
            row, column = row + 1, 0


def _wanted(columns: Iterable[str], names: list[str]) -> frozenset[int] | None:
    """The numbers of the columns that were asked for by name or number, from 0; None: all."""
    found = []
    for asked in columns:
        if asked in names:
            found.append(names.index(asked))
        elif asked.isdecimal() and 1 <= int(asked) <= len(names):
            found.append(int(asked) - 1)
        else:
            raise UsageError(
                f"--column {asked}: no such column; the table has {', '.join(names)}, or their numbers from 1"
            )
    return frozenset(found) if found else None


def _written(text: str, quoted: bool, delimiter: str) -> str:
    if quoted or re.search(rf'["\r\n{delimiter}]', text):
        return '"' + text.replace('"', '""') + '"'
    return text
