"""BLEU of one sentence: 1 for the reference itself, and the order that a reader would give."""

import math

import pytest

from dragoman.evaluation.sentence_bleu import sentence_bleu

REFERENCE = ["two", "dogs", "play", "in", "the", "snow", "."]


def test_only_the_reference_itself_has_all_of_it() -> None:
    assert sentence_bleu(REFERENCE, REFERENCE) == pytest.approx(1)
    assert sentence_bleu(["Tom"], ["Tom"]) == pytest.approx(1)  # however short
    assert sentence_bleu(list(reversed(REFERENCE)), REFERENCE) < 0.5
    assert sentence_bleu(["cats"], REFERENCE) == 0
    assert (sentence_bleu([], REFERENCE), sentence_bleu(REFERENCE, []), sentence_bleu([], [])) == (0, 0, 1)


def test_it_is_the_formula() -> None:
    """Lin and Och 2004: precisions of runs of one to four, one added from runs of two on, times the brevity penalty."""
    hypothesis = ["two", "dogs", "play", "in", "snow"]
    precisions = [5 / 5, (3 + 1) / (4 + 1), (2 + 1) / (3 + 1), (1 + 1) / (2 + 1)]
    expected = math.exp(1 - 7 / 5) * math.prod(precisions) ** 0.25
    assert sentence_bleu(hypothesis, REFERENCE) == pytest.approx(expected)


def test_what_is_nearer_has_more() -> None:
    near = ["two", "dogs", "are", "playing", "in", "the", "snow", "."]
    far = ["a", "dog", "and", "another", "one", "run", "through", "snow", "."]
    assert 1 > sentence_bleu(near, REFERENCE) > sentence_bleu(far, REFERENCE) > 0
    twice = sentence_bleu([*REFERENCE, *REFERENCE], REFERENCE)
    assert twice < sentence_bleu(REFERENCE[:-1], REFERENCE)  # repeating matches nothing twice
