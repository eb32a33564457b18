"""Shares out a beam among hypotheses that lack more or fewer of the required words (Post and Vilar 2018).

A row that has just taken an unlikely required word would lose against all rows that have yet to take it. So rows that
lack 0, 1, 2 or more tokens compete only with rows that lack as many, and each group gets an equal share of the beam.
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
        """The least number of tokens that are still needed; at 0 the output may end."""
        ...

    def missing_after(self, state: Any, token: int) -> int:
        """The same as `missing(advance(state, token))`, but it may be quicker."""
        ...

    def wanted(self, state: Any) -> AbstractSet[int]:
        """Tokens that bring the output nearer to its end. One of them always makes `missing` smaller by one."""
        ...


class Choice(NamedTuple):
    """One way to continue one row."""

    total: float  # log-probability of the whole
    origin: int  # the number of the row
    token: int
    log_prob: float  # of the token

    def order(self) -> tuple[float, int, int]:
        return -self.total, self.origin, self.token


class BeamRow(NamedTuple):
    """A hypothesis that can be continued."""

    total: float  # its log-probability
    state: Any  # of the requirement
    options: Mapping[int, float]  # the log-probability of each token that is weighed


def share_out(
    requirement: Requirement, rows: Sequence[tuple[int, BeamRow]], beam: int, room: int, eos_id: int
) -> list[Choice]:
    """For one sentence, the `beam` choices that go on and all that end, best first. Rows come with their numbers.

    `room`: the number of tokens that may follow a choice. A choice that leaves too little room for what is still
    missing is dropped, so whatever goes on can still hold all required words.
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
    # The best of each bank, beginning with the bank that lacks least; then the second best of each ...
    by_rank = zip_longest(*(sorted(choices, key=Choice.order) for _, choices in sorted(banks.items())))
    going_on = islice((choice for turn in by_rank for choice in turn if choice is not None), beam)
    return sorted([*ends, *going_on], key=Choice.order)
