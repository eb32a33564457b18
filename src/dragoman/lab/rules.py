"""Pure functions from measurements to verdicts: holds, does not hold here, or undecided."""

import math
import statistics
from collections.abc import Sequence

from dragoman.lab.result import ClaimVerdict, Finding


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def spread(values: Sequence[float]) -> float:
    """The standard deviation over seeds; 0 for a single value, of which no spread is known."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def pooled_spread(groups: Sequence[Sequence[float]]) -> float | None:
    """The standard deviation within groups, over all groups together; None if no group has two values."""
    degrees = sum(len(group) - 1 for group in groups)
    if not degrees:
        return None
    return math.sqrt(sum(spread(group) ** 2 * (len(group) - 1) for group in groups) / degrees)


def higher(a: Sequence[float], b: Sequence[float], noise: float | None = None, least: float = 0.0) -> ClaimVerdict:
    """Whether the mean of a is above that of b by more than chance and by at least `least`.

    Chance is two standard errors of the difference of the means, by `noise`, the standard deviation of a value over
    seeds; where it is not given, by that of a and b together. With one seed a side and no noise, only `least` decides.
    """
    if noise is None:
        noise = pooled_spread((a, b)) or 0.0
    band = max(2 * noise * math.sqrt(1 / len(a) + 1 / len(b)), least)
    difference = mean(a) - mean(b)
    if difference > band:
        return "holds"
    return "does not hold here" if difference < -band else "undecided"


def alike(a: Sequence[float], b: Sequence[float], tolerance: float) -> ClaimVerdict:
    """Whether the means differ by at most the tolerance, even if the spread hides a part of the difference."""
    band = 2 * math.sqrt(spread(a) ** 2 / len(a) + spread(b) ** 2 / len(b))
    difference = abs(mean(a) - mean(b))
    if difference + band <= tolerance:
        return "holds"
    return "does not hold here" if difference - band > tolerance else "undecided"


def graded(value: float, holds_from: float, fails_below: float) -> ClaimVerdict:
    """The verdict on one number by two limits; between them it is undecided."""
    return "holds" if value >= holds_from else "does not hold here" if value < fails_below else "undecided"


def higher_in_pairs(claim: str, a: Sequence[float], b: Sequence[float], label: str, least: float) -> Finding:
    """Whether a is above b where each two are of one training: the spread of their difference is what counts."""
    gains = [one - other for one, other in zip(a, b, strict=True)]
    verdict = higher(gains, [0.0] * len(gains), spread(gains), least)
    return Finding(claim, verdict, f"{label} {shown(a)} and {shown(b)}; gains {', '.join(f'{g:+.2f}' for g in gains)}")


def yes(condition: bool) -> ClaimVerdict:
    """The verdict on something that has no noise."""
    return "holds" if condition else "does not hold here"


def combined(findings: Sequence[Finding]) -> ClaimVerdict:
    """The verdict on a claim: it holds if all its parts hold, and does not hold if one of them does not."""
    verdicts = {finding.verdict for finding in findings}
    if "does not hold here" in verdicts:
        return "does not hold here"
    return "undecided" if "undecided" in verdicts or not verdicts else "holds"


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent e of y = c x^e, by least squares on logarithms."""
    log_x, log_y = [math.log(value) for value in x], [math.log(value) for value in y]
    return statistics.linear_regression(log_x, log_y).slope


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's rank correlation; equal values share their mean rank."""

    def ranks(values: Sequence[float]) -> list[float]:
        return [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]

    left, right = ranks(list(a)), ranks(list(b))
    if len(set(left)) == 1 or len(set(right)) == 1:
        return 0.0
    return statistics.correlation(left, right)


def shown(values: Sequence[float], digits: int = 2) -> str:
    """The mean as text, with the spread and the number of seeds if there are several."""
    several = f" ± {spread(values):.{digits}f} ({len(values)} seeds)" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{several}"
