"""Writes the report of a distillation: what was lost and gained in a sentence, then each stage by quality and speed."""

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.config import RunConfig
from dragoman.distillation.stages import Measured, Stage
from dragoman.distillation.teaching import Taught
from dragoman.evaluation.charts import Figure, draw
from dragoman.files import write_atomically
from dragoman.quickstart.report import Block, Code, Drawing, Section, Table, markdown, page
from dragoman.quickstart.sizing import Plan

NO_DIFFERENCE = 0.05  # BLEU; nothing that a reader would call a loss


@dataclass(frozen=True)
class DistillationOutcome:
    """All that a distillation came to."""

    run: Path
    teachers: tuple[Path, ...]
    about: dict[str, Any]  # the text
    taught: Taught
    plan: Plan
    config: RunConfig
    begun_with: int  # parameters of the teacher's
    measured: Measured
    minutes: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": str(self.run),
            "teachers": [str(path) for path in self.teachers],
            "summary": summary(self),
            "text": self.about,
            "taught": asdict(self.taught),
            "plan": asdict(self.plan),
            "begun_with": self.begun_with,
            **self.measured.to_dict(),
            "minutes": self.minutes,
        }


def summary(outcome: DistillationOutcome) -> str:
    """Says in a sentence what was lost and what was gained."""
    measured, model = outcome.measured, outcome.config.model
    teacher, student = measured.stage(measured.teacher), measured.stage(measured.student)
    quick = [stage for stage in measured.stages if stage.by == "teacher" and stage.is_quick] or [teacher]
    speed = ", ".join(
        f"{student.sentences_per_second / stage.sentences_per_second:.1f} × as many sentences a second as "
        f"{_named(stage, outcome)}"
        for stage in quick
    )
    return (
        f"The student ({model.encoder_layers} + {model.decoder_layers} layers, d_model {model.d_model}, "
        f"{student.numbers}, {_search(student)}) {_change(teacher.bleu, student.bleu, outcome)} "
        f"{_named(teacher, outcome)}; it translates {speed}; it has {student.megabytes:.1f} MB, where that has "
        f"{teacher.megabytes:.1f}."
    )


def _change(before: float, after: float, outcome: DistillationOutcome) -> str:
    quality = "BLEU of agreement" if outcome.about["agreement"] else "BLEU"
    change = after - before
    if abs(change) < NO_DIFFERENCE:
        return f"loses no {quality} ({after:.2f} after {before:.2f}) to"
    verb, other = ("gains", "over") if change > 0 else ("loses", "to")
    return f"{verb} {abs(change):.2f} {quality} ({after:.2f} after {before:.2f}) {other}"


def _search(stage: Stage) -> str:
    return "greedy" if stage.beam == 1 else f"beam {stage.beam}"


def _named(stage: Stage, outcome: DistillationOutcome) -> str:
    if stage.name == "ensemble":
        return f"the ensemble of {len(outcome.teachers)} ({_search(stage)})"
    who = "the best teacher alone" if len(outcome.teachers) > 1 else "the teacher"
    return f"{who} ({stage.numbers}, {_search(stage)})"


def write(outcome: DistillationOutcome) -> None:
    """Writes report.md and report.html into the student's directory."""
    title, sections = f"{outcome.run.name}: a student", list(_sections(outcome))
    write_atomically(outcome.run / "report.md", markdown(title, sections).encode())
    write_atomically(outcome.run / "report.html", page(title, sections).encode())


def _sections(outcome: DistillationOutcome) -> Iterator[Section]:
    measured, about = outcome.measured, outcome.about
    yield "What it came to", [summary(outcome), *(f"But {caveat}." for caveat in about["caveats"])]
    yield "Every stage", list(_about_stages(outcome))
    yield "Capitals, typos and the like", list(_about_stress(measured))
    yield "What the teacher taught", list(_about_teaching(outcome))
    yield "The student and its training", list(_about_training(outcome))
    named = shlex.quote(str(outcome.run))
    yield "Use it", [Code([f'echo "..." | dragoman translate {named}', f"dragoman stress {named}"])]


def _about_stages(outcome: DistillationOutcome) -> Iterator[Block]:
    measured = outcome.measured
    yield (
        f"On {measured.sentences:,} sentences that no student learned from; {measured.signature}. Agreement is BLEU "
        f"against what the teacher says. Speeds are medians of rounds by turns, all cores; an ensemble, which only the "
        f"reference engine can translate with, is measured once. A stage is beaten where another is as quick and as "
        f"good, and better in one of the two."
    )
    yield Table(HEAD, _rows(measured.stages))
    yield Drawing(pareto(measured), "quality against speed, the table as a figure")
    if measured.alone:
        alone = ", ".join(f"{path} {value:.2f}" for path, value in measured.alone.items())
        yield f"Each teacher by itself, BLEU on the validation sentences: {alone}."
    yield Code(measured.quantised.lines())
    yield f"By these, on validation sentences, it translates with {measured.stage(measured.student).numbers}."
    yield from measured.notes


HEAD = ("stage", "search", "BLEU", "chrF", "agreement", "sentences/s", "MB", "")


def _rows(stages: Sequence[Stage]) -> list[tuple[str, ...]]:
    return [
        (
            stage.name,
            _search(stage),
            f"{stage.bleu:.2f}",
            f"{stage.chrf:.2f}",
            f"{stage.agreement:.2f}",
            f"{stage.sentences_per_second:,.1f}",
            f"{stage.megabytes:.1f}",
            "beaten" if stage.dominated(stages) else "",
        )
        for stage in stages
    ]


def pareto(measured: Measured) -> str:
    """BLEU against speed, a point for each stage."""
    stages = measured.stages
    return draw(
        Figure(
            "BLEU against sentences a second",
            [stage.sentences_per_second for stage in stages],
            {by: [stage.bleu if stage.by == by else None for stage in stages] for by in ("teacher", "student")},
            "sentences a second",
            "BLEU",
            "points",
            log_x=True,
            point_labels=[stage.name for stage in stages],
        )
    )


def _about_stress(measured: Measured) -> Iterator[Block]:
    (teacher, first), (student, second) = measured.stress
    rows = [
        (one.name, f"{one.value:.2f}", f"{other.value:.2f}", f"{one.least:.2f}", one.measure)
        for one, other in zip(first.rows, second.rows, strict=True)
        if one.sentences
    ]
    yield (
        f"The tests of `dragoman stress` on {first.sentences:,} of the sentences, of the bare models: what loops or "
        f"loses a number is not translated again here, as `dragoman translate` would."
    )
    yield Table(("test", teacher, student, "least", "measured"), rows)


def _about_teaching(outcome: DistillationOutcome) -> Iterator[Block]:
    about, taught = outcome.about, outcome.taught
    names = ", ".join(map(str, outcome.teachers))
    yield f"By {names}. What has a defect is left out; what is measured with was never taught."
    changed = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in about["noise"].items())
    yield Table(
        ("what became of it", "sentences"),
        [
            ("sources with a reference", f"{about['with_reference']:,}"),
            ("sources without", f"{about['without_reference']:,}"),
            *((f"left out before: {rule}", f"{count:,}") for rule, count in about["dropped"].items()),
            (f"changed before the teacher translated: {changed or 'none'}", f"{sum(about['noise'].values()):,}"),
            ("translated in the time", f"{taught.translated:,}"),
            *((f"left out: {rule}", f"{count:,}") for rule, count in taught.dropped.items()),
            ("another than the first translation taken", f"{taught.others:,}"),
            ("learned from", f"{taught.kept:,}"),
        ],
    )


def _about_training(outcome: DistillationOutcome) -> Iterator[Block]:
    plan, model, train = outcome.plan, outcome.config.model, outcome.config.train
    begun = f" begun with {outcome.begun_with:,} of the teacher's parameters;" if outcome.begun_with else ""
    yield (
        f"Size {plan.size}: {model.encoder_layers} + {model.decoder_layers} layers, d_model {model.d_model}, d_ff "
        f"{model.d_ff}, {model.num_heads} heads, vocabulary {model.vocab_size:,};{begun} "
        f"{train.optimizer.capitalize()}, {train.batch_tokens:,} tokens a step; planned {plan.steps:,} steps, each "
        f"pair seen {plan.epochs:.1f} times; seed {train.seed}. All in all {outcome.minutes:.1f} minutes."
    )


def terminal_lines(outcome: DistillationOutcome) -> Iterator[str]:
    """Yields what the terminal shows."""
    yield textwrap.fill(summary(outcome), 80)
    yield from (textwrap.fill(f"But {caveat}.", 80) for caveat in outcome.about["caveats"])
    yield ""
    rows = [HEAD, *_rows(outcome.measured.stages)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        cells = [
            f"{cell:<{width}}" if i < 2 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
    yield ""
    yield f"{outcome.run / 'report.html'} has the rest."
    yield f'Now:\n  echo "..." | dragoman translate {shlex.quote(str(outcome.run))}'
