"""docs/coverage.md lists every claim by number, and everything that it names exists."""

import re
from pathlib import Path

import pytest

from dragoman.lab.catalogue import NAMES

ROOT = Path(__file__).parents[2]
COVERAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+)([a-z]?) \| (.+?) \| (.+?) \|$", COVERAGE, re.MULTILINE)
CLAIMS = 73


def test_every_number_is_there_once() -> None:
    parts: dict[int, list[str]] = {}
    for number, letter, _, _ in ROWS:
        parts.setdefault(int(number), []).append(letter)
    assert list(parts) == list(range(1, CLAIMS + 1))
    for number, letters in parts.items():
        expected = [""] if len(letters) == 1 else [chr(ord("a") + at) for at in range(len(letters))]
        assert letters == expected, number


def test_every_row_says_what_and_names_a_place_or_why_not() -> None:
    lines = [line for line in COVERAGE.splitlines() if line.startswith("| ") and "| what is said |" not in line]
    assert len(ROWS) == len(lines)
    for number, letter, said, where in ROWS:
        assert len(said) > 2, number + letter
        assert "`" in where, f"{number}{letter}: no place"


@pytest.mark.parametrize("place", sorted(set(re.findall(r"`([^`]+)`", "".join(where for *_, where in ROWS)))))
def test_what_is_named_exists(place: str) -> None:
    if place.startswith("lab "):
        assert place.removeprefix("lab ") in NAMES
    elif place.startswith("dragoman "):  # that the command exists is tested with those of all pages
        assert re.fullmatch(r"dragoman [a-z ]+", place)
    elif "::" in place:
        path, test = place.split("::")
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")
    elif place.startswith("views/"):
        assert (ROOT / "src" / "dragoman" / "web" / "static" / place).is_file()
    else:
        assert (ROOT / place).is_file()
