"""The time of a quickstart is divided, and the clock is the whole command's."""

import pytest

from dragoman.quickstart.budget import SentenceCounts, TimeBudget, after_training, share_time


def test_the_time_left_is_shared_out() -> None:
    assert share_time(600, 0.01, 1000, 1000, worth=True) == SentenceCounts(1000, 500, 300, 1000)
    assert share_time(600, 0.01, 1000, 1000, worth=False) == SentenceCounts(1000, 500)
    assert share_time(-5, 0.01, 1000, 1000, worth=True) == SentenceCounts(100, 100)
    assert share_time(30, 0.05, 1000, 1000, worth=True) == SentenceCounts(470, 100)
    few = share_time(600, 0.01, 20, 20, worth=True)
    assert few == SentenceCounts(20, 20, 20, 20)
    for seconds in (5, 20, 60, 200):
        found = share_time(seconds, 0.02, 1000, 1000, worth=True)
        taken = 0.02 * (found.test + 1.3 * found.calibrate + 3 * found.penalty + 14 * found.quantise)
        assert taken <= max(seconds, 0.02 * 230) + 1e-6


def test_the_clock_is_the_whole_commands() -> None:
    clock = TimeBudget(10.0)
    assert clock.training_minutes() == pytest.approx(10 - after_training(10.0) / 60, abs=0.01)
    assert not clock.too_short()
    assert TimeBudget(10.0, before=540).training_minutes() == pytest.approx(0.5)  # there is always some
    assert TimeBudget(0.1).too_short()
