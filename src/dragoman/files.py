"""Atomic files, hashes, manifests and locks: a file is whole or not there, whatever stops the program.

Locks are the operating system's (flock): they end with the process that holds them. Windows has none of this kind, and
there nothing keeps two processes from writing the same output or from training in the same run.
"""

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from dragoman.errors import ConfigError, DataError, DragomanError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

MANIFEST = "manifest.json"


class WriteError(DragomanError):
    """A file or directory could not be written: the disk is full, or it is not the user's."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.reason = error.strerror or str(error)
        super().__init__(f"{path}: cannot be written ({self.reason}); what was there is unchanged")


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object from a file; an error names the file."""
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid JSON ({error}); restore the file or train again") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected a JSON object, found {type(values).__name__}")
    return values


# ------------------------------------------------------------------------------------------------------ atomic writing


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file in one step: a reader finds the old content or the new, never a part of it."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary name beside `path`. The file or directory that is written there replaces `path` when the block
    ends, after it has been flushed to the disk; after an error it is removed."""
    if not path.name:  # as an empty string has it
        raise DragomanError(f"{path}: cannot be written, as it names no file or directory of its own; give a name")
    temporary, outdated = unfinished_path(path), _outdated(path)
    try:
        with directory_made(path.parent):
            _remove(temporary)
            _remove(outdated)
            mode = _mode_of_new_files(temporary)
            try:
                yield temporary
                _set_mode(temporary, mode)
                _sync(temporary)
                if temporary.is_dir() and path.is_dir():
                    path.replace(outdated)  # one directory replaces another in two steps, with nothing between them
                temporary.replace(path)
            except BaseException:
                _remove(temporary)
                raise
            _sync_one(path.parent)  # its own entries, not what others have in it
            _remove(outdated)
    except OSError as error:
        raise WriteError(path, error) from None


def unfinished_path(path: Path) -> Path:
    """The name under which `replacing` has a file or directory written."""
    return path.with_name(f".{path.name}.partial")


@contextlib.contextmanager
def directory_made(directory: Path) -> Iterator[None]:
    """Makes a directory and its parents. After an error in the block, those that are new and empty are removed."""
    new = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # not empty, or never made
            for path in new:
                path.rmdir()
        raise


def flush_to_disk(file: BinaryIO) -> None:
    """Returns when all that was written to the file would survive a power cut."""
    file.flush()
    os.fsync(file.fileno())


def discard(directory: Path) -> None:
    """Removes a directory, renamed first: nobody finds a part of it under its own name."""
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
        with contextlib.suppress(OSError):  # what is still in the way is met, and named, by the next step
            path.unlink()


def _mode_of_new_files(name: Path) -> int:
    """The permissions that the user's umask leaves, read from a new file: asking for the umask would change it for all
    threads meanwhile."""
    name.touch()
    mode = stat.S_IMODE(name.stat().st_mode)
    name.unlink()
    return mode


def _set_mode(path: Path, mode: int) -> None:
    """Gives every file there the same permissions: safetensors writes files that only their owner may read."""
    for file in path.rglob("*") if path.is_dir() else (path,):
        if file.is_file() and not file.is_symlink() and stat.S_IMODE(file.stat().st_mode) != mode:
            file.chmod(mode)


def _sync(path: Path) -> None:
    """Flushes a file, or a directory with all that is in it, to the disk."""
    for inner in path.rglob("*") if path.is_dir() else ():
        if not inner.is_symlink():
            _sync_one(inner)
    _sync_one(path)


def _sync_one(path: Path) -> None:
    on_windows = os.name == "nt"  # where directories cannot be opened, and only writers may flush
    if on_windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if on_windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ----------------------------------------------------------------------------------------------------------- manifests


def write_manifest(directory: Path, **about: Any) -> None:
    """Writes the hashes of the files in a directory to its manifest.json, with further facts about them."""
    files = {file.name: sha256(file) for file in sorted(directory.iterdir())}
    text = json.dumps({"files": files, **about}, indent=2) + "\n"
    (directory / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(directory: Path) -> dict[str, Any]:
    return read_json(directory / MANIFEST)


def damage(directory: Path) -> str | None:
    """Says what differs from the manifest of a directory; None: nothing does. Files that were removed since are not
    missed: all checkpoints but the last ones lose their optimiser state."""
    try:
        for name, recorded in read_manifest(directory)["files"].items():
            if (directory / name).exists() and sha256(directory / name) != recorded:
                return f"{name} is not what was written"
    except DragomanError as error:
        return str(error)
    except (OSError, KeyError, AttributeError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


# --------------------------------------------------------------------------------------------------------------- locks


def try_lock(descriptor: int, shared: bool = False) -> bool:
    """Locks an open file for as long as it stays open, without waiting; False: another process holds it. Where the
    system or the file system has no locks, every process gets one."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lets one process or thread at a time into the block; the others wait. The lock is on the directory itself, so no
    file is left behind; where a file system has no locks, all go in."""
    with contextlib.ExitStack() as stack:
        if fcntl is not None:
            with contextlib.suppress(OSError):
                descriptor = os.open(directory, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def open_exclusively(path: Path) -> Iterator[BinaryIO]:
    """Opens a file at its end, to read and append; a DragomanError if another process has it open this way."""
    try:
        file = path.open("ab+")
    except OSError as error:
        raise DragomanError(f"{path}: cannot be written ({error.strerror}); choose another output") from None
    with file:
        if not try_lock(file.fileno()):
            raise DragomanError(f"{path}: another process is writing it; wait for it or name another file")
        yield file
