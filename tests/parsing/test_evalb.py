"""Bracket scores: EVALB's own output on pairs from a seed, and its rules one by one."""

import json

import pytest

from dragoman.errors import DataError
from dragoman.parsing import evalb
from dragoman.parsing.evalb import EvalbSummary, Status, score_line, score_lines
from support import evalb_pairs


def test_equal_to_what_evalb_printed_to_the_last_digit() -> None:
    gold, test = zip(*evalb_pairs.pairs(), strict=True)
    assert len(gold) >= 1000
    sentences = score_lines(gold, test)
    assert all(sum(s.status == status for s in sentences) > 100 for status in Status)
    assert evalb.report(sentences) == json.loads(evalb_pairs.FIGURES.read_text(encoding="utf-8"))


GOLD = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ looks) (PRT (RP up))) (. .)))"


@pytest.mark.parametrize(
    ("test", "matched", "of_gold", "of_test"),
    [
        (GOLD, 4, 4, 4),
        ("(TOP (S (NP (DT the) (NN dog)) (VP (VBZ looks) (ADVP (RP up))) (. .)))", 4, 4, 4),  # ADVP is PRT
        ("(TOP (S (NP-SBJ (DT the) (NN dog)) (VP=1 (VBZ looks) (PRT (RP up)))))", 4, 4, 4),  # function tags, no stop
        ("(TOP (X (NP (DT the) (NN dog)) (VP (VBZ looks) (PRT (RP up)) (. .))))", 3, 4, 4),  # the stop moves no span
        ("(TOP (S (NP (NP (DT the) (NN dog))) (VP (VBZ looks) (PRT (RP up))) (. .)))", 4, 4, 5),  # counted once
        ("(TOP (S (NP (-NONE- *)) (NP (DT the) (NN dog)) (VP (VBZ looks) (PRT (RP up)))))", 4, 4, 4),
    ],
)
def test_a_rule(test: str, matched: int, of_gold: int, of_test: int) -> None:
    found = score_line(GOLD, test)
    assert (found.status, found.matched, found.gold, found.test) == (Status.OK, matched, of_gold, of_test)


@pytest.mark.parametrize(
    ("test", "status"),
    [
        ("(TOP (S (NP (DT the) (NN cat)) (VP (VBZ looks) (PRT (RP up))) (. .)))", Status.ERROR),
        ("(TOP (S (NP (DT the) (, dog)) (VP (VBZ looks) (PRT (RP up))) (. .)))", Status.ERROR),  # a word deleted
        (GOLD[:-1], Status.ERROR),
        (f"{GOLD})", Status.ERROR),
        (f"{GOLD} stray", Status.ERROR),
        ("(NN dog up)", Status.ERROR),
        (evalb.NO_TREE, Status.SKIPPED),
        ("", Status.SKIPPED),
    ],
)
def test_a_line_that_cannot_be_scored_lowers_only_the_f1_of_all(test: str, status: Status) -> None:
    found = score_line(GOLD, test)
    assert found.status == status
    both = EvalbSummary.of([score_line(GOLD, GOLD), found])
    assert (both.f1, both.errors + both.skipped) == (100.0, 1)
    assert both.f1_of_all == pytest.approx(200 * 4 / (4 + 4 + 4))


def test_crossing_is_counted_once_a_test_bracket() -> None:
    gold = "(TOP (S (A (X a) (X b)) (B (X c) (X d))))"
    assert score_line(gold, "(TOP (S (X a) (A (X b) (X c)) (X d)))").crossing == 1
    assert score_line(gold, gold).crossing == 0


def test_nothing_right_is_zero_and_not_a_division() -> None:
    summary = EvalbSummary.of([score_line("(TOP (A (X a)))", "(TOP (B (X a)))")])
    assert (summary.f1, summary.recall, summary.f1_of_all) == (0.0, 0.0, 0.0)
    assert EvalbSummary.of([]).f1 == 0.0


def test_unequal_numbers_of_trees_are_refused() -> None:
    with pytest.raises(DataError, match="2 gold trees and 1 to score"):
        score_lines([GOLD, GOLD], [GOLD])
