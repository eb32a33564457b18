"""Runs the command line inside the test's process."""

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    out, err = (stream.buffer.getvalue().decode() for stream in (stdout, stderr))  # type: ignore[attr-defined]
    assert isinstance(left.value.code, int)
    return Ran(left.value.code, out, err)
