"""Each behavioural test passes a translator that behaves and fails one that does not."""

import json
import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.diagnosis.stress import EMOJI, LEAST, Report, StressRow, stress
from support.lexicon import LEXICON

WORDS = {**LEXICON, "not": "ne", "Tom": "Tom"}


def word_by_word(line: str) -> str:
    """Translates known words whatever their case, and keeps all else; a slip of the pen is looked up by its letters."""

    def one(found: re.Match[str]) -> str:
        word = found[0].lower()
        if word in {key.lower() for key in WORDS}:
            return next(value for key, value in WORDS.items() if key.lower() == word)
        near = [key for key in WORDS if sorted(key)[:2] == sorted(word)[:2] and abs(len(key) - len(word)) <= 1]
        return WORDS[near[0]] if near else found[0]

    return re.sub(r"[^\W\d_]+", one, line).strip()


def sentences(count: int) -> list[tuple[str, str]]:
    draw = random.Random(4)
    found = []
    for i in range(count):
        words = draw.choices(list(LEXICON), k=draw.randint(3, 7))
        source = " ".join(words + (["not"] if i % 3 == 0 else []) + ([str(10 + i)] if i % 4 == 0 else [])) + "."
        found.append((source, word_by_word(source)))
    return found


PAIRS = sentences(60)


def behaves(lines: Sequence[str]) -> list[str]:
    return ["" if not re.search(r"\w", line) else word_by_word(line) for line in lines]


def rows(translate: Callable[[Sequence[str]], list[str]]) -> dict[str, StressRow]:
    return {row.name: row for row in stress(PAIRS, translate, ("en", "eo")).rows}


def test_one_that_behaves_passes_everything() -> None:
    report = stress(PAIRS, behaves, ("en", "eo"))
    assert [row.name for row in report.rows if not row.passed] == []
    assert report.passed
    assert report.bleu > 99
    assert {row.name for row in report.rows} == set(LEAST)
    assert all(row.sentences for row in report.rows)


FAULTS: dict[str, Callable[[str], str]] = {
    "plain": lambda line: "x" * len(line),
    "all capitals": lambda line: "???" if line.isupper() and len(line) > 3 else line,
    "no full stop": lambda line: line if line.endswith((".", *EMOJI)) or " " not in line else "io alia",
    "single words": lambda line: f"{line} estas tre bona domo" if " " not in line and line else line,
    "long": lambda line: line.split(".")[0] + ".",
    "numbers": lambda line: re.sub(r"\d+", "7", line),
    "negation": lambda line: line.replace(" ne", "").replace(" not", ""),
    "emoji": lambda line: "".join(c for c in line if ord(c) < 0x2600),
    "no loops": lambda line: f"{line} la la la la la la la",
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found(name: str) -> None:
    fault = FAULTS[name]
    late = name in ("numbers", "negation")  # spoilt after translating, else before

    def spoilt(lines: Sequence[str]) -> list[str]:
        return [fault(line) for line in behaves(lines)] if late else behaves([fault(line) for line in lines])

    found = rows(spoilt)
    assert not found[name].passed
    assert found[name].example is not None


def test_something_out_of_nothing_is_found() -> None:
    found = rows(lambda lines: [line or "Saluton!" for line in behaves(lines)])
    assert not found["empty"].passed
    assert found["typos"].passed


def test_what_cannot_be_tested_is_not_failed() -> None:
    row = next(row for row in stress(PAIRS, behaves, ("en", "xx")).rows if row.name == "negation")
    assert (row.sentences, row.passed) == (0, True)
    assert "not tested: needs two languages of en, fr" in row.measure


def test_the_table_names_what_failed() -> None:
    row = StressRow("typos", 10, 0.5, 0.75, "measured so", ("in", "out"))
    report = Report(30.0, 50.0, 10, (row,))
    assert not report.passed
    assert report.lines()[-2:] == ["typos                10    0.50   0.75  FAIL  measured so", "    in\n      out"]


def test_the_command_is_a_gate(tiny_run: Path, cli: Callable[..., Any], tmp_path: Path) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")
    everything = [part for name in LEAST for part in ("--least", f"{name}=0")]
    ran = cli("stress", run, "--engine", "reference", "--json", *everything)
    assert ran.code == 0, ran.stderr
    values = json.loads(ran.stdout)
    assert values["passed"]
    assert {test["name"] for test in values["tests"]} == set(LEAST)
    ran = cli("stress", run, "--engine", "reference", "--sentences", "6", "--least", "all capitals=1")
    assert ran.code == 4
    assert "all capitals" in ran.stderr
    ran = cli("stress", run, "--least", "typo=0.5")
    assert (ran.code, "did you mean 'typos'?" in ran.stderr) == (2, True)
