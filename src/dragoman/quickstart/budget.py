"""The time of a whole quickstart, shared out: what is left for training, and what is measured in the rest. Pure, but
for the clock."""

import time
from dataclasses import dataclass

PROBING = 0.25  # of the time: after that, the smallest model alone is still probed
_AFTER_SHARE, _AFTER_LEAST, _AFTER_MOST = 0.12, 10.0, 240.0  # seconds kept for what follows training
_LEAST_TRAINING = 0.05  # of the time, whatever is left
LEAST_TEST = LEAST_CALIBRATED = 100  # sentences, even where the time is up

# Seconds in multiples of translating the same sentences once, as measured.
_CALIBRATING, _PENALTIES, _QUANTISING = 1.3, 3.0, 14.0
_QUANTISING_FIXED = 8.0  # conversion, and learning a vocabulary map
_MOST_CALIBRATED, _MOST_PENALTY, _MOST_QUANTISED = 500, 300, 1000
_LEAST_PENALTY, _LEAST_QUANTISED = 100, 200


class Clock:
    """How much of the whole command's time is gone; `before`: seconds of training that an earlier command did."""

    def __init__(self, minutes: float, before: float = 0.0) -> None:
        self.minutes = minutes
        self.before = before
        self._began = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds, with the training before."""
        return self.before + time.monotonic() - self._began

    @property
    def left(self) -> float:
        return 60 * self.minutes - self.elapsed

    def training_minutes(self) -> float:
        """What may be trained from now on, so that the rest has its time too."""
        return max(_LEAST_TRAINING * self.minutes, (self.left - after_training(self.minutes)) / 60)

    def too_short(self) -> bool:
        """Whether reading, probing and scoring alone take the time that there is."""
        return self.left - after_training(self.minutes) < 60 * _LEAST_TRAINING * self.minutes


def after_training(minutes: float) -> float:
    """Seconds to keep for scoring, calibrating, quantising and the report."""
    return min(_AFTER_MOST, max(_AFTER_LEAST, _AFTER_SHARE * 60 * minutes))


@dataclass(frozen=True)
class Afterwards:
    """How many sentences each measurement gets; 0: it is not done."""

    test: int
    calibrate: int
    penalty: int = 0
    quantise: int = 0


def share_out(seconds: float, each: float, valid: int, test: int, worth: bool) -> Afterwards:
    """The time left, by what matters most: the test, the calibration, then the length penalty and quantising, which are
    for models worth using. `each`: seconds to translate a sentence."""
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
        return Afterwards(tested, calibrated)
    penalty = min(valid, _MOST_PENALTY, int(left / (each * _PENALTIES)))
    penalty = penalty if penalty >= min(valid, _LEAST_PENALTY) else 0
    left -= penalty * each * _PENALTIES
    quantised = min(valid, _MOST_QUANTISED, int((left - _QUANTISING_FIXED) / (each * _QUANTISING)))
    return Afterwards(tested, calibrated, penalty, quantised if quantised >= min(valid, _LEAST_QUANTISED) else 0)
