"""A text falls into sentences and comes together again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.serve.segments import join, segments


def split(text: str, limit: int = 1000) -> list[str]:
    return [part.text for part in segments(text, lambda part: len(part) <= limit)]


@given(st.text(alphabet="aB .!?\n\r\t。„“1é", max_size=60), st.integers(3, 40))
def test_the_parts_in_their_places_are_the_text(text: str, limit: int) -> None:
    parts = segments(text, lambda part: len(part) <= limit)
    assert join(text, parts, [part.text for part in parts]) == text
    for part in parts:
        assert text[part.start : part.end] == part.text == part.text.strip()
        assert 0 < len(part.text) <= limit
        assert "\n" not in part.text


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One dog. Two cats!  Three?", ["One dog.", "Two cats!", "Three?"]),
        ("One\ntwo\r\n\r\nthree", ["One", "two", "three"]),
        ("Mr. Smith met J. Doe. They left.", ["Mr. Smith met J. Doe.", "They left."]),
        ("It cost 3.50. He paid.", ["It cost 3.50.", "He paid."]),
        ("„Komm!“ Sie ging.", ["„Komm!“", "Sie ging."]),
        ("Oh! he said.", ["Oh! he said."]),
        ("犬。猫！", ["犬。", "猫！"]),
        ("am 3. Mai. Dann", ["am 3. Mai.", "Dann"]),
        (" \n ", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split(text) == sentences


def test_what_is_too_long_is_cut() -> None:
    assert split("one, two, three four", 10) == ["one, two,", "three four"]


def test_between_translations_everything_stays() -> None:
    text = "  One.  Two.\n\n- Three "
    parts = segments(text, lambda _: True)
    assert join(text, parts, [part.text.upper() for part in parts]) == "  ONE.  TWO.\n\n- THREE "
