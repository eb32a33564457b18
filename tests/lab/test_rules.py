"""The rules that judge measurements: pure functions, which can say no."""

import math

import pytest

from dragoman.lab import rules
from dragoman.lab.result import Finding, counted, headline_of
from dragoman.lab.rules import Interval

NAMES = ("a", "b")


def test_students_t_is_that_of_the_tables() -> None:
    for degrees, expected in ((1, 12.706), (2, 4.303), (5, 2.571), (30, 2.042)):
        assert rules.t_quantile(degrees) == pytest.approx(expected, abs=2e-3)
    assert rules.t_within(0.0, 3) == 0.0
    assert rules.t_within(2.0, 1e6) == pytest.approx(0.9545, abs=1e-4)  # the normal distribution


def test_welch_is_that_of_a_textbook() -> None:
    # Variances 7/3 and 11/48; Welch and Satterthwaite's degrees of freedom from these by hand.
    a, b = [3.0, 4.0, 1.0], [5.0, 6.0, 5.5, 5.0]
    found = rules.welch(a, b)
    assert found is not None
    assert found.value == pytest.approx(-2.708333)
    assert found.error == pytest.approx(math.sqrt(7 / 9 + 0.229167 / 4), abs=1e-4)
    assert found.degrees == pytest.approx(2.292, abs=0.01)
    assert rules.welch([1.0], [2.0]) is None
    lent = rules.welch([1.0], [2.0, 4.0])  # the spread of the side that has several
    assert lent is not None
    assert lent.error == pytest.approx(math.sqrt(2 + 2 / 2))


def verdict(a: list[float], b: list[float], least: float = 0.0) -> str:
    return rules.higher("", a, b, NAMES, "BLEU", least).verdict


def test_higher_needs_more_than_chance_and_more_than_one_seed() -> None:
    assert verdict([3.0, 3.2, 2.8], [1.0, 1.2, 0.8]) == "holds"
    assert verdict([1.0, 1.2, 0.8], [3.0, 3.2, 2.8]) == "does not hold here"
    assert verdict([1.0, 3.0], [0.9, 2.9]) == "undecided"
    assert verdict([3.0, 3.2, 2.8], [1.0, 1.2, 0.8], least=5.0) == "does not hold here"  # an effect of 5 is excluded
    assert verdict([30.0], [1.0, 1.2, 0.8]) == "undecided"
    assert verdict([30.0], [1.0]) == "undecided"
    assert verdict([], [1.0]) == "not measured yet"
    lower = rules.higher("", [1.0, 1.1], [9.0, 9.1], NAMES, "nats", lower_is_better=True)
    assert (lower.verdict, lower.unit) == ("holds", "nats less")
    assert lower.low is not None
    assert lower.effect == pytest.approx(8.0)
    assert lower.low < 8.0


def test_pairs_count_by_their_differences() -> None:
    values = [10.0, 20.0, 30.0], [9.0, 18.9, 29.1]
    assert rules.higher("", *values, NAMES, "BLEU").verdict == "undecided"
    assert rules.higher_in_pairs("", *values, NAMES, "BLEU").verdict == "holds"
    assert rules.higher_in_pairs("", [10.0], [1.0], NAMES, "BLEU").verdict == "undecided"


def test_alike_asks_for_precision_too() -> None:
    def alike(a: list[float], b: list[float]) -> str:
        return rules.alike("", a, b, NAMES, "", 0.05).verdict

    assert alike([1.0, 1.001, 0.999], [1.0, 1.001, 0.999]) == "holds"
    assert alike([1.0, 1.001], [2.0, 2.001]) == "does not hold here"
    assert alike([0.0, 2.0], [0.0, 2.0]) == "undecided"
    assert rules.times_alike("", [1.0, 1.1, 0.9], [1.0, 1.1, 0.9], NAMES, 2.0).verdict == "holds"


def test_ratios_are_of_logarithms() -> None:
    found = rules.times_higher("", [200.0, 220.0, 180.0], [10.0, 11.0, 9.0], NAMES, 2.0)
    assert found.verdict == "holds"
    assert found.effect == pytest.approx(20.0, rel=0.01)
    assert found.low is not None
    assert found.low > 10


def test_holm_corrects_for_the_number_of_comparisons() -> None:
    def compared(p: float) -> Finding:
        return Finding("", "holds", "", 1.0, 0.1, 2.0, "", p)

    alone = rules.after_holm([compared(0.04)])
    assert (alone[0].verdict, alone[0].p) == ("holds", 0.04)
    three = rules.after_holm([compared(0.04), compared(0.01), Finding("", "holds", "exact"), compared(0.03)])
    assert [finding.verdict for finding in three] == ["undecided", "holds", "holds", "undecided"]
    assert [finding.p for finding in three] == [pytest.approx(0.06), pytest.approx(0.03), None, pytest.approx(0.06)]
    assert "before the correction for 3 comparisons" in three[0].because


def test_a_headline_is_a_sentence_on_all_findings() -> None:
    parts = [Finding("It is red.", "holds", ""), Finding("It flies.", "does not hold here", "")]
    assert headline_of(parts) == "1 of 2 findings holds; not seen here: “It flies”."
    assert headline_of(parts[:1]) == "The one finding holds."
    assert headline_of([Finding("", "not measured yet", "")]) == "Nothing of it is measured yet."
    assert headline_of([*parts, *parts, *parts]) == "3 of 6 findings hold; not seen here: 3 of them."
    assert counted([*parts, *parts]) == "2 hold, 2 do not hold here"


def test_what_has_no_noise_and_what_cannot_be_tested() -> None:
    assert rules.fact("", True, "").verdict == "holds"
    assert rules.fact("", False, "").verdict == "does not hold here"
    assert rules.not_testable("", "no GPU").because == "no GPU"


def test_slopes_and_ranks() -> None:
    assert rules.slope([1, 2, 4, 8], [3 * x**1.5 for x in (1, 2, 4, 8)]).value == pytest.approx(1.5)
    rough = rules.slope([1, 2, 4, 8], [1.0, 5.0, 3.0, 20.0])
    assert rules.estimated("", rough, "", "", tolerance=0.3, predicted=rough.value).verdict == "undecided"
    exact = Interval(1.99, 0.01, 4)
    assert rules.estimated("", exact, "", "", tolerance=0.3, predicted=2.0).verdict == "holds"
    assert rules.estimated("", exact, "", "", tolerance=0.3, predicted=1.0).verdict == "does not hold here"
    assert rules.rank_correlation([1, 2, 3], [10, 20, 15]) == pytest.approx(0.5)
    assert rules.rank_correlation([1, 1, 2], [5, 5, 7]) == pytest.approx(1.0)
    assert rules.rank_correlation([1, 1], [1, 2]) == 0.0
    ranks = list(range(20))
    assert rules.correlated("", ranks, ranks, 0.3).verdict == "holds"
    assert rules.correlated("", ranks, ranks[::-1], 0.3).verdict == "does not hold here"
