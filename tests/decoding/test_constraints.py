"""Constraints say which tokens may follow a prefix."""

from dragoman.decoding.constraints import ngrams, no_repeats


def test_no_tokens_come_twice_but_the_end_may_come() -> None:
    constrain = no_repeats(2, 6, 0)
    assert constrain(0, []) is None
    assert constrain(0, [1]) is None
    assert constrain(0, [1, 2, 1]) == [0, 1, 3, 4, 5]
    assert no_repeats(2, 4, 0, [{(1, 3)}])(0, [1]) == [0, 1, 2]
    assert no_repeats(2, 3, 0, [{(1, 0)}])(0, [1]) is None


def test_ngrams_are_all_stretches_of_a_length() -> None:
    assert ngrams([1, 2, 3, 2, 3], 2) == {(1, 2), (2, 3), (3, 2)}
    assert ngrams([1], 2) == set()
