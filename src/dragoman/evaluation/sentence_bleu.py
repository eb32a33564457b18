"""BLEU of a single sentence, to compare translations of the same source with a reference.

Corpus BLEU is mostly zero for one sentence, which seldom has a common run of four tokens; here, one is added to the
counts of runs of two and more (Lin and Och 2004). It works on any tokens: of subwords it needs no rules of a language.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence

LONGEST = 4  # tokens in a run


def sentence_bleu(hypothesis: Sequence[Hashable], reference: Sequence[Hashable]) -> float:
    """Returns a value from 0 to 1; 1 only where the two are equal."""
    if not hypothesis or not reference:
        return float(len(hypothesis) == len(reference))
    logarithms = 0.0
    for length in range(1, LONGEST + 1):
        found, wanted = _runs(hypothesis, length), _runs(reference, length)
        matches, count = (found & wanted).total(), found.total()
        smoothing = 0 if length == 1 else 1
        if matches + smoothing == 0:
            return 0.0
        logarithms += math.log((matches + smoothing) / (count + smoothing))
    brevity = min(0.0, 1 - len(reference) / len(hypothesis))
    return math.exp(brevity + logarithms / LONGEST)


def _runs(tokens: Sequence[Hashable], length: int) -> Counter[tuple[Hashable, ...]]:
    return Counter(tuple(tokens[start : start + length]) for start in range(len(tokens) - length + 1))
