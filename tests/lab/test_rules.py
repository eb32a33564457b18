"""The rules that judge measurements: pure functions, which can say no."""

import math

import pytest

from dragoman.lab import rules
from dragoman.lab.result import Finding


def test_higher_needs_more_than_chance() -> None:
    assert rules.higher([3.0, 3.2, 2.8], [1.0, 1.2, 0.8]) == "holds"
    assert rules.higher([1.0, 1.2, 0.8], [3.0, 3.2, 2.8]) == "does not hold here"
    assert rules.higher([1.0, 3.0], [0.9, 2.9]) == "undecided"
    assert rules.higher([2.0], [1.0], noise=0.1) == "holds"
    assert rules.higher([2.0], [1.0], noise=0.4) == "undecided"  # two standard errors of the difference are 1.13
    assert rules.higher([2.0], [1.9], least=0.5) == "undecided"


def test_noise_is_pooled_within_groups() -> None:
    assert rules.pooled_spread([[1.0], [2.0]]) is None
    assert rules.pooled_spread([[1.0, 3.0], [100.0, 102.0], [7.0]]) == pytest.approx(math.sqrt(2))


def test_alike_asks_for_precision_too() -> None:
    assert rules.alike([1.0, 1.01], [1.0, 1.01], 0.05) == "holds"
    assert rules.alike([1.0, 1.0], [2.0, 2.0], 0.05) == "does not hold here"
    assert rules.alike([0.0, 2.0], [0.0, 2.0], 0.05) == "undecided"


def test_a_claim_holds_if_all_its_parts_do() -> None:
    parts = {verdict: Finding("", verdict, "") for verdict in ("holds", "does not hold here", "undecided")}
    assert rules.combined([parts["holds"]]) == "holds"
    assert rules.combined([parts["holds"], parts["undecided"]]) == "undecided"
    assert rules.combined(list(parts.values())) == "does not hold here"
    assert rules.combined([]) == "undecided"


def test_slopes_and_ranks() -> None:
    assert rules.slope([1, 2, 4, 8], [3 * x**1.5 for x in (1, 2, 4, 8)]) == pytest.approx(1.5)
    assert rules.rank_correlation([1, 2, 3], [10, 20, 15]) == pytest.approx(0.5)
    assert rules.rank_correlation([1, 1, 2], [5, 5, 7]) == pytest.approx(1.0)
    assert rules.rank_correlation([1, 1], [1, 2]) == 0.0
