"""Plain defects of translations are found."""

import pytest

from dragoman.translation.defects import TokenizedText, copies, crowded, defects_of, loops


@pytest.mark.parametrize(
    ("target", "looping"),
    [
        ([1, 2, 3, 4, 5, 6], False),
        ([1, 2, 1, 2, 1, 2], True),  # a pair three times
        ([1, 2, 1, 2, 3], False),
        ([7, 7, 7, 7, 1], False),  # one token: "!!!!"
        ([7, 7, 7, 7, 7, 7], True),
        ([1, 2, 3, 4, 9, 1, 2, 3, 4, 8, 1, 2, 3, 4], True),  # in three places
        ([1, 2, 3, 4, 9, 1, 2, 3, 4, 8], False),
        ([], False),
    ],
)
def test_a_loop_is_what_the_source_does_not_repeat(target: list[int], looping: bool) -> None:
    assert loops([50, 51, 52], target) == looping
    assert not loops(target, target)


def test_a_copy_is_most_of_the_source_but_not_its_names() -> None:
    assert copies("the old dog sees the house", "the old dog sees the Haus")
    assert not copies("the old dog sees the house", "der alte dog sieht das Haus")
    assert not copies("Anna Maria Schmidt wohnt Berlin", "Anna Maria Schmidt lives in Berlin")
    assert not copies("OK", "OK")


@pytest.mark.parametrize(
    ("target", "crowd"),
    [
        ("La voiture est rouge rouge rouge rouge rouge rouge.", True),
        ("Le rouge rouge rouge rougit rouge rouge au rouge rouge.", True),  # nothing of it thrice in a row
        ("Très, très, très loin.", False),
        ("Les chats et les chiens et les oiseaux et les poissons sont dans les eaux.", False),
        ("", False),
    ],
)
def test_a_word_that_crowds_out_the_others_is_a_loop(target: str, crowd: bool) -> None:
    assert crowded("The car is red.", target) == crowd
    assert not crowded(target, target)
    assert defects_of(TokenizedText([1], "The car is red."), TokenizedText([4, 5], target or "x")) == (
        ("loop",) if crowd else ()
    )


def test_every_defect_has_its_name() -> None:
    source = TokenizedText([1, 2, 3], "deux trois quatre")
    assert defects_of(source, TokenizedText([4, 5], "one two")) == ()
    assert defects_of(source, TokenizedText([], "")) == ("empty",)
    assert defects_of(TokenizedText([1] * 9, "deux trois " * 9), TokenizedText([4], "one two")) == ("short",)
    assert defects_of(source, TokenizedText([4, 5], "one two"), finished=False) == ("runaway",)
    assert defects_of(source, TokenizedText(list(range(22)), "a long tale")) == ("runaway",)
    assert defects_of(source, TokenizedText([1, 2, 3], "deux trois quatre")) == ("copy",)
    assert defects_of(source, TokenizedText([4] * 30, "x" * 30)) == ("loop", "runaway")
