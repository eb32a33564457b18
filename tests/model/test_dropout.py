"""Dropout by bytes: the stated rate, the mean kept, and the same mask forwards and backwards."""

import math

import pytest
import torch

from dragoman.model.dropout import Dropout

COUNT = 200_003  # not a multiple of the eight elements that one draw decides


def dropped_share(probability: float, seed: int = 0) -> float:
    torch.manual_seed(seed)
    return float((Dropout(probability)(torch.ones(COUNT)) == 0).double().mean())


# The probability is rounded to 256ths; a small one becomes one of them, not none, and a large one all but one.
@pytest.mark.parametrize(
    ("probability", "steps"), [(0.1, 26), (0.2, 51), (0.3, 77), (0.5, 128), (0.9, 230), (0.001, 1), (0.999, 255)]
)
def test_the_share_dropped_is_the_stated_one(probability: float, steps: int) -> None:
    rate = steps / 256
    spread = math.sqrt(rate * (1 - rate) / COUNT)
    assert abs(dropped_share(probability) - rate) < 5 * spread


@pytest.mark.parametrize(("probability", "steps"), [(0.1, 26), (0.3, 77), (0.999, 255)])
def test_what_is_kept_is_scaled_by_the_inverse_of_the_share_kept(probability: float, steps: int) -> None:
    torch.manual_seed(1)
    x = torch.randn(COUNT, dtype=torch.float64)
    y = Dropout(probability)(x)
    kept = y != 0
    torch.testing.assert_close(y[kept], x[kept] * 256 / (256 - steps), rtol=1e-15, atol=0)


@pytest.mark.parametrize("probability", [0.1, 0.3])
def test_the_mean_is_kept(probability: float) -> None:
    torch.manual_seed(2)
    mean = Dropout(probability)(torch.ones(COUNT, dtype=torch.float64)).mean().item()
    assert mean == pytest.approx(1, abs=5 * math.sqrt(probability / (1 - probability) / COUNT))


def test_every_element_has_its_own_draw() -> None:
    """Also the neighbours that share one 64-bit draw, and the same element in two passes."""
    torch.manual_seed(3)
    dropout = Dropout(0.5)
    kept = torch.stack([dropout(torch.ones(COUNT - COUNT % 8)) != 0 for _ in range(2)]).double()
    lanes = torch.cat(list(kept.unflatten(1, (-1, 8)).unbind()), dim=1)  # (draws, 16): eight bytes of two passes
    correlation = torch.corrcoef(lanes.T)
    correlation.fill_diagonal_(0)
    assert correlation.abs().max() < 6 / math.sqrt(len(lanes))


def test_the_gradient_goes_where_the_value_went() -> None:
    torch.manual_seed(4)
    x = torch.randn(7, 5, 3, requires_grad=True)
    y = Dropout(0.4)(x)
    (gradient,) = torch.autograd.grad(y, x, torch.full_like(x, 2.0))
    torch.testing.assert_close(gradient * x, 2 * y)
    assert 0 < (gradient == 0).sum() < x.numel()


@pytest.mark.parametrize("shape", [(1,), (8,), (9,), (2, 3, 5), (0,)])
def test_any_shape_and_stride(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape, dtype=torch.float64)
    y = Dropout(0.5)(x)
    assert y.shape == x.shape
    assert set(y.unique().tolist()) <= {0.0, 2.0}
    assert Dropout(0.5)(x.T if x.dim() == 2 else x.expand(3, *shape)).dtype == torch.float64


def test_a_seed_decides_the_mask() -> None:
    dropout, x = Dropout(0.3), torch.ones(1000)
    masks = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        masks.append(dropout(x))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])
    assert not torch.equal(dropout(x), dropout(x))


@pytest.mark.parametrize(("probability", "training"), [(0.0, True), (0.5, False)])
def test_nothing_is_dropped_without_reason(probability: float, training: bool) -> None:
    x = torch.randn(100)
    state = torch.get_rng_state()
    assert Dropout(probability).train(training)(x) is x
    assert torch.equal(torch.get_rng_state(), state)  # nor any random number used up


@pytest.mark.parametrize("probability", [0.0, 0.4])
def test_added_onto_something_it_is_the_same(probability: float) -> None:
    x, other = (torch.randn(7, 5, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    dropout, grad = Dropout(probability), torch.randn(7, 5, 3, dtype=torch.float64)
    torch.manual_seed(5)
    expected = other + dropout(x)
    torch.manual_seed(5)
    found = dropout(x, onto=other)
    torch.testing.assert_close(found, expected, rtol=1e-15, atol=1e-15)
    for one, two in zip(*(torch.autograd.grad(y, (x, other), grad) for y in (found, expected)), strict=True):
        assert torch.equal(one, two)
    assert torch.equal(dropout.eval()(x, onto=other), other + x)
