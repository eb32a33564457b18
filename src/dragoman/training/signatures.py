"""Failure signatures: what a log looks like when a model cannot learn, or sees what it is to predict.

Pure functions over the points of a log (`log_reader`); each returns the step where it began and a sentence, or None.
The thresholds are far from what healthy trainings of this program log; the tests have both kinds.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

Point = dict[str, Any]

STILL_LINES = 12  # of the log, in which the loss did not fall
STILL_FALL = 0.01  # share by which it must have fallen in them
STILL_ABOVE = 0.45  # of the first loss: below it the model has learned, and slows down as all do
LEAK_RATIO = 0.5  # training loss over validation loss, where writing freely gives nothing
LEAK_BLEU = 2.0
LEAK_PERFECT, LEAK_PERFECT_BLEU = 0.3, 20.0  # nats a token on validation text, with a BLEU that is far from it
LEAK_VALIDATIONS = 2


class Signature(NamedTuple):
    """Where it began, and what was seen."""

    step: int
    text: str


def standstill(train: Sequence[Point]) -> Signature | None:
    """A plateau of the training loss, high above what a model that learns gets to: as without the scale of attention,
    with a rate that is far too high or low, or with labels that have nothing to do with the text."""
    if len(train) < 2 * STILL_LINES:
        return None
    losses = [point["loss"] for point in train]
    half = STILL_LINES // 2
    before, after = (sum(part) / half for part in (losses[-STILL_LINES:-half], losses[-half:]))
    if after < STILL_ABOVE * losses[0] or before - after > STILL_FALL * before:
        return None
    began = train[-STILL_LINES]["step"]
    return Signature(began, f"the loss stands still at {after:.2f}, and was {losses[0]:.2f} at first")


def too_good(train: Sequence[Point], valid: Sequence[Point]) -> Signature | None:
    """A training loss that is too good to be true: a leak, a missing mask, or a target that is not shifted. Fed the
    right words the model predicts them, and writing by itself it cannot."""
    last = valid[-LEAK_VALIDATIONS:]
    if len(last) < LEAK_VALIDATIONS or not train:
        return None
    for point in last:
        loss = loss_at(train, point["step"])
        copies = loss is not None and loss < LEAK_RATIO * point["nll"] and point["bleu"] < LEAK_BLEU
        perfect = point["nll"] < LEAK_PERFECT and point["bleu"] < LEAK_PERFECT_BLEU
        if not (copies or perfect):
            return None
    loss, nll, bleu = loss_at(train, last[-1]["step"]), last[-1]["nll"], last[-1]["bleu"]
    return Signature(
        last[0]["step"],
        f"training loss {loss:.2f} and validation loss {nll:.2f}, but {bleu:.1f} BLEU when it writes by itself: "
        f"too good to be true",
    )


def loss_at(train: Sequence[Point], step: int) -> float | None:
    """The training loss that was logged last at or before a step."""
    return next((float(point["loss"]) for point in reversed(train) if point["step"] <= step), None)
