"""An n-gram model with interpolated modified Kneser-Ney smoothing (Chen and Goodman 1999), over any tokens.

Of every order three discounts are estimated from the counts of counts; lower orders count in how many ways an n-gram
can be preceded; the unigrams are interpolated with the uniform distribution over all tokens that can come. So every
token has a probability after every context, and they sum to one. A sentence begins with a start symbol, which is never
predicted, and ends with an end symbol, which is. What begins with the start symbol is preceded by nothing: of such
n-grams every order has the plain counts, as KenLM has them.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

Context = tuple[int, ...]


class KneserNey:
    """`vocabulary`: how many different tokens can come, the end symbol among them."""

    def __init__(self, sentences: Iterable[Sequence[int]], order: int, start: int, end: int, vocabulary: int) -> None:
        self.order, self.start, self.end, self.vocabulary = order, start, end, vocabulary
        # counts[n]: of n-grams; below the highest order, the number of different tokens seen before them.
        self.counts: list[Counter[Context]] = [Counter() for _ in range(order + 1)]
        for sentence in sentences:
            tokens = (start, *sentence, end)
            for at in range(1, len(tokens)):
                ngram = tokens[max(0, at - order + 1) : at + 1]
                self.counts[len(ngram)][ngram] += 1
        for n in range(order - 1, 0, -1):
            for ngram in self.counts[n + 1]:
                self.counts[n][ngram[1:]] += 1
        self.discounts = [(0.0, 0.0, 0.0, 0.0)] + [_discounts(self.counts[n]) for n in range(1, order + 1)]
        # Of every context: the sum of its counts, and how much of it the discounts take away.
        self.totals: list[dict[Context, int]] = [defaultdict(int) for _ in range(order + 1)]
        self.taken: list[dict[Context, float]] = [defaultdict(float) for _ in range(order + 1)]
        for n in range(1, order + 1):
            for ngram, count in self.counts[n].items():
                self.totals[n][ngram[:-1]] += count
                self.taken[n][ngram[:-1]] += self.discounts[n][min(count, 3)]

    def probability(self, context: Sequence[int], token: int) -> float:
        """Of a token after the last `order - 1` tokens of a context."""
        below = 1 / self.vocabulary
        known = tuple(context[max(0, len(context) - self.order + 1) :])
        for n in range(1, len(known) + 2):
            before = known[len(known) - n + 1 :]
            total = self.totals[n].get(before, 0)
            if total:
                count = self.counts[n].get((*before, token), 0)
                below = (count - self.discounts[n][min(count, 3)] + self.taken[n][before] * below) / total
        return below

    def nll(self, sentence: Sequence[int]) -> float:
        """In nats, the end symbol's included."""
        tokens = (self.start, *sentence, self.end)
        return -sum(math.log(self.probability(tokens[:at], tokens[at])) for at in range(1, len(tokens)))


def _discounts(counts: Counter[Context]) -> tuple[float, float, float, float]:
    """By count: 0, 1, 2, 3 or more. Where the text is too small for an estimate, the usual 0.5, 1, 1.5."""
    n1, n2, n3, n4 = (sum(1 for count in counts.values() if count == k) for k in (1, 2, 3, 4))
    if not (n1 and n2 and n3 and n4):
        return 0.0, 0.5, 1.0, 1.5
    y = n1 / (n1 + 2 * n2)
    return 0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3
