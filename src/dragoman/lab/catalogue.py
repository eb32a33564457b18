"""The experiments, in the order in which they run, and what their files say of them."""

import ast
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from dragoman.errors import UsageError
from dragoman.lab.queue import Arm, Kept, Settings
from dragoman.lab.result import Figure, Finding, Result
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
    """What every file of experiments/ has. `judge` is its decision rule: findings from measurements, nothing else."""

    def arms(self, settings: Settings) -> list[Arm]: ...
    def judge(self, kept: Sequence[Kept]) -> list[Finding]: ...
    def run(self, settings: Settings) -> Result: ...


@dataclass(frozen=True)
class About:
    """The docstring of an experiment: a title, and paragraphs that begin with Claim:, Method: and Rule:."""

    title: str
    claim: str
    method: str
    rule: str

    @classmethod
    def of(cls, text: str) -> "About":
        title, *paragraphs = [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]
        parts = dict(paragraph.split(": ", 1) for paragraph in paragraphs)
        return cls(title.removesuffix("."), parts["Claim"], parts["Method"], parts["Rule"])


def path_of(name: str) -> Path:
    return Path(__file__).parent / "experiments" / f"{name.replace('-', '_')}.py"


def about(name: str) -> About:
    """Without importing it, and torch with it."""
    return About.of(ast.get_docstring(ast.parse(path_of(name).read_text(encoding="utf-8"))) or "")


def load(name: str) -> Experiment:
    return cast(Experiment, importlib.import_module(f"dragoman.lab.experiments.{name.replace('-', '_')}"))


def chosen(names: Sequence[str]) -> list[str]:
    if "all" in names:
        return list(NAMES)
    if unknown := [name for name in names if name not in NAMES]:
        raise UsageError(f"lab: no experiment {unknown[0]}; there are: all, {', '.join(NAMES)}")
    return [name for name in NAMES if name in names]


def concluded(
    name: str,
    settings: Settings,
    kept: Sequence[Kept],
    findings: Sequence[Finding],
    columns: Sequence[str],
    figures: Sequence[Figure] = (),
    notes: Sequence[str] = (),
    rows: Sequence[dict[str, Any]] | None = None,
) -> Result:
    """The result of an experiment from its measured arms; `columns` are the measurements that its table shows."""
    said = about(name)
    if rows is None:
        rows = [
            {"arm": one.arm.name}
            | {column: one.measured[column] for column in columns if column in one.measured}
            | {"seconds": one.seconds}
            for one in kept
        ]
    return Result(
        experiment=name,
        title=said.title,
        claim=said.claim,
        method=said.method,
        rule=said.rule,
        verdict=combined(findings),
        findings=findings,
        arms=rows,
        figures=figures,
        notes=notes,
        size=settings.size,
        seconds=sum(one.seconds for one in kept),
    )
