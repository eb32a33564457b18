"""A model is promoted only if it is better."""

from typing import Any

import pytest

from dragoman.training.promotion import judge


def metric(label: str, a: float, b: float, significant: bool) -> dict[str, Any]:
    return {"label": label, "a": a, "b": b, "p_value": 0.01 if significant else 0.5, "significant": significant}


def compared(change: float, significant: bool) -> dict[str, Any]:
    return {name: metric(name, 40.0, 40.0 + change, significant) for name in ("bleu", "chrf")}


@pytest.mark.parametrize(
    ("new", "old", "promoted"),
    [
        (compared(5, True), compared(0, False), True),
        (compared(5, True), compared(-1, False), True),
        (compared(5, True), compared(-1, True), False),
        (compared(5, True), compared(1, True), True),
        (compared(5, False), compared(0, False), False),
        (compared(-5, True), compared(0, False), False),
        (compared(5, True), None, False),
    ],
)
def test_a_model_is_promoted_only_if_it_is_better_and_not_worse(new: Any, old: Any, promoted: bool) -> None:
    assert judge(new, old).promoted is promoted
