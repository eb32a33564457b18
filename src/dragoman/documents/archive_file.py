"""Reads and writes documents that are archives: parts without text are copied byte by byte, in the same order."""

import itertools
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from dragoman.documents.flow import Flow
from dragoman.documents.format_names import DocumentFormat
from dragoman.documents.lexer import MarkupError
from dragoman.documents.text_file import Open, blocks, decoded
from dragoman.errors import DataError

# Reads the pieces of one part from its text.
PartReader = Callable[[Iterable[str]], Iterator[str | Flow]]
# Gives the text to write for the pieces of a part, or of a document of one part, which has the name "".
Write = Callable[[str, Iterable[str | Flow]], Iterator[str]]

LARGE, MOST_RATIO = 64 << 20, 200  # bytes of an archive, and times its size: a book of one word comes to some 100
# Of an archive: damaged, encrypted, or packed in a way that is not known here.
_DAMAGE = (
    zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError,
    struct.error,
)  # fmt: skip
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


class Archive:
    """The parts of an archive that was opened."""

    def __init__(self, archive: zipfile.ZipFile, name: str, document_format: DocumentFormat) -> None:
        self.name = name  # of the file
        self.document_format = document_format
        self._archive = archive
        self._members = {info.filename: info for info in archive.infolist()}

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def text(self, part: str) -> Iterator[str]:
        """The text of a part in chunks; of one that is missing, nothing."""
        return self._text(self._members[part]) if part in self._members else iter(())

    def size(self) -> int:
        return sum(info.file_size for info in self._archive.infolist())

    def pieces(self, readers: dict[str, PartReader]) -> Iterator[tuple[str, Iterator[str | Flow]]]:
        """The parts that have readers, and their pieces."""
        for info in self._archive.infolist():
            if info.filename in readers:
                yield info.filename, self._pieces(info, readers[info.filename])

    def rewrite(self, output: BinaryIO, readers: dict[str, PartReader], write: Write) -> None:
        with zipfile.ZipFile(output, "w") as written:
            for info in self._archive.infolist():
                with written.open(_like(info), "w") as target:
                    if info.filename in readers:
                        for text in write(info.filename, self._pieces(info, readers[info.filename])):
                            target.write(text.encode())
                    else:
                        for block in self._blocks(info):
                            target.write(block)

    def _pieces(self, info: zipfile.ZipInfo, reader: PartReader) -> Iterator[str | Flow]:
        try:
            yield from reader(self._text(info))
        except (MarkupError, RecursionError) as error:
            raise self._damaged(info, error) from None

    def _text(self, info: zipfile.ZipInfo) -> Iterator[str]:
        try:
            with self._archive.open(info) as member:
                head = member.read(200)
                declared = re.search(rb"""encoding=["']([\w-]+)["']""", head)
                if declared and declared[1].lower() not in (b"utf-8", b"us-ascii"):
                    raise DataError(
                        f"{self.name}: {info.filename} is in {declared[1].decode()}; save the document as UTF-8"
                    )
                yield from decoded(itertools.chain([head], blocks(member)), "utf-8", f"{self.name}: {info.filename}")
        except _DAMAGE as error:
            raise self._damaged(info, error) from None

    def _blocks(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        try:
            with self._archive.open(info) as member:
                yield from blocks(member)
        except _DAMAGE as error:
            raise self._damaged(info, error) from None

    def _damaged(self, info: zipfile.ZipInfo, error: Exception) -> DataError:
        return DataError(f"{self.name}: {info.filename} is damaged ({error}); save the document again")


@contextmanager
def open_archive(opened: Open, name: str, document_format: DocumentFormat) -> Iterator[Archive]:
    """Opens an archive; one that unpacks to far more than any document is refused."""
    with opened() as stream:
        try:
            archive = zipfile.ZipFile(stream)
        except _DAMAGE:
            raise DataError(
                f"{name}: no {document_format.upper()} file, or a damaged one; save the document again"
            ) from None
        with archive:
            infos = archive.infolist()
            size, packed = sum(info.file_size for info in infos), sum(info.compress_size for info in infos)
            if size > LARGE and size > MOST_RATIO * packed:
                raise DataError(
                    f"{name}: unpacks to {size:,} bytes, {size // max(1, packed):,} times its size; no document does"
                )
            yield Archive(archive, name, document_format)


def _like(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """What to write about a part that replaces this one."""
    made = zipfile.ZipInfo(info.filename, info.date_time)
    # One that is not known here is refused where the part is read.
    made.compress_type = info.compress_type if info.compress_type in _PACKINGS else zipfile.ZIP_DEFLATED
    made.external_attr = info.external_attr
    return made
