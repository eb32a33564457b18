"""Reads results that are kept as JSON files, for the page: reports of `dragoman compare` and of experiments.

An experiment's file, as lab/result.py writes it, holds an object with `experiment` (its name), `title`, `claim`,
`method`, `rule`, `verdict`, `findings` and `arms` (lists of objects, a row each) and `figures`. Any of these may be
missing, and there may be others: the page shows those that it knows. A figure with `series` is drawn, any other is
listed.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dragoman.errors import UsageError

LARGEST = 64 << 20  # bytes of a file that is opened


@dataclass(frozen=True)
class SavedResult:
    """A comparison or an experiment, read from a file for the page."""

    name: str
    kind: Literal["comparison", "experiment"]
    title: str
    verdict: str
    content: dict[str, Any]


def check_results(paths: Sequence[Path]) -> None:
    for path in paths:
        if not path.exists():
            raise UsageError(f"serve: --results {path}: no such file or directory; give one that holds JSON results")


def read_results(paths: Sequence[Path]) -> dict[str, SavedResult]:
    """The results in these files and directories, by name. Files that hold something else are passed over."""
    files = [file for path in paths for file in (sorted(path.rglob("*.json")) if path.is_dir() else [path])]
    found: dict[str, SavedResult] = {}
    for file in files:
        if (result := _read(file)) is not None:
            found.setdefault(result.name, result)
    return found


def _read(file: Path) -> SavedResult | None:
    try:
        content = json.loads(file.read_bytes()) if file.stat().st_size <= LARGEST else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    if content.get("kind") == "comparison" and isinstance(content.get("sentences"), list):
        title = f"{content.get('a')} and {content.get('b')}"
        return SavedResult(file.stem, "comparison", title, str(content.get("test_set", "")), content)
    if isinstance(content.get("experiment"), str):
        arms, figures = (content.get(name) for name in ("arms", "figures"))
        known = {
            **content,
            "arms": [arm for arm in arms if isinstance(arm, dict)] if isinstance(arms, list) else [],
            "figures": figures if isinstance(figures, list) else [],
        }
        named = content["title"] if isinstance(content.get("title"), str) else content["experiment"]
        return SavedResult(file.stem, "experiment", named, str(content.get("verdict", "")), known)
    return None
