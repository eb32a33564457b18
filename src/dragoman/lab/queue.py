"""Measures arms within a time budget, keeps what was measured, and estimates how long the rest will take.

An arm is identified by its kind of measurement and its configuration: experiments that need the same arm share it.
"""

import hashlib
import importlib.metadata
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from dragoman.errors import DataError
from dragoman.files import write_atomically
from dragoman.progress import clock, to_stderr

LabSize = Literal["smoke", "small"]


@dataclass(frozen=True)
class Arm:
    """One thing to measure. `configuration` holds everything that the measurement depends on, the seed included."""

    kind: str  # the measurement; arms of one kind are kept in one file of this name
    name: str  # for people
    configuration: Mapping[str, Any]
    cost: float = 1.0  # roughly how long it takes, relative to others of its kind

    @property
    def key(self) -> str:
        text = json.dumps([self.kind, self.configuration], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


Measurements = dict[str, Any]  # plain values, by name


@dataclass(frozen=True)
class MeasuredArm:
    """An arm and what was measured of it."""

    arm: Arm
    measurements: Measurements
    seconds: float


class OutOfBudget(Exception):  # noqa: N818 it is no error
    """Raised before an arm that would exceed the budget. What is measured is kept; the same command continues."""


@dataclass
class Queue:
    """The arms measured so far, on disk, and the time that is left to measure others."""

    directory: Path  # holds arms/KIND.jsonl
    budget: float | None = None  # seconds
    say: Callable[[str], None] = to_stderr
    began: float = field(default_factory=time.monotonic)
    _kinds: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    _planned: list[Arm] = field(default_factory=list)

    def _of_kind(self, kind: str) -> dict[str, dict[str, Any]]:
        if kind not in self._kinds:
            path = self.directory / "arms" / f"{kind}.jsonl"
            try:
                lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
                records = [json.loads(line) for line in lines]
                self._kinds[kind] = {record["key"]: record for record in records}
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(f"{path}: damaged ({error}); restore it, or remove the line") from None
        return self._kinds[kind]

    def find(self, arm: Arm) -> MeasuredArm | None:
        """The arm with its measurements; None if it was not measured yet."""
        record = self._of_kind(arm.kind).get(arm.key)
        return None if record is None else MeasuredArm(arm, record["measured"], record["seconds"])

    def plan(self, arms: Sequence[Arm]) -> None:
        """Sets which arms are to be measured in all, for `left`."""
        unique = {arm.key: arm for arm in arms}
        self._planned = [arm for arm in unique.values() if self.find(arm) is None]

    def expected(self, arm: Arm) -> float | None:
        """Seconds that the arm will take, from finished arms of its kind and their costs; None if there is none yet."""
        rates = [record["seconds"] / record["cost"] for record in self._of_kind(arm.kind).values()]
        return statistics.median(rates) * arm.cost if rates else None

    def left(self) -> str:
        """One line for the user: how many planned arms are left, and about how long they will take."""
        missing = [arm for arm in self._planned if self.find(arm) is None]
        times = [self.expected(arm) for arm in missing]
        known = [seconds for seconds in times if seconds is not None]
        parts = [f"about {clock(sum(known))} for {len(known)} of them"] if known or not times else []
        parts += [f"{len(times) - len(known)} of kinds not timed yet"] if len(known) < len(times) else []
        return f"{len(missing)} arms left, {', and '.join(parts)}"

    def measure_all(self, arms: Sequence[Arm], measure: Callable[[Arm], Measurements]) -> list[MeasuredArm]:
        """All of these arms, measured: earlier, or now if the budget allows it."""
        return [self.find(arm) or self._measure(arm, measure) for arm in arms]

    def _measure(self, arm: Arm, measure: Callable[[Arm], Measurements]) -> MeasuredArm:
        expected, used = self.expected(arm), time.monotonic() - self.began
        if self.budget is not None and used + (expected or 0.0) > self.budget:
            raise OutOfBudget(f"{arm.kind}: {arm.name} would not fit; {self.left()}")
        describe = "" if expected is None else f", about {clock(expected)}"
        self.say(f"{arm.kind}: {arm.name}{describe}")
        began, cpu_began = time.monotonic(), time.process_time()
        values = measure(arm)
        # A training that continued after a stop knows of the time before it.
        seconds = max(time.monotonic() - began, values.pop("seconds_in_all", 0.0))
        record = {
            "key": arm.key,
            "name": arm.name,
            "configuration": dict(arm.configuration),
            "cost": arm.cost,
            "measured": values,
            "seconds": round(seconds, 2),
            "cpu_seconds": round(time.process_time() - cpu_began, 2),
            "date": datetime.now(UTC).date().isoformat(),
            "made_by": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("dragoman", "torch")),
        }
        self._kinds.pop(arm.kind, None)  # another process may have measured some in the meantime: read again
        records = self._of_kind(arm.kind)
        # Through JSON once, so that a measurement is the same whether it was made now or read.
        records[arm.key] = json.loads(json.dumps(record))
        text = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in records.values())
        write_atomically(self.directory / "arms" / f"{arm.kind}.jsonl", text.encode())
        self.say(f"  {clock(seconds)}; {self.left()}")
        return MeasuredArm(arm, records[arm.key]["measured"], records[arm.key]["seconds"])


@dataclass(frozen=True)
class LabSettings:
    """The settings that an experiment is run with."""

    queue: Queue
    work: Path  # for trained models, which are large and can be trained again
    data: Path | None = None  # the directory of Multi30k; size smoke needs none, it makes up a few sentences
    size: LabSize = "small"
    seeds: int | None = None  # None: each experiment's own number

    def seed_list(self, usual: int) -> range:
        return range(1, 1 + (self.seeds or (1 if self.size == "smoke" else usual)))


def values_of(measured: Sequence[MeasuredArm], name: str, **where: Any) -> list[float]:
    """One measurement of every arm whose configuration has these values, in the order of the arms."""
    return [
        one.measurements[name]
        for one in measured
        if all(one.arm.configuration.get(key) == value for key, value in where.items())
    ]
