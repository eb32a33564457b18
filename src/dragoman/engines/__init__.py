"""What turns source ids into hypotheses. Every engine keeps the one protocol below; Translator need not care which."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from dragoman.config import SearchConfig

if TYPE_CHECKING:
    from dragoman.search import Hypothesis


class Engine(Protocol):
    """Ids come and go without start and end symbols."""

    def translate(
        self, sources: Sequence[Sequence[int]], search: SearchConfig, n_best: int = 1, seed: int = 0
    ) -> "list[list[Hypothesis]]":
        """Up to n_best hypotheses of each source, best first. `seed` matters where the search draws at random."""
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """The log-probability of each target token, the end symbol's last."""
        ...
