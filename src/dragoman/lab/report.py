"""Writes the lab's report, as one offline HTML page and as Markdown, from the result files alone."""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import UsageError
from dragoman.evaluation.charts import draw, number
from dragoman.files import write_atomically
from dragoman.lab.catalogue import NAMES, describe, load
from dragoman.lab.queue import LabSettings, Queue
from dragoman.lab.result import ExperimentResult, Finding, counted
from dragoman.progress import clock

TITLE = "The lab: the paper's claims, measured"
LEAD = (
    "Each experiment states a claim of “Attention Is All You Need” or of its readers, what was done, and the rule, "
    "which is code, by which the measurements became verdicts. Each part of a claim has its own verdict, with the "
    "size of the effect and its 95 % interval over seeds; what was compared was corrected, by Holm's method, for the "
    "comparisons of its experiment. One seed decides nothing. A verdict is about the size it was drawn at: small "
    "models, one core, minutes of training. “Does not hold here” says that the effect was not seen at this size, not "
    "that the paper is wrong at its own; “undecided” that the interval has room for both; “not testable here” that no "
    "run of this lab could tell; “not measured yet” that the arms are defined and wait for a queue."
)
STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1b1b1b; --soft: #5c5c5c; --line: #dcdcdc; --sheet: #f6f6f4;
  --holds: #00664b; --not: #a63c00; --open: #5c5c5c; --link: #0b62a3; }
@media (prefers-color-scheme: dark) { :root { --ground: #161616; --ink: #ececec; --soft: #a9a9a9; --line: #3b3b3b;
  --sheet: #202020; --holds: #5fd6b0; --not: #ffa172; --open: #b5b5b5; --link: #7fc0f0; } }
body { font: 16px/1.5 system-ui, sans-serif; background: var(--ground); color: var(--ink); margin: 0 auto;
  padding: 1.5rem; max-width: 62rem; }
a { color: var(--link); } h1 { font-size: 1.7rem; }
h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1.5rem; }
p, dd { max-width: 48rem; }
dt { color: var(--soft); font-size: .85rem; text-transform: uppercase; letter-spacing: .04em; }
dd { margin: 0 0 .8rem; } .soft { color: var(--soft); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; margin: .5rem 0 1rem; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } th { font-weight: 600; }
.verdict { font-weight: 600; white-space: nowrap; } .holds { color: var(--holds); } .not { color: var(--not); }
.open { color: var(--open); }
figure { margin: 1.2rem 0; max-width: 100%; width: fit-content; box-sizing: border-box; background: var(--sheet);
  padding: .6rem; border-radius: .4rem; }
figure svg { max-width: 100%; height: auto; } summary { cursor: pointer; }
"""
SIGNS = {
    "holds": ("holds", "✓"),
    "does not hold here": ("not", "✗"),
    "undecided": ("open", "?"),
    "not testable here": ("open", "∅"),
    "not measured yet": ("open", "…"),
    "smoke run": ("open", "–"),
}


FINDING_COLUMNS = ("finding", "verdict", "effect (95 % interval)", "p (Holm)", "because")


def _all_counted(results: Mapping[str, ExperimentResult]) -> str:
    findings = [finding for result in results.values() for finding in result.findings]
    return f"Of {len(findings)} findings in {len(results)} experiments: {counted(findings)}."


def write_report(out: Path) -> list[Path]:
    """Writes report.html, report.md and figures/ beside results/; returns the paths of the first two."""
    results = {
        name: ExperimentResult.read(path) for name in NAMES if (path := out / "results" / f"{name}.json").exists()
    }
    if not results and not (out / "arms").is_dir():
        raise UsageError(f"lab report: nothing measured in {out}; run some first: dragoman lab run scaling --out {out}")
    waiting = _waiting(out, [name for name in NAMES if name not in results])
    spent = _time_spent(out)
    written = [out / "report.html", out / "report.md"]
    write_atomically(written[0], _as_html(results, waiting, spent).encode())
    write_atomically(written[1], _as_markdown(results, waiting, spent).encode())
    for name, result in results.items():
        for i, figure in enumerate(result.figures, start=1):
            write_atomically(out / "figures" / f"{name}-{i}.svg", draw(figure).encode())
    return written


def _time_spent(out: Path) -> str:
    records = [json.loads(line) for path in (out / "arms").glob("*.jsonl")
               for line in path.read_text(encoding="utf-8").splitlines()]  # fmt: skip
    wall, cpu = (sum(record[name] for record in records) / 3600 for name in ("seconds", "cpu_seconds"))
    return (
        f"{len(records):,} arms were measured, in {wall:.2f} hours of queue time in all, of which one core worked "
        f"{cpu:.2f} hours; the rest went to other work on the machine."
    )


def _waiting(out: Path, names: Sequence[str]) -> dict[str, str]:
    """For each experiment without a result, how many of its arms are measured."""
    queue = Queue(out)
    settings = LabSettings(queue, out / "models")
    found = {}
    for name in names:
        arms = load(name).arms(settings)
        done = sum(queue.find(arm) is not None for arm in arms)
        found[name] = f"not run: {done} of {len(arms)} arms measured" if done else "not run"
    return found


def effect_of(finding: Finding) -> str:
    """The effect and its interval, for example "+1.20 BLEU (0.31 to 2.09)"."""
    if finding.effect is None:
        return ""
    interval = ""
    if finding.low is not None and finding.high is not None:
        interval = f" ({number(finding.low)} to {number(finding.high)})"
    return f"{number(finding.effect)} {finding.unit}{interval}".strip()


def _p_of(finding: Finding) -> str:
    return "" if finding.p is None else "< 0.001" if finding.p < 0.001 else f"{finding.p:.3f}"


def _measured_of(result: ExperimentResult) -> str:
    """For the head of an experiment: how much of it is measured."""
    missing = result.arms_planned - result.arms_measured
    arms = (
        f"{result.arms_measured} of {result.arms_planned} arms measured" if missing else f"{result.arms_measured} arms"
    )
    return f"{result.size}, {arms}, {clock(result.seconds)} of queue time"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)


def _plain_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    found = dict.fromkeys(key for row in rows for key, value in row.items() if not isinstance(value, dict | list))
    return sorted(found, key="seconds".__eq__)  # seconds come last


def _as_html(results: Mapping[str, ExperimentResult], waiting: Mapping[str, str], spent: str) -> str:
    e = html.escape

    def verdict(text: str) -> str:
        kind, sign = SIGNS[text]
        return f'<span class="verdict {kind}">{sign} {e(text)}</span>'

    def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Cells are HTML already; those that start with a digit or a sign are numbers."""
        top = "".join(f"<th scope=col>{e(name.replace('_', ' '))}</th>" for name in head)
        body = "".join("<tr>" + "".join(cell for cell in row) + "</tr>" for row in rows)
        return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'

    def td(value: Any) -> str:
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        return f"<td{' class=number' if numeric else ''}>{e(_cell(value))}</td>"

    summary = [
        [f'<td><a href="#{name}">{name}</a></td>', td(result.title), td(result.headline)]
        if (result := results.get(name)) is not None
        else [td(name), td(describe(name).title), f'<td class="soft">{e(waiting[name])}</td>']
        for name in NAMES
    ]
    parts = [f"<h1>{e(TITLE)}</h1><p>{e(LEAD)}</p><p class=soft>{e(spent)}</p>",
             f"<p>{e(_all_counted(results))}</p>", table(("experiment", "about", "found"), summary)]  # fmt: skip
    for name, result in results.items():
        findings = [[td(f.claim), f"<td>{verdict(f.verdict)}</td>", td(effect_of(f)), td(_p_of(f)), td(f.because)]
                    for f in result.findings]  # fmt: skip
        columns = _plain_columns(result.arms)
        rows = [[td(arm.get(column)) for column in columns] for arm in result.arms]
        parts.append(
            f'<h2 id="{name}">{e(result.title)}</h2><p><b>{e(result.headline)}</b> '
            f"<span class=soft>{name}, {_measured_of(result)}</span></p>"
            f"<dl><dt>Claim</dt><dd>{e(result.claim)}</dd><dt>Method</dt><dd>{e(result.method)}</dd>"
            f"<dt>Rule</dt><dd>{e(result.rule)}</dd></dl>{table(FINDING_COLUMNS, findings)}"
        )
        parts += [f"<figure>{draw(figure)}</figure>" for figure in result.figures]
        parts += [f"<p>{e(note)}</p>" for note in result.notes]
        opened = " open" if len(rows) <= 12 else ""
        parts.append(
            f"<details{opened}><summary>{len(rows)} rows of measurements</summary>{table(columns, rows)}</details>"
        )
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{e(TITLE)}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _as_markdown(results: Mapping[str, ExperimentResult], waiting: Mapping[str, str], spent: str) -> str:
    def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
        def line(cells: Sequence[Any]) -> str:
            return "| " + " | ".join(_cell(cell).replace("|", "\\|") for cell in cells) + " |"

        return "\n".join([line([name.replace("_", " ") for name in head]), "|" + "---|" * len(head), *map(line, rows)])

    summary = [
        (f"[{name}](#{name})", result.title, result.headline)
        if (result := results.get(name)) is not None
        else (name, describe(name).title, waiting[name])
        for name in NAMES
    ]
    parts = [f"# {TITLE}", LEAD, spent, _all_counted(results), table(("experiment", "about", "found"), summary)]
    for name, result in results.items():
        title = result.title if result.title.endswith("?") else f"{result.title}."
        parts += [
            f"## {name}",
            f"{title} **{result.headline}** ({_measured_of(result)})",
            f"**Claim.** {result.claim}",
            f"**Method.** {result.method}",
            f"**Rule.** {result.rule}",
            table(
                FINDING_COLUMNS,
                [(f.claim, f.verdict, effect_of(f), _p_of(f), f.because) for f in result.findings],
            ),
            *(f"![{figure.title}](figures/{name}-{i}.svg)" for i, figure in enumerate(result.figures, start=1)),
            *result.notes,
        ]
        columns = _plain_columns(result.arms)
        if result.arms:
            rows = [[arm.get(column) for column in columns] for arm in result.arms]
            parts.append(
                f"<details><summary>{len(rows)} rows of measurements</summary>\n\n{table(columns, rows)}\n\n</details>"
            )
    return "\n\n".join(parts) + "\n"
