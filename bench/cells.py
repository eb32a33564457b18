"""Cells of a table that is measured over days: settings by name, and one line of JSON for each that is done."""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def candidate(known: Iterable[str]) -> Callable[[str], str]:
    """Returns the check of a name as given: one of the known ones, or several of them with " + "."""

    def checked(name: str) -> str:
        if unknown := set(name.split(" + ")) - set(known):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}")
        return name

    return checked


def changes_of(name: str, by_name: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """Returns the settings that a name stands for; of two for one key, the later one's."""
    return {key: value for part in name.split(" + ") for key, value in by_name.get(part, {}).items()}


def measured(results: Path) -> list[Cell]:
    """Returns what was measured so far."""
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()] if results.exists() else []


def is_measured(results: Path, cell: Cell) -> bool:
    """Whether there is a line with all of these values."""
    return any(cell.items() <= found.items() for found in measured(results))


def keep_cell(results: Path, cell: Cell) -> None:
    """Adds a line."""
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(cell, ensure_ascii=False) + "\n")
