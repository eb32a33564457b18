"""The loss is torch's label-smoothed cross-entropy, summed; what is ours is that the logits are never held whole."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dragoman.model import loss as loss_module
from dragoman.model.loss import Terms, consistent_cross_entropy, smoothed_cross_entropy

EXACT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13}  # everything here is float64


class Watch(TorchDispatchMode):
    """Writes down which operations run, and how many elements the largest tensor has that one of them returns."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.largest = 0
        self.operations: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations.add(func.overloadpacket.__name__)
        tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        self.largest = max([self.largest, *(tensor.numel() for tensor in tensors)])
        return result


def inputs(rows: int, width: int = 6, vocabulary: int = 11) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(rows)
    states = torch.randn(rows, width, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(vocabulary, width, dtype=torch.float64, requires_grad=True)
    return states, weight, torch.randint(vocabulary, (rows,))


def gradients(loss: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(3 * loss, tensors)  # what reaches the loss from behind is not always 1


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("rows", [1, 4, 5, 10, 11])  # below, at and above the ends of chunks of 5
def test_value_and_gradients_are_torchs(rows: int, smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "CHUNK_ROWS", 5)
    states, weight, labels = inputs(rows)
    smoothed, plain = smoothed_cross_entropy(states, weight, labels, smoothing)
    logits = states @ weight.T
    expected = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(smoothed, expected, **EXACT)
    torch.testing.assert_close(plain, F.cross_entropy(logits, labels, reduction="sum"), **EXACT)
    for ours, theirs in zip(gradients(smoothed, states, weight), gradients(expected, states, weight), strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)


def test_the_target_gives_its_smoothing_to_every_token_the_right_one_too() -> None:
    """Section 5.4 does not say which; this is F.cross_entropy's: ε/V each, and 1 - ε more to the right token."""
    states, weight, labels = inputs(3)
    log_probs = (states @ weight.T).log_softmax(dim=1)
    target = torch.full((3, 11), 0.1 / 11, dtype=torch.float64)
    target[range(3), labels] += 0.9
    smoothed, _ = smoothed_cross_entropy(states, weight, labels, 0.1)
    torch.testing.assert_close(smoothed, -(target * log_probs).sum(), **EXACT)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_bias_is_added_to_the_logits(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "CHUNK_ROWS", 5)
    states, weight, labels = inputs(11)
    bias = torch.randn(11, dtype=torch.float64, requires_grad=True)
    smoothed, plain = smoothed_cross_entropy(states, weight, labels, smoothing, bias)
    logits = states @ weight.T + bias
    expected = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(smoothed, expected, **EXACT)
    torch.testing.assert_close(plain, F.cross_entropy(logits, labels, reduction="sum"), **EXACT)
    inside = (states, weight, bias)
    for ours, theirs in zip(gradients(smoothed, *inside), gradients(expected, *inside), strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradients_by_differences(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "CHUNK_ROWS", 4)
    states, weight, labels = inputs(9, width=3, vocabulary=5)

    def only_loss(states: Tensor, weight: Tensor) -> Tensor:
        return smoothed_cross_entropy(states, weight, labels, smoothing)[0]

    assert torch.autograd.gradcheck(only_loss, (states, weight))


def test_only_one_side_may_want_a_gradient() -> None:
    states, weight, labels = inputs(7)
    both = gradients(smoothed_cross_entropy(states, weight, labels, 0.1)[0], states, weight)
    (of_states,) = gradients(smoothed_cross_entropy(states, weight.detach(), labels, 0.1)[0], states)
    (of_weight,) = gradients(smoothed_cross_entropy(states.detach(), weight, labels, 0.1)[0], weight)
    assert torch.equal(of_states, both[0])
    assert torch.equal(of_weight, both[1])


def test_the_plain_loss_is_for_reading_only() -> None:
    states, weight, labels = inputs(3)
    smoothed, plain = smoothed_cross_entropy(states, weight, labels, 0.1)
    assert smoothed.requires_grad
    assert not plain.requires_grad


def test_large_logits_neither_overflow_nor_vanish() -> None:
    states, weight, labels = inputs(6)
    smoothed, plain = smoothed_cross_entropy(1e4 * states, weight, labels, 0.1)
    expected = F.cross_entropy(1e4 * states @ weight.T, labels, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(smoothed, expected, rtol=1e-9, atol=1e-9)
    assert plain.isfinite()


@pytest.mark.parametrize("shift", [0.0, 60.0, 75.0, 120.0, -50.0, -70.0, -120.0])
def test_logits_near_and_beyond_the_ends_of_float32(shift: float) -> None:
    """exp(88) is the last that float32 holds, exp(-87) the first: gradients are right on either side."""
    states, weight, labels = inputs(40, width=6, vocabulary=30)
    states = torch.cat((states.detach().float(), torch.ones(40, 1)), dim=1).requires_grad_()
    weight = torch.cat((weight.detach().float(), torch.full((30, 1), shift)), dim=1).requires_grad_()
    smoothed, plain = smoothed_cross_entropy(states, weight, labels, 0.1)
    logits = states.double() @ weight.double().T
    expected = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(smoothed.double(), expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(plain.double(), F.cross_entropy(logits, labels, reduction="sum"), rtol=1e-5, atol=1e-4)
    for found, right in zip(gradients(smoothed, states, weight), gradients(expected, states, weight), strict=True):
        torch.testing.assert_close(found, right, rtol=1e-4, atol=2e-4)


def test_the_logits_are_never_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "CHUNK_ROWS", 8)
    states, weight, labels = inputs(50, width=4, vocabulary=100)
    with Watch() as watch:
        smoothed, _ = smoothed_cross_entropy(states, weight, labels, 0.1)
        smoothed.backward()
    assert watch.largest == 8 * 100  # and not 50 · 100; states have 50 · 4 elements, weights 100 · 4


def test_where_no_gradient_is_wanted_none_is_computed() -> None:
    """As in validation: the weight is a parameter still, but nobody asks."""
    states, weight, labels = inputs(7)
    with Watch() as watch:
        expected = smoothed_cross_entropy(states, weight, labels, 0.1)
    assert "index_add_" in watch.operations  # the smoothed target, in the gradient
    for quiet in (torch.no_grad(), torch.inference_mode()):
        with quiet, Watch() as watch:
            found = smoothed_cross_entropy(states.detach(), weight, labels, 0.1)
        assert torch.equal(torch.stack(found), torch.stack(expected))
        assert "index_add_" not in watch.operations


def test_a_right_token_whose_probability_underflows_still_has_its_loss() -> None:
    """exp(-200) is 0 in float32; the loss is 200 all the same."""
    states = torch.tensor([[200.0], [0.0]], requires_grad=True)
    weight = torch.tensor([[1.0], [0.0]], requires_grad=True)
    _, plain = smoothed_cross_entropy(states, weight, torch.tensor([1, 1]), 0.0)
    torch.testing.assert_close(plain, torch.tensor(200 + 0.6931472))


def two_passes(states: Tensor, weight: Tensor, labels: Tensor, smoothing: float, terms: Terms, bias: Tensor) -> Tensor:
    """The loss of two passes as torch has it, on whole logits."""
    logits = states @ weight.T + bias
    first, second = logits.chunk(2)
    log_p, log_q = first.log_softmax(dim=1), second.log_softmax(dim=1)
    by_term = (
        F.cross_entropy(first, labels, reduction="sum", label_smoothing=smoothing),
        F.cross_entropy(second, labels, reduction="sum", label_smoothing=smoothing),
        F.kl_div(log_q, log_p, reduction="sum", log_target=True),
        F.kl_div(log_p, log_q, reduction="sum", log_target=True),
    )
    return torch.stack([share * term for share, term in zip(terms, by_term, strict=True)]).sum()


TERMS = [
    Terms(0.5, 0.5, 1.25, 1.25),  # R-Drop
    Terms(1.0, 0.0, 3.0, 0.0),  # SimCut
    Terms(0.3, 0.9, 0.0, 2.0),
    Terms(1.0, 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 4, 5, 8, 9])  # below, at and above the ends of chunks of 4
def test_the_loss_of_two_passes_and_its_gradients_are_torchs(
    rows: int, smoothing: float, terms: Terms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_module, "CHUNK_ROWS", 32)
    states, weight, _ = inputs(2 * rows)
    labels, bias = torch.randint(11, (rows,)), torch.randn(11, dtype=torch.float64, requires_grad=True)
    loss, plain = consistent_cross_entropy(states, weight, labels, smoothing, terms, bias)
    torch.testing.assert_close(loss, two_passes(states, weight, labels, smoothing, terms, bias), **EXACT)
    only_nll = Terms(terms.first, terms.second, 0.0, 0.0)
    torch.testing.assert_close(plain, two_passes(states, weight, labels, 0.0, only_nll, bias).detach(), **EXACT)
    inside = (states, weight, bias)
    expected = gradients(two_passes(*inside[:2], labels, smoothing, terms, bias), *inside)
    for ours, theirs in zip(gradients(loss, *inside), expected, strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)


@pytest.mark.parametrize("terms", TERMS[:3])
def test_gradients_of_two_passes_by_differences(terms: Terms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "CHUNK_ROWS", 16)
    states, weight, _ = inputs(10, width=3, vocabulary=5)
    labels = torch.randint(5, (5,))

    def only_loss(states: Tensor, weight: Tensor) -> Tensor:
        return consistent_cross_entropy(states, weight, labels, 0.1, terms)[0]

    assert torch.autograd.gradcheck(only_loss, (states, weight))


def test_equal_passes_have_the_loss_of_one() -> None:
    states, weight, labels = inputs(7)
    for terms in TERMS:
        loss, plain = consistent_cross_entropy(states.repeat(2, 1), weight, labels, 0.1, terms)
        one = smoothed_cross_entropy(states, weight, labels, 0.1)
        share = terms.first + terms.second
        torch.testing.assert_close(torch.stack((loss, plain)), share * torch.stack(one), **EXACT)


def test_large_logits_of_two_passes_neither_overflow_nor_vanish() -> None:
    states, weight, _ = inputs(12)
    labels, large = torch.randint(11, (6,)), 300 * states.detach()
    single = large.float().requires_grad_(), weight.detach().float().requires_grad_()
    double = single[0].detach().double().requires_grad_(), single[1].detach().double().requires_grad_()
    loss, _ = consistent_cross_entropy(single[0], single[1], labels, 0.1, TERMS[0])
    expected = two_passes(double[0], double[1], labels, 0.1, TERMS[0], torch.zeros(11, dtype=torch.float64))
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=0.0)
    for found, right in zip(gradients(loss, *single), gradients(expected, *double), strict=True):
        assert found.isfinite().all()
        torch.testing.assert_close(found.double(), right, rtol=1e-3, atol=1e-3 * float(right.abs().max()))


def test_the_logits_of_two_passes_are_never_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "CHUNK_ROWS", 64)
    states, weight, _ = inputs(100, width=4, vocabulary=100)
    with Watch() as watch:
        loss, _ = consistent_cross_entropy(states, weight, torch.randint(100, (50,)), 0.1, TERMS[0])
        loss.backward()
    assert watch.largest == 8 * 100  # and not 50 · 100; states have 100 · 4 elements, weights 100 · 4


def test_of_two_passes_only_one_side_may_want_a_gradient_or_none() -> None:
    states, weight, _ = inputs(14)
    labels, terms = torch.randint(11, (7,)), TERMS[0]
    loss, _ = consistent_cross_entropy(states, weight, labels, 0.1, terms)
    both = gradients(loss, states, weight)
    (of_states,) = gradients(consistent_cross_entropy(states, weight.detach(), labels, 0.1, terms)[0], states)
    (of_weight,) = gradients(consistent_cross_entropy(states.detach(), weight, labels, 0.1, terms)[0], weight)
    assert torch.equal(of_states, both[0])
    assert torch.equal(of_weight, both[1])
    with torch.no_grad(), Watch() as watch:
        assert torch.equal(consistent_cross_entropy(states, weight, labels, 0.1, terms)[0], loss)
    assert "scatter_add_" not in watch.operations  # the smoothed target, in the gradient
