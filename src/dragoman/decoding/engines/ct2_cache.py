"""Finds what a run keeps for CTranslate2: converted models, and measurements of them. Imports no torch, no numpy.

ctranslate2/<number type>-<digest>/   a model as CTranslate2 reads it; the digest is of all that it was made from
    vmap.txt                          likely target pieces of each source piece, where a map was learned
ctranslate2/threads.json              how many workers and threads were quickest, machine by machine
ctranslate2/weights.json              the hash of large weights, so that they are not read through at every start
engine.json                           what `quantize` found good enough, or a model was imported with, for one digest
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import platform
import time
import typing
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import CannotServeError, ComputeType
from dragoman.errors import DragomanError
from dragoman.files import read_json, sha256, write_atomically
from dragoman.processes import threads_allowed
from dragoman.run_directory import RunDirectory

FORMAT = 1  # raised when the same run is to be converted otherwise than before
LARGE_WEIGHTS = 2**25  # bytes: reading less takes a few hundredths of a second
RESTED = 2 * 10**9  # nanoseconds
VOCABULARY_MAP = "vmap.txt"  # CTranslate2's own name for it


@dataclass(frozen=True)
class Converted:
    """A model on disk as CTranslate2 reads it."""

    path: Path
    positions: int  # rows of the position table: the longest sequence, its start or end symbol included

    @functools.cached_property
    def size(self) -> int:
        """The bytes of its weights."""
        return (self.path / "model.bin").stat().st_size


@dataclass(frozen=True)
class EngineChoice:
    """The number type that a run translates with when no other is asked for, and whether with a vocabulary map."""

    compute_type: ComputeType = "float32"
    vocabulary_map: bool = False


@dataclass(frozen=True)
class Threads:
    """How the cores of a machine are used."""

    workers: int  # batches translated at the same time
    each: int  # threads of each worker


def digest_of(run: RunDirectory, tokenizer: Tokenizer) -> str:
    """A digest of all that a conversion depends on: weights, vocabulary and the model's configuration."""
    try:
        weights = _weights_sha256(run)
    except OSError:
        # Such a run may have checkpoints; if it has none, the reference engine says what is wrong.
        raise CannotServeError(f"{run.model_path} is not there yet, and ctranslate2 translates with no other") from None
    model = dataclasses.asdict(run.read_config().model)
    everything = json.dumps([FORMAT, weights, tokenizer.digest, model], sort_keys=True)
    return hashlib.sha256(everything.encode()).hexdigest()[:16]


def _weights_sha256(run: RunDirectory) -> str:
    """The hash of the run's weights: of large ones the remembered hash, if nobody wrote to the file since.

    A system sets the time of a file's last change (ctime) itself, and no program can put it back. A change within the
    grain of that clock would not show, so a file is remembered only when it has rested.
    """
    about = run.model_path.stat()
    if about.st_size < LARGE_WEIGHTS or os.name == "nt":  # where ctime is the file's creation
        return sha256(run.model_path)
    path = run.converted_path / "weights.json"
    unchanged = [about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns]
    try:
        kept = read_json(path) if path.is_file() else {}
    except DragomanError:
        kept = {}
    if kept.get("file") == unchanged and isinstance(kept.get("sha256"), str):
        return str(kept["sha256"])
    rested = time.time_ns() - max(about.st_mtime_ns, about.st_ctime_ns) > RESTED
    found = sha256(run.model_path)
    if rested and run.converted_path.is_dir():
        with contextlib.suppress(DragomanError):  # a directory that cannot be written has no memory
            write_atomically(path, (json.dumps({"file": unchanged, "sha256": found}) + "\n").encode())
    return found


def converted_path(run: RunDirectory, compute_type: ComputeType, digest: str) -> Path:
    return run.converted_path / f"{compute_type}-{digest}"


def find_converted(path: Path) -> Converted | None:
    """The model that was converted before; None if there is none or it is damaged, so that it is converted again."""
    try:
        return Converted(path, int(read_json(path / "config.json")["positions"])) if path.is_dir() else None
    except (DragomanError, KeyError, TypeError, ValueError):
        return None


def kept_choice(run: RunDirectory, digest: str) -> EngineChoice:
    """What `quantize` or an import kept for exactly these weights; float32 without a map for all others."""
    kept = read_json(run.engine_path) if run.engine_path.is_file() else {}
    if kept.get("digest") == digest and kept.get("compute_type") in typing.get_args(ComputeType):
        return EngineChoice(kept["compute_type"], kept.get("vocabulary_map") is True)
    return EngineChoice()


def remembered_threads(run: RunDirectory, settings: str) -> Threads | None:
    """The threads that were quickest on a machine like this one with these settings; None: not measured yet."""
    path = run.converted_path / "threads.json"
    try:
        found = read_json(path).get(_machine(settings)) if path.is_file() else None
        return None if found is None else Threads(int(found["workers"]), int(found["each"]))
    except (DragomanError, KeyError, TypeError, ValueError):  # it is measured again
        return None


def remember_threads(run: RunDirectory, settings: str, chosen: Threads, speeds: dict[Threads, float]) -> bool:
    """Keeps the choice in the run's directory; False: that cannot be written, so the choice ends with the process."""
    path = run.converted_path / "threads.json"
    try:
        known = read_json(path) if path.is_file() else {}
    except DragomanError:
        known = {}
    known[_machine(settings)] = {
        **dataclasses.asdict(chosen),
        "sentences_per_second": {f"{threads.workers} x {threads.each}": round(s, 1) for threads, s in speeds.items()},
    }
    try:
        write_atomically(path, (json.dumps(known, indent=2) + "\n").encode())
    except DragomanError:
        return False
    return True


def processor() -> str:
    """The name of the processor, and how many of its cores may be used."""
    name = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name or platform.machine()}, {threads_allowed()} cores"


def _machine(settings: str) -> str:
    """The key under which a measurement is kept: the processor, and the engine's settings."""
    return f"{processor()}, {settings}"
