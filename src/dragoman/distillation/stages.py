"""Measures each stage from the teacher to the student on the same sentences: quality, agreement with the teacher, speed
and size. Speeds are measured by turns, so that a machine that slows down for a while slows all of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, get_args

from dragoman.data.corpus import SentencePair
from dragoman.decoding.engines import CannotServeError, ComputeType
from dragoman.decoding.engines.ct2_cache import VOCABULARY_MAP, converted_path
from dragoman.decoding.engines.ctranslate2 import CTranslate2Engine
from dragoman.diagnosis.stress import Report, stress
from dragoman.evaluation.metrics import References, bleu, evaluate
from dragoman.evaluation.quantize import QuantizationResult, learn_map, measure_threads, quantize, translate_in_turns
from dragoman.progress import discard, waiting
from dragoman.quickstart.text import QuickstartText
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator

ROUNDS = 3
LEAST_SENTENCES, MOST_SENTENCES = 100, 1000
PASSES = 16.0  # times that the teacher's float32 translates the sentences, as all measurements together cost
STRESSED = 100  # pairs that the stress suite is run with, at most
By = Literal["teacher", "student"]
_Numbers = Literal["float32", "int8"]


class Ask(Protocol):
    """Loads a translator of some of the teachers, asked for the languages of the distillation."""

    def __call__(
        self, *teachers: RunDirectory, compute_type: ComputeType | None = None, vocabulary_map: bool | None = None
    ) -> Translator: ...


@dataclass(frozen=True)
class Stage:
    """One way to translate, measured."""

    name: str
    by: By
    beam: int
    engine: str
    bleu: float
    chrf: float
    agreement: float  # BLEU against what the teacher says
    sentences_per_second: float  # the median of the rounds
    megabytes: float
    threads: str = ""  # workers x threads of each

    @property
    def is_quick(self) -> bool:
        """Whether CTranslate2 translates."""
        return self.engine.startswith("ctranslate2")

    @property
    def numbers(self) -> str:
        """What it computes with, in words."""
        return self.engine.removeprefix("ctranslate2 ") if self.is_quick else "the reference engine"

    def dominated(self, others: Sequence["Stage"]) -> bool:
        """Whether another is at least as quick and as good, and better in one of the two."""
        own = self.sentences_per_second, self.bleu
        return any(
            (other.sentences_per_second, other.bleu) != own
            and other.sentences_per_second >= own[0]
            and other.bleu >= own[1]
            for other in others
        )


@dataclass(frozen=True)
class Measured:
    """All stages, what they were measured with, and what was decided."""

    stages: tuple[Stage, ...]
    teacher: str  # the names of the stages that the summary compares
    student: str
    sentences: int
    signature: str
    notes: tuple[str, ...]
    alone: dict[str, float]  # BLEU of each teacher by itself, on the validation sentences; empty of a single one
    quantised: QuantizationResult
    stress: tuple[tuple[str, Report], ...] = ()  # of the teacher and the student

    def stage(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)

    def to_dict(self) -> dict[str, Any]:
        return {
            "stages": [{**asdict(stage), "dominated": stage.dominated(self.stages)} for stage in self.stages],
            "teacher": self.teacher,
            "student": self.student,
            "sentences": self.sentences,
            "signature": self.signature,
            "notes": list(self.notes),
            "alone": self.alone,
            "quantised": self.quantised.to_dict(),
            "stress": {name: report.to_dict() for name, report in self.stress},
        }


@dataclass(frozen=True)
class Contestant:
    """A stage before it is measured."""

    name: str
    by: By
    translator: Translator
    runs: Sequence[RunDirectory]

    @property
    def is_quick(self) -> bool:
        """Whether CTranslate2 translates; if not, it is measured once, and not by turns."""
        return isinstance(self.translator.engine, CTranslate2Engine)

    def megabytes(self) -> float:
        """The size of the files that it translates with."""
        engine = self.translator.engine
        if isinstance(engine, CTranslate2Engine):
            files = list(converted_path(self.runs[0], engine.compute_type, engine.digest).iterdir())
            files = [path for path in files if path.name != VOCABULARY_MAP or engine.vocabulary_map]
        else:
            files = [run.model_path for run in self.runs]
        return sum(path.stat().st_size for path in files) / 1e6


def measure(
    teachers: Sequence[RunDirectory],
    student: RunDirectory,
    text: QuickstartText,
    seconds: float,
    seconds_each: float,
    ask: Ask,
) -> Measured:
    """Measures the stages on test sentences, and decides by validation sentences what the student translates with.

    `seconds`: that are left; `seconds_each`: what a sentence took the teachers. `ask` loads a translator of some of the
    teachers, which may have to be asked for a language.
    """
    count = max(LEAST_SENTENCES, min(MOST_SENTENCES, int(seconds / (seconds_each * PASSES))))
    sources, references = text.source("test")[:count], text.references("test")[:count]
    valid = text.source("valid")[:count], text.references("valid")[:count]
    language = text.target_language
    with waiting(f"measuring each stage on {len(sources):,} sentences"):
        best, alone = _best_alone(teachers, *valid, language, ask)
        contestants = [*_teachers(teachers, best, ask), *_students(student)]
        stages, outputs = _measured(contestants, sources, references, language)
    with waiting("choosing the student's number type"):
        quantised = quantize(student.path, *valid, language=language, must_be_quicker=True)
    wanted = f"int8{' + map' if quantised.map_kept else ''}" if quantised.kept else "float32"
    chosen = next(one for one in contestants if one.name == f"student {wanted}")
    pairs = [(source, targets[0]) for source, targets in zip(sources, references, strict=True)]
    with waiting("testing teacher and student with capitals, typos and the like"):
        teacher = next((one for one in contestants if one.is_quick), contestants[0])  # of an ensemble, the best alone
        tested = tuple(
            (one.name, _stressed(pairs[:STRESSED], one.translator, text.languages)) for one in (teacher, chosen)
        )
    score = evaluate(outputs[0], references, language, 0)
    return Measured(
        stages,
        contestants[0].name,
        chosen.name,
        len(sources),
        score.bleu.signature,
        score.notes,
        alone,
        quantised,
        tested,
    )


def _best_alone(
    teachers: Sequence[RunDirectory], sources: Sequence[str], references: References, language: str | None, ask: Ask
) -> tuple[RunDirectory, dict[str, float]]:
    """Returns the teacher that is the best by itself on validation sentences, and the BLEU of each; of one, nothing is
    measured."""
    if len(teachers) == 1:
        return teachers[0], {}
    found = {
        str(teacher.path): bleu(
            ask(teacher).translate(sources, whole=True, protect=False, warn=discard), references, language
        ).value
        for teacher in teachers
    }
    return max(teachers, key=lambda teacher: found[str(teacher.path)]), found


def _teachers(teachers: Sequence[RunDirectory], best: RunDirectory, ask: Ask) -> list[Contestant]:
    """The ensemble, where there are several; then the best by itself in float32 and int8."""
    found = [Contestant("ensemble", "teacher", ask(*teachers), teachers)] if len(teachers) > 1 else []
    for compute_type in get_args(_Numbers):
        try:
            translator = ask(best, compute_type=compute_type, vocabulary_map=False)
        except CannotServeError:  # of an LSTM, say: it has the reference engine alone
            if not found:
                found.append(Contestant("teacher", "teacher", ask(best), [best]))
            continue
        found.append(Contestant(f"teacher {compute_type}", "teacher", translator, [best]))
    return found


def _students(student: RunDirectory) -> list[Contestant]:
    """The student in float32, in int8, and in int8 with a vocabulary map."""
    learn_map(student.path, "int8")

    def load(compute_type: ComputeType, mapped: bool) -> Translator:
        return Translator.load(student.path, engine="ctranslate2", compute_type=compute_type, vocabulary_map=mapped)

    return [
        Contestant("student float32", "student", load("float32", False), [student]),
        Contestant("student int8", "student", load("int8", False), [student]),
        Contestant("student int8 + map", "student", load("int8", True), [student]),
    ]


def _measured(
    contestants: Sequence[Contestant], sources: Sequence[str], references: References, language: str | None
) -> tuple[tuple[Stage, ...], list[list[str]]]:
    """Translates with all of them by turns; returns the stages, and what each made of the sources."""
    quick = [one for one in contestants if one.is_quick]
    threads = {one.name: measure_threads(one.translator, sources) for one in quick}
    translated: dict[str, tuple[list[str], float]] = {}
    for together, rounds in ((quick, ROUNDS), ([one for one in contestants if not one.is_quick], 1)):
        if together:
            found, speeds = translate_in_turns([one.translator for one in together], sources, rounds)
            for one, of_one, speed in zip(together, found, speeds, strict=True):
                translated[one.name] = of_one, speed
    by_teacher = [[line] for line in translated[contestants[0].name][0]]
    stages = []
    for one in contestants:
        lines, speed = translated[one.name]
        scores = evaluate(lines, references, language, 0)
        stages.append(
            Stage(
                one.name,
                one.by,
                one.translator.search.beam,
                one.translator.engine.name,
                scores.bleu.value,
                scores.chrf.value,
                bleu(lines, by_teacher, language).value,
                speed,
                one.megabytes(),
                threads.get(one.name, ""),
            )
        )
    return tuple(stages), [translated[one.name][0] for one in contestants]


def _stressed(pairs: Sequence[SentencePair], translator: Translator, languages: tuple[str, str] | None) -> Report:
    """Runs the stress suite on the bare model: with what repairs a translation, a model may be as good as another, but
    takes its time."""

    def translate(lines: Sequence[str]) -> list[str]:
        stream = translator.translate_stream(lines, scores=False, warn=discard, repair=False, protect=False)
        return [translation.text for translation in stream]

    return stress(pairs, translate, languages)
