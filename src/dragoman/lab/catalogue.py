"""Lists the experiments in the order in which they run, and reads their descriptions from their files."""

import ast
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, cast

from dragoman.errors import UsageError
from dragoman.evaluation.charts import Figure
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.rules import combined

NAMES = (
    "scaling",
    "mask",
    "positions",
    "table1",
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


class Experiment(Protocol):
    """The functions of every module in experiments/. `judge` is the decision rule: findings from measurements alone."""

    def arms(self, settings: LabSettings) -> list[Arm]: ...
    def judge(self, measured: Sequence[MeasuredArm]) -> list[Finding]: ...
    def run(self, settings: LabSettings) -> ExperimentResult: ...


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


def conclude(
    name: str,
    settings: LabSettings,
    measured: Sequence[MeasuredArm],
    findings: Sequence[Finding],
    columns: Sequence[str],
    figures: Sequence[Figure] = (),
    notes: Sequence[str] = (),
    rows: Sequence[dict[str, Any]] | None = None,
) -> ExperimentResult:
    """Makes the result of an experiment from its measured arms; `columns` are the measurements that its table shows."""
    description = describe(name)
    if rows is None:
        rows = [
            {"arm": one.arm.name}
            | {column: one.measurements[column] for column in columns if column in one.measurements}
            | {"seconds": one.seconds}
            for one in measured
        ]
    return ExperimentResult(
        experiment=name,
        title=description.title,
        claim=description.claim,
        method=description.method,
        rule=description.rule,
        verdict=combined(findings),
        findings=findings,
        arms=rows,
        figures=figures,
        notes=notes,
        size=settings.size,
        seconds=sum(one.seconds for one in measured),
    )
