"""The arithmetic of verdicts, all of it pure: from measurements to holds, does not hold here, or undecided."""

import math
import statistics
from collections.abc import Sequence

from dragoman.lab.result import ClaimVerdict, Finding


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def spread(values: Sequence[float]) -> float:
    """The standard deviation over seeds; of a single one, 0: nothing is known of it."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def pooled_spread(groups: Sequence[Sequence[float]]) -> float | None:
    """The standard deviation within groups, of all groups together; None: no group has two values."""
    degrees = sum(len(group) - 1 for group in groups)
    if not degrees:
        return None
    return math.sqrt(sum(spread(group) ** 2 * (len(group) - 1) for group in groups) / degrees)


def higher(a: Sequence[float], b: Sequence[float], noise: float | None = None, least: float = 0.0) -> ClaimVerdict:
    """Is a above b by more than chance and by at least `least`?

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
    """Are the means within the tolerance, so that the spread of neither hides a larger difference?"""
    band = 2 * math.sqrt(spread(a) ** 2 / len(a) + spread(b) ** 2 / len(b))
    difference = abs(mean(a) - mean(b))
    if difference + band <= tolerance:
        return "holds"
    return "does not hold here" if difference - band > tolerance else "undecided"


def yes(condition: bool) -> ClaimVerdict:
    """For what has no noise."""
    return "holds" if condition else "does not hold here"


def combined(findings: Sequence[Finding]) -> ClaimVerdict:
    """A claim holds if all its parts do, and does not if one does not."""
    verdicts = {finding.verdict for finding in findings}
    if "does not hold here" in verdicts:
        return "does not hold here"
    return "undecided" if "undecided" in verdicts or not verdicts else "holds"


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent e of y = c x^e: least squares on logarithms."""
    log_x, log_y = [math.log(value) for value in x], [math.log(value) for value in y]
    return statistics.linear_regression(log_x, log_y).slope


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's; ties share their rank."""

    def ranks(values: Sequence[float]) -> list[float]:
        return [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]

    left, right = ranks(list(a)), ranks(list(b))
    if len(set(left)) == 1 or len(set(right)) == 1:
        return 0.0
    return statistics.correlation(left, right)


def shown(values: Sequence[float], digits: int = 2) -> str:
    """A mean and its spread, as a reader wants them."""
    several = f" ± {spread(values):.{digits}f} ({len(values)} seeds)" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{several}"
