"""Numbers in two bytes come back."""

import numpy
import pytest
import torch

from dragoman.inspection.uint16_codec import pack
from support.uint16 import unpack


def test_numbers_in_two_bytes_come_back() -> None:
    weights = torch.rand(2, 3, 50).softmax(-1)
    header, values = unpack(pack(weights, 0.0, 1.0, kind="cross"))
    assert (header["shape"], header["kind"]) == ([2, 3, 50], "cross")
    assert numpy.abs(values - weights.numpy()).max() <= 0.5 / 65535 + 1e-9
    assert numpy.abs(values.sum(-1) - 1).max() < 50 * 0.5 / 65535
    _, scores = unpack(pack(torch.tensor([[-7.25, 0.0], [3.5, 12.0]])))
    assert scores == pytest.approx(numpy.array([[-7.25, 0.0], [3.5, 12.0]]), abs=3e-4)
    assert unpack(pack(torch.zeros(2, 2)))[1].tolist() == [[0, 0], [0, 0]]
