"""Quantises a run if that costs little BLEU: measures BLEU and speed before and after, and keeps what is good enough.

First float32 is compared with the smaller number type; then the smaller type alone with the smaller type and a
vocabulary map, if the run still has the text to learn one from. Speeds are measured in turns, several times each, and
the medians compared: a machine that slows down for a while slows all. Before that, the quickest way to use the
machine's cores is found for each.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import rmtree
from statistics import median
from typing import Any

from dragoman.decoding.engines import ComputeType, vocabulary_map
from dragoman.decoding.engines.ct2_cache import VOCABULARY_MAP, converted_path
from dragoman.decoding.engines.ctranslate2 import CTranslate2Engine, best_threads
from dragoman.errors import DataError, UsageError
from dragoman.evaluation.metrics import References, bleu
from dragoman.files import write_atomically
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator

MAP_LIMIT = 0.1  # BLEU that a vocabulary map may cost


@dataclass(frozen=True)
class EngineMeasurement:
    """BLEU and speed with one number type, with or without a vocabulary map."""

    compute_type: ComputeType
    bleu: float
    sentences_per_second: float  # the median of the rounds
    threads: str = "1 x 1"  # workers x threads of each
    vocabulary_map: bool = False

    def line(self) -> str:
        name = f"{self.compute_type}{' + map' if self.vocabulary_map else ''}"
        speed = f"{self.sentences_per_second:8.1f} sentences/s ({self.threads} threads)"
        return f"{name:<13} BLEU {self.bleu:6.2f}  {speed}"


@dataclass(frozen=True)
class QuantizationResult:
    """The measurements before and after, and what they decide."""

    before: EngineMeasurement
    after: EngineMeasurement
    signature: str
    limit: float
    with_map: EngineMeasurement | None = None  # None: there was nothing to learn one from
    must_be_quicker: bool = False  # smaller alone is not enough

    @property
    def lost(self) -> float:
        return self.before.bleu - self.after.bleu

    @property
    def kept(self) -> bool:
        return self.lost <= self.limit and (self.quicker or not self.must_be_quicker)

    @property
    def quicker(self) -> bool:
        """Whether the smaller type is quicker than float32, alone or with a map that costs next to no BLEU."""
        with_map = self.with_map.sentences_per_second if self.with_map and self.map_lost < MAP_LIMIT else 0.0
        return max(self.after.sentences_per_second, with_map) > self.before.sentences_per_second

    @property
    def map_lost(self) -> float:
        """The BLEU that the map costs; 0 without a map."""
        return self.after.bleu - self.with_map.bleu if self.with_map else 0.0

    @property
    def map_kept(self) -> bool:
        """A map is kept only with the smaller number type, and where it also saves time."""
        return (
            self.kept
            and self.with_map is not None
            and self.map_lost < MAP_LIMIT
            and self.with_map.sentences_per_second > self.after.sentences_per_second
        )

    def lines(self) -> list[str]:
        def compared(measured: EngineMeasurement) -> str:
            ratio = measured.sentences_per_second / self.before.sentences_per_second
            return f"{measured.line()}  ({ratio:.2f} × the speed, {measured.bleu - self.before.bleu:+.2f} BLEU)"

        lines = [self.before.line(), compared(self.after)]
        if self.with_map is not None:
            lines.append(compared(self.with_map))
            decision = "kept" if self.map_kept else "not kept"
            ratio = self.with_map.sentences_per_second / self.after.sentences_per_second
            lines.append(
                f"vocabulary map by itself: {-self.map_lost:+.2f} BLEU (may cost under {MAP_LIMIT}), "
                f"{ratio:.2f} × the speed, {decision}"
            )
        return [*lines, self.signature]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "lost": self.lost, "kept": self.kept, "map_kept": self.map_kept}


def quantize(
    run: str | Path,
    sources: Sequence[str],
    references: References,
    to: ComputeType = "int8",
    limit: float = 0.2,
    rounds: int = 3,
    language: str | None = None,
    must_be_quicker: bool = False,
    into: str | None = None,
    source: str | None = None,
    **search: float,
) -> QuantizationResult:
    """Measures the run with float32 and with `to`. From then on it translates with `to`, unless that loses more BLEU
    than `limit`; and with a vocabulary map, if that costs less than MAP_LIMIT more.

    must_be_quicker: `to` is kept only where it is quicker; on a processor without instructions for it, it may be
    slower. into, source: the languages that a run of several is asked for."""
    if to == "float32":
        raise UsageError("quantize: to float32 is what a run has; choose int8 or int16")
    if len(sources) != len(references):
        raise DataError(f"{len(sources)} source lines but references for {len(references)}; both must be aligned")
    settings: list[tuple[ComputeType, bool]] = [("float32", False), (to, False)]
    if learn_map(run, to, into, source):
        settings.append((to, True))
    translators = [
        Translator.load(
            run,
            checkpoint=None,
            engine="ctranslate2",
            compute_type=compute_type,
            vocabulary_map=mapped,
            to=into,
            source=source,
            **search,
        )
        for compute_type, mapped in settings
    ]
    threads = [measure_threads(translator, sources) for translator in translators]
    outputs, speeds = translate_in_turns(translators, sources, rounds)
    scores = [bleu(lines, references, language) for lines in outputs]
    before, after, *mapped_too = (
        EngineMeasurement(compute_type, score.value, speed, used, mapped)
        for (compute_type, mapped), score, speed, used in zip(settings, scores, speeds, threads, strict=True)
    )
    with_map = mapped_too[0] if mapped_too else None
    result = QuantizationResult(before, after, scores[0].signature, limit, with_map, must_be_quicker)
    _keep(_engine(translators[1]), result)
    return result


def translate_in_turns(
    translators: Sequence[Translator], sources: Sequence[str], rounds: int
) -> tuple[list[list[str]], list[float]]:
    """What each translator makes of the sources, and its median speed in sentences a second."""
    outputs: list[list[str]] = [[] for _ in translators]
    speeds: list[list[float]] = [[] for _ in translators]
    for translator in translators:  # loads the model, which is no part of the speed
        translator.translate(sources[:2], whole=True, protect=False)
    for _ in range(rounds):
        for index, translator in enumerate(translators):
            begin = time.perf_counter()
            outputs[index] = translator.translate(sources, whole=True, protect=False)
            speeds[index].append(len(sources) / (time.perf_counter() - begin))
    return outputs, [median(measured) for measured in speeds]


def _engine(translator: Translator) -> CTranslate2Engine:
    assert isinstance(translator.engine, CTranslate2Engine)
    return translator.engine


def learn_map(run: str | Path, to: ComputeType, into: str | None = None, source: str | None = None) -> bool:
    """Writes a map beside the converted model; False: the run no longer has the text that it was trained on."""
    directory = RunDirectory.open(run)
    try:
        dataset = vocabulary_map.training_pairs(directory)
    except DataError:
        return False
    translator = Translator.load(  # converts
        run, engine="ctranslate2", compute_type=to, vocabulary_map=False, to=into, source=source
    )
    found = vocabulary_map.learn(dataset, translator.tokenizer.vocab_size)
    path = converted_path(directory, to, _engine(translator).digest) / VOCABULARY_MAP
    vocabulary_map.write(path, found, translator.tokenizer)
    return True


def measure_threads(translator: Translator, sources: Sequence[str]) -> str:
    """Finds the quickest way to use the cores, and says it: workers x threads of each."""
    engine = _engine(translator)
    encoded = [ids for ids in translator.tokenizer.encode_batch([line.strip() for line in sources]) if ids]
    short = [ids[: translator.search.max_source_length] for ids in encoded]
    speeds = engine.measure_threads(short, translator.search)
    best = best_threads(speeds)
    return f"{best.workers} x {best.each}"


def _keep(engine: CTranslate2Engine, result: QuantizationResult) -> None:
    """Writes what was decided into the run's engine.json, and deletes the converted models that are not used."""
    path = engine.run.engine_path
    directory = converted_path(engine.run, result.after.compute_type, engine.digest)
    if result.kept:
        choice = {
            "compute_type": result.after.compute_type,
            "vocabulary_map": result.map_kept,
            "digest": engine.digest,
            "measured": result.to_dict(),
        }
        write_atomically(path, (json.dumps(choice, indent=2) + "\n").encode())
        if not result.map_kept:
            (directory / VOCABULARY_MAP).unlink(missing_ok=True)
    else:
        path.unlink(missing_ok=True)  # whatever was kept before, these measurements speak for float32
        rmtree(directory, ignore_errors=True)
