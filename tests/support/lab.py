"""Arms and results for tests of the lab."""

from pathlib import Path

from dragoman.lab.catalogue import run
from dragoman.lab.queue import Arm, LabSettings
from dragoman.lab.result import ExperimentResult


def arm(number: int) -> Arm:
    return Arm("counting", f"number {number}", {"number": number})


def kept_result(name: str, out: Path, settings: LabSettings) -> tuple[ExperimentResult, Path]:
    """Run it, and keep its result as `lab run` does."""
    result = run(name, settings)
    path = out / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(result.to_json(), encoding="utf-8")
    return result, path
