"""Runs the command line inside the test's process, and programs beside it for a while that has an end."""

import io
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


def run_in_process(arguments: Sequence[str | Path], stdin: bytes = b"") -> Ran:
    """The command line without the second that a new process needs to import torch."""
    from dragoman.cli.main import main

    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dragoman", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)), encoding="utf-8"))
        patch.setattr(sys, "stdout", stdout)
        patch.setattr(sys, "stderr", stderr)
        with pytest.raises(SystemExit) as left:
            main()
    for stream in (stdout, stderr):
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in (stdout, stderr))
    assert isinstance(left.value.code, int)
    return Ran(left.value.code, out, err)


@contextmanager
def started(arguments: Sequence[str], seconds: float, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Starts Python with these arguments. Whatever becomes of it, it is over after so many seconds, and in the end."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
    process = subprocess.Popen([sys.executable, *arguments], text=True, **options)
    end = threading.Timer(seconds, _end, [process])  # who reads from it waits for as long as it is there
    end.start()
    try:
        yield process
    finally:
        end.cancel()
        _end(process)


def _end(process: subprocess.Popen[str], seconds: float = 40.0) -> None:
    """Asks it to stop first: a launcher takes its ranks along, for which torchrun has half a minute."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(seconds)
