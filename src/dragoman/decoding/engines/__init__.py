"""Engines turn source ids into hypotheses. All of them follow the protocol below, so callers need not know which."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from dragoman.config import ModelConfig, SearchConfig
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from dragoman.data.tokenizer import Tokenizer

EngineName = Literal["auto", "reference", "ctranslate2"]
ComputeType = Literal["float32", "int16", "int8"]


class Engine(Protocol):
    """Translates and scores token ids, which come and go without start and end symbols."""

    forms_batches: bool  # True: it is best given many sentences at a time, and divides them itself

    @property
    def exact_products(self) -> bool:
        """Whether sentences of one length change nothing in each other's translations, so that `search.batch_invariant`
        costs little."""
        ...

    @property
    def name(self) -> str:
        """The engine and its number type: everything about it that may change a translation."""
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

        scores=False: nobody will look at the probabilities, so the engine may leave them approximate.
        no_repeat: the length of token sequences that may not come twice in a hypothesis; 0: all may.
        """
        ...

    def for_tokenizer(self, tokenizer: "Tokenizer") -> "Engine":
        """The same weights with a copy of the tokenizer for which other languages were chosen."""
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """The log-probability of each target token, the end symbol's last."""
        ...


class CannotServeError(UsageError):
    """The engine cannot do what is asked, but another may: `auto` then takes the other."""


def require_vocabulary_of(config: ModelConfig, tokenizer: "Tokenizer") -> None:
    """Raises unless the model has as many tokens as the tokenizer, on both sides."""
    sizes, wanted = (config.source_tokens, config.vocab_size), (tokenizer.source_vocab_size, tokenizer.vocab_size)
    if sizes != wanted:
        pieces, known = (" and ".join(map(str, dict.fromkeys(pair))) for pair in (sizes, wanted))
        raise ConfigError(
            f"a model of {pieces} pieces and a tokenizer of {known}; "
            f"an ensemble shares one vocabulary, and a run keeps the tokenizer it was trained with"
        )


def batches_of_like_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yields batches of indices, longest first, that stay within batch_tokens together with their padding."""
    yield from _cut(sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True), lengths, batch_tokens)


def even_batches(lengths: Sequence[int], batch_tokens: int, cores: int) -> list[list[int]]:
    """Batches as above, as many for each core and all of nearly one size: a small one at the end costs nearly as many
    steps as a full one."""
    if len(lengths) == 1:
        return [[0]]
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    least = sum(1 for _ in _cut(order, lengths, batch_tokens))
    wanted = -(-least // cores) * cores
    # The smallest budget that is enough for so many batches; a larger one is always enough.
    low, high = 1, batch_tokens
    while low < high:
        middle = (low + high) // 2
        if sum(1 for _ in _cut(order, lengths, middle)) <= wanted:
            high = middle
        else:
            low = middle + 1
    return list(_cut(order, lengths, high))


def _cut(order: Sequence[int], lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    start = 0
    while start < len(order):
        count = max(1, batch_tokens // (lengths[order[start]] + 1))  # the first is the longest
        yield list(order[start : start + count])
        start += count
