"""The files of a Marian model, from its directory or from a zip archive, and the arrays in its .npz file.

Nothing in them is executed, and nothing is written but to a temporary directory, under names and up to sizes that are
checked first.
"""

import math
import re
import shutil
import struct
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.imported_tokenizer import MOST_BYTES
from dragoman.errors import DataError
from dragoman.run_directory import LARGE, MOST_RATIO

_NEEDED = (".npz", ".yml", ".yaml", ".spm", ".vocab", "README.md")  # ends of names
_WITHOUT_WEIGHTS = ".optimizer.npz"
_QUANTISED = re.compile(r"\.(intgemm|alphas|fbgemm)[\w.]*bin$")  # forms of the weights that are no .npz


@dataclass(frozen=True)
class ModelFiles:
    """The files of one model."""

    directory: Path  # where they can be read
    origin: Path  # what the user gave
    names: frozenset[str]
    chosen: str | None = None  # the .npz file that the user gave

    def where(self, name: str) -> str:
        """The file as a message names it."""
        return f"{self.origin}" if name == self.origin.name else f"{self.origin}: {name}"

    def read(self, name: str) -> bytes:
        """The content of a file that is no .npz."""
        path = self.directory / name
        try:
            if path.stat().st_size > MOST_BYTES:
                raise DataError(f"{self.where(name)}: has more than {MOST_BYTES:,} bytes; do not trust this model")
            return path.read_bytes()
        except OSError as error:
            raise DataError(f"{self.where(name)}: cannot be read ({error.strerror}); fetch the model again") from None

    def model_names(self) -> list[str]:
        """The .npz files that may hold the weights."""
        return sorted(name for name in self.names if name.endswith(".npz") and not name.endswith(_WITHOUT_WEIGHTS))

    def quantised_names(self) -> list[str]:
        return sorted(name for name in self.names if _QUANTISED.search(name))


def is_marian(path: Path) -> bool:
    """Whether a Marian model is there: in a directory, in a zip archive, or as one .npz file."""
    if path.is_dir():
        return any(map(_is_of_marian, (file.name for file in path.iterdir())))
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            return path.suffix == ".npz" or any(_is_of_marian(PurePosixPath(name).name) for name in names)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error):
        return path.suffix == ".npz"


def _is_of_marian(name: str) -> bool:
    return name.endswith((".npz", "decoder.yml")) or _QUANTISED.search(name) is not None


@contextmanager
def files_of(path: Path) -> Iterator[ModelFiles]:
    """The files of the model that is there. Those of an archive are unpacked for as long as the block lasts."""
    if path.is_dir():
        yield ModelFiles(path, path, _names_in(path))
    elif path.suffix == ".npz":
        yield ModelFiles(path.parent, path, _names_in(path.parent), path.name)
    else:
        with tempfile.TemporaryDirectory(prefix="dragoman-") as temporary:
            with readable(str(path)), zipfile.ZipFile(path) as archive:
                names = _unpack(archive, path, Path(temporary))
            yield ModelFiles(Path(temporary), path, names)


def _names_in(directory: Path) -> frozenset[str]:
    return frozenset(file.name for file in directory.iterdir() if file.is_file())


def _unpack(archive: zipfile.ZipFile, path: Path, directory: Path) -> frozenset[str]:
    """Writes the files that an import needs; the names of all that the archive holds."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = PurePosixPath(info.filename)
        if name.is_absolute() or ".." in name.parts or "\\" in info.filename or ":" in info.filename:
            raise DataError(f"{path}: {info.filename!r} points out of the archive; do not trust it")
        if info.is_dir():
            continue
        if name.name in found:
            raise DataError(f"{path}: has two files {name.name}; give a directory that holds one model")
        found[name.name] = info
    needed = {name: info for name, info in found.items() if name.endswith(_NEEDED) and _WITHOUT_WEIGHTS not in name}
    _require_bounded(needed.values(), path, str(path))
    for needed_name, info in needed.items():
        with archive.open(info) as packed, (directory / needed_name).open("wb") as file:
            shutil.copyfileobj(packed, file)
    return frozenset(found)


def _require_bounded(members: Collection[zipfile.ZipInfo], path: Path, where: str) -> None:
    """Raises where the members of a zip file are far larger than it is, as no weights are."""
    size = sum(info.file_size for info in members)
    if size > LARGE and size > MOST_RATIO * path.stat().st_size:
        raise DataError(f"{where}: unpacks to {size:,} bytes, far more than any model; do not trust it")
    for info in members:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(f"{where}: {info.filename} is compressed in a way that is not read; pack it again with zip")


@contextmanager
def readable(where: str) -> Iterator[None]:
    """Turns what a damaged file raises into a DataError."""
    try:
        yield
    except (
        zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, EOFError, ValueError, LookupError, TypeError,
        OSError, RuntimeError, NotImplementedError, SyntaxError, MemoryError, OverflowError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise DataError(f"{where}: cannot be read ({reason}); fetch the model again") from None


class Tensors:
    """The arrays of an .npz file. Each is read when it is asked for, once its header says that it is what it must be:
    numbers, of a certain shape, and as many as the file holds."""

    def __init__(self, archive: zipfile.ZipFile, where: str) -> None:
        self._archive, self.where = archive, where
        self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        self.left = set(self._members)  # names that nothing has asked for

    def text(self, name: str) -> bytes | None:
        """The text that is kept as bytes with a zero at its end; None: there is no such array."""
        if name not in self._members:
            return None
        with self._opened(name) as (member, shape, dtype):
            if len(shape) != 1 or dtype.itemsize != 1 or dtype.kind not in "iu" or shape[0] > 2**20:
                raise DataError(f"{self.where}: {name} holds {dtype} of shape {shape}, not text; do not trust it")
            return self._array(member, name, shape, dtype).tobytes().rstrip(b"\0")

    def take(self, name: str, *shape: int | None) -> NDArray[np.floating[Any]]:
        """An array of this shape; None: any size. A vector may have an axis of one before it."""
        if name not in self._members:
            raise DataError(f"{self.where}: {name} is missing; fetch the model again")
        with self._opened(name) as (member, found, dtype):
            if dtype.kind != "f" or dtype.itemsize > 8:
                raise DataError(
                    f"{self.where}: {name} has numbers of type {dtype}; models whose weights are not quantised "
                    f"(float16, float32, float64) can be imported"
                )
            plain = found[1:] if len(shape) == 1 and found[:1] == (1,) and len(found) == 2 else found
            if len(plain) != len(shape) or any(size not in (None, has) for size, has in zip(shape, plain, strict=True)):
                wanted = " x ".join("any" if size is None else str(size) for size in shape)
                raise DataError(
                    f"{self.where}: {name} has shape {found}, and the model's settings say {wanted}; fetch it again"
                )
            return self._array(member, name, found, dtype).reshape(plain)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], tuple[int, ...], np.dtype[Any]]]:
        """An array's file, and the shape and type of numbers that its header names."""
        self.left.discard(name)
        with readable(f"{self.where}: {name}"), self._archive.open(self._members[name]) as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(member)
            yield member, shape, dtype

    def _array(self, member: IO[bytes], name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
        # The header alone could ask for any amount of memory.
        if math.prod(shape) * dtype.itemsize != self._members[name].file_size - member.tell():
            raise DataError(f"{self.where}: {name} is not as long as it says; fetch the model again")
        member.seek(0)
        found: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        return found


@contextmanager
def tensors_of(files: ModelFiles, name: str) -> Iterator[Tensors]:
    """The arrays of one of the files, for as long as the block lasts."""
    path, where = files.directory / name, files.where(name)
    with readable(where):
        archive = zipfile.ZipFile(path)
    with archive:
        _require_bounded(archive.infolist(), path, where)
        yield Tensors(archive, where)
