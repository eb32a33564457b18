"""Keeps the result of a finished command in the run that it made, so that the same command finds it again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.data.tokenizer import load_tokenizer
from dragoman.decoding.engines.ct2_cache import digest_of
from dragoman.files import read_json, write_atomically
from dragoman.run_directory import RunDirectory


@dataclass(frozen=True)
class FinishedResult:
    """The result of a command that made a run: lines for people, and the same as values for programs."""

    lines: tuple[str, ...]
    values: dict[str, Any]


def keep_result(run: RunDirectory, lines: Sequence[str], values: dict[str, Any]) -> FinishedResult:
    """Writes the result into the run's outcome.json, with the state of the run that it belongs to."""
    content = {"state": _state(run), "lines": list(lines), "values": values}
    write_atomically(_path(run), (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
    return FinishedResult(tuple(lines), values)


def earlier_result(run: RunDirectory) -> FinishedResult | None:
    """Returns the result of an earlier command with the same weights and steps; None if none has finished."""
    if not _path(run).is_file():
        return None
    kept = read_json(_path(run))
    return FinishedResult(tuple(kept["lines"]), kept["values"]) if kept["state"] == _state(run) else None


def trained_before(run: RunDirectory) -> float:
    """Returns the seconds of training by earlier commands, which count as time of the whole."""
    return max((event.get("seconds", 0.0) for event in run.events()), default=0.0)


def _path(run: RunDirectory) -> Path:
    return run.path / "outcome.json"


def _state(run: RunDirectory) -> list[str | int]:
    """Identifies the weights and the steps trained; training may have gone on without finding better weights."""
    return [digest_of(run, load_tokenizer(run.path)), read_json(run.model_card_path)["finished_at"]]
