"""What a search tells of its steps to a recorder: the tree of all that it weighed. Imports no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Fate = Literal["kept", "finished", "pruned"]


@dataclass(frozen=True)
class RecordedCandidate:
    """One way to continue one row. Scores are normalised as if the candidate were the whole hypothesis."""

    parent: int  # the row it continues, at the previous position
    token: int
    token_log_probability: float
    log_probability: float
    score: float
    fate: Fate
    beam: int | None  # the row it becomes, if kept


@dataclass(frozen=True)
class BeamStep:
    """What the search of one sentence weighed at one position: a level of its tree. A beam search's candidates come
    best first; those of sampling are what was drawn, in the order of the draws.

    The rows kept at a sentence's last step are simply not continued: nothing better could come from them.
    """

    sentence: int
    position: int  # tokens before the candidates, 0 at the first step
    candidates: tuple[RecordedCandidate, ...]


Recorder = Callable[[BeamStep], None]
