"""Small artificial tasks, and the short loop that trains a model on them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.sequence_model import SequenceModel, next_logits
from dragoman.training.schedule import linear_rate

# The ids that every task has; symbols come after them.
PAD, START, END = 0, 1, 2
FIRST = 3

Pairs = tuple[Tensor, Tensor]  # sources (B, S) and targets (B, T), without start and end


@contextmanager
def one_thread() -> Iterator[None]:
    """Makes torch use one thread, so that times are those of one core and a seed always gives the same bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def generator(*numbers: int) -> torch.Generator:
    """A random generator whose seed is made of all these numbers."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1))


def fit(
    model: nn.Module,
    loss_at: Callable[[int], Tensor],
    steps: int,
    peak_rate: float,
    warmup_steps: int,
    norms: list[float] | None = None,
    watched: nn.Module | None = None,
) -> list[float]:
    """Trains with Adam and the paper's betas, at a rate that rises and falls to zero; the loss of every step. The norm
    of each step's gradient is added to `norms`: of `watched`, or of the whole model."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    losses: list[float] = []
    model.train()
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = linear_rate(step, warmup_steps, peak_rate, (step - 1) / steps)
        loss = loss_at(step)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if norms is not None:
            gradients = [p.grad for p in (watched or model).parameters() if p.grad is not None]
            norms.append(float(torch.nn.utils.get_total_norm(gradients)))
        optimizer.step()
        losses.append(loss.item())
    return losses


def with_ends(pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
    """Source, decoder input and labels, with start and end symbols added."""
    source, target = pairs
    start, end = (torch.full((len(target), 1), symbol) for symbol in (START, END))
    return torch.cat((source, end), 1), torch.cat((start, target), 1), torch.cat((target, end), 1)


def sequence_loss(model: SequenceModel, pairs: Pairs) -> Tensor:
    """Cross-entropy of the targets, end symbols included."""
    source, fed, labels = with_ends(pairs)
    return F.cross_entropy(model(source, fed).flatten(0, 1), labels.flatten())


@torch.inference_mode()
def token_accuracy(model: SequenceModel, pairs: Pairs) -> float:
    """The share of right tokens in greedy output, position by position; the end symbol counts as one."""
    source, _, labels = with_ends(pairs)
    model.eval()
    state, last = model.start(source), torch.full((len(labels), 1), START)
    right = 0
    for position in range(labels.shape[1]):
        last = next_logits(model, last, state).argmax(dim=-1)
        right += int((last[:, 0] == labels[:, position]).sum())
    return right / labels.numel()


def thinned(losses: list[float], points: int = 20) -> list[float]:
    """A curve of few points: the means of equal stretches of the losses."""
    size = max(1, len(losses) // points)
    return [round(sum(losses[i : i + size]) / len(losses[i : i + size]), 4) for i in range(0, len(losses), size)]
