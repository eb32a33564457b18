import pytest

from dragoman.training.schedule import learning_rate, linear_rate


@pytest.mark.parametrize(("step", "rate"), [(1, 1 / 512), (4, 1 / 128), (16, 1 / 32), (64, 1 / 64), (256, 1 / 128)])
def test_equation_3_in_numbers_that_have_no_rounding(step: int, rate: float) -> None:
    # d_model 64 and 16 steps of warm-up: 1/8 * min(1/sqrt(step), step/64)
    assert learning_rate(step, d_model=64, warmup_steps=16) == rate


@pytest.mark.parametrize(("d_model", "peak"), [(512, 6.987712429686843e-4), (1024, 4.941058844013093e-4)])
def test_the_papers_models_peak_at_the_end_of_the_warm_up(d_model: int, peak: float) -> None:
    assert learning_rate(4000, d_model, 4000) == pytest.approx(peak, rel=1e-12)
    assert learning_rate(1, d_model, 4000) == pytest.approx(peak / 4000, rel=1e-12)
    assert learning_rate(16_000, d_model, 4000) == pytest.approx(peak / 2, rel=1e-12)
    around = [learning_rate(step, d_model, 4000) for step in (3999, 4000, 4001)]
    assert max(around) == around[1]


def test_the_rate_needs_no_warm_up() -> None:
    assert learning_rate(1, d_model=4, warmup_steps=1) == 0.5
    assert learning_rate(4, d_model=4, warmup_steps=1) == 0.25


def test_linear_rises_to_the_crossing_and_falls_to_zero() -> None:
    # 100 steps, 25 of warm-up: step/25 = 1 - step/100 at step 20.
    rates = [linear_rate(step, 25, 0.5, step / 100) for step in range(101)]
    assert rates[0] == 0
    assert rates[10] == 0.5 * 10 / 25
    assert rates[20] == pytest.approx(0.5 * 0.8, rel=1e-12)
    assert max(rates) == rates[20]
    assert rates[60] == pytest.approx(0.5 * 0.4, rel=1e-12)
    assert rates[100] == 0


def test_linear_ends_at_zero_even_where_the_budget_ends_within_the_warm_up() -> None:
    assert linear_rate(10, 300, 3e-3, 0.0) == pytest.approx(1e-4)
    assert linear_rate(10, 300, 3e-3, 0.99) == pytest.approx(3e-5)
    assert linear_rate(10, 300, 3e-3, 1.0) == 0


def test_linear_is_never_negative_past_the_end_of_the_budget() -> None:
    assert linear_rate(500, 300, 3e-3, 1.02) == 0
