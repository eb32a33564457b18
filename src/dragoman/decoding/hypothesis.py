"""The result of a search, and the length penalty by which it is scored. Imports no torch: every engine uses both."""

from collections.abc import Callable
from dataclasses import dataclass

from dragoman.config import SearchConfig
from dragoman.errors import UsageError

LengthPenalty = Callable[[int], float]


@dataclass(frozen=True)
class Hypothesis:
    """A finished output. All log-probabilities are the model's own, the end symbol's included."""

    ids: tuple[int, ...]  # without start and end symbol
    log_probability: float
    score: float  # log_probability / length_penalty(len(ids) + 1); of a sample, log_probability
    # One more than ids: the last is the end symbol's. None: the engine knows only their sum, and `score` gives them.
    token_log_probabilities: tuple[float, ...] | None
    finished: bool  # False: it reached the maximum length, where the end is forced, so it may be cut short


def length_penalty_of(search: SearchConfig) -> LengthPenalty:
    """The length penalty that a search is asked to rank by."""
    match search.penalty:
        case "paper":
            return paper_length_penalty(search.alpha)
        case "length":
            return lambda length: float(length**search.alpha)


def paper_length_penalty(alpha: float) -> LengthPenalty:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14), where |Y| counts the end symbol, as it
    does in tensor2tensor, which the paper's results come from."""
    if alpha < 0:
        raise UsageError(f"alpha {alpha}; must be at least 0")
    return lambda length: float(((5 + length) / 6) ** alpha)
