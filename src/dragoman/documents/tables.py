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
# A cell that goes on behind its closing quote: "Yes, yes" she said. A line or a tab ends it, quote or no quote: there
# it is more likely that quotes are nothing special in this table.
_QUOTE_AND_MORE = r'"(?:[^"\r\n\t]|"")*+"'


def delimiter_of(line: str) -> str:
    """The sign that stands most often between the cells of the first line."""
    bare = _QUOTED.sub("", line)
    return max(_DELIMITERS, key=bare.count)


def table_pieces(
    read: Callable[[], Iterable[str]], settings: FormatSettings, delimiter: str | None
) -> Iterator[str | Flow]:
    if delimiter is None:
        delimiter = delimiter_of(next((line for chunk in read() for line in chunk.splitlines()[:1]), ""))
    ended = False

    def chunks() -> Iterator[str]:
        nonlocal ended
        yield from read()
        ended = True

    cells = _cells(delimiter)
    names: list[str] = []
    wanted: frozenset[int] | None = None
    column = row = 0
    for found in scan(chunks(), lambda: cells[ended]):
        if not found[0]:
            return
        raw, end = found["cell"], found["end"]
        text = raw[1:-1].replace('""', '"') if _QUOTED.fullmatch(raw) else raw
        if row == 0:
            names.append(text.strip().lstrip("\ufeff"))
        is_text = is_message(text) and (column in wanted if wanted is not None else row > 0)
        if is_text:
            yield replace(string_flow(text, raw), finish=partial(_written, raw=raw, delimiter=delimiter))
            yield end
        else:
            yield found[0]
        column += 1
        if end != delimiter:
            if row == 0:
                wanted = _wanted(settings.columns, names)
            row, column = row + 1, 0


def _cells(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What a cell is, with the sign behind it: while more of the table may come, and at its end. Only there is a quote
    that is never closed an ordinary character; before, the rest of the cell has not been read yet."""
    quoted = rf'"(?:[^"]|"")*+"(?=[{delimiter}\r\n]|\Z)'
    bare = rf"[^{delimiter}\r\n]*+"
    end = rf"(?P<end>[{delimiter}]|\r\n|\n|\r|\Z)"
    unclosed = r'"(?:[^"]|"")*+\Z'
    more, last = (
        re.compile(rf"(?P<cell>{quoted}|{_QUOTE_AND_MORE}{bare}|{not_yet}{bare}){end}")
        for not_yet in (rf"(?!{unclosed})", "")
    )
    return more, last


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


def _written(text: str, raw: str, delimiter: str) -> str:
    if raw.startswith('"') and not _QUOTED.fullmatch(raw):  # its quotes are text, so they stay as they stood
        bare = re.fullmatch(rf"{_QUOTE_AND_MORE}[^{delimiter}\r\n]*+|[^{delimiter}\r\n]*+", text)
    else:
        bare = None if raw.startswith('"') else re.fullmatch(rf'[^"\r\n{delimiter}]*+', text)
    return text if bare else '"' + text.replace('"', '""') + '"'
