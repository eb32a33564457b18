"""DOCX: code stays as it is, by its style, its font or its look; what is read out in place of a picture is text."""

import io
import re
import zipfile
from collections.abc import Callable
from typing import Any

import docx
import pytest
from docx.document import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml.ns import qn
from docx.text.run import Run

from dragoman.documents.pipeline import translate_bytes
from dragoman.documents.report import DocumentReport
from dragoman.documents.settings import DEFAULTS, FormatSettings
from support.scripted_translator import Scripted, careful


def docx_of(document: Document) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def through_docx(document: Document, settings: FormatSettings = DEFAULTS) -> tuple[Document, DocumentReport]:
    content, report = translate_bytes(docx_of(document), "docx", "document", Scripted(careful), settings)
    return docx.Document(io.BytesIO(content)), report


def texts(document: Document) -> list[str]:
    return [paragraph.text for paragraph in document.paragraphs]


def in_style(document: Document) -> Run:
    style = document.styles.add_style("Source Code", WD_STYLE_TYPE.PARAGRAPH)
    return document.add_paragraph(style=style).add_run("for the dog")


def in_style_based_on_another(document: Document) -> Run:
    style = document.styles.add_style("My Look", WD_STYLE_TYPE.PARAGRAPH)
    style.base_style = document.styles.add_style("HTML Preformatted", WD_STYLE_TYPE.PARAGRAPH)
    return document.add_paragraph(style=style).add_run("for the dog")


def in_style_of_fixed_width(document: Document) -> Run:
    base = document.styles.add_style("Base Look", WD_STYLE_TYPE.PARAGRAPH)
    base.font.name = "DejaVu Sans Mono"
    style = document.styles.add_style("My Look", WD_STYLE_TYPE.PARAGRAPH)
    style.base_style = base
    return document.add_paragraph(style=style).add_run("for the dog")


def in_font(document: Document) -> Run:
    run = document.add_paragraph().add_run("for the dog")
    run.font.name = "Courier New"
    return run


def in_font_of_the_theme(document: Document) -> Run:
    run = document.add_paragraph().add_run("for the dog")
    run.font.name = "Arial"  # the theme counts more
    element: Any = run._element
    element.rPr.rFonts.set(qn("w:asciiTheme"), "majorHAnsi")
    (theme,) = [part for part in document.part.package.iter_parts() if "theme" in part.partname]
    theme._blob = re.sub(rb'(<a:majorFont>\s*<a:latin typeface=")[^"]*', rb"\1Consolas", theme.blob)
    return run


def in_run_of_style(document: Document) -> Run:
    style = document.styles.add_style("Verbatim Char", WD_STYLE_TYPE.CHARACTER)
    return document.add_paragraph().add_run("for the dog", style=style)


@pytest.mark.parametrize(
    "written",
    [
        in_style,
        in_style_based_on_another,
        in_style_of_fixed_width,
        in_font,
        in_font_of_the_theme,
        in_run_of_style,
    ],
)
def test_a_paragraph_of_code_stays_in_docx(written: Callable[[Document], Run]) -> None:
    document = docx.Document()
    document.add_paragraph("the cat")
    written(document)
    read, report = through_docx(document)
    assert texts(read) == ["THE CAT", "for the dog"]
    assert report.sentences == 1


def test_a_run_of_code_is_copied_inside_its_sentence() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Call ")
    for part in ("print", "(dog) "):  # cut anywhere, as Word does
        paragraph.add_run(part).font.name = "Consolas"
    paragraph.add_run("now or ")
    paragraph.add_run("x" * 70).font.name = "Menlo"
    paragraph.add_run(" later.")
    translator = Scripted(careful)
    content, _ = translate_bytes(docx_of(document), "docx", "document", translator)
    (read,) = docx.Document(io.BytesIO(content)).paragraphs
    # What is long is passed by; of the rest the model reads every word.
    assert translator.asked[0] == "Call print(dog) now or later."
    assert read.text == f"CALL print(dog) NOW OR {'x' * 70} LATER."
    fonts = {run.text: run.font.name for run in read.runs}
    assert (fonts["print(dog)"], fonts["x" * 70]) == ("Consolas", "Menlo")


def test_a_document_in_a_font_of_fixed_width_is_no_code() -> None:
    document = docx.Document()
    document.styles["Normal"].font.name = "Courier New"
    document.add_paragraph("the dog")
    document.add_paragraph().add_run("the cat").font.name = "Consolas"
    assert texts(through_docx(document)[0]) == ["THE DOG", "THE CAT"]
    # Nor is Word's own style for text files.
    document = docx.Document()
    plain = document.styles.add_style("Plain Text", WD_STYLE_TYPE.PARAGRAPH)
    plain.font.name = "Consolas"
    document.add_paragraph("the dog", style=plain)
    assert texts(through_docx(document)[0]) == ["THE DOG"]


def test_a_document_of_nothing_but_code_is_said_to_be_one() -> None:
    document = docx.Document()
    in_style(document)
    read, report = through_docx(document)
    assert texts(read) == ["for the dog"]
    assert report.line() == "nothing to translate: what is code, protected or without letters stays"


def test_code_in_running_text_stays_in_docx() -> None:
    document = docx.Document()
    document.add_paragraph("press Ctrl+C in /usr/bin or type =SUM(A1:A3) now")
    assert texts(through_docx(document)[0]) == ["PRESS Ctrl+C IN /usr/bin OR TYPE =SUM(A1:A3) NOW"]


def test_a_style_or_a_font_is_protected_by_name_in_docx() -> None:
    document = docx.Document()
    style = document.styles.add_style("Product Name", WD_STYLE_TYPE.CHARACTER)
    document.add_paragraph("the ").add_run("big dog", style=style)
    document.add_paragraph("the legal text", style=document.styles.add_style("Legal", WD_STYLE_TYPE.PARAGRAPH))
    document.add_paragraph("a ").add_run("small cat").font.name = "Brush Script"
    assert texts(through_docx(document)[0]) == ["THE BIG DOG", "THE LEGAL TEXT", "A SMALL CAT"]
    read, _ = through_docx(document, FormatSettings(protect=("product name", "Legal", "brush script")))
    assert texts(read) == ["THE big dog", "the legal text", "A small cat"]


def test_styles_based_on_each_other_come_to_an_end() -> None:
    document = docx.Document()
    one, two = (document.styles.add_style(name, WD_STYLE_TYPE.PARAGRAPH) for name in ("One", "Two"))
    one.base_style, two.base_style = two, one
    document.add_paragraph("the dog", style=one)
    assert texts(through_docx(document)[0]) == ["THE DOG"]


PICTURE = (
    "<w:p><w:r><w:t>before</w:t></w:r><w:r><w:drawing><wp:inline><wp:docPr id='1' name='Picture 1' descr=\"a dog &amp; "
    "a &quot;cat&quot;&#10;second line\" title='the title'/></wp:inline></w:drawing></w:r></w:p>"
    '<w:tbl><w:tblPr><w:tblCaption w:val="a table"/></w:tblPr><w:tr/></w:tbl>'
)


def test_what_is_read_out_in_place_of_a_picture_is_translated_in_docx() -> None:
    source, made = zipfile.ZipFile(io.BytesIO(docx_of(docx.Document()))), io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for info in source.infolist():
            data = source.read(info)
            if info.filename == "word/document.xml":
                data = data.replace(b"<w:body>", b"<w:body>" + PICTURE.encode())
            archive.writestr(info, data)
    content, report = translate_bytes(made.getvalue(), "docx", "document", Scripted(careful))
    xml = zipfile.ZipFile(io.BytesIO(content)).read("word/document.xml").decode()
    assert "name='Picture 1' descr=\"A DOG &amp; A &quot;CAT&quot;&#10;SECOND LINE\" title='THE TITLE'/>" in xml
    assert '<w:tblCaption w:val="A TABLE"/>' in xml
    assert report.sentences == 5
    _, report = translate_bytes(made.getvalue(), "docx", "document", Scripted(lambda _: "{x}"))
    assert report.how["source"] == report.listed == 5


def test_the_report_counts_the_sentences_of_each_part() -> None:
    document = docx.Document()
    document.add_paragraph("The dog. The cat.")
    document.sections[0].header.paragraphs[0].text = "the header"
    assert through_docx(document)[1].to_dict()["parts"] == {"word/document.xml": 2, "word/header1.xml": 1}


def test_comments_are_translated_and_deleted_text_is_named() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("The dog")
    document.add_comment(paragraph.runs, text="look here", author="Ann")
    deleted: Any = paragraph.add_run(" old cat")._element
    deleted.addprevious(around := deleted.makeelement(qn("w:del"), {}))
    around.append(deleted)
    deleted[-1].tag = qn("w:delText")
    read, report = through_docx(document)
    assert [comment.text for comment in read.comments] == ["LOOK HERE"]
    assert "old cat" in read.element.xml
    assert report.to_dict()["left"] == ["text that was deleted or moved away (tracked changes)"]
