"""Table 3: every row, scaled down by one rule.

Claim: One head is worse than eight, and too many are too; smaller keys hurt; bigger models are better; dropout helps;
learned positions are as good as sinusoids (6.2, Table 3).

Method: (a) The paper's family: post-norm, equation 3's form of rate, every row's recipe scaled by one rule (widths a
quarter, layers a half, steps a hundredth; heads and probabilities stay) and trained on Multi30k with three seeds; the
highest rate is chosen once, on the validation loss of the base row, from four, and goes with d_model^-0.5. The rows
that regularise (D) and a base row beside them are trained for twenty epochs, as nothing can be learned by heart in
two. (b) The rows as an earlier run recorded them in the quick family: pre-norm, one seed a row, two epochs for D as
well: only their order over all rows is judged.

Rule: (a) For each of the paper's statements, BLEU over the seeds: better by at least 0.3; learned positions within ±
0.5. (a) and (b): the rank correlation over all rows with the paper's perplexities is at least 0.3, and likewise BLEU.
A row's direction beside the base row agrees with the paper if both differences have the same sign and ours is beyond
its interval; where the paper's difference is at most 0.1 it has none.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import SEVERAL, correlated, mean, not_measured
from dragoman.lab.translation import long_arm, paper_trials, row_arm, translation_arm
from dragoman.lab.variants import as_good, better, measure_any, names_of, of_variant

# Perplexity and BLEU on newstest2013, by row.
PAPER = {
    "base": (4.92, 25.8),
    "A1": (5.29, 24.9),
    "A2": (5.00, 25.5),
    "A3": (4.91, 25.8),
    "A4": (5.01, 25.4),
    "B1": (5.16, 25.1),
    "B2": (5.01, 25.4),
    "C1": (6.11, 23.7),
    "C2": (5.19, 25.3),
    "C3": (4.88, 25.5),
    "C4": (5.75, 24.5),
    "C5": (4.66, 26.0),
    "C6": (5.12, 25.4),
    "C7": (4.75, 26.2),
    "D1": (5.77, 24.6),
    "D2": (4.95, 25.5),
    "D3": (4.67, 25.3),
    "D4": (5.47, 25.7),
    "E": (4.92, 25.7),
    "big": (4.33, 26.4),
}
WHAT = {
    "base": "N 6, d_model 512, d_ff 2048, h 8", "A1": "h 1", "A2": "h 4", "A3": "h 16", "A4": "h 32", "B1": "d_k 16",
    "B2": "d_k 32", "C1": "N 2", "C2": "N 4", "C3": "N 8", "C4": "d_model 256", "C5": "d_model 1024", "C6": "d_ff 1024",
    "C7": "d_ff 4096", "D1": "dropout 0", "D2": "dropout 0.2", "D3": "smoothing 0", "D4": "smoothing 0.2",
    "E": "learned positions", "big": "d_model 1024, d_ff 4096, h 16, dropout 0.3, three times the steps",
}  # fmt: skip


SAME_IN_PAPER = 0.1  # BLEU: what the paper calls nearly identical (row E)
ROUNDING = 1e-9  # the paper's differences are of figures with one digit: 25.7 - 25.8 is not quite -0.1 in floats
LONG = {"base": "base, 20 epochs", "D1": "D1, 20 epochs", "D2": "D2, 20 epochs", "D3": "D3, 20 epochs",
        "D4": "D4, 20 epochs"}  # fmt: skip
QUICK = "quick: "


def arms(settings: LabSettings) -> list[Arm]:
    smoke = settings.size == "smoke"
    rows = ("base", "A1", "C1", "D3", "E") if smoke else tuple(PAPER)
    recorded = [
        translation_arm(settings, f"{QUICK}{row}", seed, f"table3-{row}")
        for row in rows
        for seed in settings.seed_list(5 if row == "base" else 1)
    ]
    found = []
    for row in rows:
        for seed in settings.seed_list(3):
            if row in LONG:
                found.append(long_arm(settings, LONG[row], seed, f"table3-{row}"))
            if row not in LONG or row == "base":
                found.append(row_arm(settings, row, seed, f"table3-{row}"))
    return recorded + list(paper_trials(settings).values()) + found


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    return measure_any(arm, settings)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    statements = (
        ("A: one head is worse than eight.", "base", "A1"),
        ("A: 32 heads are worse than eight.", "base", "A4"),
        ("B: smaller keys hurt.", "base", "B1"),
        ("C: fewer layers are worse.", "base", "C1"),
        ("C: a narrower model is worse.", "base", "C4"),
        ("C: a wider model is better.", "C5", "base"),
        ("C: a wider feed-forward layer is better.", "C7", "base"),
        ("D: no dropout is worse.", LONG["base"], LONG["D1"]),
        ("big is better.", "big", "base"),
    )
    findings = [better(measured, claim, a, b, least=0.3) for claim, a, b in statements]
    findings.append(as_good(measured, "E: learned positions are as good as sinusoids.", "E", "base", 0.5))
    for prefix, label in (("", "Rows"), (QUICK, "Rows of the quick family")):
        rows = rows_measured(measured, prefix)
        for column, (measurement, name) in enumerate((("perplexity", "perplexity"), ("bleu", "BLEU"))):
            claim = f"{label} come in the paper's order by {name}."
            if len(rows) < (len(WHAT) if not prefix else 4):
                findings.append(not_measured(claim, f"{len(rows)} of {len(WHAT)} rows are measured"))
                continue
            ours = [mean(of_variant(measured, named(row, prefix), measurement)) for row in rows]
            findings.append(correlated(claim, ours, [PAPER[row][column] for row in rows], 0.3))
    return findings


def named(row: str, prefix: str) -> str:
    """The variant's name of a row: of those that regularise the long one, where there is one."""
    return f"{prefix}{row}" if prefix or row not in LONG or row == "base" else LONG[row]


def rows_measured(measured: Sequence[MeasuredArm], prefix: str) -> list[str]:
    known = set(names_of(measured))
    return [row for row in PAPER if named(row, prefix) in known]


def direction(ours: Finding, paper: float) -> str:
    """How a row's BLEU beside the base row's compares with the paper's."""
    if ours.low is None or ours.high is None or ours.effect is None:
        return "one seed"
    if ours.low <= 0 <= ours.high:
        return "within the noise"
    if abs(paper) <= SAME_IN_PAPER + ROUNDING:
        return "a change, where the paper has none"
    return "agrees" if ours.effect * paper > 0 else "disagrees"


def table_row(measured: Sequence[MeasuredArm], row: str, prefix: str) -> dict[str, Any]:
    name = named(row, prefix)
    base = LONG["base"] if name in LONG.values() else f"{prefix}base"
    bleus = of_variant(measured, name, "bleu")
    beside = better(measured, "", name, base)
    paper = PAPER[row][1] - PAPER["base"][1]
    return {
        "row": name,
        "what": WHAT[row],
        "seeds": len(bleus),
        "parameters": int(of_variant(measured, name, "parameters")[0]),
        "perplexity": mean(of_variant(measured, name, "perplexity")),
        "paper perplexity": PAPER[row][0],
        "BLEU": mean(bleus),
        "paper BLEU": PAPER[row][1],
        "BLEU beside base": beside.effect,
        "paper beside base": paper,
        "direction": "" if row == "base" else "one seed" if len(bleus) < SEVERAL else direction(beside, paper),
    }


def show(measured: Sequence[MeasuredArm]) -> Shown:
    table, figures = [], []
    for prefix, label in (("", "paper's family"), (QUICK, "quick family, one seed a row")):
        if not (rows := rows_measured(measured, prefix)) or "base" not in rows:
            continue
        made = [table_row(measured, row, prefix) for row in rows]
        table += made
        base = mean(of_variant(measured, f"{prefix}base", "perplexity"))
        figures += [
            Figure(f"BLEU beside the base row ({label})", list(range(len(rows))),
                   {"here": [row["BLEU beside base"] for row in made],
                    "paper": [row["paper beside base"] for row in made]},
                   "", "difference in BLEU", "bars", labels=rows),
            Figure(f"Perplexity over the base row's ({label})", list(range(len(rows))),
                   {"here": [row["perplexity"] / base for row in made],
                    "paper": [PAPER[row][0] / PAPER["base"][0] for row in rows]},
                   "", "ratio", "bars", labels=rows),
        ]  # fmt: skip
    notes = [
        "Perplexities are of wordpieces of other vocabularies: set their ratios beside each other, not the figures. "
        "Rows of the quick family have one seed each: no row of it says anything by itself."
    ]
    return Shown(figures=figures, notes=notes, rows=table)
