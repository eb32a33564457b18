"""Reads and writes the pieces of a document in any format: a table of the readers of all formats."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

from dragoman.documents.android import android_pieces
from dragoman.documents.apple_strings import strings_pieces, stringsdict_pieces
from dragoman.documents.archive_file import Archive, PartReader, Write, open_archive
from dragoman.documents.docx import docx_parts
from dragoman.documents.epub import epub_parts
from dragoman.documents.flow import Flow
from dragoman.documents.format_names import DocumentFormat
from dragoman.documents.html import html_pieces
from dragoman.documents.json_strings import json_pieces
from dragoman.documents.odt import odt_parts
from dragoman.documents.plain_text import text_pieces
from dragoman.documents.po import po_pieces
from dragoman.documents.pptx import pptx_parts
from dragoman.documents.properties import properties_pieces
from dragoman.documents.settings import DEFAULTS, FormatSettings
from dragoman.documents.subtitles import subtitle_pieces
from dragoman.documents.tables import table_pieces
from dragoman.documents.text_file import Open, TextFile, line_feeds
from dragoman.documents.xliff import xliff_pieces
from dragoman.documents.xlsx import xlsx_parts
from dragoman.documents.yaml_strings import yaml_pieces
from dragoman.errors import DataError

# Reads the pieces of a document that is a text file.
TextReader = Callable[[TextFile, FormatSettings], Iterator[str | Flow]]
# Tells which parts of an archive have text, and how each of them is read.
ArchiveReader = Callable[[Archive, FormatSettings], dict[str, PartReader]]


def _markdown(file: TextFile, settings: FormatSettings) -> Iterator[str | Flow]:
    from dragoman.documents.markdown import find_references, markdown_pieces

    return markdown_pieces(line_feeds(file.chunks()), find_references(file.chunks()), settings)


_TEXT_FILES: dict[DocumentFormat, TextReader] = {
    "text": lambda file, _: text_pieces(file.chunks()),
    "markdown": _markdown,
    "html": lambda file, settings: html_pieces(file.chunks(), settings),
    "srt": lambda file, _: subtitle_pieces(file.chunks(), vtt=False),
    "vtt": lambda file, _: subtitle_pieces(file.chunks(), vtt=True),
    "po": lambda file, settings: po_pieces(file.chunks(), settings),
    "xliff": lambda file, settings: xliff_pieces(file.chunks(), settings),
    "json": lambda file, _: json_pieces(file.chunks()),
    "yaml": lambda file, _: yaml_pieces(file.chunks()),
    "properties": lambda file, _: properties_pieces(file.chunks(), file.encoding in ("ascii", "latin-1")),
    "android": lambda file, _: android_pieces(file.chunks(), file.encoding),
    "strings": lambda file, _: strings_pieces(file.chunks()),
    "stringsdict": lambda file, _: stringsdict_pieces(file.chunks()),
    "csv": lambda file, settings: table_pieces(file.chunks, settings, None),
    "tsv": lambda file, settings: table_pieces(file.chunks, settings, "\t"),
}
_ARCHIVES: dict[DocumentFormat, ArchiveReader] = {
    "docx": docx_parts,
    "pptx": pptx_parts,
    "xlsx": xlsx_parts,
    "odt": odt_parts,
    "odp": odt_parts,
    "ods": odt_parts,
    "epub": epub_parts,
}
_LINE_FEEDS: frozenset[DocumentFormat] = frozenset(["markdown"])  # read with line feeds, whatever ends the lines


def pieces_of(
    opened: Open, document_format: DocumentFormat, name: str, settings: FormatSettings = DEFAULTS
) -> Iterator[str | Flow]:
    """Reads the pieces of a document: its parts one after the other."""
    if document_format in _ARCHIVES:
        with open_archive(opened, name, document_format) as archive:
            for _, pieces in archive.pieces(_ARCHIVES[document_format](archive, settings)):
                yield from pieces
    else:
        yield from _text_pieces(TextFile(opened, name, document_format), settings)


def rewrite(
    opened: Open,
    document_format: DocumentFormat,
    name: str,
    output: BinaryIO,
    write: Write,
    settings: FormatSettings = DEFAULTS,
) -> None:
    """Writes the document anew, with what `write` gives for its pieces."""
    if document_format in _ARCHIVES:
        with open_archive(opened, name, document_format) as archive:
            archive.rewrite(output, _ARCHIVES[document_format](archive, settings), write)
        return
    file = TextFile(opened, name, document_format)
    encode = file.encoder().encode
    back = file.ends_of_lines() if document_format in _LINE_FEEDS else "\n"
    for text in write("", _text_pieces(file, settings)):
        output.write(encode(text.replace("\n", back) if back != "\n" else text))


def uncompressed_size(opened: Open, document_format: DocumentFormat, name: str) -> int:
    """The size in bytes, unpacked, before anything is read: an archive may hold far more than it seems."""
    if document_format in _ARCHIVES:
        with open_archive(opened, name, document_format) as archive:
            return archive.size()
    return TextFile(opened, name, document_format).size()


def _text_pieces(file: TextFile, settings: FormatSettings) -> Iterator[str | Flow]:
    try:
        yield from _TEXT_FILES[file.document_format](file, settings)
    except DataError as error:
        told = str(error)
        raise error if told.startswith(f"{file.name}: ") else type(error)(f"{file.name}: {told}") from None
