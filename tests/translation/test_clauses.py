"""Sentences are cut at clauses, and at nothing that is too short to be one."""

import pytest

from dragoman.translation.clauses import clauses


@pytest.mark.parametrize(
    ("sentence", "texts"),
    [
        ("I came home late, and you were already asleep.", ["I came home late", "and you were already asleep."]),
        ("He left the house; she stayed all day.", ["He left the house", "she stayed all day."]),
        (
            "We bought red, white and blue flags, 1,234 of them.",
            ["We bought red, white and blue flags, 1,234 of them."],
        ),
        ("Yes, I am quite sure.", ["Yes, I am quite sure."]),
        ("我们计划的会议在周一，希望你能来。", ["我们计划的会议在周一", "希望你能来。"]),
        ("Dr. Smith has gone home.", ["Dr. Smith has gone home."]),
    ],
)
def test_a_clause_ends_at_a_mark_between_enough_words(sentence: str, texts: list[str]) -> None:
    found = clauses(sentence)
    assert [clause.text for clause in found] == texts
    assert "".join("".join(clause) for clause in found) == sentence
