"""Makes the optimiser: Adam as in section 5.3, or Muon, which learns more from each of few steps."""

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dragoman.config import TrainConfig
from dragoman.model.checkpoint import EMA
from dragoman.model.learned import Learned, learned_of
from dragoman.model.sequence_model import SequenceModel
from dragoman.training.distributed import Ranks

MOMENTUM = 0.95
# The entries of a step have about this size times the rate, as Adam's do, so one rate suits both (Liu et al. 2025).
TYPICAL_ENTRY = 0.2
# Each round maps the singular values by a x + b x^3 + c x^5: of all such polynomials, the one that brings values that
# began between 0.01 and 1 nearest to 1 (the tests find the coefficients again). After three rounds they are within 0.27
# of it.
ROUNDS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))


def make_optimizer(
    model: SequenceModel, settings: TrainConfig, learned: Learned | None = None, ranks: Ranks | None = None
) -> torch.optim.Optimizer:
    """Makes the optimiser that the settings name. The loop sets its rate before every step. `learned`: what of the
    model it changes; None: all. `ranks`: those that take the same steps, and may share the work."""
    parameters = list((learned or learned_of(model)).parameters.values())
    betas = (settings.adam_beta1, settings.adam_beta2)

    def adam(parameters: Sequence[nn.Parameter]) -> torch.optim.Adam:
        return torch.optim.Adam(parameters, lr=0.0, betas=betas, eps=settings.adam_epsilon, fused=True)

    match settings.optimizer:
        case "adam":
            return adam(parameters)
        case "muon":
            return Muon(model, parameters, adam, ranks)


@torch.no_grad()
def update_ema(optimizer: torch.optim.Optimizer, decay: float, steps: int) -> None:
    """Moves the running average of the weights towards those after a step. It is part of the optimiser's state, which a
    checkpoint has. `decay`: 0 for none; `steps`: taken before, as the first ones soon should count no more."""
    if not decay:
        return
    share = 1 - min(decay, (1 + steps) / (10 + steps))
    for parameter, state in optimizer.state.items():
        if EMA in state:
            state[EMA].lerp_(parameter, share)
        else:
            state[EMA] = parameter.detach().clone()


def ema_of(optimizer: torch.optim.Optimizer, weights: dict[str, Tensor], learned: Learned) -> dict[str, Tensor]:
    """Returns the weights with the running average of those that learn."""
    return weights | {name: optimizer.state[parameter][EMA] for name, parameter in learned.parameters.items()}


class Muon(torch.optim.Optimizer):
    """Not in the paper (Jordan et al. 2024): the step of a matrix is its momentum with all singular values made one.

    So directions that seldom have a large gradient are learned as quickly as those that always have one. Embeddings,
    biases and norms are left to Adam. torch.optim.Muon does the same one matrix at a time and in bfloat16, which many
    CPUs can only emulate; here all matrices of a shape go through together, as they are (docs/decisions/019).
    """

    def __init__(
        self,
        model: SequenceModel,
        parameters: Sequence[nn.Parameter],
        adam: Callable[[Sequence[nn.Parameter]], torch.optim.Adam],
        ranks: Ranks | None = None,
    ) -> None:
        of_tokens = {module.weight for module in model.modules() if isinstance(module, nn.Embedding)}
        of_tokens.add(model.output.weight)
        matrices = [parameter for parameter in parameters if parameter.dim() == 2 and parameter not in of_tokens]
        super().__init__(matrices, {"lr": 0.0})
        self._ranks = ranks
        self._by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for matrix in matrices:
            self._by_shape[matrix.shape].append(matrix)
        of_muon = set(matrices)
        self._adam = adam([parameter for parameter in parameters if parameter not in of_muon])
        self._adam.state = self.state  # one state to save, one list of rates to set
        self.param_groups.extend(self._adam.param_groups)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        self._adam.step()
        rate = self.param_groups[0]["lr"]
        stacks = (torch.stack(self._ahead(matrices)) for matrices in self._by_shape.values())
        # A quarter of a small model's step: ranks on one machine divide it, bit for bit as if each did all.
        directions = map(orthogonal, stacks) if self._ranks is None else self._ranks.divide_rows(orthogonal, stacks)
        for (shape, matrices), steps in zip(self._by_shape.items(), directions, strict=True):
            torch._foreach_add_(matrices, list(steps), alpha=-rate * TYPICAL_ENTRY * max(shape) ** 0.5)

    def _ahead(self, matrices: Sequence[Tensor]) -> list[Tensor]:
        """Moves the momenta of some matrices, and returns where they point to: Nesterov's."""
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        return list(torch._foreach_lerp(gradients, momenta, MOMENTUM))


def orthogonal(matrices: Tensor) -> Tensor:
    """Returns roughly U V^T of each U S V^T."""  # (N, rows, columns)
    wide = matrices.shape[1] <= matrices.shape[2]
    x = matrices if wide else matrices.mT
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)  # the largest is at most 1
    x = _through_rounds_whole(x) if x.shape[2] < 2 * x.shape[1] else _through_rounds_as_square(x)
    return x if wide else x.mT


def _through_rounds_whole(x: Tensor) -> Tensor:
    for a, b, c in ROUNDS:
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x


def _through_rounds_as_square(x: Tensor) -> Tensor:
    """Each round multiplies x by a polynomial of its square, which is smaller where x is long: so the square alone goes
    through the rounds, and x is multiplied once by what they come to."""
    square = x @ x.mT
    factors: list[Tensor] = []
    for a, b, c in ROUNDS:
        if factors:
            square = factors[-1] @ square @ factors[-1]
        factors.append(torch.baddbmm(square, square, square, beta=b, alpha=c))
        factors[-1].diagonal(dim1=1, dim2=2).add_(a)
    return functools.reduce(torch.matmul, factors) @ x  # they commute
