"""Constraints on an output: which token ids may follow a prefix. Imports no torch."""

from collections.abc import Callable, Sequence, Set

# (the sentence's index in this call's max_lengths, its prefix without the start symbol) -> ids allowed next; None: any
Constrain = Callable[[int, Sequence[int]], Sequence[int] | None]


def forced_prefix(prefixes: Sequence[Sequence[int]]) -> Constrain:
    """Makes each sentence's output begin with its prefix; a prefix over the maximum length gives no output."""

    def constrain(sentence: int, prefix: Sequence[int]) -> Sequence[int] | None:
        forced = prefixes[sentence]
        return forced[len(prefix) : len(prefix) + 1] if len(prefix) < len(forced) else None

    return constrain


def no_repeats(size: int, vocab_size: int, eos_id: int, others: Sequence[Set[tuple[int, ...]]] = ()) -> Constrain:
    """Forbids that any `size` tokens in a row come twice in an output, and those that `others` has for its sentence."""

    def constrain(sentence: int, prefix: Sequence[int]) -> Sequence[int] | None:
        tail = tuple(prefix[len(prefix) - size + 1 :])
        if len(tail) < size - 1:
            return None
        starts = range(len(prefix) - size + 1)
        banned = {prefix[i + size - 1] for i in starts if tuple(prefix[i : i + size - 1]) == tail}
        if others:
            banned |= {ngram[-1] for ngram in others[sentence] if ngram[:-1] == tail}
        banned.discard(eos_id)
        return [token for token in range(vocab_size) if token not in banned] if banned else None

    return constrain


def all_of(*constraints: Constrain) -> Constrain:
    """Allows what every one of the constraints allows."""

    def constrain(sentence: int, prefix: Sequence[int]) -> Sequence[int] | None:
        sets = [set(allowed) for c in constraints if (allowed := c(sentence, prefix)) is not None]
        return sorted(set.intersection(*sets)) if sets else None

    return constrain


def ngrams(ids: Sequence[int], size: int) -> set[tuple[int, ...]]:
    """All stretches of `size` tokens."""
    return {tuple(ids[start : start + size]) for start in range(len(ids) - size + 1)}
