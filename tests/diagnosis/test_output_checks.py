"""Bad outputs are told by their cause, and good ones have none."""

import pytest

from dragoman.diagnosis.output_checks import examine_outputs, loops
from support.good_corpus import TEST

SOURCES = [source for source, _ in TEST]


REFERENCES = [target for _, target in TEST]


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        ("empty outputs", ["" if i % 10 == 0 else t for i, t in enumerate(REFERENCES)]),
        ("looping outputs", [f"{t} und und und und und und" if i % 5 == 0 else t for i, t in enumerate(REFERENCES)]),
        ("truncated outputs", [t.rsplit(" ", 1)[0] if i % 2 else t for i, t in enumerate(REFERENCES)]),
        ("brevity penalty", [f"{' '.join(t.split(' ')[:3])}." for t in REFERENCES]),
        ("untranslated outputs", [s if i % 4 == 0 else t for i, (s, t) in enumerate(TEST)]),
        ("BLEU on tokenised text", [t.replace(".", " .") for t in REFERENCES]),
    ],
)
def test_bad_outputs_are_told_by_their_cause(name: str, outputs: list[str]) -> None:
    assert examine_outputs(SOURCES, outputs, REFERENCES, "runs/my")[0].name == name


def test_good_outputs_have_no_causes() -> None:
    assert examine_outputs(SOURCES, REFERENCES, REFERENCES, "runs/my") == []
    assert loops("a b a b a b a b")
    assert not loops("so so la la")
    assert not loops("no no no")


def test_short_outputs_are_a_cause_only_where_longer_ones_would_score() -> None:
    references = ["the small dog sleeps in the garden of my old friend"] * 20
    [cause] = examine_outputs(references, ["the small dog sleeps in the garden"] * 20, references, "r")
    assert cause.name == "brevity penalty"
    assert examine_outputs(references, ["c'est bien."] * 20, references, "r") == []
