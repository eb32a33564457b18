"""Which weights are the better ones: by their score, and by their loss where that says little."""

import pytest

from dragoman.training.validation import Validation


def of(score: float, nll: float, measure: str = "BLEU (greedy)") -> Validation:
    return Validation(nll, score, measure, "a signature", {})


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (of(1.8, 3.2), of(3.0, 4.2)),  # a lucky word or two
        (of(9.9, 3.2), of(3.0, 3.3)),
        (of(10.1, 4.2), of(9.9, 3.2)),
        (of(30.0, 2.2), of(29.0, 2.1)),  # translations become better while the loss rises again
        (of(30.0, 2.1), of(30.0, 2.2)),
        (of(5.0, 2.2, "accuracy (%)"), of(4.0, 2.1, "accuracy (%)")),
    ],
)
def test_which_weights_are_better(better: Validation, worse: Validation) -> None:
    assert better.rank > worse.rank


def test_who_chose_is_said() -> None:
    assert [of(9.9, 1.0).by_loss, of(10.0, 1.0).by_loss, of(5.0, 1.0, "accuracy (%)").by_loss] == [True, False, False]
