"""The verdict on a model, the time shared out, and a sign of life while one waits."""

from dataclasses import replace

import pytest

from dragoman.quickstart.verdict import ConfidenceThreshold, MeasuredQuality, judge, threshold, worth_measuring
from dragoman.translation.confidence import Judged

GOOD_ONE = MeasuredQuality(
    bleu=40.0, copied=2.0, good=0.7, sentences=1000, words=14.0, seen=20.0, sure=ConfidenceThreshold(0.5, 0.8, 0.85)
)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "usable"),
        ({"words": 6.0}, "usable for short sentences like those of its text (6 words)"),
        ({"good": 0.4, "bleu": 20.0}, "usable for a draft that a person corrects"),
        ({"good": 0.2, "bleu": 15.0}, "usable for the 80% of sentences that it is sure of"),
        ({"good": 0.2, "bleu": 15.0, "sure": None}, "not usable"),
        ({"good": 0.2, "bleu": 6.0}, "not usable"),
        ({"bleu": 4.88, "copied": 16.73, "good": 0.3}, "not usable"),
        ({"bleu": 23.73, "copied": 26.04}, "not usable"),  # close languages, and good by chrF for that alone
        ({"bleu": 26.5, "copied": 26.04}, "not usable"),
    ],
)
def test_a_verdict_by_rules(changes: dict[str, float], line: str) -> None:
    assert judge(replace(GOOD_ONE, **changes)).line == line  # type: ignore[arg-type]


def test_the_reasons_have_the_figures() -> None:
    found = judge(replace(GOOD_ONE, bleu=4.88, copied=16.73, good=0.05, seen=0.3, sure=None, sentences=40)).reasons
    assert found[0] == (
        "worse than leaving the source as it is: BLEU 4.88, a copy of the source 16.73, on the same 40 test sentences"
    )
    alike = judge(replace(GOOD_ONE, bleu=0.0, copied=0.0)).reasons[0]
    assert alike.startswith("no better than leaving the source as it is: BLEU 0.00")
    assert "too little training for so much text: each pair was seen 0.3 times" in found
    assert "no confidence tells its good translations from its bad ones" in found
    assert found[-1].startswith("40 test sentences are few")
    decides = judge(replace(GOOD_ONE, good=0.05)).reasons[0]
    assert decides == "5% of the test sentences are good (chrF 50 or more)"
    sure = "with --min-confidence 0.50 it translates 80% of the sentences, and 85% of those are good"
    assert sure in judge(GOOD_ONE).reasons


def test_a_threshold_keeps_what_is_good_and_enough_of_it() -> None:
    judged = [Judged(0.9, True)] * 30 + [Judged(0.5, True)] * 6 + [Judged(0.4, False)] * 64
    found = threshold(judged)
    assert found is not None
    assert (found.confidence, found.share) == (0.4, 0.45)  # a fifth of those may be bad
    assert found.good == pytest.approx(0.8)
    assert threshold([Judged(0.9, True)] * 5 + [Judged(0.5, False)] * 95) is None  # five of a hundred are no use
    assert threshold([]) is None


@pytest.mark.parametrize(
    ("bleu", "copied", "worth"), [(30.0, 2.0, True), (3.0, 0.5, False), (24.0, 26.0, False), (12.0, 11.0, True)]
)
def test_what_is_not_worth_measuring_is_not_measured(bleu: float, copied: float, worth: bool) -> None:
    assert worth_measuring(bleu, copied) == worth
