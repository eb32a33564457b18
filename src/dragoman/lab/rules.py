"""Pure functions from measurements to findings: a verdict, the size of the effect, and its 95 % interval.

Values of one kind of arm differ by their seeds. Two kinds are compared by Welch's t interval of the difference of
their means, kinds measured on the same trainings by the t interval of the paired differences. An effect of one seed
has no interval of its own: where the other side has several, their spread is taken for both, and the verdict is at
most "undecided". `after_holm` corrects for the number of comparisons that an experiment makes.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.lab.result import ClaimVerdict, Finding

CONFIDENCE = 0.95
SEVERAL = 2  # seeds that a side must have for a verdict


class Interval(NamedTuple):
    """An estimate with its standard error and degrees of freedom."""

    value: float
    error: float
    degrees: float

    @property
    def half(self) -> float:
        return 0.0 if self.error == 0 else t_quantile(self.degrees) * self.error

    @property
    def low(self) -> float:
        return self.value - self.half

    @property
    def high(self) -> float:
        return self.value + self.half

    def p(self, against: float = 0.0) -> float:
        """The two-sided probability of an estimate at least as far from `against`, if that were the true value."""
        off = abs(self.value - against)
        if self.error == 0:
            return 0.0 if off else 1.0
        return 1.0 - t_within(off / self.error, self.degrees)


def t_within(t: float, degrees: float) -> float:
    """The probability that Student's t lies within -t ... t: by Simpson's rule, where t = √df tan u."""
    top, parts = math.atan(abs(t) / math.sqrt(degrees)), 2000
    factor = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)
    heights: list[float] = [math.cos(top * i / parts) ** (degrees - 1) for i in range(parts + 1)]
    area = heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])
    return min(1.0, 2 * factor * area * top / parts / 3)


def t_quantile(degrees: float) -> float:
    """The t within which 95 % lies."""
    low, high = 0.0, 13.0  # 12.71 at one degree of freedom, the least there is
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if t_within(middle, degrees) < CONFIDENCE else (low, middle)
    return high


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def mean_or_none(values: Sequence[float]) -> float | None:
    """The mean for a table or a figure, where some arms may not be measured yet."""
    return mean(values) if values else None


def spread(values: Sequence[float]) -> float:
    """The standard deviation over seeds; 0 for a single value, of which no spread is known."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def of_mean(values: Sequence[float]) -> Interval:
    """The mean of several values."""
    return Interval(mean(values), spread(values) / math.sqrt(len(values)), max(1, len(values) - 1))


def welch(a: Sequence[float], b: Sequence[float]) -> Interval | None:
    """The difference of the means of a and b, by Welch. One value alone is lent the other side's spread; None if both
    are alone."""
    if len(a) < SEVERAL and len(b) < SEVERAL:
        return None
    sd_a, sd_b = (spread(a), spread(b)) if min(len(a), len(b)) >= SEVERAL else (max(spread(a), spread(b)),) * 2
    part_a, part_b = sd_a**2 / len(a), sd_b**2 / len(b)
    total = part_a + part_b
    if min(len(a), len(b)) < SEVERAL:
        degrees: float = max(len(a), len(b)) - 1
    else:
        shares = part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1)
        degrees = total**2 / shares if shares else len(a) + len(b) - 2
    return Interval(mean(a) - mean(b), math.sqrt(total), degrees)


def more_than(estimate: Interval, least: float = 0.0) -> tuple[ClaimVerdict, float]:
    """Whether the effect is positive and counts, with the probability behind the verdict.

    It holds if the whole interval is above 0 and the estimate is at least `least`; it does not hold here if the whole
    interval is below `least`, so that an effect that counts is excluded.
    """
    if estimate.low > 0 and estimate.value >= least:
        return "holds", estimate.p()
    if estimate.high < least:
        return "does not hold here", estimate.p(least)
    return "undecided", estimate.p()


def within(estimate: Interval, tolerance: float) -> tuple[ClaimVerdict, float]:
    """Whether the effect is nearly none: the whole interval inside ± tolerance, or the whole interval outside."""
    p_both = max(estimate.p(-tolerance), estimate.p(tolerance))
    if -tolerance < estimate.low and estimate.high < tolerance:
        return "holds", p_both
    if estimate.low > tolerance or estimate.high < -tolerance:
        return "does not hold here", estimate.p(math.copysign(tolerance, estimate.value))
    return "undecided", p_both


def higher(
    claim: str, a: Sequence[float], b: Sequence[float], names: tuple[str, str], unit: str, least: float = 0.0,
    digits: int = 2, lower_is_better: bool = False,
) -> Finding:  # fmt: skip
    """Whether a is better than b: higher, or lower for losses. `least` is the smallest difference that counts."""
    if missing := _missing(claim, (a, b), names):
        return missing
    sign = -1 if lower_is_better else 1
    estimate = welch([sign * v for v in a], [sign * v for v in b])
    because = f"{names[0]} {shown(a, digits)}, {names[1]} {shown(b, digits)}"
    better = f"{unit} {'less' if lower_is_better else 'more'}"
    if estimate is None:
        value = sign * (mean(a) - mean(b))
        return Finding(claim, "undecided", f"{because}; one seed each", value, None, None, better)
    return _capped(_found(claim, more_than(estimate, least), because, estimate, better), a, b)


def alike(
    claim: str, a: Sequence[float], b: Sequence[float], names: tuple[str, str], unit: str, tolerance: float,
    digits: int = 2,
) -> Finding:  # fmt: skip
    """Whether a and b are nearly the same: their difference, with its whole interval, within ± tolerance."""
    if missing := _missing(claim, (a, b), names):
        return missing
    because = f"{names[0]} {shown(a, digits)}, {names[1]} {shown(b, digits)}; nearly the same is ± {tolerance:g}"
    if (estimate := welch(a, b)) is None:
        return Finding(claim, "undecided", f"{because}; one seed each", mean(a) - mean(b), None, None, unit)
    return _capped(_found(claim, within(estimate, tolerance), because, estimate, unit), a, b)


def higher_in_pairs(
    claim: str, a: Sequence[float], b: Sequence[float], names: tuple[str, str], unit: str, least: float = 0.0,
    digits: int = 2,
) -> Finding:  # fmt: skip
    """Whether a is above b where each two are of one training: the spread of their difference is what counts."""
    if missing := _missing(claim, (a, b), names):
        return missing
    gains = [one - other for one, other in zip(a, b, strict=True)]
    because = (
        f"{names[0]} {shown(a, digits)}, {names[1]} {shown(b, digits)}; "
        f"differences {', '.join(f'{gain:+.{digits}f}' for gain in gains)}"
    )
    estimate = of_mean(gains)
    return _capped(_found(claim, more_than(estimate, least), because, estimate, unit), a, b)


def alike_in_pairs(
    claim: str, a: Sequence[float], b: Sequence[float], names: tuple[str, str], unit: str, tolerance: float,
    digits: int = 2,
) -> Finding:  # fmt: skip
    """Whether a and b are nearly the same where each two are of one training."""
    if missing := _missing(claim, (a, b), names):
        return missing
    gains = [one - other for one, other in zip(a, b, strict=True)]
    because = f"{names[0]} {shown(a, digits)}, {names[1]} {shown(b, digits)}; nearly the same is ± {tolerance:g}"
    estimate = of_mean(gains)
    return _capped(_found(claim, within(estimate, tolerance), because, estimate, unit), a, b)


def times_higher(
    claim: str, a: Sequence[float], b: Sequence[float], names: tuple[str, str], least: float = 1.0, digits: int = 2
) -> Finding:
    """Whether a is more than b as a ratio: Welch's interval on logarithms. `least`: the smallest ratio that counts."""
    if missing := _missing(claim, (a, b), names):
        return missing
    because = f"{names[0]} {shown(a, digits)}, {names[1]} {shown(b, digits)}"
    estimate = welch([math.log(v) for v in a], [math.log(v) for v in b])
    if estimate is None:
        return Finding(claim, "undecided", f"{because}; one seed each", mean(a) / mean(b), None, None, "times")
    return _capped(_found(claim, more_than(estimate, math.log(least)), because, estimate, "times", log=True), a, b)


def times_alike(
    claim: str, a: Sequence[float], b: Sequence[float], names: tuple[str, str], factor: float, digits: int = 2
) -> Finding:
    """Whether the ratio of a and b, with its whole interval, is within a factor."""
    if missing := _missing(claim, (a, b), names):
        return missing
    because = f"{names[0]} {shown(a, digits)}, {names[1]} {shown(b, digits)}; nearly the same is a factor of {factor:g}"
    estimate = welch([math.log(v) for v in a], [math.log(v) for v in b])
    if estimate is None:
        return Finding(claim, "undecided", f"{because}; one seed each", mean(a) / mean(b), None, None, "times")
    return _capped(_found(claim, within(estimate, math.log(factor)), because, estimate, "times", log=True), a, b)


def estimated(
    claim: str, estimate: Interval, because: str, unit: str, least: float | None = None, tolerance: float = 0.0,
    predicted: float = 0.0,
) -> Finding:  # fmt: skip
    """The finding on one estimate: at least `least` above `predicted`, or within ± tolerance of it."""
    off = Interval(estimate.value - predicted, estimate.error, estimate.degrees)
    judged = within(off, tolerance) if least is None else more_than(off, least)
    return _found(claim, judged, because, estimate, unit)


def fact(claim: str, condition: bool, because: str, value: float | None = None, unit: str = "") -> Finding:
    """The finding on something that has no noise: a count, or an exact comparison."""
    return Finding(claim, "holds" if condition else "does not hold here", because, value, None, None, unit)


def not_testable(claim: str, reason: str) -> Finding:
    """A part of a claim that this lab cannot test, and why."""
    return Finding(claim, "not testable here", reason)


def not_measured(claim: str, what: str) -> Finding:
    """A part of a claim whose arms are defined and wait for a queue."""
    return Finding(claim, "not measured yet", what)


def after_holm(findings: Sequence[Finding]) -> list[Finding]:
    """The findings with Holm's correction: of m comparisons, the i-th smallest probability counts (m - i + 1) times.

    What was decided by a probability that is above 0.05 after it is undecided.
    """
    compared = sorted((f.p, at) for at, f in enumerate(findings) if f.p is not None)
    found, most = list(findings), 0.0
    for place, (p, at) in enumerate(compared):
        most = max(most, min(1.0, (len(compared) - place) * p))
        finding = dataclasses.replace(found[at], p=most)
        if finding.verdict in ("holds", "does not hold here") and most > 1 - CONFIDENCE:
            because = f"{finding.because}; “{finding.verdict}” before the correction for {len(compared)} comparisons"
            finding = dataclasses.replace(finding, verdict="undecided", because=because)
        found[at] = finding
    return found


def _found(
    claim: str, judged: tuple[ClaimVerdict, float], because: str, estimate: Interval, unit: str, log: bool = False
) -> Finding:
    verdict, p = judged
    value, low, high = (math.exp(v) if log else v for v in (estimate.value, estimate.low, estimate.high))
    return Finding(claim, verdict, because, value, low, high, unit, p)


def _capped(finding: Finding, a: Sequence[float], b: Sequence[float]) -> Finding:
    """One seed proves nothing, however large the difference."""
    if min(len(a), len(b)) >= SEVERAL:
        return finding
    because = f"{finding.because}; one seed on a side, so the other's spread is taken for both"
    return dataclasses.replace(finding, verdict="undecided", because=because, p=None)


def _missing(claim: str, sides: Sequence[Sequence[float]], names: Sequence[str]) -> Finding | None:
    absent = [name for name, side in zip(names, sides, strict=True) if not side]
    return not_measured(claim, f"waits for: {', '.join(absent)}") if absent else None


def slope(x: Sequence[float], y: Sequence[float]) -> Interval:
    """The exponent e of y = c x^e, by least squares on logarithms, with the error that the residuals show."""
    log_x, log_y = [math.log(value) for value in x], [math.log(value) for value in y]
    line = statistics.linear_regression(log_x, log_y)
    degrees = len(x) - 2
    if degrees < 1:
        return Interval(line.slope, math.inf, 1)
    residuals = [b - line.slope * a - line.intercept for a, b in zip(log_x, log_y, strict=True)]
    middle = mean(log_x)
    error = math.sqrt(sum(r * r for r in residuals) / degrees / sum((a - middle) ** 2 for a in log_x))
    return Interval(line.slope, error, degrees)


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's rank correlation; equal values share their mean rank."""

    def ranks(values: Sequence[float]) -> list[float]:
        return [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]

    left, right = ranks(list(a)), ranks(list(b))
    if len(set(left)) == 1 or len(set(right)) == 1:
        return 0.0
    return statistics.correlation(left, right)


def correlated(claim: str, a: Sequence[float], b: Sequence[float], least: float) -> Finding:
    """Whether two orders agree: Spearman's correlation with the interval of Fisher's transformation."""
    found = rank_correlation(a, b)
    middle = math.atanh(min(0.999, max(-0.999, found)))
    error = 1.06 / math.sqrt(max(1, len(a) - 3))  # of ranks, after Fieller, Hartley and Pearson (1957)
    estimate = Interval(middle, error, 10_000)
    verdict, p = more_than(estimate, math.atanh(least))
    because = f"rank correlation over {len(a)} rows {found:.2f}; {least:g} counts"
    return Finding(claim, verdict, because, found, math.tanh(estimate.low), math.tanh(estimate.high), "correlation", p)


def shown(values: Sequence[float], digits: int = 2) -> str:
    """The mean as text, with the standard deviation and the number of seeds if there are several."""
    several = f" ± {spread(values):.{digits}f} ({len(values)} seeds)" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{several}"
