"""Paired bootstrap within one pair of trained models: how often a difference in BLEU turns its sign when the test
sentences are drawn again (Koehn 2004). What a sentence contributes to BLEU is kept with the arm, a few bytes each.
"""

import base64
import zlib
from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics.bleu import BLEU

ORDERS = 4
SAMPLES = 1000
Statistics = np.ndarray[tuple[int, int], np.dtype[np.int64]]  # (sentences, 4 matches + 4 n-grams + 2 lengths)


def sentence_statistics(outputs: Sequence[str], references: Sequence[str]) -> str:
    """What each sentence contributes to BLEU (cased, raw text), as compressed text."""
    metric = BLEU(force=True, effective_order=True)
    rows = []
    for output, reference in zip(outputs, references, strict=True):
        score = metric.sentence_score(output, [reference])
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    return base64.b85encode(zlib.compress(np.array(rows, dtype="<u2").tobytes(), 9)).decode("ascii")


def read_statistics(text: str) -> Statistics:
    plain = np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype="<u2")
    return plain.reshape(-1, 2 * ORDERS + 2).astype(np.int64)


def bleu_of(statistics: Statistics) -> float:
    """BLEU of these sentences together."""
    total = [int(value) for value in statistics.sum(0)]
    matches, ngrams, (length, reference) = total[:ORDERS], total[ORDERS : 2 * ORDERS], total[2 * ORDERS :]
    return float(BLEU.compute_bleu(matches, ngrams, length, reference, smooth_method="exp").score)


def turns(a: str, b: str, samples: int = SAMPLES) -> float:
    """The share of resamples in which the difference of a and b has not the sign that it has over all sentences."""
    one, other = read_statistics(a), read_statistics(b)
    sign = np.sign(bleu_of(one) - bleu_of(other))
    draw = np.random.default_rng(1)
    turned = 0
    for _ in range(samples):
        rows = draw.integers(len(one), size=len(one))
        turned += np.sign(bleu_of(one[rows]) - bleu_of(other[rows])) != sign
    return turned / samples
