"""The machine's own rate: torch.mm of 2048 x 2048 matrices. Counts operations in place of tokens."""

from collections.abc import Iterable

import torch

from contestants.batches import Step
from dragoman.data.dataset import Prepared
from shapes import Shape

SIZE, REPEATS = 2048, 10


class Contestant:
    def __init__(self, shape: Shape, text: Prepared) -> None:  # noqa: ARG002
        self.left, self.right, self.out = (torch.ones(SIZE, SIZE) for _ in range(3))

    def train(self, steps: Iterable[Step]) -> int:  # noqa: ARG002
        for _ in range(REPEATS):
            torch.mm(self.left, self.right, out=self.out)
        return REPEATS * 2 * SIZE**3
