"""Computes the learning rate, as a pure function of the step (section 5.3)."""

from dragoman.config import RunConfig


def learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """Equation 3: rises linearly for `warmup_steps`, then falls with the inverse square root of the step (from 1)."""
    rising = step * warmup_steps**-1.5
    falling = step**-0.5
    return float(d_model**-0.5 * min(falling, rising))


def linear_rate(step: int, warmup_steps: int, peak_rate: float, progress: float) -> float:
    """Not in the paper: the lower of a line that rises to `peak_rate` at `warmup_steps` and one that falls to zero at
    the end.

    The budget may be in minutes or in steps, so the fall follows `progress`, the share of the budget that is used up,
    from 0 to 1. The second line also starts at `peak_rate`: the highest rate is where the lines cross, a little below
    the peak. In return, any budget, however short, ends at a rate of zero.
    """
    rising = step / warmup_steps
    falling = 1 - progress
    return peak_rate * max(0.0, min(rising, falling))


def rate_at(config: RunConfig, step: int, done: float) -> float:
    """Returns the rate of a step by a run's configuration. `done`: the share of the budget that is used up."""
    settings = config.train
    paper_peak = learning_rate(settings.warmup_steps, config.model.d_model, settings.warmup_steps)
    peak = paper_peak if settings.peak_rate is None else settings.peak_rate
    match settings.schedule:
        case "paper":
            return learning_rate(step, config.model.d_model, settings.warmup_steps) * peak / paper_peak
        case "linear":
            return linear_rate(step, settings.warmup_steps, peak, done)
