"""What turns source ids into hypotheses. Every engine keeps the one protocol below; Translator need not care which."""

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

from dragoman.config import SearchConfig
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.errors import UsageError

EngineName = Literal["auto", "reference", "ctranslate2"]
ComputeType = Literal["float32", "int16", "int8"]


class Engine(Protocol):
    """Ids come and go without start and end symbols."""

    forms_batches: bool  # True: it is best given many sentences at a time, and divides them itself

    @property
    def name(self) -> str:
        """Which engine, and with which numbers: all in it that may change a translation."""
        ...

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        search: SearchConfig,
        n_best: int = 1,
        seed: int = 0,
        scores: bool = True,
        no_repeat: int = 0,
    ) -> list[list[Hypothesis]]:
        """Up to n_best hypotheses of each source, best first. `seed` matters where the search draws at random.

        scores=False: nobody will look at the probabilities, which an engine may then leave approximate.
        no_repeat: no so many tokens in a row come twice in a hypothesis; 0: they may.
        """
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """The log-probability of each target token, the end symbol's last."""
        ...


class CannotServeError(UsageError):
    """This engine cannot do what is asked, another may. `auto` then takes the other."""


def batches_of_like_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices, longest first, so many at a time that they and their padding stay within batch_tokens."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * (lengths[batch[0]] + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
