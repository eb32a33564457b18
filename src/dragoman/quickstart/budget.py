"""Divides the time of a quickstart: how much training gets, and how many sentences are measured with in the rest.

Pure functions, except for the clock.
"""

import time
from dataclasses import dataclass

PROBING = 0.25  # share of the time after which only the smallest model is still probed
_AFTER_SHARE, _AFTER_LEAST, _AFTER_MOST = 0.12, 10.0, 240.0  # seconds reserved for what follows training
_LEAST_TRAINING = 0.05  # share of the time, however little is left
LEAST_TEST = LEAST_CALIBRATED = 100  # sentences, even if the time is up

# Costs, as measured, in multiples of the time to translate the same sentences once.
_CALIBRATING, _PENALTIES, _QUANTISING = 1.3, 3.0, 14.0
_QUANTISING_FIXED = 8.0  # conversion, and learning a vocabulary map
_MOST_CALIBRATED, _MOST_PENALTY, _MOST_QUANTISED = 500, 300, 1000
_LEAST_PENALTY, _LEAST_QUANTISED = 100, 200


class TimeBudget:
    """Measures how much of the command's time is used up. `before`: seconds of training by an earlier command."""

    def __init__(self, minutes: float, before: float = 0.0) -> None:
        self.minutes = minutes
        self.before = before
        self._began = time.monotonic()
        self._probing_from = before

    @property
    def elapsed(self) -> float:
        """Seconds so far, including earlier training."""
        return self.before + time.monotonic() - self._began

    @property
    def left(self) -> float:
        """Seconds that are left; negative when the time is up."""
        return 60 * self.minutes - self.elapsed

    def begin_probing(self) -> None:
        """What was done so far is not counted as time of the probing."""
        self._probing_from = self.elapsed

    def probed_enough(self) -> bool:
        """Tells whether only the smallest model is still probed."""
        return self.elapsed - self._probing_from > PROBING * 60 * self.minutes

    def training_minutes(self) -> float:
        """Returns the minutes that training may take from now on, so that enough is left for what follows it."""
        return max(_LEAST_TRAINING * self.minutes, (self.left - after_training(self.minutes)) / 60)

    def too_short(self) -> bool:
        """Tells whether reading, probing and scoring alone use up the time."""
        return self.left - after_training(self.minutes) < 60 * _LEAST_TRAINING * self.minutes


def after_training(minutes: float) -> float:
    """Returns the seconds to reserve for scoring, calibrating, quantising and the report."""
    return min(_AFTER_MOST, max(_AFTER_LEAST, _AFTER_SHARE * 60 * minutes))


@dataclass(frozen=True)
class SentenceCounts:
    """The number of sentences for each measurement; 0 if it is not done."""

    test: int
    calibrate: int
    penalty: int = 0
    quantise: int = 0


def share_time(seconds: float, each: float, valid: int, test: int, worth: bool) -> SentenceCounts:
    """Divides the seconds left by importance: first the test, then calibration, then length penalty and quantising.

    `each`: seconds to translate one sentence; `valid`, `test`: how many sentences there are; `worth`: the model is good
    enough to measure length penalty and quantising.
    """
    tested, calibrated = min(test, LEAST_TEST), min(valid, LEAST_CALIBRATED)
    left = seconds - each * (tested + _CALIBRATING * calibrated)

    def more(most: int, now: int, cost: float) -> int:
        nonlocal left
        added = max(0, min(most - now, int(left / (each * cost))))
        left -= added * each * cost
        return now + added

    tested = more(test, tested, 1.0)
    calibrated = more(min(valid, _MOST_CALIBRATED), calibrated, _CALIBRATING)
    if not worth:
        return SentenceCounts(tested, calibrated)
    penalty = min(valid, _MOST_PENALTY, int(left / (each * _PENALTIES)))
    penalty = penalty if penalty >= min(valid, _LEAST_PENALTY) else 0
    left -= penalty * each * _PENALTIES
    quantised = min(valid, _MOST_QUANTISED, int((left - _QUANTISING_FIXED) / (each * _QUANTISING)))
    return SentenceCounts(tested, calibrated, penalty, quantised if quantised >= min(valid, _LEAST_QUANTISED) else 0)
