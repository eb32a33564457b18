"""What every command reads and writes: results go to stdout, all else to stderr, files are whole or not there."""

import os
import shlex
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

from dragoman.errors import DragomanError, UsageError
from dragoman.progress import relaying_stderr, to_stderr

if TYPE_CHECKING:
    from dragoman.translation.translator import Translator


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
    """Progress, hints, warnings. When whoever reads them leaves, that is a request to stop: exit code 130."""
    to_stderr(line)


@contextmanager
def speaking(quiet: bool, verbose: bool) -> Iterator[None]:
    """A command with --quiet or --verbose: without its progress, or with more around it."""
    if quiet and verbose:
        raise UsageError("--quiet and --verbose; leave one out")
    if quiet:
        with relaying_stderr(None):
            yield
        return
    began = time.monotonic()
    if verbose:
        from importlib import metadata

        say(f"dragoman {metadata.version('dragoman')}, Python {sys.version.split()[0]}")
    try:
        yield
    except Exception as error:
        if verbose and not isinstance(error, typer.Exit) and not os.environ.get("DRAGOMAN_TRACEBACK"):
            say(traceback.format_exc().rstrip())
        raise
    finally:
        if verbose:
            say(f"after {time.monotonic() - began:.1f} s")


class LongWork:
    """Says on stderr how far a command is, whenever it has shown nothing for some seconds: on a terminal in a line that
    moves, else in further lines at growing distances."""

    FIRST, FIRST_ELSEWHERE = 2.0, 10.0  # seconds; where there is no terminal

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._moves = self._stream is not None and self._stream.isatty()
        self._text = ""
        self._shown = False  # a line that is to be taken away again
        self._since = time.monotonic()
        self._pause = self.FIRST if self._moves else self.FIRST_ELSEWHERE
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._teller = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> "LongWork":
        if self._stream is not None:
            self._teller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._stream is not None:
            self._teller.join()
        self.interrupt()

    def at(self, text: str) -> None:
        self._text = text

    def interrupt(self) -> None:
        """Something else is shown now: the line goes, and the seconds are counted anew."""
        with self._lock:
            self._since = time.monotonic()
            if self._shown:
                self._shown = False
                self._write("\r\x1b[K")

    def _tell(self) -> None:
        began, pause = self._since, self._pause
        while not self._ended.wait(min(1.0, pause)):
            with self._lock:
                waited = time.monotonic() - self._since
                if waited < pause or not self._text:
                    pause = self._pause if waited < self._pause else pause
                    continue
                seconds = int(time.monotonic() - began)
                line = f"  translating: {self._text}, {seconds // 60}:{seconds % 60:02d}"
                self._write(f"\r{line}\x1b[K" if self._moves else f"{line}\n")
                self._shown = self._moves
                pause = self._pause if self._moves else waited + min(30.0, max(1.0, waited))

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more: no reason to stop working
            self._stream.write(text)
            self._stream.flush()


def write_file(path: Path, content: bytes) -> None:
    """A file is replaced when all of it is there; a pipe or a device is written to, and stays what it is; `-` is
    stdout."""
    from dragoman.files import write_atomically

    if named_file(path) is None:
        show(content.decode(), end="")
        return
    if not path.exists() or path.is_file() or path.is_dir():
        write_atomically(path, content)
        return
    try:
        with path.open("wb") as stream:
            stream.write(content)
    except OSError as error:
        raise DragomanError(f"{path}: cannot be written ({error.strerror})") from None


@contextmanager
def lines_to(path: Path | None) -> Iterator[Callable[[str], None]]:
    """Gives a function that writes a line of the result: to stdout where no file is named, or `-`; else into a file
    that is replaced when the block has ended without an error."""
    from dragoman.files import replacing

    file = named_file(path)
    if file is None:
        yield show
        return
    if file.exists() and not file.is_file() and not file.is_dir():  # a pipe or a device stays what it is
        with file.open("w", encoding="utf-8") as stream:
            yield lambda line: print(line, file=stream)
        return
    with replacing(file) as temporary, temporary.open("w", encoding="utf-8") as stream:
        yield lambda line: print(line, file=stream)


def named_file(path: Path | None) -> Path | None:
    """A file of the user's; None for `-`, which is standard input or output, and where none is named."""
    return None if path == Path("-") else path


def input_from(path: Path | None, command: str) -> Path | BinaryIO:
    """A file, or stdin where none is named, or `-`."""
    file = named_file(path)
    if file is None and sys.stdin is None:
        raise UsageError(f"{command}: stdin is closed; give a file")
    return sys.stdin.buffer if file is None else file


def lines_from(path: Path | None, command: str) -> Iterator[str]:
    """The lines of a file, or of stdin where none is named, or `-`."""
    from dragoman.data.corpus import read_lines

    return read_lines(input_from(path, command))


def references_from(paths: Sequence[Path], command: str) -> list[list[str]]:
    """The references of each sentence, from files of which `-` is stdin."""
    from dragoman.evaluation.metrics import read_references

    return read_references([input_from(path, command) for path in paths])


def this_command() -> str:
    """As a shell would read it again."""
    return shlex.join(["dragoman", *sys.argv[1:]])


def settle(translator: "Translator") -> None:
    """The reference engine takes and frees the same large blocks at every step; faulting them in anew is a fifth of its
    time. The process is ours here, so its allocator may be told; in a user's own it may not."""
    if translator.engine.name == "reference":
        from dragoman.processes import keep_freed_memory

        keep_freed_memory()
