"""Trains a model of one half as a user does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.commands import run_in_process

Cli = Callable[..., Any]


def trained(*arguments: str | Path) -> None:
    ran = run_in_process(arguments)
    assert ran.code == 0, ran.stderr
