"""Reads CTranslate2's model.bin: the name and revision of a specification, and its variables as arrays.

binary version (4 bytes), specification's name, revision (4), number of variables (4), and of each: name, rank (1),
sizes (4 each), type (1), bytes (4), content; then the number of aliases (4), and of each: its name, that of the
variable. A name has its length before it (2) and a zero at its end. All numbers are little-endian. Binary version 3 has
the size of an item in place of the type, and a number of items in place of the bytes.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.decoding.engines import ComputeType
from dragoman.decoding.engines.numpy_weights import Array
from dragoman.errors import DataError

OLDEST, NEWEST = 3, 6  # binary versions
_BFLOAT16 = 5
_TYPES: Mapping[int, str] = {0: "<f4", 1: "i1", 2: "<i2", 3: "<i4", 4: "<f2", _BFLOAT16: "<u2"}
_TYPES_BY_SIZE: Mapping[int, int] = {4: 0, 2: 2, 1: 1}  # of binary version 3
_SCALE_OF_INT16 = 1000.0  # where a file states none
_MOST_RANK = 8

AnyArray = npt.NDArray[Any]


@dataclass(frozen=True)
class CTranslate2File:
    """What a model.bin holds."""

    binary_version: int
    specification: str
    revision: int
    variables: Mapping[str, AnyArray]  # as they are stored, each under all of its names
    scales: Mapping[str, AnyArray]  # of the integers, by the names of their variables
    content: bytes

    @property
    def compute_type(self) -> ComputeType:
        """The numbers that its products are computed with."""
        kinds = {array.dtype.name for name, array in self.variables.items() if name.endswith("/weight")}
        return "int8" if "int8" in kinds else "int16" if "int16" in kinds else "float32"

    def text(self, name: str, default: str) -> str:
        """A setting that is a string, as older versions have them among the variables."""
        found = self.variables.get(name)
        return default if found is None else found.tobytes().decode(errors="replace")

    def number(self, name: str, default: float) -> float:
        """A setting that is a number: a variable without dimensions."""
        found = self.variables.get(name)
        return default if found is None or found.ndim else float(found)

    def floats(self, name: str) -> Array:
        """A variable in float32: integers divided by their scales, one a row or one for all."""
        stored = self.variables[name]
        if stored.dtype.kind == "f":
            return stored.astype(np.float32)
        scale = np.asarray(self.scales.get(name, _SCALE_OF_INT16), np.float32)
        return stored.astype(np.float32) / scale.reshape(-1, 1)


def read_file(path: Path) -> CTranslate2File:
    """Reads a model.bin; a DataError if it is none, or damaged."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); fetch the model again") from None
    try:
        return _read(content)
    except (ValueError, struct.error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a whole model of CTranslate2 ({error}); fetch the model again") from None


def _read(content: bytes) -> CTranslate2File:
    reader = _Reader(content)
    version = reader.integer("<I")
    if not OLDEST <= version <= NEWEST:
        raise ValueError(f"binary version {version}; {OLDEST} to {NEWEST} can be read")
    specification, revision = reader.name(), reader.integer("<I")
    variables = dict(reader.variable(version) for _ in range(reader.integer("<I")))
    for _ in range(reader.integer("<I")):
        alias, name = reader.name(), reader.name()
        if name not in variables:
            raise ValueError(f"{alias} is another name of {name}, which is not there")
        variables[alias] = variables[name]
        if f"{name}_scale" in variables:
            variables[f"{alias}_scale"] = variables[f"{name}_scale"]
    scales = {name: variables.pop(f"{name}_scale") for name in list(variables) if f"{name}_scale" in variables}
    for name, array in variables.items():
        if array.dtype.kind == "i" and name.endswith("weight"):
            _check_integers(name, array, scales.get(name))
    return CTranslate2File(version, specification, revision, variables, scales, content)


def _check_integers(name: str, array: AnyArray, scale: AnyArray | None) -> None:
    if array.dtype == np.int32 or array.ndim != 2 or (scale is None and array.dtype == np.int8):
        raise ValueError(
            f"{name} is {array.dtype.name} of shape {array.shape} {'without' if scale is None else 'and'} a scale"
        )
    if scale is not None and (scale.size not in (1, len(array)) or not np.isfinite(1 / scale).all()):
        raise ValueError(f"{name} has shape {array.shape} and a scale that does not fit it")


class _Reader:
    """Takes values from the content of a file, one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def _take(self, count: int) -> memoryview:
        if count > len(self._content) - self._at:
            raise ValueError(f"it ends at byte {len(self._content):,}, and {count:,} were to come at {self._at:,}")
        self._at += count
        return memoryview(self._content)[self._at - count : self._at]

    def integer(self, form: str) -> int:
        number: int = struct.unpack(form, self._take(struct.calcsize(form)))[0]
        return number

    def name(self) -> str:
        name = bytes(self._take(self.integer("<H")))
        if len(name) < 2 or name[-1] != 0:
            raise ValueError(f"no name at byte {self._at - len(name):,}")
        return name[:-1].decode()

    def variable(self, version: int) -> tuple[str, AnyArray]:
        name, rank = self.name(), self.integer("<B")
        if rank > _MOST_RANK:
            raise ValueError(f"{name[:60]!r} has {rank} dimensions")
        shape = tuple(self.integer("<I") for _ in range(rank))
        kind, size = self.integer("<B"), self.integer("<I")
        if version < 4:
            kind, size = _TYPES_BY_SIZE.get(kind, -1), size * kind
        if kind not in _TYPES:
            raise ValueError(f"{name[:60]!r} has numbers of type {kind}")
        dtype = np.dtype(_TYPES[kind])
        if size != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{name[:60]!r} has shape {shape} and {size:,} bytes")
        array: AnyArray = np.frombuffer(self._take(size), dtype).reshape(shape)
        if kind == _BFLOAT16:  # the upper half of a float32
            array = (array.astype(np.uint32) << 16).view(np.float32)
        return name, array
