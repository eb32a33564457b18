"""Reads the text of XLSX files: the strings of cells, comments, and what is drawn. Formulas, numbers and names stay."""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from dragoman.documents.archive_file import Archive, PartReader
from dragoman.documents.drawing import drawing_pieces
from dragoman.documents.flow import Flow
from dragoman.documents.lexer import Token, attribute, closed_element, local_name, raw_tokens, xml_tokens
from dragoman.documents.office_runs import RunsBuilder
from dragoman.documents.office_xml import escape_xml, paragraph_pieces
from dragoman.documents.settings import FormatSettings

_STRINGS = re.compile(r"xl/(?:sharedStrings|worksheets/sheet\w+|comments\w*|comments/\w+)\.xml")
_THREADS = re.compile(r"xl/threadedComments/\w+\.xml")
_DRAWN = re.compile(r"xl/(?:drawings/drawing\w+|charts/chart\w+|diagrams/(?:data|drawing)\d+)\.xml")
# Parts that name columns. A program that finds another name in the cell above one takes the file for damaged.
_COLUMNS = re.compile(r"xl/(?:tables/table\w+|pivotCache/pivotCacheDefinition\w+)\.xml")
_BY_NUMBER = re.compile("_x([0-9A-Fa-f]{4})_")  # a line break in the name of a column is _x000a_
_COLUMN = ("tableColumn", "cacheField")


def xlsx_parts(archive: Archive, settings: FormatSettings) -> dict[str, PartReader]:
    columns = frozenset(
        name
        for part in filter(_COLUMNS.fullmatch, archive.names)
        for token in xml_tokens(archive.text(part))
        if local_name(token) in _COLUMN and (name := _column_name(attribute(token.raw, "name") or ""))
    )
    settings.left.add("names of sheets")
    if columns:
        settings.left.add("names of columns that tables and pivot tables refer to")
    readers: dict[str, PartReader] = {}
    for part in archive.names:
        if _STRINGS.fullmatch(part):
            readers[part] = partial(_string_pieces, columns=columns, names=("si", "is", "text"))
        elif _THREADS.fullmatch(part):
            readers[part] = partial(_string_pieces, columns=columns, names=("text",))
        elif _DRAWN.fullmatch(part):
            readers[part] = drawing_pieces
    return readers


def _string_pieces(chunks: Iterable[str], columns: frozenset[str], names: tuple[str, ...]) -> Iterator[str | Flow]:
    return paragraph_pieces(xml_tokens(chunks), (), partial(_string, columns), local_names=names)


def _string(columns: frozenset[str], start: Token, tokens: list[Token]) -> Iterator[str | Flow]:
    """A string: one text, or runs of text with looks. What is said of its pronunciation is left out of its text."""
    raw = raw_tokens(tokens)
    if not any(local_name(token) == "t" for token in tokens):  # a threaded comment
        yield Flow(html.unescape(raw), raw, escape=escape_xml, whole_lines=True)
        return
    rich = any(local_name(token) == "r" for token in tokens)
    prefix = "".join(start.name.rpartition(":")[:2])
    runs = RunsBuilder(partial(_around_run if rich else _around_text, prefix))
    texts: list[str] = []
    stream = iter(tokens)
    for token in stream:
        whole = closed_element(stream, token) if token.kind == "start" else [token]
        name = local_name(token)
        if name == "r":
            look, text = _run(whole[1:-1])
        elif name == "t":
            look, text = "", html.unescape(raw_tokens(whole[1:-1]))
        elif raw_tokens(whole).strip():
            runs.add_point([raw_tokens(whole)])
            continue
        else:
            continue
        runs.add_text(text, look)
        texts.append(text)
    if _decoded("".join(texts)) in columns:
        yield raw
    else:
        yield replace(runs.flow(), raw=raw, whole_lines=True)


def _column_name(attribute_value: str) -> str:
    return _decoded(html.unescape(attribute_value))


def _decoded(text: str) -> str:
    """The text with the characters that Excel writes by their numbers, and with one kind of line end."""
    decoded = _BY_NUMBER.sub(lambda found: chr(int(found[1], 16)), text)
    return decoded.replace("\r\n", "\n").replace("\r", "\n")


def _run(inner: list[Token]) -> tuple[str, str]:
    """The look of a run, and its text."""
    look = text = ""
    stream = iter(inner)
    for token in stream:
        whole = closed_element(stream, token) if token.kind == "start" else [token]
        if local_name(token) == "rPr":
            look = raw_tokens(whole)
        elif local_name(token) == "t":
            text += html.unescape(raw_tokens(whole[1:-1]))
    return look, text


def _around_run(prefix: str, look: str) -> tuple[str, str]:
    return f'<{prefix}r>{look}<{prefix}t xml:space="preserve">', f"</{prefix}t></{prefix}r>"


def _around_text(prefix: str, _: str) -> tuple[str, str]:
    return f'<{prefix}t xml:space="preserve">', f"</{prefix}t>"
