"""Dragoman: the body of the loop of training/loop.py, made of the same functions."""

from collections.abc import Iterable

import torch

from contestants.batches import Step
from dragoman.config import TrainConfig
from dragoman.data.batching import make_batch
from dragoman.data.dataset import Prepared
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.transformer import Transformer
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import Gradients
from dragoman.training.loop import seed_of
from dragoman.training.optimizer import make_optimizer
from shapes import Shape


class Contestant:
    def __init__(self, shape: Shape, text: Prepared) -> None:
        torch.manual_seed(1)
        self.text = text
        self.ranks = Ranks()
        self.model = Transformer(shape.model_config(text.tokenizer.vocab_size)).train()
        self.settings = TrainConfig()
        self.optimizer = make_optimizer(self.model, self.settings)
        self.gradients = Gradients(list(self.model.parameters()))
        self.step = 0
        self.rate = 1e-4

    def train(self, steps: Iterable[Step]) -> int:
        """Train on these; the number of real target tokens that they had."""
        return sum(map(self.train_step, steps))

    def train_step(self, step: Step) -> int:
        data, gradients = self.text.train, self.gradients
        tokens = int(sum(data.target_lengths[rows].sum() + len(rows) for rows in step))
        for number, rows, weight in self.ranks.share_evenly(step):
            torch.manual_seed(seed_of(self.settings.seed, self.step, number))
            batch = make_batch(data, rows, self.text.tokenizer)
            hidden = self.model.states(batch.source, batch.target, batch.source_mask)
            loss, nll = smoothed_cross_entropy(
                batch.real_states(hidden), self.model.output.weight, batch.labels, self.settings.label_smoothing
            )
            (loss * (weight * gradients.loss_factor / tokens)).backward()
            gradients.totals.add_loss(loss, nll, weight)
        gradients.sum_over(self.ranks, self.step)
        gradients.totals.read()  # what the log is told
        gradients.norm()
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        self.optimizer.step()
        gradients.clear()
        self.step += 1
        return tokens
