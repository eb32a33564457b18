"""Compares two runs: how their configurations differ, which translates better, and on which sentences."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dragoman.config import RunConfig
from dragoman.data.corpus import name_of, read_lines
from dragoman.data.dataset import validation_pairs
from dragoman.errors import DataError, UsageError
from dragoman.evaluation import metrics
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator

AT_A_TIME = 50  # sentences translated between two reports of progress


@dataclass(frozen=True)
class SettingDifference:
    """A setting in which two runs differ; None: it is not set, or the run is of a version without it."""

    key: str
    a: Any
    b: Any


@dataclass(frozen=True)
class TestSet:
    """Sentences that neither run was trained on, each with one or more right translations."""

    __test__ = False  # not one of pytest's

    name: str
    sources: Sequence[str]
    references: metrics.References


@dataclass(frozen=True)
class ComparedSentence:
    """A sentence with the translations of both runs and their chrF."""

    source: str
    references: tuple[str, ...]
    a: str
    b: str
    chrf_a: float
    chrf_b: float


@dataclass(frozen=True)
class RunComparison:
    """What the comparison of two runs found. `sentences` begin with those where B is better than A by most chrF."""

    a: str
    b: str
    test_set: str
    configuration: tuple[SettingDifference, ...]
    scores: metrics.Comparison
    sentences: tuple[ComparedSentence, ...]

    def to_dict(self) -> dict[str, Any]:
        content = dataclasses.asdict(self)
        return {"kind": "comparison", **content, "scores": self.scores.to_dict()}

    def lines(self) -> list[str]:
        better = sum(one.chrf_b > one.chrf_a for one in self.sentences)
        worse = sum(one.chrf_b < one.chrf_a for one in self.sentences)
        return [
            f"A is {self.a}, B is {self.b}; test set: {self.test_set}",
            *(f"  {one.key}: A {shown(one.a)}, B {shown(one.b)}" for one in self.configuration),
            *self.scores.lines(),
            f"by chrF2, B is better on {better} sentences, worse on {worse}, "
            f"the same on {len(self.sentences) - better - worse}",
        ]


def shown(value: Any) -> str:
    """The value of a setting as it is written in a message."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def differences(a: RunConfig, b: RunConfig) -> tuple[SettingDifference, ...]:
    """The settings in which two configurations differ."""
    left, right = (dict(_settings(config)) for config in (a, b))
    return tuple(
        SettingDifference(key, left.get(key), right.get(key))
        for key in dict.fromkeys([*left, *right])
        if left.get(key) != right.get(key)
    )


def names_of(a: RunDirectory, b: RunDirectory) -> tuple[str, str]:
    """Names of two runs, as short as they can be and still differ."""
    if a.path.resolve().name != b.path.resolve().name:
        return a.path.resolve().name, b.path.resolve().name
    return str(a.path), str(b.path)


def read_test_set(
    command: str, source: Path | BinaryIO | None, references: Sequence[Path | BinaryIO]
) -> TestSet | None:
    """Reads a test set from aligned files of sources and references; None where no file is given."""
    if source is None and not references:
        return None
    if source is None or not references:
        raise UsageError(f"{command}: --source and --reference go together; give both, or neither for validation pairs")
    sources, rows = list(read_lines(source)), metrics.read_references(references)
    if len(sources) != len(rows):
        names = name_of(source), name_of(references[0])
        raise DataError(f"{names[0]}: {len(sources):,} lines, {names[1]}: {len(rows):,}; they must be aligned")
    return TestSet(Path(name_of(source)).name, sources, rows)


def shared_validation_set(a: RunDirectory, b: RunDirectory, most: int) -> TestSet:
    """The validation pairs of both runs: only these are certain to be in neither's training text."""
    theirs = set(validation_pairs(b.path))
    pairs = [pair for pair in validation_pairs(a.path) if pair in theirs]
    if not pairs:
        raise DataError(
            f"{a.path} and {b.path} share no validation pair; give a test set that neither was trained on: "
            f"--source test.en --reference test.de"
        )
    kept = pairs[:most]
    name = f"{len(kept):,} of {len(pairs):,} shared validation pairs"
    return TestSet(name, [source for source, _ in kept], [[target] for _, target in kept])


def compare_runs(
    runs: tuple[RunDirectory, RunDirectory],
    translators: tuple[Translator, Translator],
    test: TestSet,
    language: str | None = None,
    samples: int = 1000,
    told: Callable[[int, int], None] = lambda *_: None,
) -> RunComparison:
    """Translates a test set with both runs and compares the results. `told` is given how many of how many sentences are
    translated, both runs counted together; it may raise to stop."""
    outputs: list[list[str]] = []
    total = 2 * len(test.sources)
    for translator in translators:
        before = len(outputs) * len(test.sources)
        translations: list[str] = []
        for part in _parts(test.sources):
            stream = translator.translate_stream(part, warn=lambda _: None, scores=False)
            translations += [translation.text for translation in stream]
            told(before + len(translations), total)
        outputs.append(translations)
    scores = metrics.compare(outputs[0], outputs[1], test.references, language, samples)
    chrf_a, chrf_b = (metrics.sentence_chrf(translations, test.references) for translations in outputs)
    rows = [
        ComparedSentence(source, tuple(row), *values)
        for source, row, *values in zip(test.sources, test.references, *outputs, chrf_a, chrf_b, strict=True)
    ]
    rows.sort(key=lambda one: one.chrf_a - one.chrf_b)
    configuration = differences(*(run.read_config() for run in runs))
    return RunComparison(*names_of(*runs), test.name, configuration, scores, tuple(rows))


def _parts(sources: Sequence[str]) -> Iterator[Sequence[str]]:
    return (sources[first : first + AT_A_TIME] for first in range(0, len(sources), AT_A_TIME))


def _settings(config: RunConfig) -> Iterator[tuple[str, Any]]:
    """Every setting by its full name, `train.steps`."""
    for section, values in json.loads(config.to_json()).items():
        for name, value in values.items():
            yield f"{section}.{name}", value
