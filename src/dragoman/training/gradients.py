"""Holds the gradients of a training step, and sums them over all ranks together with the step's totals."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.errors import ConfigError
from dragoman.model.checkpoint import whole
from dragoman.model.sequence_model import SequenceModel
from dragoman.model.transformer import Transformer
from dragoman.training.distributed import Ranks


class StepTotals(NamedTuple):
    """The totals of one step, summed over all ranks."""

    loss: float  # label-smoothed, over all tokens of the step
    nll: float  # the same without label smoothing
    seconds: float  # of training so far; only the first rank adds to it
    stop_requests: float  # ranks that were asked to stop
    out_of_memory: float  # ranks that ran out of memory


class TotalsBuffer:
    """A step's totals while they are summed up, as one tensor that is summed together with the gradients."""

    SIZE = len(StepTotals._fields)

    def __init__(self, values: Tensor) -> None:
        self._values = values

    def add_loss(self, loss: Tensor, nll: Tensor, weight: float) -> None:
        """Adds a micro-batch's sums. They stay on the device: reading them would wait for it."""
        self._values[:2] += weight * torch.stack((loss.detach(), nll))

    def set_rest(self, seconds: float, stop_requested: bool, out_of_memory: bool) -> None:
        """Sets this rank's values besides its losses."""
        self._values[2] = seconds
        self._values[3] = stop_requested
        self._values[4] = out_of_memory

    def read(self) -> StepTotals:
        """Returns the current totals; after `sum_over`, those of all ranks."""
        return StepTotals(*self._values.tolist())


class Gradients:
    """The gradients of all parameters in one buffer, so that they are summed over ranks, measured and checked at once.

    The step's totals are at the end of the buffer, and are summed together with the gradients.
    """

    loss_factor = 1.0  # to multiply a loss by, so that gradients are summed over ranks

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        sizes = [parameter.numel() for parameter in parameters]
        self._buffer = torch.zeros(sum(sizes) + TotalsBuffer.SIZE, device=parameters[0].device)
        self._values = self._buffer[: sum(sizes)]
        self.totals = TotalsBuffer(self._buffer[sum(sizes) :])
        for parameter, part in zip(parameters, torch.split(self._values, sizes), strict=True):
            parameter.grad = part.view_as(parameter)

    def sum_over(self, ranks: Ranks, step: int) -> None:
        """Sums gradients and totals over all ranks, in place."""
        ranks.sum(self._buffer, step)

    def norm(self) -> float:
        """Returns the length of all gradients as one vector."""
        return float(torch.linalg.vector_norm(self._values))

    def clear(self) -> None:
        """Sets gradients and totals to zero."""
        self._buffer.zero_()


class ShardedGradients:
    """The same for a model that FSDP divides among the ranks; FSDP itself averages the gradients over ranks."""

    def __init__(self, model: nn.Module, ranks: Ranks) -> None:
        self._parameters = list(model.parameters())
        self._totals = torch.zeros(TotalsBuffer.SIZE, device=ranks.device)
        self.totals = TotalsBuffer(self._totals)
        self.loss_factor = float(ranks.size)

    def sum_over(self, ranks: Ranks, step: int) -> None:
        """Sums the totals over all ranks, in place; the gradients are summed already."""
        ranks.sum(self._totals, step)

    def norm(self) -> float:
        """Returns the length of all gradients as one vector."""
        return float(whole(nn.utils.get_total_norm([p.grad for p in self._parameters if p.grad is not None])))

    def clear(self) -> None:
        """Sets the totals to zero, and drops the gradients."""
        self._totals.zero_()
        for parameter in self._parameters:
            parameter.grad = None


def divide(model: SequenceModel, optimizer: torch.optim.Optimizer, ranks: Ranks) -> None:
    """Divides weights and optimiser state among the ranks (FSDP2). A unit is gathered when its turn comes: an encoder
    layer, a decoder layer's feed-forward. The rest stays together, as all decoder layers' keys and values are made at
    once."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(model, Transformer):
        raise ConfigError("train.shard = true; an LSTM cannot be divided among processes: --set train.shard=false")
    mesh = init_device_mesh(ranks.device.type, (ranks.size,))
    states = [dict(optimizer.state[parameter]) for parameter in model.parameters()]
    for unit in (*model.encoder, *(layer.feed_forward for layer in model.decoder)):
        fully_shard(unit, mesh=mesh)
    fully_shard(model, mesh=mesh, reshard_after_forward=False)
    register_fsdp_forward_method(model, "states")
    parameters = list(model.parameters())
    optimizer.param_groups[0]["params"] = parameters
    optimizer.state.clear()
    for parameter, state in zip(parameters, states, strict=True):
        assert isinstance(parameter, DTensor)
        for name, value in state.items():
            if value.dim():
                state[name] = distribute_tensor(value, parameter.device_mesh, parameter.placements)
        if state:
            optimizer.state[parameter] = state
