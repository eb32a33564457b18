"""Where tags go, what must be kept, and which way a sentence takes when something was lost."""

import re
from collections import Counter

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.protected_spans import difference, protected_spans
from dragoman.documents.format_names import DocumentFormat
from dragoman.documents.html import html_pieces
from dragoman.documents.pipeline import sentences_in, translate_bytes, translated, written
from dragoman.documents.report import DocumentReport, ReportEntry
from support.scripted_translator import Scripted, backwards, careful


def said(document: str, translator: Scripted, kind: DocumentFormat = "html") -> tuple[str, DocumentReport]:
    content, report = translate_bytes(document.encode(), kind, "document", translator)
    return content.decode(), report


@pytest.mark.parametrize(
    ("document", "translated"),
    [
        ("a <b>red</b> dog", "DOG <b>RED</b> A"),
        ("the <b>old red</b> dog", "DOG <b>RED OLD</b> THE"),
        ("one <b>two</b> <i>three</i> four", "FOUR <i>THREE</i> <b>TWO</b> ONE"),
        ("one <b>two <i>three</i></b> four", "FOUR <b><i>THREE</i> TWO</b> ONE"),
        ("<b>one two three</b>", "<b>THREE TWO ONE</b>"),
        ("<b>one</b> two", "TWO <b>ONE</b>"),
        ("one <img src='x'> two three", "THREE TWO <img src='x'> ONE"),
        ("one two<sup></sup> three", "THREE TWO<sup></sup> ONE"),
        ("see <a href='u'>https://a.b/c</a> now", "NOW <a href='u'>https://a.b/c</a> SEE"),
        ("pure H<sub>2</sub>O and H<sub>2</sub>O", "H<sub>2</sub>O AND H<sub>2</sub>O PURE"),
        ("E is m<b>c<sup>2</sup></b> here", "HERE M<b>C<sup>2</sup></b> IS E"),
    ],
)
def test_tags_go_with_their_words(document: str, translated: str) -> None:
    flat = Scripted(careful, backwards)
    if "https" in document:  # an address is one word
        flat = Scripted(lambda text: "NOW https://a.b/c SEE" if "https" in text else text)
    assert said(document, flat)[0] == translated


def test_an_element_through_two_sentences_keeps_both_its_ends() -> None:
    text, _ = said("one <b>two. Three</b> four.", Scripted(careful))
    assert text == "ONE <b>TWO. THREE</b> FOUR."
    text, _ = said("one <b>two. Three</b> four.", Scripted(careful, backwards))
    assert text.count("<b>") == text.count("</b>") == 1
    assert text.index("<b>") < text.index("</b>")


def test_without_an_alignment_tags_go_by_the_order_of_words_and_it_is_said() -> None:
    found: list[ReportEntry] = []
    translator = Scripted(careful, aligns=False)
    pieces = list(html_pieces(["a <b>red</b> dog"]))
    answers = iter([one for window in translated(sentences_in(pieces, translator), translator) for one in window])
    text = "".join(written("", pieces, answers, translator, DocumentReport(found.append)))
    assert text == "A <b>RED</b> DOG"
    assert found[0].notes == ("tags placed by the order of the words: no alignment",)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("see https://a.b/c?d=1. Now", ["https://a.b/c?d=1"]),
        ("(https://en.x/Mercury_(planet)) or www.x.y!", ["https://en.x/Mercury_(planet)", "www.x.y"]),
        ("mail a.b+c@d-e.org.", ["a.b+c@d-e.org"]),
        (
            "{name} {{x y}} ${z} %s %(n)d %1$s %.2f {0}",
            ["{name}", "{{x y}}", "${z}", "%s", "%(n)d", "%1$s", "%.2f", "{0}"],
        ),
        ("100% sure, 50% discount", ["100", "50"]),
        ("a <x/> b &amp; c", ["<x/>", "&amp;"]),
        ("1,234.50 and 1 000 and 5:30", ["1,234.50", "1 000", "5:30"]),
        ("nothing", []),
    ],
)
def test_what_must_be_kept(text: str, kept: list[str]) -> None:
    assert [found.text for found in protected_spans(text)] == kept


def test_numbers_may_change_their_marks_but_not_their_digits() -> None:
    assert difference("1,234.50 euro", "1.234,50 Euro").lost == []
    assert difference("1,234.50 euro", "1 234,50 euro").lost == []
    assert difference("in 1998", "en 1999")[:3] == (["1998"], [], ["1999"])
    assert difference("3 and 3", "3").lost == ["3"]
    assert difference("4.5 stars", "2. Sterne").lost == ["4.5"]
    assert difference("4.5 stars", "45 Sterne").lost == ["4.5"]
    assert difference("one {x}", "1 {x} {y}")[:3] == ([], ["{y}"], ["1"])


def ways(report: DocumentReport) -> dict[str, int]:
    return {way: count for way, count in report.how.items() if count}


def test_a_next_best_translation_that_lost_nothing_is_taken() -> None:
    translator = Scripted(lambda _: "zwei Hunde", next_best=lambda _: ["x", "2 Hunde"])
    text, report = said("2 dogs", translator, "text")
    assert (text, ways(report)) == ("2 Hunde", {"other": 1})


def test_words_stand_in_for_what_a_model_does_not_copy() -> None:
    spoils = Scripted(lambda text: re.sub(r"[^\w\s.].*", "???", text.upper().replace("TOM", "Tom")))
    text, report = said("write to {name} now", spoils, "text")
    assert (text, ways(report)) == ("WRITE TO {name} NOW", {"stand-in": 1})
    assert "write to Tom now" in spoils.asked
    tagged, report = said("<p>write <b>to <code>f(x)</code></b> now</p>", spoils)
    assert (tagged, ways(report)) == ("<p>WRITE <b>TO <code>f(x)</code></b> NOW</p>", {"stand-in": 1})
    counted = Scripted(lambda text: text.upper() if "741" in text else "lost")
    assert said("you have %d dogs", counted, "text")[0] == "YOU HAVE %d DOGS"


def test_then_it_is_required_then_translated_in_pieces_then_left() -> None:
    loses = Scripted(lambda _: "nothing", obeys=True)
    text, report = said("in 1998", loses, "text")
    assert (text, ways(report)) == ("nothing 1998", {"required": 1})
    forgets = Scripted(lambda text: "lost" if re.search(r"\d", text) else text.upper())
    text, report = said("he has 3 dogs", forgets, "text")
    assert (text, ways(report)) == ("HE HAS 3 DOGS", {"pieces": 1})
    invents = Scripted(lambda _: "{x}")
    text, report = said("he has dogs", invents, "text")
    assert (text, ways(report)) == ("he has dogs", {"source": 1})
    runs_away = Scripted(lambda text: "la " * 200 if " " in text else text)
    text, report = said("he has dogs", runs_away, "text")
    assert (text, ways(report)) == ("he has dogs", {"source": 1})


def test_an_added_number_is_said_but_may_be_a_number_word() -> None:
    text, report = said("three dogs", Scripted(lambda _: "3 chiens"), "text")
    assert (text, report.listed, ways(report)) == ("3 chiens", 1, {"plain": 1})


# Random markup

inline = ["b", "i", "a", "span", "em"]
block = ["p", "div", "li", "td", "h1"]
word = st.sampled_from(
    ["dog", "Cat.", "3", "4,5", "{x}", "%s", "https://a.b/c", "m@n.org", "&amp;", "&lt;", "ein", "Z!", "…"]
)


@st.composite
def markup(draw: st.DrawFn, depth: int = 0) -> str:
    """Balanced inline and block tags around words."""
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.integers(0, 5))
        if kind <= 2 or depth > 3:
            parts.append(f" {' '.join(draw(st.lists(word, min_size=1, max_size=4)))} ")
        elif kind == 3:
            parts.append(
                draw(st.sampled_from(["<br>", "<img src=x alt='a dog'>", "<!-- c -->", "<code>x y</code>", " "]))
            )
        else:
            name = draw(st.sampled_from(inline if kind == 4 else block if depth == 0 else inline))
            parts.append(f'<{name} id="{draw(st.integers(0, 9))}">{draw(markup(depth + 1))}</{name}>')
        parts.append(draw(st.sampled_from(["", " ", "\n"])))
    return "".join(parts)


tags = ["<b>", "</b>", "<i>", "</i>", "<p>", "</p>", "<br>", "<code>", "</code>", "<pre>", "<script>", "</script>"]
rubble = ["<", ">", "&", "<!--", "-->", '"', "'", "</", "<x/>", "<a href='x>", "dog ", "3 ", "{x} ", ". Cat "]
broken = st.lists(st.sampled_from([*tags, *rubble]), max_size=12).map("".join)

translators = st.sampled_from(
    [
        Scripted(careful),
        Scripted(careful, backwards),
        Scripted(str.upper, backwards),
        Scripted(lambda text: text[: len(text) // 2]),
        Scripted(lambda text: f"{text} 7 <b> {{y}}"),
        Scripted(lambda _: "x"),
        Scripted(careful, aligns=False),
    ]
)


def shape(page: str) -> Counter[tuple[str, ...]]:
    """Every element with all that it stands in."""
    soup = BeautifulSoup(f"<body>{page}</body>", "html.parser")
    return Counter(tuple(f"{t.name} {t.get('id')}" for t in [tag, *tag.parents]) for tag in soup(True))


@given(markup(), translators)
def test_random_markup_keeps_its_structure(page: str, translator: Scripted) -> None:
    text, report = said(page, translator)
    assert shape(text) == shape(page)
    words = [BeautifulSoup(f"<body>{one}</body>", "html.parser").get_text() for one in (page, text)]
    for kind in ("url", "e-mail", "placeholder", "code"):
        before, after = ([k.text for k in protected_spans(one) if k.kind == kind] for one in words)
        assert sorted(before) == sorted(after)
    for whole in ("{x}", "%s", "https://a.b/c", "m@n.org", "4,5"):  # no tag inside one either
        assert text.count(whole) >= page.count(whole)
    numbers = [Counter(re.findall(r"\d", one)) for one in words]
    assert numbers[0] <= numbers[1]
    if numbers[0] != numbers[1]:
        assert report.listed


@given(broken, translators)
def test_broken_markup_loses_no_tag(page: str, translator: Scripted) -> None:
    text, _ = said(page, translator)
    tags = [Counter(re.findall(r"</?(?:b|i|p|br|code|pre|script)>", one)) for one in (page, text)]
    assert tags[0] == tags[1]


@given(st.one_of(broken, markup()))
def test_what_is_not_translated_is_the_same_page(page: str) -> None:
    text, _ = said(page, Scripted(lambda _: "{never}"))
    assert text == page


@given(
    st.lists(
        st.one_of(
            word, st.sampled_from(["**b** c", "*i*", "`x`", "[l](u)", "\n", "\n\n", "- ", "> ", "# ", "1. ", "|"])
        ),
        max_size=15,
    )
)
def test_random_markdown_keeps_its_links_code_and_emphasis(parts: list[str]) -> None:
    page = " ".join(parts)
    text, _ = said(page, Scripted(careful, backwards), "markdown")
    for pattern in (r"`[^`]*`", r"\]\(u\)", r"^#", r"^>", r"^-", r"^1\."):
        assert len(re.findall(pattern, text, re.MULTILINE)) == len(re.findall(pattern, page, re.MULTILINE)), pattern
