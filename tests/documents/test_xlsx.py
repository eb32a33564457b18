"""XLSX: cells, comments and charts are translated; formulas, numbers and names stay. Read again by openpyxl."""

import io
import zipfile

import openpyxl
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.worksheet.table import Table

from dragoman.documents.pipeline import translate_bytes
from dragoman.documents.report import DocumentReport
from support.scripted_translator import Scripted, careful


def workbook() -> bytes:
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "Big sheet"
    for row in (
        ["Region", "Count"], ["the north & more", 3], ["the south", 4.5], ["sum", "=SUM(B2:B3)"],
        [CellRichText("a ", TextBlock(InlineFont(b=True), "red"), " dog"), '=IF(B2=3,"yes","no")'],
        ["the north & more", "two\nlines"],
    ):  # fmt: skip
        sheet.append(row)
    sheet["A2"].comment = Comment("look here", "Ann")
    sheet.add_table(Table(displayName="T", ref="A1:B3"))
    chart = BarChart()
    chart.title = "the chart"
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    sheet.add_chart(chart, "D1")
    stream = io.BytesIO()
    made.save(stream)
    return stream.getvalue()


def through(content: bytes) -> tuple[bytes, DocumentReport]:
    return translate_bytes(content, "xlsx", "a.xlsx", Scripted(careful))


def test_strings_are_translated_and_nothing_else() -> None:
    content, report = through(workbook())
    sheet = openpyxl.load_workbook(io.BytesIO(content), rich_text=True)["Big sheet"]
    assert [[str(cell.value) for cell in row] for row in sheet["A1:B6"]] == [
        ["Region", "Count"],  # a table calls its columns so
        ["THE NORTH & MORE", "3"],
        ["THE SOUTH", "4.5"],
        ["SUM", "=SUM(B2:B3)"],
        ["A RED DOG", '=IF(B2=3,"yes","no")'],
        ["THE NORTH & MORE", "TWO\nLINES"],
    ]
    rich = sheet["A5"].value
    assert isinstance(rich, CellRichText)
    assert [one.text.strip() for one in rich if isinstance(one, TextBlock) and one.font.b] == ["RED"]
    assert sheet["A2"].comment is not None
    assert sheet["A2"].comment.text == "LOOK HERE"
    assert list(sheet.tables["T"].column_names) == ["Region", "Count"]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert b"THE CHART" in archive.read("xl/charts/chart1.xml")
    assert report.to_dict()["left"] == ["names of columns that tables and pivot tables refer to", "names of sheets"]


def test_a_string_in_its_cell_and_a_thread_of_comments() -> None:
    with zipfile.ZipFile(made := io.BytesIO(), "w") as archive:
        archive.writestr(
            "xl/worksheets/sheet1.xml",
            '<c t="inlineStr"><is><t>a dog</t></is></c><c t="str"><f>"a"&amp;"b"</f><v>some text</v></c>',
        )
        archive.writestr("xl/threadedComments/threadedComment1.xml", "<text>see &lt;this&gt;</text>")
        archive.writestr("xl/sharedStrings.xml", "<si><t>dog</t><rPh><t>ドッグ</t></rPh></si>")
    content, _ = through(made.getvalue())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.read("xl/worksheets/sheet1.xml").decode() == (
            '<c t="inlineStr"><is><t xml:space="preserve">A DOG</t></is></c>'
            '<c t="str"><f>"a"&amp;"b"</f><v>some text</v></c>'
        )
        assert archive.read("xl/threadedComments/threadedComment1.xml") == b"<text>SEE &lt;this&gt;</text>"
        assert archive.read("xl/sharedStrings.xml").decode() == (
            '<si><t xml:space="preserve">DOG</t><rPh><t>ドッグ</t></rPh></si>'
        )


def parts_after(parts: dict[str, str]) -> dict[str, str]:
    with zipfile.ZipFile(made := io.BytesIO(), "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    with zipfile.ZipFile(io.BytesIO(through(made.getvalue())[0])) as archive:
        return {name: archive.read(name).decode() for name in parts}


def test_elements_with_a_prefix_keep_it() -> None:
    said = parts_after(
        {
            "xl/sharedStrings.xml": "<x:sst><x:si><x:t>a dog</x:t></x:si><x:si><x:r><x:rPr><x:b/></x:rPr>"
            "<x:t>a cat</x:t></x:r></x:si><x:si><x:t>Region</x:t></x:si></x:sst>",
            "xl/tables/table1.xml": '<x:table><x:tableColumn id="1" name="Region"/></x:table>',
        }
    )
    assert said["xl/sharedStrings.xml"] == (
        '<x:sst><x:si><x:t xml:space="preserve">A DOG</x:t></x:si><x:si><x:r><x:rPr><x:b/></x:rPr>'
        '<x:t xml:space="preserve">A CAT</x:t></x:r></x:si><x:si><x:t>Region</x:t></x:si></x:sst>'
    )


def test_a_column_with_a_line_break_in_its_name_stays() -> None:
    strings = "<sst><si><t>First_x000a_Name</t></si><si><t>Last\nName</t></si><si><t>Net\r\nSum</t></si></sst>"
    columns = "".join(
        f'<tableColumn name="{name}"/>' for name in ("First_x000a_Name", "Last_x000a_Name", "Net_x000D_&#10;Sum")
    )
    assert parts_after({"xl/sharedStrings.xml": strings, "xl/tables/table1.xml": f"<table>{columns}</table>"}) == {
        "xl/sharedStrings.xml": strings,
        "xl/tables/table1.xml": f"<table>{columns}</table>",
    }
