"""What every command reads and writes: results go to stdout, all else to stderr, files are whole or not there."""

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.errors import DragomanError, UsageError

if TYPE_CHECKING:
    from dragoman.translate import Translator


def show(line: str, end: str = "\n") -> None:
    """A result. Whoever reads it may stop early, as `head` does: then the command ends, without a complaint."""
    if sys.stdout is None:
        raise DragomanError("stdout is closed; the result has nowhere to go")
    try:
        print(line, end=end, flush=True)
    except OSError as error:
        # What could not be written is not tried again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit from None
        raise DragomanError(f"stdout: cannot be written ({error.strerror})") from None


def say(line: str) -> None:
    """Progress, hints, warnings."""
    print(line, file=sys.stderr, flush=True)


def write_file(path: Path, content: bytes) -> None:
    """A file is replaced when all of it is there; a pipe or a device is written to, and stays what it is."""
    from dragoman.rundir import write_atomically

    if not path.exists() or path.is_file() or path.is_dir():
        write_atomically(path, content)
        return
    try:
        with path.open("wb") as stream:
            stream.write(content)
    except OSError as error:
        raise DragomanError(f"{path}: cannot be written ({error.strerror})") from None


def lines_from(path: Path | None, command: str) -> Iterator[str]:
    """Of a file, or of stdin where none is named."""
    from dragoman.corpus import read_lines

    if path is None and sys.stdin is None:
        raise UsageError(f"{command}: stdin is closed; give --input FILE")
    return read_lines(sys.stdin.buffer if path is None else path)


def this_command() -> str:
    """As a shell would read it again."""
    return shlex.join(["dragoman", *sys.argv[1:]])


def settle(translator: "Translator") -> None:
    """The reference engine takes and frees the same large blocks at every step; faulting them in anew is a fifth of its
    time. The process is ours here, so its allocator may be told; in a user's own it may not."""
    if translator.engine.name == "reference":
        from dragoman.safeguards import keep_freed_memory

        keep_freed_memory()
