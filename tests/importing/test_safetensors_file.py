"""Weights of every precision are read; a quantised model's and damaged files are refused in a line."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from dragoman.errors import DataError
from dragoman.importing.safetensors_file import read_safetensors


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_every_precision_is_read_to_the_bit(kind: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(1)
    tensors = {
        "matrix": (torch.randn(5, 7) * 1e3).to(kind),
        "row": torch.tensor([0.0, -0.0, 1e-30, -3.0]).to(kind),
        "none": torch.zeros(0, 4).to(kind),
        "number": torch.tensor(2.5).to(kind),
        "positions": torch.arange(4),
    }
    save_file(tensors, tmp_path / "model.safetensors")
    found = read_safetensors(tmp_path / "model.safetensors")
    assert found.keys() == tensors.keys() - {"positions"}
    for name, array in found.items():
        expected = tensors[name].double().numpy()
        assert array.shape == expected.shape
        np.testing.assert_array_equal(array.astype(np.float64), expected)


@pytest.mark.parametrize(("kind", "name"), [(torch.int8, "I8"), (torch.float8_e4m3fn, "F8_E4M3"), (torch.uint8, "U8")])
def test_weights_of_a_quantised_model_are_refused_by_name_and_type(
    kind: torch.dtype, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"fc1.weight": torch.ones(3, 2).to(kind)}, path)
    with pytest.raises(DataError) as refused:
        read_safetensors(path)
    assert str(refused.value) == (
        f"{path}: fc1.weight has numbers of type {name}; weights of F64, F32, F16, BF16 can be imported"
    )


@pytest.mark.parametrize("kept", [0, 5, 60, -1])
def test_what_is_cut_off_anywhere_is_said_in_a_line(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"fc1.weight": torch.ones(3, 2).bfloat16()}, path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DataError, match="not a readable safetensors file"):
        read_safetensors(path)
