"""PPTX: slides, notes, tables, charts and alternative texts, read again by python-pptx."""

import io
from typing import Any

from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from dragoman.documents.pipeline import translate_bytes
from support.scripted_translator import Scripted, backwards, careful


def presentation() -> bytes:
    made = Presentation()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text = "The old house & garden"
    frame = slide.placeholders[1].text_frame
    frame.text = "The "
    run = frame.paragraphs[0].add_run()
    run.text, run.font.bold = "red", True
    frame.paragraphs[0].add_run().text = " dog"
    second = frame.add_paragraph()
    second.text, second.level = "one\vtwo", 1
    link = frame.add_paragraph().add_run()
    link.text, link.hyperlink.address = "see here", "https://example.org/x"
    table = slide.shapes.add_table(1, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "a cell", "42"
    data = CategoryChartData()
    data.categories = ["north", "south"]
    data.add_series("sales", (1.5, 2.5))
    chart = slide.shapes.add_chart(
        XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(3), Inches(4), Inches(2), data
    ).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "the chart"
    slide.notes_slide.notes_text_frame.text = "Say hello."
    box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(1), Inches(1))
    box._element.nvSpPr.cNvPr.set("descr", "a small box")
    stream = io.BytesIO()
    made.save(stream)
    return stream.getvalue()


def through(content: bytes, translator: Scripted | None = None) -> tuple[Any, dict[str, Any]]:
    found, report = translate_bytes(content, "pptx", "a.pptx", translator or Scripted(careful))
    return Presentation(io.BytesIO(found)), report.to_dict()


def test_all_that_is_read_on_a_slide_is_translated() -> None:
    read, report = through(presentation())
    (slide,) = read.slides
    assert slide.shapes.title.text == "THE OLD HOUSE & GARDEN"
    paragraphs = slide.placeholders[1].text_frame.paragraphs
    assert [one.text for one in paragraphs] == ["THE RED DOG", "ONE\vTWO", "SEE HERE"]
    assert [(run.text.strip(), run.font.bold) for run in paragraphs[0].runs] == [
        ("THE", None), ("RED", True), ("DOG", None)
    ]  # fmt: skip
    assert paragraphs[1].level == 1
    assert paragraphs[2].runs[0].hyperlink.address == "https://example.org/x"
    (table,) = [shape.table for shape in slide.shapes if shape.has_table]
    assert [table.cell(0, column).text for column in (0, 1)] == ["A CELL", "42"]
    (chart,) = [shape.chart for shape in slide.shapes if shape.has_chart]
    assert chart.chart_title.text_frame.text == "THE CHART"
    assert list(chart.plots[0].categories) == ["NORTH", "SOUTH"]
    assert [(series.name, tuple(series.values)) for series in chart.plots[0].series] == [("SALES", (1.5, 2.5))]
    assert slide.notes_slide.notes_text_frame.text == "SAY HELLO."
    assert [shape._element.nvSpPr.cNvPr.get("descr") for shape in slide.shapes if not shape.is_placeholder
            and hasattr(shape._element, "nvSpPr")] == ["A SMALL BOX"]  # fmt: skip
    assert report["how"]["source"] == 0
    assert report["left"] == ["text of masters and layouts"]
    assert report["parts"]["ppt/notesSlides/notesSlide1.xml"] == 1


def test_a_look_goes_with_its_words() -> None:
    read, _ = through(presentation(), Scripted(careful, backwards))
    paragraph = read.slides[0].placeholders[1].text_frame.paragraphs[0]
    assert paragraph.text == "DOG RED THE"
    assert [run.text.strip() for run in paragraph.runs if run.font.bold] == ["RED"]
