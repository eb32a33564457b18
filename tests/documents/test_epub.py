# ruff: noqa: E501
"""EPUB: pages, contents and title are translated; the archive stays one that readers take for a book."""

import io
import zipfile

import pytest
from lxml import etree

from dragoman.documents.pipeline import translate_bytes
from dragoman.errors import DataError
from support.scripted_translator import Scripted, careful

CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/a.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>The big book</dc:title>
<dc:creator>A Person</dc:creator></metadata><manifest>
<item id="p" href="text/page%20one.xhtml" media-type="application/xhtml+xml"/>
<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="c" href="a.css" media-type="text/css"/></manifest></package>"""
PAGE = """<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x.js"/></head>
<body><h1 id="a">The house</h1><p>A <i>red</i><a id="p3"/> dog\u00a0&amp; a cat.<br/>End</p><p><img src="a.png" alt="a tree"/></p>
</body></html>"""
CONTENTS = "<ncx><docTitle><text>The big book</text></docTitle><navLabel><text>One</text></navLabel></ncx>"


def book(container: str = CONTAINER, page: str = PAGE) -> bytes:
    with zipfile.ZipFile(made := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", container)
        for name, text in (("a.opf", PACKAGE), ("text/page one.xhtml", page), ("toc.ncx", CONTENTS), ("a.css", "p {}")):
            archive.writestr(f"OEBPS/{name}", text)
    return made.getvalue()


def test_a_book_is_translated_and_stays_a_book() -> None:
    content, report = translate_bytes(book(), "epub", "a.epub", Scripted(careful))
    # The first entry is not packed, so that its text stands at a fixed place of the file.
    assert content[30:58] == b"mimetypeapplication/epub+zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist()[0] == "mimetype"
        assert archive.read("OEBPS/a.css") == b"p {}"
        page = etree.fromstring(archive.read("OEBPS/text/page one.xhtml"))
        package = etree.fromstring(archive.read("OEBPS/a.opf"))
        contents = etree.fromstring(archive.read("OEBPS/toc.ncx"))
    assert [page.findtext(f".//{{*}}{name}") for name in ("h1", "i")] == ["THE HOUSE", "RED"]
    assert "".join(page.find(".//{*}p").itertext()) == "A RED DOG\u00a0& A CAT.END"
    assert page.find(".//{*}img").get("alt") == "A TREE"
    assert [package.findtext(f".//{{*}}{name}") for name in ("title", "creator")] == ["THE BIG BOOK", "A Person"]
    assert [one.text for one in contents.iter("text")] == ["THE BIG BOOK", "ONE"]
    assert report.how["source"] == 0


def test_a_book_without_its_package_is_refused() -> None:
    for container in ("<container/>", CONTAINER.replace("a.opf", "../../b.opf")):
        with pytest.raises(DataError, match=r"a\.epub: META-INF/container\.xml names no package of a book"):
            translate_bytes(book(container), "epub", "a.epub", Scripted(careful))


def test_entities_that_a_page_declares_are_copied() -> None:
    page = PAGE.replace("<html", '<!DOCTYPE html [<!ENTITY app "Foo"><!ENTITY copyright "Bar">]><html', 1)
    page = page.replace("A <i>", "&app; &copyright; <i>").replace("\u00a0", "&nbsp;").replace("a tree", "a &app; tree")
    content, _ = translate_bytes(book(page=page), "epub", "a.epub", Scripted(careful))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        said = archive.read("OEBPS/text/page one.xhtml").decode()
    assert '<p>&app; &copyright; <i>RED</i><a id="p3"/> DOG\u00a0&amp; A CAT.' in said
    assert 'alt="A &app; TREE"' in said
