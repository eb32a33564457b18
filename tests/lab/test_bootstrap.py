"""The paired bootstrap: what is kept of a sentence makes sacreBLEU's score, and a clear difference does not turn."""

import pytest

from dragoman.evaluation import metrics
from dragoman.lab.bootstrap import bleu_of, read_statistics, sentence_statistics, turns

REFERENCES = [
    f"the {colour} dog number {at} runs over the wide street ." for at in range(30) for colour in ("red", "old")
]
GOOD = [line.replace("wide", "long") if at % 3 == 0 else line for at, line in enumerate(REFERENCES)]
BAD = [line.replace("dog", "cat").replace("over the", "in a") for line in REFERENCES]


def test_what_is_kept_makes_the_score() -> None:
    for outputs in (GOOD, BAD, REFERENCES, ["" for _ in REFERENCES]):
        kept = sentence_statistics(outputs, REFERENCES)
        expected = metrics.bleu(outputs, [[line] for line in REFERENCES]).value
        assert bleu_of(read_statistics(kept)) == pytest.approx(expected, abs=1e-9)
    assert len(sentence_statistics(GOOD, REFERENCES)) < 1000


def test_a_clear_difference_does_not_turn_and_none_always_does() -> None:
    good, bad = (sentence_statistics(outputs, REFERENCES) for outputs in (GOOD, BAD))
    assert turns(good, bad, 100) == 0.0
    assert turns(good, good, 20) == 0.0  # equal in every resample too
    shuffled = sentence_statistics([*GOOD[1:], GOOD[0]], [*REFERENCES[1:], REFERENCES[0]])
    assert 0.1 < turns(good, shuffled, 200) <= 1.0
