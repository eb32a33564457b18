"""Writes translation memories as TMX 1.4, which every CAT tool reads."""

import re
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

_NO_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")  # characters that XML cannot hold


def tmx_lines(
    units: Iterable[tuple[str, str, str]], source_language: str, target_language: str, version: str
) -> Iterator[str]:
    """The lines of the file. A unit: the source, its translation, and when it was made (ISO 8601; "": not known).
    `version`: of this program, which the header names."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<tmx version="1.4">'
    yield (
        f'  <header creationtool="Dragoman" creationtoolversion={quoteattr(version)} segtype="sentence" '
        f'o-tmf="Dragoman" adminlang="en" srclang={quoteattr(source_language)} datatype="plaintext"/>'
    )
    yield "  <body>"
    for source, target, made_at in units:
        digits = re.sub(r"[-:]", "", made_at.partition("+")[0])
        date = f' creationdate="{digits}Z"' if re.fullmatch(r"\d{8}T\d{6}", digits) else ""
        variants = "".join(
            f"<tuv xml:lang={quoteattr(code)}><seg>{escape(_NO_XML.sub('', text))}</seg></tuv>"
            for code, text in ((source_language, source), (target_language, target))
        )
        yield f"    <tu{date}>{variants}</tu>"
    yield "  </body>"
    yield "</tmx>"
