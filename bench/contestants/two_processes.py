"""Dragoman as two processes of one thread: the loop of contestants/ours.py, in each of the processes that
torch.distributed.run starts. Every micro-batch is cut in two, so that both have a share of every step."""

from collections.abc import Iterable

from contestants import ours
from contestants.batches import Step
from dragoman.data.dataset import Prepared
from shapes import Shape


class Contestant:
    def __init__(self, shape: Shape, text: Prepared) -> None:
        self.one_rank = ours.Contestant(shape, text)

    def train(self, steps: Iterable[Step]) -> int:
        return self.one_rank.train([[part for rows in step for part in (rows[::2], rows[1::2])] for step in steps])
