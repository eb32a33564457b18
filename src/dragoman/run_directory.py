"""A run's directory, and files in it that are either whole or not there. Imports no torch.

config.json         everything the run is made from
tokenizer.model     the shared vocabulary, a sentencepiece model
cleaning.json       what cleaning dropped, by rule, with examples
data/               the token ids, memory-mapped
metrics.jsonl       every measurement, one JSON object a line
checkpoints/        step-00001000/ ...: weights, optimiser, progress, and a manifest of their hashes
skipped.jsonl       the batches of steps whose loss or gradient was not finite, where there were any
model.safetensors   the weights that translate: best so far, and the average at the end
model.json          which weights those are
ctranslate2/        those weights as CTranslate2 reads them, by number type: made when first asked for
languages.json      {"source": "en", "target": "de"}, where it is known
engine.json         the numbers and the vocabulary map to translate with, where `quantize` found them good enough
confidence.json     what makes its probabilities mean what they say, where `calibrate` learned it
"""

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from dragoman.config import RunConfig, Task
from dragoman.errors import ConfigError, DataError, DragomanError

FORMAT = 1  # raised when a run written before can no longer be read


class RunDirectory:
    """The names of a run's files, and what can be read from them without torch."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config_path = self.path / "config.json"
        self.tokenizer_path = self.path / "tokenizer.model"
        self.metrics_path = self.path / "metrics.jsonl"
        self.model_path = self.path / "model.safetensors"
        self.model_card_path = self.path / "model.json"
        self.converted_path = self.path / "ctranslate2"
        self.engine_path = self.path / "engine.json"
        self.confidence_path = self.path / "confidence.json"
        self.checkpoints_path = self.path / "checkpoints"
        self.skipped_path = self.path / "skipped.jsonl"
        self.languages_path = self.path / "languages.json"  # {"source": "en", "target": "de"}

    @classmethod
    def open(cls, path: str | Path) -> "RunDirectory":
        """A directory that holds a run, or a bundle of one, or a DataError that says what is missing."""
        run = cls(unpacked(Path(path)) if _is_zip(Path(path)) else path)
        if not run.path.is_dir():
            raise DataError(f"{path}: no such run directory; make one: dragoman train --pairs my.tsv --out {path}")
        for needed in (run.config_path, run.tokenizer_path):
            if not needed.is_file():
                raise DataError(f"{path}: not a run directory ({needed.name} is missing); give the --out of a training")
        return run

    def read_config(self) -> RunConfig:
        values = read_json(self.config_path)
        if values.pop("format", None) != FORMAT:
            raise DataError(
                f"{self.config_path}: written by another version of dragoman (this one reads format {FORMAT}); "
                f"train the run again or use that version"
            )
        return RunConfig.from_json(json.dumps(values), str(self.config_path))

    def write_config(self, config: RunConfig) -> None:
        values = {"format": FORMAT, **json.loads(config.to_json())}
        write_atomically(self.config_path, (json.dumps(values, indent=2) + "\n").encode())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One training at a time. The lock is the system's, not the file's: it ends with the process that holds it."""
        import fcntl  # not there on every system; only training needs it

        new = [path for path in (self.path, *self.path.parents) if not path.exists()]
        lock_path = self.path / ".lock"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise DragomanError(f"{self.path}: cannot be written ({error.strerror}); give another --out") from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
                raise DragomanError(
                    f"{self.path}: process {holder} is training in it; wait for it, or give another --out"
                ) from None
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            yield
        finally:
            if new and set(self.path.iterdir()) == {lock_path}:  # nothing came of it: leave nothing behind
                lock_path.unlink()
                for path in new:
                    path.rmdir()
            os.close(descriptor)

    def is_training(self) -> bool:
        """Whether a process of this machine trains in it. The lock is tried only where the process that held it last
        lives: a training that begins is never in the way of this."""
        import fcntl

        try:
            with (self.path / ".lock").open("rb") as file:
                with suppress(PermissionError):  # another user's, and alive
                    os.kill(int(file.read(20)), 0)
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except (OSError, ValueError):
            return False
        return False

    def has_model(self) -> bool:
        """Whether there is something to translate with: a training has it after its first validation."""
        return self.model_path.is_file() or bool(self.checkpoints())

    def events(self) -> list[dict[str, Any]]:
        """Every measurement of its training, in order; none where there is no log."""
        return list(events_in(self.metrics_path.read_bytes())) if self.metrics_path.is_file() else []

    def checkpoints(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        found = [p for p in self.checkpoints_path.glob("step-*") if re.fullmatch(r"step-\d+", p.name)]
        return sorted(found, key=step_of)


def require_task(run: RunDirectory, task: Task) -> None:
    """A run is used for what it was trained for."""
    uses = {"translate": "dragoman translate", "continue": "dragoman lm generate", "restore": "dragoman mlm fill",
            "classify": "dragoman mlm classify, or dragoman vit"}  # fmt: skip
    trained_for = run.read_config().model.task
    if trained_for != task:
        raise DataError(f"{run.path}: was trained to {trained_for}, not to {task}; use {uses[trained_for]}")


def default_cache() -> Path:
    """$XDG_CACHE_HOME/dragoman, or ~/.cache/dragoman."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    return (configured if configured.is_absolute() else Path.home() / ".cache") / "dragoman"


def _is_zip(path: Path) -> bool:
    if not path.is_file():
        return False
    import zipfile  # only who has a file for a run waits for it

    return zipfile.is_zipfile(path)


def unpacked(bundle: Path) -> Path:
    """The run in a bundle, unpacked where things are kept that can be made again; once for each content."""
    directory = default_cache() / "bundles" / sha256(bundle)[:16]
    if not (directory / "config.json").is_file():
        unpack(bundle, directory)
    return directory


LARGE, MOST_RATIO = 64 << 20, 20  # bytes, and times its size: weights hardly shrink when they are packed


def unpack(bundle: Path, directory: Path) -> None:
    """The run's files from a bundle into a new directory, each held against its hash in card.json."""
    import zipfile

    try:
        with zipfile.ZipFile(bundle) as archive, replacing(directory) as temporary:
            size = sum(info.file_size for info in archive.infolist())
            if size > LARGE and size > MOST_RATIO * bundle.stat().st_size:
                raise DataError(f"{bundle}: unpacks to {size:,} bytes, far more than any run; do not trust this bundle")
            temporary.mkdir()
            for name, recorded in json.loads(archive.read("card.json"))["files"].items():
                if not re.fullmatch(r"[\w-][\w.-]*", name):  # a name, not a path: nothing is written elsewhere
                    raise DataError(f"{bundle}: {name!r} is no file of a run; do not trust this bundle")
                with archive.open(f"run/{name}") as packed, (temporary / name).open("wb") as file:
                    shutil.copyfileobj(packed, file)
                if sha256(temporary / name) != recorded:
                    raise DataError(f"{bundle}: {name} is not what was packed; fetch the bundle again")
    except OSError as error:
        raise DataError(f"{bundle}: cannot be read ({error.strerror or error}); check the path") from None
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{bundle}: not a bundle of a run ({error}); make one: dragoman bundle RUN") from None


@contextmanager
def scratch_of(run: RunDirectory) -> Iterator[RunDirectory]:
    """A directory of its own for a training that stands on the run's text: what that writes is gone afterwards."""
    with tempfile.TemporaryDirectory() as temporary:
        scratch = RunDirectory(temporary)
        for name in ("tokenizer.model", "cleaning.json"):
            shutil.copy(run.path / name, scratch.path / name)
        (scratch.path / "data").symlink_to((run.path / "data").resolve())
        yield scratch


def events_in(log: bytes) -> Iterator[dict[str, Any]]:
    """The whole lines of a metrics.jsonl."""
    for line in log.splitlines():
        try:
            event = json.loads(line)
        except ValueError:  # half a line that a kill or a power cut left
            continue
        if isinstance(event, dict):
            yield event


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(directory: Path, **about: Any) -> None:
    """The hashes of the files in a directory, beside them."""
    files = {file.name: sha256(file) for file in sorted(directory.iterdir())}
    (directory / "manifest.json").write_text(json.dumps({"files": files, **about}, indent=2) + "\n")


def damage(directory: Path) -> str | None:
    """What is wrong with a directory that has a manifest, or None. Files that were removed since are not missed: all
    but the last checkpoints give up their optimiser state."""
    try:
        files = read_json(directory / "manifest.json")["files"]
        for name, recorded in files.items():
            if (directory / name).exists() and sha256(directory / name) != recorded:
                return f"{name} is not what was written"
    except DragomanError as error:
        return str(error)
    except (OSError, KeyError, AttributeError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid JSON ({error}); restore the file or train again") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected a JSON object, found {type(values).__name__}")
    return values


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`; what is written there takes the place of `path` only when it is complete."""
    if not path.name:  # as an empty string has it
        raise DragomanError(f"{path}: cannot be written, as it names no file or directory of its own; give a name")
    temporary, outdated = path.with_name(f".{path.name}.partial"), _outdated(path)
    try:
        with made(path.parent):
            _remove(temporary)
            _remove(outdated)
            mode = _mode_of_new_files(temporary)
            try:
                yield temporary
                _give_mode(temporary, mode)
                _sync(temporary, *(temporary.iterdir() if temporary.is_dir() else ()))
                if temporary.is_dir() and path.is_dir():
                    path.replace(outdated)  # one directory replaces another in two steps, with nothing between them
                temporary.replace(path)
            except BaseException:
                _remove(temporary)
                raise
            _sync(path.parent)  # its own entries, not what others have in it
            _remove(outdated)
    except OSError as error:
        raise DragomanError(
            f"{path}: cannot be written ({error.strerror or error}); what was there is unchanged"
        ) from None


@contextmanager
def made(directory: Path) -> Iterator[None]:
    """The directory is there. If it was not before, and nothing comes of it, then neither it nor its parents stay."""
    new = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):  # not empty, or never made
            for path in new:
                path.rmdir()
        raise


@contextmanager
def one_at_a_time(directory: Path) -> Iterator[None]:
    """Of all processes and threads that ask for it; the others wait. The lock is on the directory itself: no file is
    left behind."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # no such locks on Windows, nor on every file system
            import fcntl

            descriptor = os.open(directory, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _mode_of_new_files(name: Path) -> int:
    """What the user's umask leaves; seen on a file, as asking for it would set it for all threads meanwhile."""
    name.touch()
    mode = stat.S_IMODE(name.stat().st_mode)
    name.unlink()
    return mode


def _give_mode(path: Path, mode: int) -> None:
    """To every file there: safetensors writes files that only their owner may read."""
    for file in path.rglob("*") if path.is_dir() else (path,):
        if file.is_file() and not file.is_symlink() and stat.S_IMODE(file.stat().st_mode) != mode:
            file.chmod(mode)


def _sync(*paths: Path) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def discard(directory: Path) -> None:
    """Remove a directory under another name: nobody finds half of one under its own."""
    outdated = _outdated(directory)
    _remove(outdated)
    directory.replace(outdated)
    _remove(outdated)


def _outdated(path: Path) -> Path:
    return path.with_name(f".{path.name}.outdated")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):  # what is still in the way is met, and named, by the next step
            path.unlink()
