"""Markdown beyond CommonMark: notes, formulas and quotations keep their marks, and their text is translated."""

from typing import Any

import mistune
import pytest

from dragoman.documents.pipeline import translate_bytes
from dragoman.documents.settings import FormatSettings
from support.scripted_translator import Scripted, careful


def heard(document: str, translator: Scripted | None = None) -> tuple[str, list[str]]:
    """The translated document, and the sentences that were asked for first."""
    translator = translator or Scripted(careful)
    content, _ = translate_bytes(document.encode(), "markdown", "document", translator)
    return content.decode(), translator.asked


@pytest.mark.parametrize(
    ("document", "translated", "asked"),
    [
        ("a dog[^1].\n\n[^1]: the note\n", "A DOG[^1].\n\n[^1]: THE NOTE\n", ["a dog.", "the note"]),
        # One word, which CommonMark takes for the address of a link, and a name that the text has too.
        ("[^note]: note\n", "[^note]: NOTE\n", ["note"]),
        ("[^1]: one.\n[^2]: two\n", "[^1]: ONE.\n[^2]: TWO\n", ["one.", "two"]),
        ("[^1]: one\n\n    two\n\nthree\n", "[^1]: ONE\n\n    TWO\n\nTHREE\n", ["one", "two", "three"]),
        ("> [^1]: one\n", "> [^1]: ONE\n", ["one"]),
    ],
)
def test_the_text_of_a_note_is_translated_and_its_name_is_not_part_of_it(
    document: str, translated: str, asked: list[str]
) -> None:
    assert heard(document) == (translated, asked)


def test_a_note_stays_a_note_for_another_parser() -> None:
    read: Any = mistune.create_markdown(renderer="ast", plugins=["footnotes"])
    # A model leaves a colon out with which a sentence begins.
    said, _ = heard("A dog[^1] sleeps.\n\n[^1]: the note\n", Scripted(lambda text: text.upper().lstrip(": ")))
    paragraph, notes = [block for block in read(said) if block["type"] != "blank_line"]
    assert "footnote_ref" in [inline["type"] for inline in paragraph["children"]]
    assert [child["children"][0]["children"][0]["raw"] for child in notes["children"]] == ["THE NOTE"]


@pytest.mark.parametrize(
    ("document", "translated", "asked"),
    [
        ("old^[He is ten.] and tired\n", "OLD^[HE IS TEN.] AND TIRED\n", ["old and tired", "He is ten."]),
        (
            "> old^[He *is* [ten](x),\n> you see.] and\n",
            "> OLD^[HE *IS* [TEN](x), YOU SEE.] AND\n",
            ["old and", "He is ten, you see."],
        ),
    ],
)
def test_a_note_inside_a_sentence_is_no_part_of_it(document: str, translated: str, asked: list[str]) -> None:
    # A model leaves out marks that it never saw.
    assert heard(document, Scripted(lambda text: text.upper().replace("^[", ""))) == (translated, asked)


@pytest.mark.parametrize(
    ("document", "translated"),
    [
        ("so $a^2+b^2=c^2$ is\n", "SO $a^2+b^2=c^2$ IS\n"),
        ("let $x$ be $a_1*b_1$\n", "LET $x$ BE $a_1*b_1$\n"),
        ("it costs $5 and $10 now\n", "IT COSTS $5 AND $10 NOW\n"),
        ("from US$5 to A$now\n", "FROM US$5 TO A$NOW\n"),
        ("so $$a+b$$ is\n", "SO $$a+b$$ IS\n"),
        ("text\n$$\na\n- b\n$$\nmore\n", "TEXT\n$$\na\n- b\n$$\nMORE\n"),
        ("> $$\n> a + b\n> $$\n", "> $$\n> a + b\n> $$\n"),
        ("so \\(x+y\\) and \\\\(b\\\\) is\n", "SO \\(x+y\\) AND \\\\(b\\\\) IS\n"),
        ("\\[\nx + why\n\\]\n", "\\[\nx + why\n\\]\n"),
        ("\\begin{align}\na &= b\n\\end{align}\n", "\\begin{align}\na &= b\n\\end{align}\n"),
        ("a $$ dog\n", "A $$ DOG\n"),
    ],
)
def test_a_formula_stays_and_a_price_is_none(document: str, translated: str) -> None:
    assert heard(document)[0] == translated


def test_escaped_brackets_are_no_formula() -> None:
    assert heard("press \\[any key\\] now\n") == ("PRESS [ANY KEY] NOW\n", ["press [any key] now"])


@pytest.mark.parametrize(
    ("document", "translated", "asked"),
    [
        ("> One dog.\n> Two cats.\n", "> ONE DOG.\n> TWO CATS.\n", ["One dog.", "Two cats."]),
        ("> > One.\n> > Two.\n", "> > ONE.\n> > TWO.\n", ["One.", "Two."]),
        (
            "> One dog.\nTwo cats.\n> Three.\n",
            "> ONE DOG.\n> TWO CATS.\n> THREE.\n",
            ["One dog.", "Two cats.", "Three."],
        ),
        ("> - One.\n>   Two.\n", "> - ONE.\n>   TWO.\n", ["One.", "Two."]),
    ],
)
def test_every_line_of_a_quotation_keeps_its_mark(document: str, translated: str, asked: list[str]) -> None:
    # A model drops a mark that it never saw.
    assert heard(document, Scripted(lambda text: text.upper().lstrip("> "))) == (translated, asked)


def test_every_line_of_a_quoted_mail_keeps_its_mark() -> None:
    translator = Scripted(lambda text: text.upper().lstrip("> "))
    mail = b"> This is the first sentence of a mail.\n> This is the second one.\n"
    content, _ = translate_bytes(mail, "text", "mail", translator)
    assert content == mail.upper()
    assert translator.asked == ["This is the first sentence of a mail.", "This is the second one."]


def test_no_sentence_ends_inside_code() -> None:
    said, asked = heard("say `Yes. No. Maybe` now\n")
    assert said == "SAY `Yes. No. Maybe` NOW\n"
    assert asked[0] == "say Yes. No. Maybe now"


@pytest.mark.parametrize(
    ("document", "translated"),
    [
        ("a <kbd>C</kbd> and <tt>dog</tt>", "A <kbd>C</kbd> AND <tt>dog</tt>"),
        ('a <span class="notranslate x">dog</span> b', 'A <span class="notranslate x">dog</span> B'),
        ('a <b translate="NO">dog</b> b', 'A <b translate="NO">dog</b> B'),
    ],
)
def test_what_a_page_says_must_stay_stays_in_markdown_too(document: str, translated: str) -> None:
    assert heard(document)[0] == translated
    assert translate_bytes(document.encode(), "html", "page", Scripted(careful))[0].decode() == translated


def test_a_tag_or_a_class_can_be_protected_by_name() -> None:
    page = '<p>a <i>dog</i> and <b class="Brand x">cat</b></p><div class="brand">all of <u>it</u></div>'
    settings = FormatSettings(protect=("I", "brand"))
    content, _ = translate_bytes(page.encode(), "html", "page", Scripted(careful), settings)
    assert content.decode() == (
        '<p>A <i>dog</i> AND <b class="Brand x">cat</b></p><div class="brand">all of <u>it</u></div>'
    )
    content, _ = translate_bytes(b"a <i>dog</i> here\n", "markdown", "page", Scripted(careful), settings)
    assert content == b"A <i>dog</i> HERE\n"


def test_a_protected_name_whose_text_stays_anyway_counts_as_met() -> None:
    settings = FormatSettings(protect=("code", "PRE"))
    translate_bytes(b"<p>a <code>x</code></p><pre>y</pre>", "html", "page", Scripted(careful), settings)
    assert settings.not_met == []
    settings = FormatSettings(protect=("code", "kbd"))
    translate_bytes(b"a <code>dog</code> here\n", "markdown", "page", Scripted(careful), settings)
    assert settings.not_met == ["kbd"]
