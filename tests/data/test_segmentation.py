"""A text falls into sentences and comes together again."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.segmentation import cut_to_fit, join, segments, sentences
from support.sentence_cases import CASES


def split(text: str, limit: int = 1000) -> list[str]:
    return [part.text for part in segments(text, lambda part: len(part) <= limit)]


@pytest.mark.parametrize(("language", "case"), CASES)
def test_sentences_of_many_languages(language: str, case: str) -> None:
    text = case.replace("|", "")
    found = [text[start:end] for start, end in sentences(text, 0, len(text), language)]
    assert found == [part.strip() for part in case.split("|")]


@pytest.mark.parametrize("case", [case for _, case in CASES])
def test_without_the_language_a_sentence_may_go_on_but_is_never_cut(case: str) -> None:
    """Where one ends is then less certain, and a wrong cut is worse than none."""
    text = case.replace("|", "")
    allowed = {len(text)}
    position = 0
    for part in case.split("|"):
        position += len(part)
        allowed.add(position - (len(part) - len(part.rstrip())))
    assert {end for _, end in sentences(text, 0, len(text))} <= allowed


anything = st.one_of(
    st.text(alphabet="aB .!?\n\r\t。„“1é»«)>-", max_size=80),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    # Lines long enough to have been wrapped.
    st.lists(st.text(alphabet="abC. ", min_size=30, max_size=60), max_size=4).map("\n".join),
)


@given(anything, st.integers(3, 40))
def test_the_parts_in_their_places_are_the_text(text: str, limit: int) -> None:
    parts = segments(text, lambda part: len(part) <= limit)
    assert join(text, parts, [part.text for part in parts]) == text
    position = 0
    for part in parts:
        assert position <= part.start < part.end
        # What is between two parts is space, and what a line begins with.
        between = text[position : part.start]
        assert not any(map(str.isalpha, between)) or ")" in between
        assert 0 < len(part.text) <= limit
        assert "\n" not in part.text
        assert "\r" not in part.text
        position = part.end
    assert not any(map(str.isalpha, text[position:]))


@given(anything, st.integers(1, 40))
def test_a_cut_loses_only_space(text: str, limit: int) -> None:
    spans = list(cut_to_fit(text, 0, len(text), lambda part: len(part) <= limit))
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    assert edges == sorted(edges)
    gaps = [text[end:start] for end, start in zip(edges[::2], edges[1::2], strict=True)]
    assert not "".join(gaps).strip()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One\ntwo\r\n\r\nthree", ["One", "two", "three"]),
        ("Oh! he said.", ["Oh! he said."]),
        ("- one\n- two\n  * three", ["one", "two", "three"]),
        ("1. First. Then.\n2) Second", ["First.", "Then.", "Second"]),
        ("a) one\nb) two", ["one", "two"]),
        ("> quoted line\n> another", ["quoted line", "another"]),
        ("12 apples\n-5 degrees", ["12 apples", "-5 degrees"]),
        ("Roses are red\nViolets are blue", ["Roses are red", "Violets are blue"]),
        (" \n ", []),
    ],
)
def test_lines_and_lists(text: str, parts: list[str]) -> None:
    assert split(text) == parts


WRAPPED = """\
  The old dog that lives near the river was seen yesterday
  by a small child. It was sleeping under the tree in the
  garden of the red house.
"""


def test_a_wrapped_paragraph_is_read_as_one_and_wrapped_again() -> None:
    parts = segments(WRAPPED, lambda _: True)
    assert [part.text for part in parts] == [
        "The old dog that lives near the river was seen yesterday by a small child.",
        "It was sleeping under the tree in the garden of the red house.",
    ]
    longer = join(WRAPPED, parts, [part.text.replace("a", "aaa") for part in parts])
    lines = longer.splitlines()
    assert all(line.startswith("  ") and line[2] != " " and len(line) <= 58 for line in lines)
    assert " ".join(longer.split()) == " ".join(WRAPPED.replace("a", "aaa").split())


def test_lines_that_had_room_were_not_wrapped() -> None:
    text = "A title that is long enough to be wrapped, if one were to\nBy A. Author\nIn the year 1900\n"
    assert split(text) == text.splitlines()


def test_quoted_mail_is_wrapped_with_its_marks() -> None:
    text = "> The old dog that lives near the river was seen on Monday\n> by a small child of the house.\n"
    (part,) = segments(text, lambda _: True)
    assert part.text == "The old dog that lives near the river was seen on Monday by a small child of the house."
    said = join(text, [part], ["word " * 20 + "end"])
    assert all(line.startswith("> ") and len(line) <= 58 for line in said.splitlines())


def test_what_is_too_long_is_cut() -> None:
    assert split("one, two, three four", 10) == ["one, two,", "three four"]
    assert split("it costs 3,500 now", 9) == ["it costs", "3,500 now"]


def test_between_translations_everything_stays() -> None:
    text = "  One.  Two.\n\n- Three "
    parts = segments(text, lambda _: True)
    assert join(text, parts, [part.text.upper() for part in parts]) == "  ONE.  TWO.\n\n- THREE "


@pytest.mark.parametrize(
    ("language", "case"),
    [
        ("en", "He told me. |She left."),
        ("en-US", "Turn it on. |Mary left."),
        ("eng", "The dog was ill. |Mary left."),
        ("fr", "Il a vu Me. Dupont hier."),
        ("fr", "Voir l'art. 3 du code. |Il est clair."),
        ("it", "Lo dice l'on. Rossi. |Tutti ascoltano."),
        ("sv", "Han satte sig. |Anna gick."),
        ("nl", "Hij ging. |,,Kom'', zei zij."),
        ("pt_BR", "A Sra. Costa saiu. |Ele ficou."),
        ("ru", "Я дал им. |Она ушла."),
        (None, "He told me. |She left."),
        (None, "Turn it on. |Mary left."),
        (None, "Hon har satt sig. |Erik står."),
        (None, "Il sig. Rossi è qui. |Tutti lo vedono."),
        (None, "Wtedy przyjechał nadkom. Nowak. |To wszystko."),
    ],
)
def test_a_word_is_an_abbreviation_in_its_own_language_alone(language: str | None, case: str) -> None:
    text = case.replace("|", "")
    found = [text[start:end] for start, end in sentences(text, 0, len(text), language)]
    assert found == [part.strip() for part in case.split("|")]


@given(anything, st.sampled_from([None, "en", "de", "fr", "el", "ja", "hy"]))
def test_a_sentence_cut_alone_is_itself(text: str, language: str | None) -> None:
    for start, end in sentences(text, 0, len(text), language):
        alone = text[start:end]
        assert list(sentences(alone, 0, len(alone), language)) == [(0, len(alone))]


NASTY = [
    ".",
    "a.",
    "e.g. ",
    "1. ",
    '"',
    "(",
    ")",
    " ",
    "»",
    ". »",
    "5",
    "a",
    "e\u0301",
    "\n",
    ">",
    "> ",
    "- ",
    "。",
    "? !",
    ". [1]",
    "! :)",
    ". ''",
    "պ: ",
    "猫!",
    "！》",
    "p. ex. Il ",
]


@pytest.mark.parametrize("unit", NASTY)
def test_the_work_grows_as_the_text_does(unit: str) -> None:
    """Counted by what is asked of `fits`: calls, and the characters handed to it."""
    work = []
    for repeats in (500, 4000):
        asked: list[int] = []

        def fits(part: str, asked: list[int] = asked) -> bool:
            asked.append(len(part))
            return len(part) <= 50

        list(segments("a" + unit * repeats + "b", fits, "en"))
        work.append((len(asked), sum(asked)))
    assert work[1][0] <= 10 * work[0][0]
    assert work[1][1] <= 10 * work[0][1]


def test_a_line_of_a_megabyte_is_cut_in_good_time() -> None:
    """Quadratic work would take hours; the end is generous for any machine."""
    code = (
        "from dragoman.data.segmentation import join, segments\n"
        f"for unit in {NASTY!r}:\n"
        "    for language, length in (('en', 1_000_000), (None, 100_000)):\n"
        "        text = 'a' + unit * (length // len(unit)) + 'b'\n"
        "        parts = segments(text, lambda part: len(part) <= 500, language)\n"
        "        assert join(text, parts, [part.text for part in parts]) == text\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
