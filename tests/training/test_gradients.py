"""Gradients and totals of a step in one buffer."""

import pytest
import torch
from torch import nn

from dragoman.training.distributed import Ranks
from dragoman.training.gradients import Gradients, ShardedGradients, StepTotals


def test_one_buffer_holds_the_gradients_of_all() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    plain = [torch.autograd.grad(model(torch.ones(5, 3)).square().sum(), p)[0] for p in model.parameters()]
    gradients = Gradients(list(model.parameters()))
    for _ in range(2):  # what is summed twice was cleared between
        gradients.clear()
        model(torch.ones(5, 3)).square().sum().backward()
    for parameter, expected in zip(model.parameters(), plain, strict=True):
        torch.testing.assert_close(parameter.grad, expected)
    assert gradients.norm() == pytest.approx(float(nn.utils.get_total_norm(plain)), rel=1e-6)
    assert gradients.totals.read() == StepTotals(0, 0, 0, 0, 0)


@pytest.mark.parametrize("sharded", [False, True])
def test_totals_are_summed_with_their_weights_under_their_names(sharded: bool) -> None:
    model, ranks = nn.Linear(3, 4), Ranks()
    gradients = ShardedGradients(model, ranks) if sharded else Gradients(list(model.parameters()))
    for loss, nll, weight in ((3.0, 2.0, 1.0), (5.0, 4.0, 1.0), (70.0, 60.0, 0.0)):
        gradients.totals.add_loss(torch.tensor(loss), torch.tensor(nll), weight)
    gradients.totals.set_rest(12.5, stop_requested=True, out_of_memory=False)
    gradients.sum_over(ranks, step=0)
    assert gradients.totals.read() == StepTotals(loss=8, nll=6, seconds=12.5, stop_requests=1, out_of_memory=0)
    assert gradients.norm() == 0  # they are no gradients
    gradients.clear()
    assert gradients.totals.read() == StepTotals(0, 0, 0, 0, 0)
