"""Documents of every format: text is translated, the rest is as it was, and an independent reader says so."""

import io
import json
import re
from pathlib import Path
from typing import Any

import docx
import mistune
import polib
import pytest
import srt
import webvtt
from bs4 import BeautifulSoup
from odf import teletype
from odf import text as odf_text
from odf.opendocument import OpenDocumentText
from odf.opendocument import load as load_odt
from odf.style import Style, TextProperties

from dragoman.documents.format_names import DocumentFormat, format_of
from dragoman.documents.formats import uncompressed_size
from dragoman.documents.lexer import scan
from dragoman.documents.pipeline import translate_bytes
from dragoman.documents.report import DocumentReport
from dragoman.errors import DataError, UsageError
from support.scripted_translator import Scripted, careful


def through(
    content: bytes | str, kind: DocumentFormat, translator: Scripted | None = None
) -> tuple[bytes, DocumentReport]:
    given = content.encode() if isinstance(content, str) else content
    return translate_bytes(given, kind, "document", translator or Scripted(careful))


def shouted(content: str, kind: DocumentFormat) -> str:
    return through(content, kind)[0].decode()


# HTML

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="description" content="a short page">
<title>The page</title><style>p > a { color: red }</style>
<script>if (a < b && c) { go("<b>now</b>") }</script></head>
<body class='x'>
<h1>Hello <em>big</em> world</h1>
<!-- a comment -->
<p>One <a href="/x?a=1&amp;b=2" title="a hint">two <b>three</b></a> four.
Five &amp; six&nbsp;seven &lt;eight&gt;.<br>Nine</p>
<ul><li>First</li><li>Second <img src="a.png" alt="a picture"> part</li></ul>
<pre>stays
  as is</pre>
<p>Run <code>ls -l</code> now, <span translate="no">Keep Me</span> too.</p>
<table><tr><td>1,234.50</td><td>cell</td></tr></table>
</body></html>
"""


def test_html_is_the_same_page_in_capitals() -> None:
    before: Any = BeautifulSoup(PAGE, "html.parser")
    after: Any = BeautifulSoup(shouted(PAGE, "html"), "html.parser")

    def tags(page: BeautifulSoup) -> list[Any]:
        spoken = ("alt", "title", "content")
        return [(tag.name, {key: value for key, value in tag.attrs.items() if key not in spoken}) for tag in page(True)]

    assert tags(after) == tags(before)
    assert after.h1.em.text == "BIG"
    assert after.p.a.b.text == "THREE"
    assert after.p.a["title"] == "A HINT"
    assert after.img["alt"] == "A PICTURE"
    assert after.find("meta", {"name": "description"})["content"] == "A SHORT PAGE"
    assert after.pre.text == before.pre.text
    assert after.script.text == before.script.text
    assert after.style.text == before.style.text
    assert after.code.text == "ls -l"
    assert after.find("span").text == "Keep Me"
    assert "FIVE & SIX\u00a0SEVEN <eight>." in after.p.text
    assert after.td.text == "1,234.50"


@pytest.mark.parametrize(
    ("document", "translated"),
    [
        ("<p>a dog</p>", "<p>A DOG</p>"),
        ("a <b>red</b> dog", "A <b>RED</b> DOG"),
        ("<script>if (a<b) go()</script>dog", "<script>if (a<b) go()</script>DOG"),
        ("<code>x &lt; y</code> dog<br>cat<br/>", "<code>x &lt; y</code> DOG<br>CAT<br/>"),
        ('<p translate="no">a <i>b</i> c</p>d', '<p translate="no">a <i>b</i> c</p>D'),
        ("<!doctype html><!-- a dog --><p>1, 2</p>", "<!doctype html><!-- a dog --><p>1, 2</p>"),
        ("fish &amp; chips &lt;b&gt;", "FISH &amp; CHIPS &lt;b&gt;"),
        ("<pre>a\n b</pre>", "<pre>a\n b</pre>"),
        ("a < b", "A &lt; B"),
        ("</p>dog<p>", "</p>DOG<p>"),
        ("<b>one. Two</b> three.", "<b>ONE. TWO</b> THREE."),
        ("<b>one <i>two</b> three</i>", "<b>ONE <i>TWO</b> THREE</i>"),
        ("<svg/>dog", "<svg/>DOG"),
        ("<code>never closed dog", "<code>NEVER CLOSED DOG"),
        ("he is 1<sup>st</sup><sup>, 2", "HE IS 1<sup>ST</sup><sup>, 2"),
        ("a<sup>*</sup> dog.<sup><a href='#1'>[1]</a></sup> b", "A<sup>*</sup> DOG.<sup><a href='#1'>[1]</a></sup> B"),
        ("", ""),
    ],
)
def test_html_in_small(document: str, translated: str) -> None:
    assert shouted(document, "html") == translated


def test_the_number_of_a_note_is_not_read_as_a_word() -> None:
    translator = Scripted(careful)
    through("a dog.<sup><a href='#1'>1</a></sup> A cat<sup>2</sup> sleeps.", "html", translator)
    assert translator.asked == ["a dog.", "A cat sleeps."]


def test_a_translation_cannot_bring_tags_in() -> None:
    said = through("<p>dog</p>", "html", Scripted(lambda _: "<script>x</script> & y"))[0].decode()
    assert [tag.name for tag in BeautifulSoup(said, "html.parser")(True)] == ["p"]


# Markdown

README = """\
---
title: Not touched
---
# Hello *big* world

A paragraph with **bold text** and `code span`,
wrapped over lines with a [link](http://a.b/c_d "t") in it. And [foo], and ![a dog](d.png).

1. item one
2. item _two_ \\* star
   - [ ] a task with a note[^1]

> quoted line one that is long
> and line two

| head | other |
|------|:-----:|
| cell | a **b** |

```py
code = "here"
```

<div>some <b>html</b> block</div>

    indented code

Line with a hard break  
and more <kbd>Ctrl</kbd> text <https://example.org/x>.

[^1]: the note
[^2]: another

[foo]: http://x.y "T"
"""  # noqa: W291


def tree(text: str) -> list[Any]:
    """As mistune reads it: types, links, code; without the words."""

    def shape(nodes: list[dict[str, Any]]) -> list[Any]:
        found = []
        for node in nodes:
            attributes = {k: v for k, v in node.get("attrs", {}).items() if k not in ("alt", "label")}
            raw = node.get("raw") if node["type"] in ("codespan", "block_code") else None
            if node["type"] not in ("text", "softbreak", "blank_line"):
                found.append([node["type"], attributes, raw, shape(node.get("children", []))])
        return found

    read: Any = mistune.create_markdown(renderer="ast", plugins=["table", "task_lists", "footnotes"])
    return shape(read(text))


def test_markdown_is_read_as_the_same_by_another_parser() -> None:
    content, report = through(README, "markdown")
    said = content.decode()
    # A block of HTML holds words.
    assert re.sub(r"<div>.*", "", str(tree(said))) == re.sub(r"<div>.*", "", str(tree(README)))
    assert tree(said.replace("SOME <b>HTML</b> BLOCK", "some <b>html</b> block"))[:4] == tree(README)[:4]
    for kept in (
        "title: Not touched",
        '(http://a.b/c_d "t")',
        "`code span`",
        'code = "here"',
        "    indented code",
        "|------|:-----:|",
        "[^1]",
        '[foo]: http://x.y "T"',
        "<https://example.org/x>",
        "BREAK  \n",
        "[ ] A TASK",
    ):
        assert kept in said, kept
    for heard in (
        "# HELLO *BIG* WORLD",
        "**BOLD TEXT**",
        "[FOO][foo]",
        "![A DOG](d.png)",
        "| A **B** |",
        "> QUOTED",
        "<div>SOME <b>HTML</b> BLOCK</div>",
        "2. ITEM _TWO_ \\* STAR",
        "[LINK](http",
    ):
        assert heard in said, heard
    assert not report.how["source"]


def test_markdown_that_would_become_something_else_is_escaped_or_left() -> None:
    said, report = through("the year\n", "markdown", Scripted(lambda _: "1986. It was"))
    assert said.decode() == "1986\\. It was\n"
    said, _ = through("the star\n", "markdown", Scripted(lambda _: "a *star* and _line_ [x](y) <b>"))
    assert tree(said.decode()) == tree("the star\n")
    said, _ = through("| a |\n|---|\n| cell |\n", "markdown", Scripted(lambda _: "x | y"))
    assert tree(said.decode()) == tree("| a |\n|---|\n| cell |\n")
    said, report = through("# the head\n", "markdown", Scripted(lambda _: "two\nlines"))
    assert said.decode() == "# the head\n"
    assert report.how["source"] == 1


def test_the_projects_own_documents_come_back_with_their_structure(repository: Path) -> None:
    for path in [repository / "README.md", *sorted((repository / "docs").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        content, report = through(text, "markdown")
        assert tree(content.decode()) == tree(text), path.name
        assert report.how["source"] <= 0.1 * report.sentences, path.name  # left, and listed, rather than broken


@pytest.mark.parametrize(
    ("document", "translated"),
    [
        ("> [!NOTE]\n> worth\n> knowing\n", "> [!NOTE]\n> WORTH KNOWING\n"),
        ("term\n: what it means\n: or this\n", "TERM\n: WHAT IT MEANS\n: OR THIS\n"),
        (":::tip\na hint\n:::\n", ":::tip\nA HINT\n:::\n"),
        ('!!! warning "a title"\n    the text\n', '!!! warning "A TITLE"\n    THE TEXT\n'),
        ("a time: 5\nand more\n", "A TIME: 5 AND MORE\n"),
        ("{% include x.html %} and {{ name }}\n", "{% include x.html %} AND {{ name }}\n"),
        ("| a |\n|---|\n| tea \\| milk |\n", "| A |\n|---|\n| TEA \\| MILK |\n"),
    ],
)
def test_markdown_of_other_dialects_keeps_its_marks_and_lines(document: str, translated: str) -> None:
    assert shouted(document, "markdown") == translated


def test_markdown_code_is_not_escaped() -> None:
    assert shouted("see `a*b <c> _d_` and <https://x.y/a_b_>\n", "markdown") == (
        "SEE `a*b <c> _d_` AND <https://x.y/a_b_>\n"
    )


def test_markdown_keeps_the_ends_of_its_lines() -> None:
    assert shouted("# one\r\n\r\ntwo\r\n", "markdown") == "# ONE\r\n\r\nTWO\r\n"


# DOCX


def make_docx() -> bytes:
    document = docx.Document()
    document.add_heading("The heading", 1)
    paragraph = document.add_paragraph("One ")
    paragraph.add_run("bold words").bold = True
    paragraph.add_run(" and ")
    paragraph.add_run("slanted").italic = True
    paragraph.add_run(" end & more. See https://example.org/x for 3,5 hints.")
    split = document.add_paragraph()
    for part in ("Word cuts ", "runs any", "where."):
        split.add_run(part)
    tabbed = document.add_paragraph("left\tright")
    tabbed.add_run().add_break()
    tabbed.add_run("below")
    document.add_paragraph("item", style="List Bullet")
    table = document.add_table(1, 2)
    table.cell(0, 0).text = "cell one"
    table.cell(0, 1).text = "42"
    document.sections[0].header.paragraphs[0].text = "the header"
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def test_docx() -> None:
    content, report = through(make_docx(), "docx")
    read = docx.Document(io.BytesIO(content))
    texts = [paragraph.text for paragraph in read.paragraphs]
    assert texts == [
        "THE HEADING",
        "ONE BOLD WORDS AND SLANTED END & MORE. SEE https://example.org/x FOR 3,5 HINTS.",
        "WORD CUTS RUNS ANYWHERE.",
        "LEFT\tRIGHT\nBELOW",
        "ITEM",
    ]
    assert [read.paragraphs[index].style for index in (0, 4)] == [
        read.styles["Heading 1"],
        read.styles["List Bullet"],
    ]
    looks = [(run.text.strip(), run.bold, run.italic) for run in read.paragraphs[1].runs if run.text.strip()]
    assert ("BOLD WORDS", True, None) in looks
    assert ("SLANTED", None, True) in looks
    assert [cell.text for cell in read.tables[0].rows[0].cells] == ["CELL ONE", "42"]
    assert read.sections[0].header.paragraphs[0].text == "THE HEADER"
    assert not report.how["source"]


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx_with(paragraph: str) -> bytes:
    """A document whose first paragraph is this XML."""
    import zipfile

    source, made = zipfile.ZipFile(io.BytesIO(make_docx())), io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for info in source.infolist():
            data = source.read(info)
            if info.filename == "word/document.xml":
                data = re.sub(rb"<w:body>", b"<w:body>" + paragraph.encode(), data, count=1)
            archive.writestr(info, data)
    return made.getvalue()


@pytest.mark.parametrize(
    ("inner", "text", "kept"),
    [
        (
            '<w:bookmarkStart w:id="0" w:name="b"/><w:r><w:t>see the </w:t></w:r><w:hyperlink w:anchor="b"><w:r><w:rPr>'
            '<w:u/></w:rPr><w:t>link here</w:t></w:r></w:hyperlink><w:bookmarkEnd w:id="0"/>',
            "SEE THE LINK HERE",
            ['<w:hyperlink w:anchor="b">', "<w:bookmarkStart", "<w:bookmarkEnd"],
        ),
        (
            '<w:r><w:t xml:space="preserve">page </w:t></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r>'
            '<w:instrText> PAGE </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>3</w:t>'
            '</w:r><w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t> of it</w:t></w:r>',
            "PAGE 3 OF IT",
            ["<w:instrText> PAGE </w:instrText>", 'w:fldCharType="end"'],
        ),
        (
            "<w:r><w:t>old</w:t></w:r><w:del><w:r><w:delText> gone</w:delText></w:r></w:del><w:ins><w:r><w:t> new"
            "</w:t></w:r></w:ins>",
            "OLD",
            ["<w:delText> gone</w:delText>", "<w:ins>"],
        ),
        (
            "<w:sdt><w:sdtPr><w:alias/></w:sdtPr><w:sdtContent><w:r><w:t>a control</w:t></w:r></w:sdtContent></w:sdt>",
            "",
            ["<w:sdtPr><w:alias/></w:sdtPr><w:sdtContent>", "A CONTROL"],
        ),
        (
            "<w:r><w:t>before</w:t></w:r><w:r><w:pict><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p>"
            "</w:txbxContent></w:pict></w:r>",
            "BEFORE",
            ["IN A BOX"],
        ),
        ('<w:r><w:t>ru</w:t></w:r><w:proofErr w:type="spellStart"/><w:r><w:t>ns</w:t></w:r>', "RUNS", []),
    ],
)
def test_docx_with_what_word_puts_in(inner: str, text: str, kept: list[str]) -> None:
    import zipfile

    content, _ = through(docx_with(f"<w:p>{inner}</w:p>"), "docx")
    xml = zipfile.ZipFile(io.BytesIO(content)).read("word/document.xml").decode()
    assert docx.Document(io.BytesIO(content)).paragraphs[0].text.startswith(text)
    for part in kept:
        assert part in xml


def test_docx_parts_that_hold_no_text_are_the_same_bytes() -> None:
    import zipfile

    made = make_docx()
    before, after = zipfile.ZipFile(io.BytesIO(made)), zipfile.ZipFile(io.BytesIO(through(made, "docx")[0]))
    assert before.namelist() == after.namelist()
    for name in before.namelist():
        if not re.fullmatch(r"word/(document|header\d*|footer\d*)\.xml", name):
            assert before.read(name) == after.read(name)


# ODT


def make_odt() -> bytes:
    document = OpenDocumentText()
    bold = Style(name="Bold", family="text")
    bold.addElement(TextProperties(fontweight="bold"))
    document.automaticstyles.addElement(bold)
    document.text.addElement(odf_text.H(outlinelevel=1, text="The heading"))
    paragraph = odf_text.P(text="One ")
    paragraph.addElement(odf_text.Span(stylename=bold, text="bold word"))
    paragraph.addText(" and 7 & more")
    paragraph.addElement(odf_text.LineBreak())
    paragraph.addText("below")
    note = odf_text.Note(id="n1", noteclass="footnote")
    note.addElement(odf_text.NoteCitation(text="1"))
    body = odf_text.NoteBody()
    body.addElement(odf_text.P(text="the note"))
    note.addElement(body)
    paragraph.addElement(note)
    document.text.addElement(paragraph)
    stream = io.BytesIO()
    document.write(stream)
    return stream.getvalue()


def test_odt() -> None:
    content, _ = through(make_odt(), "odt")
    read = load_odt(io.BytesIO(content))
    assert [teletype.extractText(heading) for heading in read.getElementsByType(odf_text.H)] == ["THE HEADING"]
    first, note = read.getElementsByType(odf_text.P)
    assert teletype.extractText(first).startswith("ONE BOLD WORD AND 7 & MORE")
    assert teletype.extractText(note) == "THE NOTE"
    (span,) = read.getElementsByType(odf_text.Span)
    assert teletype.extractText(span) == "BOLD WORD"
    assert span.getAttribute("stylename") == "Bold"
    assert len(read.getElementsByType(odf_text.LineBreak)) == 1


# Subtitles

SRT = """\
1
00:00:01,000 --> 00:00:02,500
<i>Hello there</i>,
my old friend.

2
00:00:03,000 --> 00:00:04,000
- Who is it?
- It is 7 of us.

3
00:00:05,000 --> 00:00:06,000
This sentence goes on

4
00:00:07,000 --> 00:00:08,000
in the next one.
"""


def test_srt() -> None:
    before, after = list(srt.parse(SRT)), list(srt.parse(shouted(SRT, "srt")))
    assert [(cue.index, cue.start, cue.end) for cue in after] == [(cue.index, cue.start, cue.end) for cue in before]
    assert [cue.content for cue in after] == [
        "<i>HELLO THERE</i>, MY OLD FRIEND.",
        "- WHO IS IT?\n- IT IS 7 OF US.",
        "THIS SENTENCE GOES ON",
        "IN THE NEXT ONE.",
    ]


def test_a_sentence_through_cues_is_one_and_divided_where_its_words_are() -> None:
    translator = Scripted(careful)
    through(SRT, "srt", translator)
    assert "This sentence goes on in the next one." in translator.asked
    assert "Who is it?" in translator.asked  # without the dash, which a model may well leave out
    short = Scripted(lambda text: "No." if "sentence" in text and "next" in text else text.upper())
    cues = list(srt.parse(through(SRT, "srt", short)[0].decode()))
    assert [cue.content for cue in cues[2:]] == ["THIS SENTENCE GOES ON", "IN THE NEXT ONE."]


VTT = """\
WEBVTT - a title

STYLE
::cue { color: red }

NOTE a note that stays

intro
00:01.000 --> 00:02.000 align:start line:0
<v Bob>Hello &amp; <b>good</b> <00:01.500>bye

00:03.000 --> 00:04.000
second cue
"""


def test_vtt() -> None:
    said = shouted(VTT, "vtt")
    before, after = webvtt.from_string(VTT).captions, webvtt.from_string(said).captions
    assert [(cue.start, cue.end, cue.identifier) for cue in after] == [(c.start, c.end, c.identifier) for c in before]
    assert "<v Bob>HELLO &amp; <b>GOOD</b> <00:01.500>BYE" in said
    assert after[1].text == "SECOND CUE"
    for kept in ("STYLE\n::cue { color: red }", "NOTE a note that stays", "align:start line:0"):
        assert kept in said


# PO and JSON

PO = r"""# a comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#: main.c:3
#, c-format
msgctxt "menu"
msgid "%d files in <b>%s</b>\n"
msgstr ""

msgid "one file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "done before"
msgstr "FERTIG"

msgid ""
"two lines,\n"
"the \"second\" here"
msgstr ""

#~ msgid "obsolete"
#~ msgstr "gone"
"""


def test_po() -> None:
    before, after = polib.pofile(PO), polib.pofile(shouted(PO, "po"))
    assert [(e.msgid, e.msgctxt, e.occurrences) for e in after] == [(e.msgid, e.msgctxt, e.occurrences) for e in before]
    assert after[0].msgstr == "%d FILES IN <b>%s</b>\n"
    assert after[1].msgstr_plural == {0: "ONE FILE", 1: "%d FILES"}
    assert after[2].msgstr == "FERTIG"
    assert after[3].msgstr == 'TWO LINES,\nTHE "SECOND" HERE'
    assert after.metadata == before.metadata
    assert len(after.obsolete_entries()) == 1


def test_what_cannot_be_kept_whole_stays_untranslated_in_po() -> None:
    said, report = through('msgid "hello %s"\nmsgstr ""\n', "po", Scripted(lambda _: "{x}"))
    assert polib.pofile(said.decode())[0].msgstr == ""
    assert report.how["source"] == 1


JSON = r"""{
  "hello": "Hello {name}, <b>you</b>!",  "n": [1, -2.5e3, true, null],
  "url": "https://x.y", "id": "main_menu", "nested": {"a \"key\"": "tab\there \u00e9\n\nsecond line"},
  "word": "Done.", "only": "{name}!", "quoted": "see <a href=\"/x\" title='\\'>here</a> now",
  "ascii": "\u00e9 <i id=\"a\">x</i> y",
  "icu": "{n, plural, one {# dog} other {# dogs}}"
}
"""


def test_json() -> None:
    said = shouted(JSON, "json")
    after = json.loads(said)
    assert list(after) == list(json.loads(JSON))
    assert after["hello"] == "HELLO {name}, <b>YOU</b>!"
    assert after["n"] == [1, -2500.0, True, None]
    assert (after["url"], after["id"]) == ("https://x.y", "main_menu")
    assert after["nested"] == {'a "key"': "TAB\tHERE É\n\nSECOND LINE"}
    assert (after["word"], after["only"]) == ("DONE.", "{name}!")
    assert after["quoted"] == "SEE <a href=\"/x\" title='\\'>HERE</a> NOW"
    assert r'"\u00c9 <i id=\"a\">X</i> Y"' in said
    assert after["icu"] == json.loads(JSON)["icu"]
    assert re.sub(r'"(?:[^"\\]|\\.)*"', "", said) == re.sub(r'"(?:[^"\\]|\\.)*"', "", JSON)


# Text, and what is none


def test_text_keeps_its_space() -> None:
    text = "  Title \n\n\tOne.  Two!\r\n\n- a\n  - b\n1) c\n\n\n"
    assert shouted(text, "text") == "  TITLE \n\n\tONE.  TWO!\r\n\n- A\n  - B\n1) C\n\n\n"
    assert through("\ufeffhi there".encode(), "text")[0] == "\ufeffHI THERE".encode()
    assert through("hi there".encode("utf-16"), "text")[0].decode("utf-16") == "HI THERE"


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(DataError, match=r"document: not UTF-8 near byte 2; convert it: iconv"):
        through(b"ab\xff", "text")
    with pytest.raises(DataError, match="document: not JSON at 'nonsense'"):
        through("{nonsense", "json")
    with pytest.raises(DataError, match="document: no DOCX file, or a damaged one"):
        through(b"PK nothing", "docx")
    with pytest.raises(UsageError, match=r"a\.odg: not a known kind of document"):
        format_of("a.odg")
    assert format_of("A.HTM") == "html"
    assert uncompressed_size(lambda: io.BytesIO(make_odt()), "odt", "x") > len(make_odt())


@pytest.mark.parametrize(
    "part", ["<a ", "<!--", "<b>", "<i><b></i>", "</b>", "<a '", '<a "<', "<b>x</b> ", "x. Y <br>"]
)
def test_a_page_of_rubble_comes_back_and_takes_no_longer_than_another(part: str) -> None:
    page = part * (30_000 // len(part))
    assert shouted(page, "html").lower().replace("&lt;", "<") == page.lower()


def test_boxes_in_boxes_without_end_are_refused() -> None:
    depth = 1200
    box = "<w:p><w:r><w:pict>" * depth + "</w:pict></w:r></w:p>" * depth
    with pytest.raises(DataError, match="is damaged"):
        through(docx_with(box), "docx")


def test_a_token_without_end_is_looked_through_a_few_times_and_not_for_each_chunk() -> None:
    looks: list[int] = []

    def pattern() -> re.Pattern[str]:
        looks.append(1)
        return re.compile("[^<]+|<")

    assert [found[0] for found in scan(["x" * 10] * 1000 + ["<"], pattern)] == ["x" * 10_000, "<"]
    assert len(looks) < 20


def test_a_tag_that_opens_where_a_cue_ends_and_closes_where_the_next_begins() -> None:
    times = "1\n00:00:01,000 --> 00:00:02,000\n", "2\n00:00:03,000 --> 00:00:04,000\n"
    content = f"{times[0]}the dog and <i>\n\n{times[1]}</i>the cat\n\n"
    assert shouted(content, "srt") == f"{times[0]}THE DOG AND <i>\n\n{times[1]}</i>THE CAT\n\n"
