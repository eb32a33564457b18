"""The short form of tests/support/fuzz.py: some hundred damaged inputs, each read or refused in one line."""

import random
from pathlib import Path

import pytest

from support.fuzz import ENDLESS, TOKENS, mutated, outcome, run, targets


def test_damaged_inputs_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    counts = run(1500, tmp_path, seed=1)
    assert sum(counter.total() for counter in counts.values()) == 1500
    assert {kind for counter in counts.values() for kind in counter} == {"read", "refused"}
    assert all(counter["refused"] for counter in counts.values())  # no reader that takes everything


def test_what_is_whole_is_read(tmp_path: Path) -> None:
    for name, target in targets(tmp_path).items():
        good = target.seeds[0] if name != "recipe" else b'extends = "small"\n'
        assert outcome(target, good, tmp_path / "input") == "read", name


def test_a_fault_that_is_not_explained_is_raised(tmp_path: Path) -> None:
    def broken(_: Path) -> None:
        raise KeyError("unforeseen")

    target = next(iter(targets(tmp_path).values()))
    with pytest.raises(KeyError):
        outcome(type(target)([b"x"], broken, TOKENS + ENDLESS), b"x", tmp_path / "input")
    assert mutated(target, random.Random(1)) == mutated(target, random.Random(1))
