"""Writes a report about a run, as Markdown and as one HTML file that needs no other file."""

import html
import math
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.config import RunConfig
from dragoman.diagnosis.run_checks import ENOUGH_SEEN, MANY_PAIRS
from dragoman.evaluation.charts import draw, figure_of_curves
from dragoman.evaluation.metrics import LEAST_TELLING_BLEU
from dragoman.evaluation.quantize import QuantizationResult
from dragoman.files import write_atomically
from dragoman.run_directory import RunDirectory

if TYPE_CHECKING:
    from dragoman.quickstart.scoring import Outcome


@dataclass(frozen=True)
class Table:
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Code:
    lines: Sequence[str]


@dataclass(frozen=True)
class Items:
    lines: Sequence[str]


@dataclass(frozen=True)
class Curve:
    """BLEU on the validation sentences by step."""

    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Drawing:
    """A figure, as SVG; where there are only letters, the words in its place."""

    svg: str
    words: str


Block = str | Table | Code | Items | Curve | Drawing
Section = tuple[str, Sequence[Block]]


def write(outcome: "Outcome", config: RunConfig) -> None:
    """Writes report.md and report.html into the run's directory."""
    title, sections = f"{outcome.run.name}: a translator", list(_sections(outcome, config))
    write_atomically(outcome.run / "report.md", markdown(title, sections).encode())
    write_atomically(outcome.run / "report.html", page(title, sections).encode())


def _sections(outcome: "Outcome", config: RunConfig) -> Iterator[Section]:
    """Yields the report's sections: the verdict first, how to use the run last."""
    yield "Verdict", [f"{_capital(outcome.verdict.line)}.", Items(list(outcome.verdict.reasons)), *advice(outcome)]
    yield "Scores", list(_about_scores(outcome))
    yield (
        "Some test sentences",
        [
            Table(("source", "translation", "reference", "sure"), outcome.samples),
            "At equal distances through the test set, not chosen.",
        ],
    )
    about = outcome.data.about
    yield "The text", list(_about_text(about))
    if about["causes"]:
        rows = [(cause["name"], cause["finding"], cause["evidence"], cause["remedy"]) for cause in about["causes"]]
        yield "What is wrong with it", [Table(("cause", "finding", "evidence", "remedy"), rows)]
    yield "The model and its training", list(_about_training(outcome, config))
    if outcome.calibration is not None:
        yield "How sure it is", [Code(outcome.calibration.lines()), "Measured on validation sentences."]
    if outcome.quantised is not None:
        measured = "Measured on the validation sentences. " + _kept(outcome.quantised)
        yield "Quantised", [Code(outcome.quantised.lines()), measured]
    if outcome.left_out:
        yield "What was not measured", [Items([_capital(line) for line in outcome.left_out])]
    yield "Use it", [Code(_commands(outcome))]


def _about_scores(outcome: "Outcome") -> Iterator[Block]:
    scores, languages = outcome.scores, outcome.data.about["languages"]
    named = " to ".join(languages) if languages else "languages not known"
    yield f"{named}. On {scores.sentences:,} test sentences that share no sentence with the training text:"
    rows = [(score.label, f"{score.value:.2f}", score.signature) for score in (scores.bleu, scores.chrf, scores.ter)]
    yield Table(("score", "value", "signature"), rows)
    yield f"For comparison: the source sentences, left as they are, have BLEU {outcome.facts.copied:.2f}."
    yield from scores.notes
    yield Curve(_curve(outcome.run))


def _about_text(about: dict[str, Any]) -> Iterator[Block]:
    yield f"Read from {', '.join(about['files'])}: {about['read']:,} pairs."
    rows = [
        *((f"left out while reading: {why}", f"{count:,}") for why, count in about["skipped"].items()),
        *((f"dropped: {rule.replace('_', ' ')}", f"{count:,}") for rule, count in about["dropped"].items()),
        ("trained on", f"{about['pairs']['train']:,}"),
        ("sentences to validate with", f"{about['pairs']['valid']:,}"),
        ("sentences to test with", f"{about['pairs']['test']:,}"),
    ]
    yield Table(("what became of it", "pairs"), rows)
    yield Items([*about.get("notes", ()), *(f"{path}: not read, as {why}" for path, why in _passed_over(about))])


def _about_training(outcome: "Outcome", config: RunConfig) -> Iterator[Block]:
    plan, actual, model, train = outcome.plan, outcome.actual, config.model, config.train
    yield (
        f"Size {plan.size}: {model.encoder_layers} + {model.decoder_layers} layers, d_model {model.d_model}, d_ff "
        f"{model.d_ff}, {model.num_heads} heads, dropout {model.dropout:g}, vocabulary {model.vocab_size:,}; "
        f"{train.optimizer.capitalize()}, {train.batch_tokens:,} tokens a step, rate up to "
        f"{train.peak_rate:g} after {train.warmup_steps} steps and from there to zero; seed "
        f"{train.seed}."
    )
    rows = [
        ("tokens per second", f"{plan.tokens_per_second:,.0f}", f"{actual['tokens_per_second']:,.0f}"),
        ("steps", f"{plan.steps:,}", f"{actual['steps']:,}"),
        ("minutes of training", f"{plan.minutes:.1f}", f"{actual['minutes']:.1f}"),
    ]
    yield Table(("", "estimated by the probe", "what happened"), rows)
    yield from _penalty(outcome.penalties, RunDirectory(outcome.run).read_config().search.alpha)
    yield f"All in all {actual['all_minutes']:.1f} minutes. The probe is ten steps, and validates nothing."


def _commands(outcome: "Outcome") -> list[str]:
    """Returns commands to try next."""
    named = shlex.quote(str(outcome.run))
    return [
        f'echo "..." | dragoman translate {named}',
        f"dragoman serve {named}" if outcome.data.about["languages"] else f"dragoman serve --pair xx-yy={named}",
        f"dragoman stress {named}",
        f"dragoman doctor {named}",
    ]


def _passed_over(about: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from about.get("passed_over", {}).items()


def _capital(line: str) -> str:
    return line[:1].upper() + line[1:]


def advice(outcome: "Outcome") -> Iterator[str]:
    """Says what would make the translator better, if it is not good enough."""
    if outcome.verdict.kind == "usable":
        return
    facts, minutes, plan = outcome.facts, outcome.actual["all_minutes"], outcome.plan
    if facts.seen < ENOUGH_SEEN:
        needed = math.ceil(minutes * ENOUGH_SEEN / max(facts.seen, 0.05))
        yield (
            f"More time is what it lacks: the same command with --minutes {needed} goes on from here and shows it the "
            f"text {ENOUGH_SEEN} times."
        )
    elif outcome.data.about["pairs"]["train"] < MANY_PAIRS:
        pairs = outcome.data.about["pairs"]["train"]
        yield (
            f"More text is what it lacks: {pairs:,} pairs were there to learn from, each seen {plan.epochs:.0f} times; "
            f"some ten thousand are where a translator of everyday sentences begins."
        )
    yield f"What else may be wrong: dragoman doctor {shlex.quote(str(outcome.run))}"


def terminal_lines(outcome: "Outcome") -> Iterator[str]:
    """Yields the verdict and its reasons for the terminal, in 80 columns except for commands and sentences."""
    plan, actual, named = outcome.plan, outcome.actual, shlex.quote(str(outcome.run))
    yield f"Verdict: {outcome.verdict.line}."
    for reason in outcome.verdict.reasons:
        yield textwrap.fill(reason, 80, initial_indent="  - ", subsequent_indent="    ")
    for line in advice(outcome):
        yield textwrap.fill(line, 80, break_long_words=False, break_on_hyphens=False)
    yield f"\nOn {outcome.scores.sentences:,} test sentences, none of which is in the training text:"
    yield f"  {outcome.scores.bleu.line()}\n  {outcome.scores.chrf.line()}"
    for source, output, _, sure in outcome.samples[:3]:
        yield f"  {source}\n    {output}{f'   ({sure} sure)' if sure else ''}"
    yield textwrap.fill(
        f"Estimated {plan.minutes:.1f} minutes of training for {plan.steps:,} steps; it took {actual['minutes']:.1f} "
        f"for {actual['steps']:,}, {actual['all_minutes']:.1f} with all else.",
        80,
    )
    yield f"{outcome.run / 'report.html'} has the rest."
    if outcome.verdict.kind != "not usable":
        yield f'Now:\n  echo "..." | dragoman translate {named}'
        yield f"  dragoman serve {named if outcome.data.languages else f'--pair xx-yy={named}'}"


def _kept(verdict: QuantizationResult) -> str:
    if verdict.kept:
        return "Kept."
    return (
        "Not kept, as it loses too much." if verdict.lost > verdict.limit else "Not kept, as float32 is quicker here."
    )


def _penalty(found: dict[float, float], alpha: float) -> Iterator[str]:
    if found:
        tells = max(found.values()) >= LEAST_TELLING_BLEU
        why = "chosen by BLEU on validation sentences" if tells else "left as it is, as such a low BLEU says little"
        scores = ", ".join(f"{score:.2f} with {tried:g}" for tried, score in found.items())
        yield f"Length penalty α = {alpha:g}, {why}: {scores}."


def _curve(run: Path) -> list[tuple[float, float]]:
    return [(event["step"], event["bleu"]) for event in RunDirectory(run).events() if event["event"] == "valid"]


def markdown(title: str, sections: Sequence[Section]) -> str:
    lines = [f"# {title}", ""]
    for heading, blocks in sections:
        lines += [f"## {heading}", ""]
        for block in blocks:
            match block:
                case Table(head, rows):
                    lines += [_row(head), _row(["---"] * len(head)), *map(_row, rows)]
                case Code(code):
                    lines += ["```", *code, "```"]
                case Items(items):
                    lines += [f"- {item}" for item in items]
                case Curve(points):
                    lines += ["BLEU while training, greedy: " + ", ".join(f"{y:.1f} at {x:,.0f}" for x, y in points)]
                case Drawing(_, words):
                    lines.append(f"({words[:1].upper()}{words[1:]}: in report.html.)")
                case str():
                    lines.append(block)
            lines.append("")
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b;
  background: #fff }
h1 { font-size: 1.6rem } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ccc }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .25rem .5rem;
  border-bottom: 1px solid #ddd; overflow-wrap: anywhere } th { font-weight: 600 }
pre { background: #f4f4f4; padding: .75rem; overflow-x: auto } svg { width: 100%; max-width: 40rem }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #161616 } pre { background: #242424 }
  th, td { border-color: #444 } h2 { border-color: #555 } }
"""


def page(title: str, sections: Sequence[Section]) -> str:
    parts = []
    for heading, blocks in sections:
        parts.append(f"<h2>{html.escape(heading)}</h2>")
        for block in blocks:
            match block:
                case Table(head, rows):
                    top = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
                    body = "".join(f"<tr>{''.join(f'<td>{html.escape(c)}</td>' for c in row)}</tr>" for row in rows)
                    parts.append(f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>")
                case Code(code):
                    parts.append(f"<pre>{html.escape(chr(10).join(code))}</pre>")
                case Items(items):
                    parts.append(
                        f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in items)}</ul>" if items else ""
                    )
                case Curve(points):
                    parts.append(_svg(points))
                case Drawing(svg, _):
                    parts.append(svg)
                case str():
                    parts.append(f"<p>{html.escape(block)}</p>")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{html.escape(title)}</h1>\n{chr(10).join(parts)}\n</body></html>\n"
    )


def _svg(points: Sequence[tuple[float, float]]) -> str:
    if len(points) < 2:
        return ""
    last, best = max(x for x, _ in points), max(y for _, y in points)
    title = f"BLEU on the validation sentences while training (greedy): up to {best:.1f} in {last:,.0f} steps"
    return draw(figure_of_curves(title, {"BLEU": points}, "step", "BLEU"), (0.0, last), (0.0, 1.0))
