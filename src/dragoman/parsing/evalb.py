"""Labelled bracket F1 as EVALB computes it with COLLINS.prm, line against line, malformed lines included.

The rules: words tagged as punctuation or empty are deleted, and brackets that hold nothing else with them; TOP is not
counted; labels end at their first `-` or `=`; ADVP and PRT are the same; a bracket is right if its label and span are.
A sentence whose words differ from the gold words is an error and is left out of F1: look at `errors` as well, or at
`f1_of_all`, where the brackets of such a sentence count as missed.

Where EVALB itself stops or reads past its arrays (text outside brackets, over 200 words or brackets, a line of more
than 4,999 bytes, a surplus closing bracket) there is no result to agree with: here the line is an error.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from dragoman.errors import DataError

DELETED = {"TOP", "-NONE-", ",", ":", "``", "''", "."}
SAME = {"PRT": "ADVP"}
NO_LENGTH = "-NONE-"
SHORT = 40  # words: a second summary covers sentences up to this length
NO_TREE = "(())"  # the line for a sentence without a parse, which EVALB skips

_TOKEN = re.compile(r"\s*(?:\(([^\s()]*)(?:\s+([^\s()]*)(?=\)))?|(\))|(\S))", re.ASCII)


class Status(IntEnum):
    """What EVALB says of a sentence: scored, not comparable, or left out."""

    OK = 0
    ERROR = 1
    SKIPPED = 2


class Bracket(NamedTuple):
    """A labelled span of the words that were not deleted; the end of a bracket that is never closed is -1."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class BracketedLine:
    """A line as EVALB reads it."""

    words: tuple[str, ...]  # without the deleted ones
    tags: tuple[str, ...]
    brackets: tuple[Bracket, ...]  # those that count
    length: int  # with punctuation
    balanced: bool
    readable: bool = True


@dataclass(frozen=True)
class SentenceScore:
    """One row of EVALB's table."""

    status: Status
    length: int
    matched: int = 0
    gold: int = 0
    test: int = 0
    crossing: int = 0
    words: int = 0
    tags: int = 0
    gold_brackets: int = 0  # of the gold tree, also where `gold` is 0 because of an error

    def row(self, number: int) -> str:
        recall, precision = _percent(self.matched, self.gold), _percent(self.matched, self.test)
        return (
            f"{number:4d}  {self.length:3d}    {self.status:d}  {recall:6.2f} {precision:6.2f}   {self.matched:3d}    "
            f"{self.gold:3d}  {self.test:3d}    {self.crossing:3d}   {self.words:4d}  {self.tags:4d}   "
            f"{_percent(self.tags, self.words):6.2f}"
        )


def read_line(text: str) -> BracketedLine:
    """Reads a line exactly as EVALB does, which takes `(X )` for an empty word and `(X)` for an empty bracket."""
    words: list[str] = []
    tags: list[str] = []
    labels: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    open_brackets: list[int] = []
    length, readable, too_many_closed = 0, True, False
    position, text = 0, text.strip(" \t\n\r\f\v")
    while position < len(text):
        found = _TOKEN.match(text, position)
        assert found is not None
        position = found.end()
        label, word, closes, other = found.groups()
        if other is not None:
            return BracketedLine((), (), (), length, False, readable=False)
        if closes is not None:
            if open_brackets:
                ends[open_brackets.pop()] = len(words)
            else:
                too_many_closed = True
        elif word is not None:
            position += 1  # its closing bracket
            length += label != NO_LENGTH
            if label not in DELETED:
                words.append(word)
                tags.append(label)
        else:
            open_brackets.append(len(labels))
            labels.append(label)
            starts.append(len(words))
            ends.append(-1)
    brackets = (
        Bracket(SAME.get(bare, bare), start, end)
        for label, start, end in zip(labels, starts, ends, strict=True)
        for bare in [re.split("[-=]", label, maxsplit=1)[0]]
        if start != end and bare not in DELETED
    )
    balanced = not open_brackets and not too_many_closed
    return BracketedLine(tuple(words), tuple(tags), tuple(brackets), length, balanced, readable)


def score_line(gold_text: str, test_text: str) -> SentenceScore:
    gold, test = read_line(gold_text), read_line(test_text)
    counted = len(gold.brackets)
    if not gold.readable or not test.readable:
        return SentenceScore(Status.ERROR, gold.length, gold_brackets=counted)
    if not test.words:
        return SentenceScore(Status.SKIPPED, gold.length, gold_brackets=counted)
    if gold.words != test.words:
        return SentenceScore(Status.ERROR, gold.length, gold_brackets=counted)
    return SentenceScore(
        status=Status.OK if gold.balanced and test.balanced else Status.ERROR,
        length=gold.length,
        matched=sum((Counter(gold.brackets) & Counter(test.brackets)).values()),
        gold=counted,
        test=len(test.brackets),
        crossing=sum(any(_cross(one, other) for one in gold.brackets) for other in test.brackets),
        words=len(gold.words),
        tags=sum(SAME.get(one, one) == SAME.get(other, other) for one, other in zip(gold.tags, test.tags, strict=True)),
        gold_brackets=counted,
    )


def _cross(one: Bracket, other: Bracket) -> bool:
    return one.start < other.start < one.end < other.end or other.start < one.start < other.end < one.end


@dataclass(frozen=True)
class EvalbSummary:
    """EVALB's figures over many sentences, in per cent where EVALB says so; 0 where EVALB divides 0 by 0."""

    sentences: int
    errors: int
    skipped: int
    matched: int
    gold: int
    test: int
    recall: float
    precision: float
    f1: float
    complete: float
    average_crossing: float
    no_crossing: float
    two_or_less_crossing: float
    tagging: float
    f1_of_all: float  # not EVALB's: the gold brackets of errors and skipped sentences count as missed

    @classmethod
    def of(cls, sentences: Sequence[SentenceScore]) -> "EvalbSummary":
        valid = [s for s in sentences if s.status == Status.OK]
        matched, gold, test = (sum(getattr(s, name) for s in valid) for name in ("matched", "gold", "test"))
        recall, precision = _percent(matched, gold), _percent(matched, test)
        all_gold = sum(s.gold_brackets for s in sentences)
        return cls(
            sentences=len(sentences),
            errors=sum(s.status == Status.ERROR for s in sentences),
            skipped=sum(s.status == Status.SKIPPED for s in sentences),
            matched=matched,
            gold=gold,
            test=test,
            recall=recall,
            precision=precision,
            f1=2 * precision * recall / (precision + recall) if matched else 0.0,
            complete=_percent(sum(s.matched == s.gold == s.test for s in valid), len(valid)),
            average_crossing=sum(s.crossing for s in valid) / len(valid) if valid else 0.0,
            no_crossing=_percent(sum(s.crossing == 0 for s in valid), len(valid)),
            two_or_less_crossing=_percent(sum(s.crossing <= 2 for s in valid), len(valid)),
            tagging=_percent(sum(s.tags for s in valid), sum(s.words for s in valid)),
            f1_of_all=200.0 * matched / (all_gold + test) if matched else 0.0,
        )

    def lines(self) -> list[str]:
        """The figures as EVALB prints them."""
        figures: list[tuple[str, float]] = [
            ("Number of sentence", self.sentences),
            ("Number of Error sentence", self.errors),
            ("Number of Skip  sentence", self.skipped),
            ("Number of Valid sentence", self.sentences - self.errors - self.skipped),
            ("Bracketing Recall", self.recall),
            ("Bracketing Precision", self.precision),
            ("Bracketing FMeasure", self.f1),
            ("Complete match", self.complete),
            ("Average crossing", self.average_crossing),
            ("No crossing", self.no_crossing),
            ("2 or less crossing", self.two_or_less_crossing),
            ("Tagging accuracy", self.tagging),
        ]
        return [f"{name:<25} = {value:6d}" if isinstance(value, int) else f"{name:<25} = {value:6.2f}"
                for name, value in figures]  # fmt: skip


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def score_lines(gold: Iterable[str], test: Iterable[str]) -> list[SentenceScore]:
    """Scores trees against gold trees, line by line; both must have the same number of lines."""
    gold, test = list(gold), list(test)
    if len(gold) != len(test):
        raise DataError(f"{len(gold)} gold trees and {len(test)} to score; there must be as many, one a line")
    return [score_line(one, other) for one, other in zip(gold, test, strict=True)]


def report(sentences: Sequence[SentenceScore]) -> list[str]:
    """The lines that EVALB prints for these sentences."""
    rule = "=" * 76
    total = EvalbSummary.of(sentences)
    valid = [s for s in sentences if s.status == Status.OK]
    words, tags = sum(s.words for s in valid), sum(s.tags for s in valid)
    brackets = (
        f"{'':16}{total.recall:6.2f} {total.precision:6.2f} {total.matched:6d} {total.gold:5d} {total.test:5d}  "
        f"{sum(s.crossing for s in valid):5d}"
    )
    short = EvalbSummary.of([s for s in sentences if s.length <= SHORT])
    return [
        "  Sent.                        Matched  Bracket   Cross        Correct Tag",
        " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy",
        rule,
        *(sentence.row(number) for number, sentence in enumerate(sentences, start=1)),
        rule,
        (brackets if total.gold and total.test else "") + f"  {words:5d} {tags:5d}   {_percent(tags, words):6.2f}",
        "=== Summary ===",
        "",
        "-- All --",
        *total.lines(),
        "",
        f"-- len<={SHORT} --",
        *short.lines(),
    ]
