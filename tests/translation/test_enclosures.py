"""Quotes and brackets, and the sentences that stand in them."""

import pytest

from dragoman.translation.enclosures import enclosed, lost_enclosures


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ('"I am tired," she said.', "« Je suis fatiguée », dit-elle.", []),
        ('He bought "three" books.', "Il a acheté trois livres.", ["quotes"]),
        ("Take the train (at 8).", "Prenez le train à 8.", ["brackets"]),
        ("Take the train (at 8).", "Prenez le train (à 8).", []),
        ('It is 6" long.', "Il fait 6 pouces.", []),
        ("Good :)", "Bon", []),
        ("Good", "« Bon »", []),
    ],
)
def test_marks_that_are_fewer_are_lost(source: str, target: str, lost: list[str]) -> None:
    assert lost_enclosures(source, target) == lost


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('"I am tired."', ('"', "I am tired.", '"')),
        ("« Je suis là ».", ("« ", "Je suis là", " ».")),
        ("(It is late.)", ("(", "It is late.", ")")),
        ("„Wo ist er?“", ("„", "Wo ist er?", "“")),
        ('"Yes," he said, "now."', None),
        ('"Yes," he said.', None),
        ("(a) and (b)", None),
        ('"..."', None),
        ("I am tired.", None),
        ("", None),
    ],
)
def test_a_sentence_in_one_pair_of_marks(text: str, parts: tuple[str, str, str] | None) -> None:
    found = enclosed(text)
    assert (None if found is None else tuple(found)) == parts
