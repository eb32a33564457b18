"""The names of document formats, the endings of their files and their media types: the one list of them."""

from pathlib import PurePath
from typing import Literal, get_args

from dragoman.errors import UsageError

DocumentFormat = Literal[
    "text",
    "markdown",
    "html",
    "docx",
    "pptx",
    "xlsx",
    "odt",
    "odp",
    "ods",
    "srt",
    "vtt",
    "po",
    "xliff",
    "json",
    "epub",
    "yaml",
    "properties",
    "android",
    "strings",
    "stringsdict",
    "csv",
    "tsv",
]
# For each format its media type and the endings of its files.
_KNOWN: dict[DocumentFormat, tuple[str, tuple[str, ...]]] = {
    "text": ("text/plain; charset=utf-8", (".txt", ".text")),
    "markdown": ("text/markdown; charset=utf-8", (".md", ".markdown")),
    "html": ("text/html; charset=utf-8", (".html", ".htm", ".xhtml")),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", (".docx",)),
    "pptx": ("application/vnd.openxmlformats-officedocument.presentationml.presentation", (".pptx",)),
    "xlsx": ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", (".xlsx",)),
    "odp": ("application/vnd.oasis.opendocument.presentation", (".odp",)),
    "ods": ("application/vnd.oasis.opendocument.spreadsheet", (".ods",)),
    "odt": ("application/vnd.oasis.opendocument.text", (".odt",)),
    "srt": ("application/x-subrip", (".srt",)),
    "vtt": ("text/vtt; charset=utf-8", (".vtt",)),
    "po": ("text/x-gettext-translation; charset=utf-8", (".po", ".pot")),
    "xliff": ("application/xliff+xml", (".xlf", ".xliff")),
    "json": ("application/json", (".json",)),
    "epub": ("application/epub+zip", (".epub",)),
    "yaml": ("application/yaml", (".yml", ".yaml")),
    "properties": ("text/plain", (".properties",)),
    "android": ("application/xml", (".xml",)),
    "strings": ("text/plain", (".strings",)),
    "stringsdict": ("application/xml", (".stringsdict",)),
    "csv": ("text/csv; charset=utf-8", (".csv",)),
    "tsv": ("text/tab-separated-values; charset=utf-8", (".tsv",)),
}
BILINGUAL: frozenset[DocumentFormat] = frozenset(["po", "xliff"])  # they hold the source and its translation
# A browser would show these as a page of whoever sends them.
SHOWN_BY_BROWSERS: frozenset[DocumentFormat] = frozenset(["html", "xliff", "android", "stringsdict"])
MEDIA_TYPES = {name: media_type for name, (media_type, _) in _KNOWN.items()}
SUFFIXES = {suffix: name for name, (_, suffixes) in _KNOWN.items() for suffix in suffixes}


def format_of(name: str) -> DocumentFormat:
    """The format by the ending of a file's name."""
    suffix = PurePath(name).suffix.lower()
    if suffix == ".pdf":
        raise UsageError(
            f"{name}: a PDF has letters at places, and no text that a translation could take the place of; take the "
            f"document that it was made from, or its text alone: pdftotext {name} {PurePath(name).stem}.txt"
        )
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{name}: not a known kind of document; known are {', '.join(SUFFIXES)}; or name it: --format "
            f"{'|'.join(get_args(DocumentFormat))}"
        )
    return SUFFIXES[suffix]
