"""Failure signatures in made logs, and none in healthy ones."""

from typing import Any

import pytest

from dragoman.config import ModelConfig, RunConfig
from dragoman.diagnosis.run_checks import examine_log
from dragoman.training.log_reader import History

Point = dict[str, Any]


def log(losses: list[float], valid: list[tuple[float, float]]) -> list[Point]:
    """Logged losses at every 50 steps, and validations (loss, BLEU) spread evenly over them."""
    events = [{"event": "train", "step": 50 * at, "loss": loss, "epoch": 5} for at, loss in enumerate(losses, start=1)]
    every = 50 * len(losses) // max(1, len(valid))
    events += [
        {"event": "valid", "step": every * at, "nll": nll, "bleu": bleu}
        for at, (nll, bleu) in enumerate(valid, start=1)
    ]
    return sorted(events, key=lambda event: (event["step"], event["event"]))


def falling(first: float, last: float, count: int) -> list[float]:
    return [last + (first - last) * 0.85**at for at in range(count)]


HEALTHY = log(falling(8.0, 2.6, 40), [(3.9, 5), (3.1, 14), (2.7, 22), (2.5, 26), (2.4, 28), (2.35, 29)])
SLOW_END = log(falling(8.0, 2.6, 120), [(2.5, 26), (2.4, 27), (2.39, 27.5), (2.38, 27.9)])
WITHOUT_SCALE = log([8.0, 6.6, *[5.9 + 0.01 * (at % 3) for at in range(30)]], [(5.9, 0.1), (5.9, 0.2), (5.9, 0.1)])
NO_MASK = log(falling(8.0, 1.5, 40), [(7.9, 0.0), (8.6, 0.0), (9.0, 0.0)])
LEAK = log(falling(8.0, 1.3, 40), [(0.9, 1.0), (0.2, 3.0), (0.1, 4.0)])
GAP = log([8 - 0.17 * at for at in range(40)], [(4.0, 9), (3.2, 13), (2.9, 15), (2.75, 16), (2.74, 16.5), (2.73, 17)])


@pytest.mark.parametrize(
    ("kinds", "events"),
    [
        ([], HEALTHY),
        ([], SLOW_END),
        (["standstill"], WITHOUT_SCALE),
        (["leak"], NO_MASK),
        (["leak"], LEAK),
        (["gap"], GAP),
    ],
)
def test_an_alert_for_each_signature_and_none_for_a_healthy_training(kinds: list[str], events: list[Point]) -> None:
    found = [alert for alert in History().add(events).alerts if alert.kind in ("standstill", "leak", "gap")]
    assert [alert.kind for alert in found] == kinds
    assert all(alert.step > 0 and len(alert.text) > 40 for alert in found)


@pytest.mark.parametrize(
    ("name", "events"),
    [(None, HEALTHY), ("loss stands still", WITHOUT_SCALE), ("too good to be true", NO_MASK),
     ("too good to be true", LEAK), ("widening gap", GAP)],
)  # fmt: skip
def test_the_doctor_knows_them(name: str | None, events: list[Point]) -> None:
    causes = [cause for cause in examine_log(events, RunConfig(), "runs/my") if cause.name != "too few steps"]
    assert [cause.name for cause in causes] == ([] if name is None else [name])
    assert all("from step" in cause.evidence for cause in causes)


def test_the_doctor_names_the_scale_where_it_is_not_the_papers() -> None:
    unscaled = RunConfig(model=ModelConfig(attention_scale="1"))
    (cause,) = examine_log(WITHOUT_SCALE, unscaled, "runs/my")
    assert "model.attention_scale is '1'" in cause.evidence
    assert cause.remedy.endswith("--set 'model.attention_scale=1/sqrt(d_k)'")
    (cause,) = examine_log(WITHOUT_SCALE, RunConfig(), "runs/my")
    assert "--set train.peak_rate=" in cause.remedy


def test_what_is_said_already_is_not_said_again() -> None:
    """A validation loss that rises is overfitting; the gap that widens with it is the same thing."""
    overfit = log(
        [8 - 0.17 * at for at in range(40)], [(3.0, 9), (2.5, 15), (2.6, 15), (2.8, 14), (3.1, 13), (3.5, 12)]
    )
    assert [alert.kind for alert in History().add(overfit).alerts] == ["overfitting"]
    assert [cause.name for cause in examine_log(overfit, RunConfig(), "runs/my")] == ["learned by heart"]
