"""Tells which parts of a PPTX file have text: slides, notes, comments, diagrams and charts."""

import re

from dragoman.documents.archive_file import Archive, PartReader
from dragoman.documents.drawing import drawing_pieces
from dragoman.documents.settings import FormatSettings

_PARTS = re.compile(
    r"ppt/(?:slides/slide\d+|notesSlides/notesSlide\d+|comments/\w+|charts/chart\w+|diagrams/(?:data|drawing)\d+)\.xml"
)


def pptx_parts(archive: Archive, settings: FormatSettings) -> dict[str, PartReader]:
    if any(name.startswith("ppt/slideLayouts/") for name in archive.names):
        settings.left.add("text of masters and layouts")
    return dict.fromkeys(filter(_PARTS.fullmatch, archive.names), drawing_pieces)
