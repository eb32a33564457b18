"""A beam shared out among hypotheses that lack more or less of what their output must hold.

A row that has just taken an unlikely term would lose against all that have yet to take it. So rows that lack 0, 1, 2
or more tokens compete among their equals only, each kind for an equal share of the beam (Post and Vilar 2018).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice, zip_longest
from typing import Any, NamedTuple, Protocol


class Requirement(Protocol):
    """What one sentence's output must hold, as an automaton over its tokens (dragoman.decoding.phrase_automaton has
    one)."""

    @property
    def start(self) -> Any: ...

    def advance(self, state: Any, token: int) -> Any: ...

    def missing(self, state: Any) -> int:
        """So many tokens at least are still needed; at 0 the output may end."""
        ...

    def missing_after(self, state: Any, token: int) -> int:
        """The same as `missing(advance(state, token))`, which may be quicker to say."""
        ...

    def wanted(self, state: Any) -> AbstractSet[int]:
        """Tokens that bring it further. There is always one that makes `missing` smaller by one."""
        ...


class Choice(NamedTuple):
    """One way to continue one row."""

    total: float  # log-probability of the whole
    origin: int
    token: int
    log_prob: float  # of the token

    def order(self) -> tuple[float, int, int]:
        return -self.total, self.origin, self.token


class Row(NamedTuple):
    total: float
    state: Any
    options: Mapping[int, float]  # the log-probability of each token that is weighed


def share_out(
    requirement: Requirement, rows: Sequence[tuple[int, Row]], beam: int, room: int, eos_id: int
) -> list[Choice]:
    """Of one sentence: the `beam` choices that go on and all that end, best first. Rows come with their numbers.

    `room`: so many tokens may follow a choice. None is let in that leaves less than what is missing needs, so that
    whatever goes on can meet everything.
    """
    ends: list[Choice] = []
    banks: dict[int, list[Choice]] = {}
    for number, row in rows:
        for token, value in row.options.items():
            choice = Choice(row.total + value, number, token, value)
            if token == eos_id:
                if requirement.missing(row.state) == 0:
                    ends.append(choice)
                continue
            missing = requirement.missing_after(row.state, token)
            if missing <= room:
                banks.setdefault(missing, []).append(choice)
    # The best of each bank, that with the least missing first, then the second best of each ...
    by_rank = zip_longest(*(sorted(some, key=Choice.order) for _, some in sorted(banks.items())))
    going_on = islice((choice for turn in by_rank for choice in turn if choice is not None), beam)
    return sorted([*ends, *going_on], key=Choice.order)
