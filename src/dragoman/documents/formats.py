"""Tells the format of a document, and reads and writes its parts: text files in chunks, archives part by part."""

import codecs
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import IO, BinaryIO, Literal, get_args

from dragoman.documents.docx import DOCX_PARTS, docx_pieces
from dragoman.documents.flow import Flow
from dragoman.documents.html import html_pieces
from dragoman.documents.json_strings import json_pieces
from dragoman.documents.lexer import MarkupError
from dragoman.documents.odt import ODT_PARTS, odt_pieces
from dragoman.documents.office_styles import Styles, docx_styles, odt_styles
from dragoman.documents.plain_text import text_pieces
from dragoman.documents.po import po_pieces
from dragoman.documents.settings import DEFAULTS, FormatSettings
from dragoman.documents.subtitles import subtitle_pieces
from dragoman.errors import DataError, UsageError

DocumentFormat = Literal["text", "markdown", "html", "docx", "odt", "srt", "vtt", "po", "json"]
SUFFIXES: dict[str, DocumentFormat] = {
    ".txt": "text", ".text": "text", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html",
    ".xhtml": "html", ".docx": "docx", ".odt": "odt", ".srt": "srt", ".vtt": "vtt", ".po": "po", ".pot": "po",
    ".json": "json",
}  # fmt: skip
MEDIA_TYPES: dict[DocumentFormat, str] = {
    "text": "text/plain; charset=utf-8",
    "markdown": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "odt": "application/vnd.oasis.opendocument.text",
    "srt": "application/x-subrip",
    "vtt": "text/vtt; charset=utf-8",
    "po": "text/x-gettext-translation; charset=utf-8",
    "json": "application/json",
}

# Opens the document anew at each call: it is read once to translate and once to write.
Open = Callable[[], BinaryIO]
# Gives the text to write for the pieces of a document.
Write = Callable[[Iterable[str | Flow]], Iterator[str]]

CHUNK = 1 << 16
LARGE, MOST_RATIO = 64 << 20, 200  # bytes of an archive, and times its size: a book of one word comes to some 100
# Of an archive: damaged, encrypted, or packed in a way that is not known here.
_DAMAGE = (
    zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError,
    struct.error,
)  # fmt: skip
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def format_of(name: str) -> DocumentFormat:
    """The format by the ending of a file's name."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{name}: not a known kind of document; known are {', '.join(SUFFIXES)}; or name it: --format "
            f"{'|'.join(get_args(DocumentFormat))}"
        )
    return SUFFIXES[suffix]


def pieces_of(
    opened: Open,
    document_format: DocumentFormat,
    name: str,
    settings: FormatSettings = DEFAULTS,
) -> Iterator[str | Flow]:
    """Reads the pieces of a document: its parts one after the other."""
    if document_format in ("docx", "odt"):
        with opened() as stream, _archive(stream, name) as archive:
            styles = _styles_of_parts(archive, document_format, name, settings)
            for info in archive.infolist():
                if _text_parts(document_format).fullmatch(info.filename):
                    yield from _member_pieces(archive, info, styles[info.filename], document_format, name)
        return
    with opened() as stream:
        encoding = _encoding(stream)
        yield from _text_pieces(opened, _chunks(stream, encoding, name), encoding, document_format, name, settings)


def rewrite(
    opened: Open,
    document_format: DocumentFormat,
    name: str,
    output: BinaryIO,
    write: Write,
    settings: FormatSettings = DEFAULTS,
) -> None:
    """Writes the document anew, with what `write` gives for its pieces."""
    if document_format in ("docx", "odt"):
        with opened() as stream, _archive(stream, name) as archive, zipfile.ZipFile(output, "w") as written:
            styles = _styles_of_parts(archive, document_format, name, settings)
            for info in archive.infolist():
                with written.open(_like(info), "w") as target:
                    if _text_parts(document_format).fullmatch(info.filename):
                        for text in write(_member_pieces(archive, info, styles[info.filename], document_format, name)):
                            target.write(text.encode())
                    else:
                        for block in _member_blocks(archive, info, name):
                            target.write(block)
        return
    with opened() as stream:
        encoding = _encoding(stream)
        encode = codecs.getincrementalencoder(encoding)().encode
        chunks = _chunks(stream, encoding, name)
        back = _ends_of_lines(opened, encoding) if document_format == "markdown" else "\n"
        for text in write(_text_pieces(opened, chunks, encoding, document_format, name, settings)):
            output.write(encode(text.replace("\n", back) if back != "\n" else text))


def uncompressed_size(opened: Open, document_format: DocumentFormat, name: str) -> int:
    """The size in bytes, unpacked, before anything is read: an archive may hold far more than it seems."""
    with opened() as stream:
        if document_format in ("docx", "odt"):
            with _archive(stream, name) as archive:
                return sum(info.file_size for info in archive.infolist())
        return stream.seek(0, io.SEEK_END)


def _text_pieces(
    opened: Open,
    chunks: Iterator[str],
    encoding: str,
    document_format: DocumentFormat,
    name: str,
    settings: FormatSettings,
) -> Iterator[str | Flow]:
    match document_format:
        case "text":
            return text_pieces(chunks)
        case "html":
            return html_pieces(chunks, settings)
        case "srt" | "vtt":
            return subtitle_pieces(chunks, vtt=document_format == "vtt")
        case "po":
            return _named(po_pieces(chunks, settings), name)
        case "json":
            return _named(json_pieces(chunks), name)
        case "markdown":
            from dragoman.documents.markdown import find_references, markdown_pieces

            with opened() as again:
                references = find_references(_chunks(again, encoding, name))
            return markdown_pieces(_line_feeds(chunks), references, settings)
        case _:
            raise UsageError(f"format {document_format}; known: {', '.join(get_args(DocumentFormat))}")


def _named(pieces: Iterator[str | Flow], name: str) -> Iterator[str | Flow]:
    """Puts the name of the document before errors in it."""
    try:
        yield from pieces
    except DataError as error:
        raise type(error)(f"{name}: {error}") from None


def _member_pieces(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, styles: Styles, document_format: DocumentFormat, name: str
) -> Iterator[str | Flow]:
    chunks = _member_text(archive, info, name)
    try:
        yield from docx_pieces(chunks, styles) if document_format == "docx" else odt_pieces(chunks, styles)
    except (MarkupError, RecursionError) as error:
        raise _damaged(info, name, error) from None


def _member_text(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Iterator[str]:
    try:
        with archive.open(info) as member:
            head = member.read(200)
            declared = re.search(rb"""encoding=["']([\w-]+)["']""", head)
            if declared and declared[1].lower() not in (b"utf-8", b"us-ascii"):
                raise DataError(f"{name}: {info.filename} is in {declared[1].decode()}; save the document as UTF-8")
            yield from _decoded(_blocks(member, head), "utf-8", f"{name}: {info.filename}")
    except _DAMAGE as error:
        raise _damaged(info, name, error) from None


def _damaged(info: zipfile.ZipInfo, name: str, error: Exception) -> DataError:
    return DataError(f"{name}: {info.filename} is damaged ({error}); save the document again")


def _styles_of_parts(
    archive: zipfile.ZipFile, document_format: DocumentFormat, name: str, settings: FormatSettings
) -> dict[str, Styles]:
    """The styles that each part with text uses."""
    members = {info.filename: info for info in archive.infolist()}

    def text(part: str) -> Iterator[str]:
        return _member_text(archive, members[part], name) if part in members else iter(())

    parts = [part for part in members if _text_parts(document_format).fullmatch(part)]
    if document_format == "odt":
        return {part: odt_styles(text("styles.xml"), text(part), settings) for part in parts}
    return dict.fromkeys(parts, docx_styles(text("word/styles.xml"), text("word/theme/theme1.xml"), settings))


def _member_blocks(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    try:
        with archive.open(info) as member:
            yield from _blocks(member, b"")
    except _DAMAGE as error:
        raise _damaged(info, name, error) from None


def _archive(stream: BinaryIO, name: str) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(stream)
    except _DAMAGE:
        raise DataError(f"{name}: not a DOCX or ODT file, or a damaged one; save the document again") from None
    size, packed = (sum(getattr(info, name) for info in archive.infolist()) for name in ("file_size", "compress_size"))
    if size > LARGE and size > MOST_RATIO * packed:
        raise DataError(
            f"{name}: unpacks to {size:,} bytes, {size // max(1, packed):,} times its size; no document does"
        )
    return archive


def _text_parts(document_format: DocumentFormat) -> re.Pattern[str]:
    return DOCX_PARTS if document_format == "docx" else ODT_PARTS


def _like(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """What to write about a part that replaces this one."""
    made = zipfile.ZipInfo(info.filename, info.date_time)
    made.compress_type = info.compress_type
    made.external_attr = info.external_attr
    return made


def _encoding(stream: BinaryIO) -> str:
    head = stream.read(4)
    stream.seek(0)
    return next((encoding for mark, encoding in _BOMS if head.startswith(mark)), "utf-8")


def _chunks(stream: BinaryIO, encoding: str, name: str) -> Iterator[str]:
    return _decoded(_blocks(stream, b""), encoding, name)


def _blocks(stream: IO[bytes], head: bytes) -> Iterator[bytes]:
    yield head
    while block := stream.read(CHUNK):
        yield block


def _decoded(blocks: Iterator[bytes], encoding: str, name: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)()
    read = 0
    try:
        for block in blocks:
            yield decoder.decode(block)
            read += len(block)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}: not UTF-8 near byte {read + error.start:,}; convert it: iconv -f ISO-8859-1 -t UTF-8"
        ) from None


def _line_feeds(chunks: Iterator[str]) -> Iterator[str]:
    waiting = ""
    for chunk in chunks:
        text = (waiting + chunk).replace("\r\n", "\n")
        waiting = "\r" if text.endswith("\r") else ""
        yield text.removesuffix("\r") if waiting else text
    yield waiting


def _ends_of_lines(opened: Open, encoding: str) -> str:
    with opened() as stream:
        text = next(_chunks_with_text(stream, encoding), "")
    return "\r\n" if "\r\n" in text else "\n"


def _chunks_with_text(stream: BinaryIO, encoding: str) -> Iterator[str]:
    return (chunk for chunk in _chunks(stream, encoding, "") if chunk)
