"""How long translations usually are for their sources, and which are too short: something is likely to be missing."""

import math
import statistics
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

# Of a pair of languages that was not measured: a translation is short that has not half of what the source has more
# than this.
SPARE_LETTERS = 20
# A ratio is unusual that is so many standard deviations of its logarithm below the mean: tuned on validation sentences
# (bench/coverage.py).
DEVIATIONS = 3.0
LEAST_DEVIATION = 0.1  # of the logarithm: text that was translated word by word has next to none
MOST_STEPS = 8
PAIRS_A_STEP = 50
_FIRST_WIDE = "\u1100"  # no character before this one is wide


def letters(text: str) -> int:
    """The number of characters, of which a Chinese one counts as three."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text if character >= _FIRST_WIDE)
    return len(text) + 2 * wide


class Step(NamedTuple):
    """Sources up to so many letters, and the least ratio of a translation's letters to theirs that is usual."""

    letters: int
    ratio: float


@dataclass(frozen=True)
class UsualLengths:
    """The least length that is usual, by the length of the source. Without steps: of a pair that was not measured."""

    steps: tuple[Step, ...] = ()  # by letters; the last one's ratio holds for longer sources, too

    def share(self, source: str, target: str) -> float:
        """A translation's length by the least usual one; below 1 it is short."""
        least = self._least(letters(source))
        return letters(target) / least if least > 0 else math.inf

    def is_short(self, source: str, target: str) -> bool:
        return self.share(source, target) < 1

    def _least(self, source: int) -> float:
        if not self.steps:
            return (source - SPARE_LETTERS) / 2
        return source * next((step.ratio for step in self.steps if source <= step.letters), self.steps[-1].ratio)

    @classmethod
    def measure(cls, pairs: Iterable[tuple[str, str]], deviations: float = DEVIATIONS) -> Self:
        """Learns them from sources with right translations: shorter sources vary more, so each step has its own."""
        counted = sorted((letters(source), letters(target)) for source, target in pairs if source and target)
        count = min(MOST_STEPS, len(counted) // PAIRS_A_STEP)
        # Sources of one length belong to one step.
        tops = sorted({counted[len(counted) * number // count - 1][0] for number in range(1, count + 1)})
        steps = []
        for below, top in pairwise([0, *tops]):
            part = [pair for pair in counted if below < pair[0] <= top]
            steps.append(Step(top, _least_ratio(part, deviations)))
        return cls(tuple(steps))

    @classmethod
    def of(cls, values: Sequence[Any]) -> Self:
        """From what JSON keeps of the steps."""
        return cls(tuple(Step(int(count), float(ratio)) for count, ratio in values))


ANY_PAIR = UsualLengths()  # where nothing was measured


def _least_ratio(pairs: Sequence[tuple[int, int]], deviations: float) -> float:
    logs = [math.log(target / source) for source, target in pairs]
    return math.exp(statistics.fmean(logs) - deviations * max(LEAST_DEVIATION, statistics.pstdev(logs)))
