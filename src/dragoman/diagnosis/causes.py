"""Describes a cause of bad translations, and ranks several causes."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Cause:
    """Something that makes translations worse, or makes scores misleading."""

    name: str  # one or two words, for programs
    finding: str
    evidence: str  # lines, figures
    cost: str  # an estimate in words: what would be better without it
    remedy: str  # a command
    weight: float  # 0 to 1, the estimated share of what is lost: causes are ranked by it

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def ranked(causes: Iterable[Cause | None]) -> list[Cause]:
    """Returns the causes that were found, the costliest first."""
    return sorted((cause for cause in causes if cause is not None), key=lambda cause: -cause.weight)
