"""Reads the tensors of a safetensors file, bfloat16 too, which numpy lacks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from dragoman.decoding.engines.numpy_weights import Array
from dragoman.errors import DataError

FLOATS = ("F64", "F32", "F16", "BF16")
_INDEXES = ("I64", "I32", "BOOL")  # of positions, in some directories: no weights


def read_safetensors(path: Path) -> dict[str, Array]:
    """All tensors of floating-point numbers by their names, in the precision that they have; bfloat16 as float32, to
    the bit. Raises if one has another type, which is that of a quantised model."""
    found: dict[str, Array] = {}
    try:
        # It checks the header: sizes, places, and that all of the file is described.
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 (not a dictionary)
                kind = file.get_slice(name).get_dtype()
                if kind in _INDEXES:
                    continue
                if kind not in FLOATS:
                    raise DataError(
                        f"{path}: {name} has numbers of type {kind}; weights of {', '.join(FLOATS)} can be imported"
                    )
                found[name] = _bfloat16(path, name) if kind == "BF16" else file.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: not a readable safetensors file ({error}); fetch it again") from None
    return found


def _bfloat16(path: Path, name: str) -> Array:
    """A tensor of bfloat16, which is the upper half of float32."""
    size, described = _header(path)
    start, end = described[name]["data_offsets"]
    halves = np.fromfile(path, dtype="<u2", count=(end - start) // 2, offset=8 + size + start)
    numbers: Array = (halves.astype(np.uint32) << 16).view(np.float32)
    return numbers.reshape(described[name]["shape"])


def _header(path: Path) -> tuple[int, dict[str, Any]]:
    """The size of the header that safetensors has checked, and what it says of each tensor."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return size, json.loads(file.read(size))
