"""Measuring by turns: contestants run one after the other, round by round, so that what disturbs the machine disturbs
all of them; what is compared is the ratio within a round."""

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class Spread:
    """Of the rounds of one measurement."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        digits = 2 if self.median < 100 else 0
        return f"{self.median:,.{digits}f} ({self.low:,.{digits}f} to {self.high:,.{digits}f})"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """How many times as fast we are, from the speeds of the same rounds."""
    return Spread.of([a / b for a, b in zip(ours, theirs, strict=True)])


class BenchError(Exception):
    """The bench did not come to its end; the message says why."""


class Worker:
    """A process that waits for a line of JSON, does what it says, and answers with one."""

    def __init__(
        self, name: str, arguments: Sequence[str], environment: dict[str, str], log: Path, python: str = sys.executable
    ) -> None:
        self.name, self.log = name, log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [python, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
            )
        self.hello = self._answer()

    def ask(self, **command: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # _answer says how it ended
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            last = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
            raise BenchError(f"{self.name} ended with code {code}; {self.log} ends with: {' | '.join(last)}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
