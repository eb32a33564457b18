"""Lists the experiments in the order in which they run, and reads their descriptions from their files."""

import ast
import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self, cast

from dragoman.errors import UsageError
from dragoman.evaluation.charts import Figure
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import ExperimentResult, Finding, headline_of
from dragoman.lab.rules import after_holm

NAMES = (
    "scaling",
    "mask",
    "positions",
    "table1",
    "memory",
    "table2",
    "residual",
    "norm",
    "norm-order",
    "heads",
    "prune",
    "distance",
    "table3",
    "smoothing",
    "tying",
    "averaging",
    "beam",
    "warmup",
    "batch-size",
    "rnn",
    "embeddings",
)


@dataclass(frozen=True)
class Shown:
    """What the report shows of an experiment beside its findings."""

    columns: Sequence[str] = ()  # the measurements that the table of arms shows
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    rows: Sequence[dict[str, Any]] | None = None  # a table of its own, in place of one of the arms


class Experiment(Protocol):
    """The functions of every module in experiments/. `judge` is the decision rule: findings from measurements alone.

    `judge` and `show` are given the arms that are measured, which may be some or none of those that `arms` lists. Where
    a rate is chosen by other arms, `arms` lists those first, and the rest with the choice as it stands.
    """

    def arms(self, settings: LabSettings) -> list[Arm]: ...
    def measure(self, arm: Arm, settings: LabSettings) -> Measurements: ...
    def judge(self, measured: Sequence[MeasuredArm]) -> list[Finding]: ...
    def show(self, measured: Sequence[MeasuredArm]) -> Shown: ...


@dataclass(frozen=True)
class ExperimentDescription:
    """The docstring of an experiment in its parts: a title, and paragraphs that begin with Claim:, Method:, Rule:."""

    title: str
    claim: str
    method: str
    rule: str

    @classmethod
    def of(cls, text: str) -> Self:
        title, *paragraphs = [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]
        parts = dict(paragraph.split(": ", 1) for paragraph in paragraphs)
        return cls(title.removesuffix("."), parts["Claim"], parts["Method"], parts["Rule"])


def path_of(name: str) -> Path:
    return Path(__file__).parent / "experiments" / f"{name.replace('-', '_')}.py"


def describe(name: str) -> ExperimentDescription:
    """The description of an experiment, read without importing its module, which would import torch."""
    return ExperimentDescription.of(ast.get_docstring(ast.parse(path_of(name).read_text(encoding="utf-8"))) or "")


def load(name: str) -> Experiment:
    """The module of an experiment."""
    return cast(Experiment, importlib.import_module(f"dragoman.lab.experiments.{name.replace('-', '_')}"))


def chosen(names: Sequence[str]) -> list[str]:
    """The experiments that a user names, in the order in which they run; "all" is every one."""
    if "all" in names:
        return list(NAMES)
    if unknown := [name for name in names if name not in NAMES]:
        raise UsageError(f"lab: no experiment {unknown[0]}; there are: all, {', '.join(NAMES)}")
    return [name for name in NAMES if name in names]


def run(name: str, settings: LabSettings) -> ExperimentResult:
    """Measures what is missing of an experiment, and concludes. Raises OutOfBudget before an arm that does not fit."""
    experiment = load(name)
    while missing := [arm for arm in experiment.arms(settings) if settings.queue.find(arm) is None]:
        settings.queue.measure_all(missing[:1], lambda arm: experiment.measure(arm, settings))
    return conclude(name, settings)


def conclude(name: str, settings: LabSettings) -> ExperimentResult:
    """The result of an experiment, from its arms that are measured."""
    experiment, description = load(name), describe(name)
    planned = experiment.arms(settings)
    measured = [found for arm in planned if (found := settings.queue.find(arm)) is not None]
    findings = after_holm(experiment.judge(measured))
    shown = experiment.show(measured) if measured else Shown()
    rows = shown.rows
    if rows is None:
        rows = [
            {"arm": one.arm.name}
            | {column: one.measurements[column] for column in shown.columns if column in one.measurements}
            | {"seconds": one.seconds}
            for one in measured
        ]
    return ExperimentResult(
        experiment=name,
        title=description.title,
        claim=description.claim,
        method=description.method,
        rule=description.rule,
        headline=headline_of(findings),
        findings=findings,
        arms=rows,
        # One x alone has no logarithmic axis: so it is where the rest is not measured yet.
        figures=[replace(figure, log_x=figure.log_x and len(set(figure.x)) > 1) for figure in shown.figures],
        notes=shown.notes,
        size=settings.size,
        seconds=sum(one.seconds for one in measured),
        arms_measured=len({one.arm.key for one in measured}),
        arms_planned=len({arm.key for arm in planned}),
    )
