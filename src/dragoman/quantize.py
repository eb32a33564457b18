"""Smaller numbers, if they are good enough: BLEU and speed with float32 and with another type, and a verdict.

Speeds are measured alternately, several times each, and the medians compared: a machine that slows down for a while
slows both.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import rmtree
from statistics import median
from typing import Any

from dragoman.engines import ComputeType
from dragoman.engines.ctranslate2 import CTranslate2Engine
from dragoman.errors import DataError, UsageError
from dragoman.evaluate import References, bleu
from dragoman.rundir import write_atomically
from dragoman.translate import Translator


@dataclass(frozen=True)
class Measured:
    compute_type: ComputeType
    bleu: float
    sentences_per_second: float  # the median of the rounds

    def line(self) -> str:
        return f"{self.compute_type:<8} BLEU {self.bleu:6.2f}  {self.sentences_per_second:8.1f} sentences/s"


@dataclass(frozen=True)
class Verdict:
    before: Measured
    after: Measured
    signature: str
    limit: float

    @property
    def lost(self) -> float:
        return self.before.bleu - self.after.bleu

    @property
    def kept(self) -> bool:
        return self.lost <= self.limit

    def lines(self) -> list[str]:
        ratio = self.after.sentences_per_second / self.before.sentences_per_second
        return [
            self.before.line(),
            f"{self.after.line()}  ({ratio:.2f} × the speed, {-self.lost:+.2f} BLEU)",
            self.signature,
        ]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "lost": self.lost, "kept": self.kept}


def quantize(
    run: str | Path,
    sources: Sequence[str],
    references: References,
    to: ComputeType = "int8",
    limit: float = 0.2,
    rounds: int = 3,
    language: str | None = None,
    **search: float,
) -> Verdict:
    """Measure the run with float32 and with `to`; from now on it translates with `to` unless BLEU lost over `limit`."""
    if to == "float32":
        raise UsageError("quantize: to float32 is what a run has; choose int8 or int16")
    if len(sources) != len(references):
        raise DataError(f"{len(sources)} source lines but references for {len(references)}; both must be aligned")
    translators = [
        Translator.load(run, checkpoint=None, engine="ctranslate2", compute_type=kind, **search)
        for kind in ("float32", to)
    ]
    outputs: list[list[str]] = [[], []]
    speeds: list[list[float]] = [[], []]
    for translator in translators:  # loads the model, which is no part of the speed
        translator.translate(sources[:2])
    for _ in range(rounds):
        for index, translator in enumerate(translators):
            begin = time.perf_counter()
            outputs[index] = translator.translate(sources)
            speeds[index].append(len(sources) / (time.perf_counter() - begin))
    scores = [bleu(lines, references, language) for lines in outputs]
    kinds: tuple[ComputeType, ComputeType] = ("float32", to)
    before, after = (
        Measured(kind, score.value, median(s)) for kind, score, s in zip(kinds, scores, speeds, strict=True)
    )
    verdict = Verdict(before, after, scores[0].signature, limit)
    engine = translators[1].engine
    assert isinstance(engine, CTranslate2Engine)
    _keep(engine, verdict)
    return verdict


def _keep(engine: CTranslate2Engine, verdict: Verdict) -> None:
    path = engine.run.engine_path
    if verdict.kept:
        choice = {"compute_type": verdict.after.compute_type, "digest": engine.digest, "measured": verdict.to_dict()}
        write_atomically(path, (json.dumps(choice, indent=2) + "\n").encode())
    else:
        path.unlink(missing_ok=True)  # whatever was kept before, these numbers speak for float32
        rmtree(engine.run.converted_path / f"{verdict.after.compute_type}-{engine.digest}", ignore_errors=True)
