"""Statistics of heads are what their names say."""

import math

import pytest
import torch

from dragoman.inspection.head_statistics import diagonal_of, head_statistics


def test_statistics_are_what_their_names_say() -> None:
    size = 5
    identity = torch.eye(size)
    back = torch.diag(torch.ones(size - 1), -1)
    back[0, 0] = 1.0
    last = torch.zeros(size, size)
    last[:, -1] = 1.0
    equal = torch.full((size, size), 1 / size)
    own, previous, end, even = head_statistics(torch.stack((identity, back, last, equal)), "encoder")
    assert (own.diagonal, own.previous, own.entropy, own.distance) == (1.0, 0.0, 0.0, 0.0)
    assert (previous.previous, previous.diagonal, previous.distance) == (1.0, 0.2, 0.8)
    assert (end.end, end.entropy, end.distance, end.start) == (1.0, 0.0, 2.0, None)
    assert even.entropy == pytest.approx(math.log(size))
    assert even.end == pytest.approx(0.2)
    (first,) = head_statistics(torch.eye(3)[:, :1].expand(3, 3)[None] * torch.tensor([1.0, 0, 0]), "decoder")
    assert first.end is None
    wide = torch.zeros(1, 3, 5)
    wide[0, [0, 1, 2], [0, 2, 4]] = 1.0
    assert diagonal_of(3, 5, "cross").tolist() == [0, 2, 4]
    (across,) = head_statistics(wide, "cross")
    assert (across.diagonal, across.previous, across.distance) == (1.0, None, 0.0)
