"""A cause, and how causes are ranked."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Cause:
    """Something that makes translations worse, or scores mean something else than they say."""

    name: str  # one or two words, for programs
    finding: str
    evidence: str  # lines, figures
    cost: str  # estimated, in words: what would be better without it
    remedy: str  # a command
    weight: float  # 0 to 1, the estimated share of what is lost: causes are ranked by it

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def ranked(causes: Iterable[Cause | None]) -> list[Cause]:
    """Returns the causes that were found, the costliest first."""
    return sorted((cause for cause in causes if cause is not None), key=lambda cause: -cause.weight)
