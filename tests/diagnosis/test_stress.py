"""Each behavioural test passes a translator that behaves and fails one that does not."""

import json
import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.diagnosis import stress_cases
from dragoman.diagnosis.stress import AIM, LEAST, Report, StressRow, stress
from dragoman.diagnosis.stress_cases import EMOJI, FOREIGN_NAMES, has_the_numbers
from support.lexicon import LEXICON

WORDS = {**LEXICON, "not": "ne", "Tom": "Tom"}


def word_by_word(line: str) -> str:
    """Translates known words whatever their case, and keeps all else; a slip of the pen is looked up by its letters."""

    def one(found: re.Match[str]) -> str:
        if re.search("[@/]|www", found[0]):
            return found[0]
        word = found[0].lower()
        if word in {key.lower() for key in WORDS}:
            return next(value for key, value in WORDS.items() if key.lower() == word)
        near = [key for key in WORDS if sorted(key)[:2] == sorted(word)[:2] and abs(len(key) - len(word)) <= 1]
        return WORDS[near[0]] if near else found[0]

    return re.sub(r"[^\s()]*[@/.][^\s()]+|[^\W\d_]+", one, line).strip()


def sentences(count: int) -> list[tuple[str, str]]:
    draw = random.Random(4)
    found = []
    for i in range(count):
        words = draw.choices(list(LEXICON), k=draw.randint(3, 7))
        source = " ".join(words + (["not"] if i % 3 == 0 else []) + ([str(10 + i)] if i % 4 == 0 else []))
        source += "." if i % 5 else ""
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


UNMARKED = {source for source, _ in PAIRS if not source.endswith(".")}
FAULTS: dict[str, Callable[[str], str]] = {  # of what is read
    "plain": lambda line: "x" * len(line),
    "all capitals": lambda line: "???" if line.isupper() and len(line) > 3 else line,
    "title case": lambda line: "???" if line.istitle() and " " in line else line,
    "a word in capitals": lambda line: re.sub(r"\b[A-Z]{3,}\b", "xyz", line),
    "no full stop": lambda line: line if line.endswith((".", *EMOJI)) or " " not in line else "io alia",
    "added full stop": lambda line: "io alia" if line.endswith(".") and line[:-1] in UNMARKED else line,
    "single words": lambda line: f"{line} estas tre bona domo" if " " not in line and line else line,
    "several sentences": lambda line: line.split(".")[0] + ".",
    "long": lambda line: " ".join(line.split()[:60]),
}
WRITING_FAULTS: dict[str, Callable[[str], str]] = {  # of what is written
    "numbers": lambda line: re.sub(r"\d+", "7", line),
    "prices and dates": lambda line: re.sub(r"[1-9](?=[^(]*\))", "0", line),
    "addresses": lambda line: line.replace("example", "exemple"),
    "negation": lambda line: line.replace(" ne", "").replace(" not", ""),
    "emoji": lambda line: "".join(c for c in line if ord(c) < 0x2600),
    "foreign names": lambda line: "".join(c for c in line if ord(c) < 0x370),
    "quotes and brackets": lambda line: re.sub(r'[("](.*)[)"]', r"\1", line),
    "no loops": lambda line: f"{line} la la la la la la la",
}


@pytest.mark.parametrize("name", [*FAULTS, *WRITING_FAULTS])
def test_each_fault_is_found(name: str) -> None:
    def spoilt(lines: Sequence[str]) -> list[str]:
        if name in FAULTS:
            return behaves([FAULTS[name](line) for line in lines])
        return [WRITING_FAULTS[name](line) for line in behaves(lines)]

    found = rows(spoilt)
    assert not found[name].passed
    assert found[name].example is not None


def test_a_translation_that_depends_on_its_batch_is_found() -> None:
    found = rows(lambda lines: [line if len(lines) > 1 else f"{line} kaj" for line in behaves(lines)])
    assert found["other batches"].value == 0.5  # right among others, wrong alone
    assert not found["other batches"].passed
    assert found["plain"].passed


def test_what_is_only_copied_is_not_kept() -> None:
    found = rows(lambda lines: list(lines))
    kept = ("numbers", "prices and dates", "addresses", "emoji", "foreign names", "quotes and brackets")
    assert [found[name].value for name in kept] == [0.0] * len(kept)
    assert found["single words"].passed  # a name may be the same in both languages


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
    heading, line, example = report.lines()[-3:]
    assert heading == "test                sentences   value  least    aim        measured"
    assert line == "typos                      10    0.50   0.75   0.85  FAIL  measured so"
    assert example == "    in\n      out"


def test_aims_are_above_limits_and_fail_nothing() -> None:
    assert AIM.keys() <= LEAST.keys()
    assert all(LEAST[name] <= aim <= 1 for name, aim in AIM.items())
    row = StressRow("typos", 10, (LEAST["typos"] + AIM["typos"]) / 2, LEAST["typos"], "measured so")
    assert row.passed
    assert Report(30.0, 50.0, 10, (row,)).to_dict()["tests"][0]["aim"] == AIM["typos"]


def test_the_guide_has_every_limit() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "your-data.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| ([a-z ]+) \| ([\d.]+) \| ([\d.]*) ?\| .+ \| .+ \|$", guide, re.MULTILINE)
    assert {name: float(least) for name, least, _ in table} == LEAST
    assert {name: float(aim) for name, _, aim in table if aim} == AIM


@pytest.mark.parametrize(
    ("source", "output", "right"),
    [
        ("A dog ($3.50).", "Hundo (3,50 $).", True),
        ("A dog ($3.50).", "Hundo (3,05 $).", False),
        ("A dog (€1,250).", "Hundo (1250 €).", True),
        ("A dog (€1,250).", "Hundo (1 250 €).", True),
        ("A dog (€1,250).", "Hundo (125 €).", False),
        ("A dog (12/05/2023).", "Hundo (12.5.2023).", True),
        ("A dog (12/05/2023).", "Hundo (12.5.).", False),
        ("A dog (9:45).", "Hundo (9 h 45).", True),
    ],
)
def test_numbers_are_kept_in_whatever_format(source: str, output: str, right: bool) -> None:
    assert has_the_numbers(source, output) is right


def test_what_is_added_stands_before_the_mark_at_the_end() -> None:
    cases = stress_cases.measures(["The dog sees a cat.", "Go"], random.Random(1))
    assert re.fullmatch(r"The dog sees a cat \(\$[1-9]\.[1-9]{2}\)\.", cases[0].source)
    assert re.fullmatch(r"Go \(€[1-9],[1-9]{3}\)", cases[1].source)
    (case,) = stress_cases.foreign_names([("Who is it ?", "¿?")])
    assert case.source == f"Who is it, {FOREIGN_NAMES[0]} ?"


def test_names_are_foreign_to_both_languages() -> None:
    cases = stress_cases.foreign_names([("Кто там?", "Ποιος;")] * 20)
    assert len(cases) == 20
    assert not any(name in case.source for case in cases for name in FOREIGN_NAMES[:2])
    assert stress_cases.foreign_names([("".join(FOREIGN_NAMES), "all of them")]) == []


def test_quotes_and_brackets_may_be_those_of_the_language() -> None:
    cases = stress_cases.enclosed(["The dog sees a cat."] * 4, random.Random(1))
    quoted, bracketed, quoted_word, bracketed_word = cases
    assert (quoted.source, bracketed.source) == ('"The dog sees a cat."', "(The dog sees a cat.)")
    assert re.search(r'The .*"[a-z]+" ', quoted_word.source)
    assert re.search(r"The .*\([a-z]+\) ", bracketed_word.source)
    for output in ('"La hundo."', "« La hundo. »", "„La hundo.“", "“La hundo”.", "「犬。」"):
        assert quoted.holds(output)
        assert not bracketed.holds(output)
    for output in ("La hundo.", '"La hundo.', '"La" hundo.', '"La" "hundo"', 'Jes: "La hundo."', '""'):
        assert not quoted.holds(output)
    assert quoted_word.holds("La « granda hundo » vidas katon.")
    assert not quoted_word.holds('"La granda hundo vidas katon."')
    assert stress_cases.enclosed(['He said "no".', "One (of two)."], random.Random(1)) == []


def test_a_word_in_capitals_is_one_that_was_translated() -> None:
    lexicon = {"dog": "hundo", "garden": "ĝardeno"}
    sources, plain = ["The dog in the garden.", "A dog."], ["La hundo en la ĝardeno.", "Kato."]
    (case,) = stress_cases.capital_words(sources, plain, lexicon)
    assert case.source == "The dog in the GARDEN."
    assert case.holds("La hundo en la Ĝardeno.")
    assert case.holds("La hundo en la GARDEN.")
    assert not case.holds("La hundo en la domo.")


def test_missing_sentences_are_counted_by_the_words_that_only_they_have() -> None:
    sentences = ["La hundo vidas.", "La kato vidas.", "La vidas.", "La domo estas ruĝa."]
    assert stress_cases.missing(" ".join(sentences), sentences) == (0, 3)
    assert stress_cases.missing("La hundo vidas. La vidas. La domo ruĝa.", sentences) == (1, 3)
    assert [len(group) for group in stress_cases.long_lines(["one two three."] * 70)] == [34, 34]


def test_the_command_is_a_gate(tiny_run: Path, cli: Callable[..., Any], tmp_path: Path) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")
    everything = [part for name in LEAST for part in ("--least", f"{name}=0")]
    few = ["--engine", "reference", "--sentences", "6"]
    ran = cli("stress", run, *few, "--json", *everything)
    assert ran.code == 0, ran.stderr
    values = json.loads(ran.stdout)
    assert values["passed"]
    assert {test["name"] for test in values["tests"]} == set(LEAST)
    bare = cli("stress", run, *few, "--json", *everything, "--no-protect", "--whole-lines")
    tested = [values, json.loads(bare.stdout)]
    assert [(found["protect"], found["whole_lines"]) for found in tested] == [(True, False), (False, True)]
    kept = [test["value"] for found in tested for test in found["tests"] if test["name"] == "addresses"]
    assert kept[0] > 0.5 > kept[1]
    ran = cli("stress", run, *few, "--least", "all capitals=1")
    assert ran.code == 4
    assert "all capitals" in ran.stderr
    ran = cli("stress", run, "--least", "typo=0.5")
    assert (ran.code, "did you mean 'typos'?" in ran.stderr) == (2, True)
