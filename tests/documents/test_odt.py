"""ODT, ODS, ODP: code stays as it is, by its style or its font; what is read out in place of a picture is text."""

import io

from odf import draw, presentation, svg, teletype
from odf import table as odf_table
from odf import text as odf_text
from odf.opendocument import OpenDocumentPresentation, OpenDocumentSpreadsheet, OpenDocumentText
from odf.opendocument import load as load_odt
from odf.style import FontFace, MasterPage, PageLayout, ParagraphProperties, Style, TextProperties

from dragoman.documents.pipeline import translate_bytes
from dragoman.documents.settings import DEFAULTS, FormatSettings
from support.scripted_translator import Scripted, careful


def through_odt(document: OpenDocumentText, settings: FormatSettings = DEFAULTS) -> OpenDocumentText:
    stream = io.BytesIO()
    document.write(stream)
    content, _ = translate_bytes(stream.getvalue(), "odt", "document", Scripted(careful), settings)
    return load_odt(io.BytesIO(content))


def odt_texts(document: OpenDocumentText) -> list[str]:
    return [teletype.extractText(one) for one in document.getElementsByType(odf_text.P)]


def odt_with_styles() -> OpenDocumentText:
    document = OpenDocumentText()
    document.fontfacedecls.addElement(FontFace(name="F1", fontfamily="'Liberation Mono'"))
    named = Style(name="Preformatted_20_Text", displayname="Preformatted Text", family="paragraph")
    fixed = Style(name="Fixed", family="paragraph")
    fixed.addElement(TextProperties(attributes={"fontname": "F1"}))
    automatic = Style(name="P1", family="paragraph", parentstylename="Preformatted_20_Text")
    automatic.addElement(ParagraphProperties(margintop="1cm"))
    inherited = Style(name="P2", family="paragraph", parentstylename="Fixed")
    run = Style(name="T1", family="text")
    run.addElement(TextProperties(fontfamily="Consolas"))
    other = Style(name="T2", family="text")
    other.addElement(TextProperties(fontfamily="Arial"))
    for style in (named, fixed):
        document.styles.addElement(style)
    for style in (automatic, inherited, run, other):
        document.automaticstyles.addElement(style)
    return document


def test_code_stays_in_odt() -> None:
    document = odt_with_styles()
    for name in ("Preformatted_20_Text", "P1", "Fixed", "P2", "Standard"):
        document.text.addElement(odf_text.P(stylename=name, text="the dog"))
    mixed = odf_text.P(text="call ")
    mixed.addElement(odf_text.Span(stylename="T1", text="print(dog) "))
    mixed.addText("now")
    document.text.addElement(mixed)
    reversed_ = odf_text.P(stylename="P2", text="code ")
    reversed_.addElement(odf_text.Span(stylename="T2", text="some words"))
    document.text.addElement(reversed_)
    assert odt_texts(through_odt(document)) == [
        *["the dog"] * 4,
        "THE DOG",
        "CALL print(dog) NOW",
        "code SOME WORDS",
    ]


def test_a_style_or_a_font_is_protected_by_name_in_odt() -> None:
    document = odt_with_styles()
    document.styles.addElement(Style(name="Legal_20_Text", displayname="Legal Text", family="paragraph"))
    document.text.addElement(odf_text.P(stylename="Legal_20_Text", text="the dog"))
    mixed = odf_text.P(text="the ")
    mixed.addElement(odf_text.Span(stylename="T2", text="big cat"))
    document.text.addElement(mixed)
    assert odt_texts(through_odt(document)) == ["THE DOG", "THE BIG CAT"]
    protected = through_odt(document, FormatSettings(protect=("legal text", "arial")))
    assert odt_texts(protected) == ["the dog", "THE big cat"]


def test_what_is_read_out_in_place_of_a_picture_is_translated_in_odt() -> None:
    document = OpenDocumentText()
    frame = draw.Frame(width="1cm", height="1cm")
    frame.addElement(svg.Title(text="the title"))
    frame.addElement(svg.Desc(text="a dog & a cat"))
    paragraph = odf_text.P(text="before")
    paragraph.addElement(frame)
    document.text.addElement(paragraph)
    read = through_odt(document)
    assert [teletype.extractText(one) for kind in (svg.Title, svg.Desc) for one in read.getElementsByType(kind)] == [
        "THE TITLE",
        "A DOG & A CAT",
    ]


def test_cells_of_text_are_translated_in_ods() -> None:
    document = OpenDocumentSpreadsheet()
    sheet = odf_table.Table(name="Big sheet")
    row = odf_table.TableRow()
    for kind, shown, formula in (
        ("string", "the dog", None), ("float", "3 dogs", None), ("date", "May 5", None), ("string", "yes", "of:=A1"),
    ):  # fmt: skip
        cell = odf_table.TableCell(valuetype=kind, **({"formula": formula} if formula else {}))
        cell.addElement(odf_text.P(text=shown))
        row.addElement(cell)
    sheet.addElement(row)
    document.spreadsheet.addElement(sheet)
    stream = io.BytesIO()
    document.write(stream)
    content, report = translate_bytes(stream.getvalue(), "ods", "document", Scripted(careful))
    assert odt_texts(load_odt(io.BytesIO(content))) == ["THE DOG", "3 dogs", "May 5", "yes"]
    assert report.to_dict()["left"] == ["names of sheets"]


def test_slides_and_their_notes_are_translated_in_odp() -> None:
    document = OpenDocumentPresentation()
    layout = PageLayout(name="L")
    document.automaticstyles.addElement(layout)
    master = MasterPage(name="M", pagelayoutname=layout)
    document.masterstyles.addElement(master)
    page = draw.Page(masterpagename=master)
    for holder in (page, notes := presentation.Notes()):
        frame = draw.Frame(width="1cm", height="1cm")
        box = draw.TextBox()
        box.addElement(odf_text.P(text="the slide" if holder is page else "the note"))
        frame.addElement(box)
        holder.addElement(frame)
    page.addElement(notes)
    document.presentation.addElement(page)
    stream = io.BytesIO()
    document.write(stream)
    content, _ = translate_bytes(stream.getvalue(), "odp", "document", Scripted(careful))
    assert odt_texts(load_odt(io.BytesIO(content))) == ["THE SLIDE", "THE NOTE"]
