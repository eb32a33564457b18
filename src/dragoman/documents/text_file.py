"""Reads documents that are text files: in chunks, in the encoding that their first bytes tell."""

import codecs
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import IO, BinaryIO

from dragoman.documents.format_names import DocumentFormat
from dragoman.errors import DataError

# Opens the document anew at each call: it is read once to translate and once to write.
Open = Callable[[], BinaryIO]

CHUNK = 1 << 16
_XML: frozenset[DocumentFormat] = frozenset(
    ["xliff", "android", "stringsdict"]
)  # text files whose first line says their encoding
_XML_ENCODING = re.compile(rb"""<\?xml\b[^>]*?\sencoding\s*=\s*["']([\w-]+)["']""")
# What XML may be declared to be in and is read: encodings of single bytes, of which the first 128 are ASCII.
_DECLARED = frozenset(["utf-8", "us-ascii", "ascii", "iso-8859-1", "iso-8859-2", "iso-8859-15", "windows-1252"])
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True)
class TextFile:
    """A document that can be read from its beginning as often as needed."""

    opened: Open
    name: str
    document_format: DocumentFormat

    @cached_property
    def encoding(self) -> str:
        with self.opened() as stream:
            head = stream.read(200)
        known = next((encoding for mark, encoding in _BOMS if head.startswith(mark)), None)
        if known is None and self.document_format == "properties":
            return self._of_properties()
        if known is None and b"\0" in head[:2] and self.document_format == "strings":  # Xcode's, without a mark
            return "utf-16-be" if head[:1] == b"\0" else "utf-16-le"
        declared = _XML_ENCODING.match(head) if self.document_format in _XML else None
        if known is not None or declared is None:
            return known or "utf-8"
        encoding = declared[1].decode().lower()
        if encoding not in _DECLARED:
            raise DataError(f"{self.name}: is in {declared[1].decode()}; save the document as UTF-8")
        return encoding

    def _of_properties(self) -> str:
        """As Java reads them: UTF-8, or ISO-8859-1 where it is none."""
        encoding = "ascii"
        decoder = codecs.getincrementaldecoder("utf-8")()
        with self.opened() as stream:
            try:
                for block in blocks(stream):
                    decoder.decode(block)
                    encoding = encoding if block.isascii() else "utf-8"
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                return "latin-1"
        return encoding

    def chunks(self) -> Iterator[str]:
        with self.opened() as stream:
            yield from decoded(blocks(stream), self.encoding, self.name)

    def encoder(self) -> codecs.IncrementalEncoder:
        """What the encoding has no letter for is written as a character reference, where the format has these."""
        errors = "xmlcharrefreplace" if self.document_format in _XML else "strict"
        return codecs.getincrementalencoder(self.encoding)(errors)

    def ends_of_lines(self) -> str:
        text = next((chunk for chunk in self.chunks() if chunk), "")
        return "\r\n" if "\r\n" in text else "\n"

    def size(self) -> int:
        with self.opened() as stream:
            return stream.seek(0, io.SEEK_END)


def blocks(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(CHUNK):
        yield block


def decoded(blocks: Iterator[bytes], encoding: str, name: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)()
    read = 0
    try:
        for block in blocks:
            yield decoder.decode(block)
            read += len(block)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        known = encoding.upper().removesuffix("-SIG")
        raise DataError(
            f"{name}: not {known} near byte {read + error.start:,}; convert it: iconv -f ISO-8859-1 -t UTF-8"
        ) from None


def line_feeds(chunks: Iterator[str]) -> Iterator[str]:
    """The text with a line feed alone at the end of each line."""
    waiting = ""
    for chunk in chunks:
        text = (waiting + chunk).replace("\r\n", "\n")
        waiting = "\r" if text.endswith("\r") else ""
        yield text.removesuffix("\r") if waiting else text
    yield waiting
