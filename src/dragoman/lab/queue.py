"""Arms that were measured are kept and never measured again; a budget; and an honest word on what is left.

An arm is known by its kind of measurement and its configuration: two experiments that need the same one share it.
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
    """One thing to measure. `configuration` holds all that the measurement depends on, the seed too."""

    kind: str  # the measurement: names the file that its arms are kept in
    name: str  # for people
    configuration: Mapping[str, Any]
    cost: float = 1.0  # how long it takes beside the others of its kind, roughly

    @property
    def key(self) -> str:
        text = json.dumps([self.kind, self.configuration], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


Measurements = dict[str, Any]  # plain values, by name


@dataclass(frozen=True)
class MeasuredArm:
    """A measured arm."""

    arm: Arm
    measurements: Measurements
    seconds: float


class OutOfBudget(Exception):  # noqa: N818 it is no error
    """The next arm would not fit. What is measured is kept, and the same command goes on."""


@dataclass
class Queue:
    """The arms that are there, and the time that is left for others."""

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
        record = self._of_kind(arm.kind).get(arm.key)
        return None if record is None else MeasuredArm(arm, record["measured"], record["seconds"])

    def plan(self, arms: Sequence[Arm]) -> None:
        """What this stretch is to measure, for the word on what is left."""
        unique = {arm.key: arm for arm in arms}
        self._planned = [arm for arm in unique.values() if self.find(arm) is None]

    def expected(self, arm: Arm) -> float | None:
        """From finished arms of its kind, by their cost; None: there is none yet."""
        rates = [record["seconds"] / record["cost"] for record in self._of_kind(arm.kind).values()]
        return statistics.median(rates) * arm.cost if rates else None

    def left(self) -> str:
        missing = [arm for arm in self._planned if self.find(arm) is None]
        times = [self.expected(arm) for arm in missing]
        known = [seconds for seconds in times if seconds is not None]
        parts = [f"about {clock(sum(known))} for {len(known)} of them"] if known or not times else []
        parts += [f"{len(times) - len(known)} of kinds not timed yet"] if len(known) < len(times) else []
        return f"{len(missing)} arms left, {', and '.join(parts)}"

    def measure_all(self, arms: Sequence[Arm], measure: Callable[[Arm], Measurements]) -> list[MeasuredArm]:
        """All of these arms: those that are kept, and the others measured now, within the budget."""
        return [self.find(arm) or self._measure(arm, measure) for arm in arms]

    def _measure(self, arm: Arm, measure: Callable[[Arm], Measurements]) -> MeasuredArm:
        expected, used = self.expected(arm), time.monotonic() - self.began
        if self.budget is not None and used + (expected or 0.0) > self.budget:
            raise OutOfBudget(f"{arm.kind}: {arm.name} would not fit; {self.left()}")
        describe = "" if expected is None else f", about {clock(expected)}"
        self.say(f"{arm.kind}: {arm.name}{describe}")
        began, cpu_began = time.monotonic(), time.process_time()
        values = measure(arm)
        # A training that went on after a stop knows of the time before it.
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
        self._kinds.pop(arm.kind, None)  # another queue may have measured some in the meantime: read again
        records = self._of_kind(arm.kind)
        # Through JSON once, so that a measurement is the same whether it was made now or read.
        records[arm.key] = json.loads(json.dumps(record))
        text = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in records.values())
        write_atomically(self.directory / "arms" / f"{arm.kind}.jsonl", text.encode())
        self.say(f"  {clock(seconds)}; {self.left()}")
        return MeasuredArm(arm, records[arm.key]["measured"], seconds)


@dataclass(frozen=True)
class LabSettings:
    """What an experiment is run with."""

    queue: Queue
    work: Path  # trained models, which are large and can be made again
    data: Path | None = None  # Multi30k; None at size smoke: a few made-up sentences
    size: LabSize = "small"
    seeds: int | None = None  # None: as many as the experiment finds right

    def seed_list(self, usual: int) -> range:
        return range(1, 1 + (self.seeds or (1 if self.size == "smoke" else usual)))


def values_of(measured: Sequence[MeasuredArm], name: str, **where: Any) -> list[float]:
    """A measurement of all arms whose configuration has these values, in their order."""
    return [
        one.measurements[name]
        for one in measured
        if all(one.arm.configuration.get(key) == value for key, value in where.items())
    ]
