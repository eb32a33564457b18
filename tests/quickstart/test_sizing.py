"""The size of the model follows the text and the time."""

from dragoman.config import TrainConfig
from dragoman.quickstart import sizing


def test_more_time_makes_a_longer_plan() -> None:
    plan = sizing.Plan("tiny", 5000.0, 10.0, 3000, 5.0, {})
    longer = sizing.longer(TrainConfig(steps=100_000), plan, 30.0)
    assert (longer.steps, longer.minutes, longer.epochs) == (9000, 30.0, 15.0)
    assert sizing.longer(TrainConfig(steps=4000), plan, 30.0).steps == 4000
    assert sizing.longer(TrainConfig(steps=3000), plan, 30.0).steps == 3000
