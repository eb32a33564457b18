"""Table 3: every row, scaled down by one rule.

Claim: One head is worse than eight, and too many are too; smaller keys hurt; bigger models are better; dropout helps;
learned positions are as good as sinusoids (6.2, Table 3).

Method: Every row's recipe scaled by one rule (widths a quarter, layers a half, steps a hundredth; heads and
probabilities stay) and trained on Multi30k; perplexity on the validation set and BLEU on the test set beside the
paper's. The base row has five seeds, whose standard deviation is the noise band of all; other rows have one.

Rule: Over all rows: the rank correlation of our perplexities with the paper's is at least 0.5 (holds), below 0 (does
not hold here), else undecided; the same for BLEU. For each of the paper's five statements: by BLEU, beyond two
standard errors of the noise band; for learned positions: within it.
"""

from collections.abc import Sequence

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.rules import alike, graded, mean, rank_correlation, shown
from dragoman.lab.translation import base_arms, translation_arm
from dragoman.lab.variants import better, measure_variants, names_of, noise, of_variant

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


def arms(settings: LabSettings) -> list[Arm]:
    rows = ("A1", "C1", "D3", "E") if settings.size == "smoke" else tuple(row for row in PAPER if row != "base")
    return base_arms(settings) + [
        translation_arm(settings, row, seed, f"table3-{row}") for row in rows for seed in settings.seed_list(1)
    ]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    rows = names_of(measured)
    findings = []
    for column, (measurement, label) in enumerate((("perplexity", "perplexity"), ("bleu", "BLEU"))):
        ours = [mean(of_variant(measured, row, measurement)) for row in rows]
        correlation = rank_correlation(ours, [PAPER[row][column] for row in rows])
        findings.append(
            Finding(
                f"Rows come in the paper's order by {label}.",
                graded(correlation, 0.5, 0.0),
                f"rank correlation over {len(rows)} rows: {correlation:.2f}",
            )
        )
    statements = (
        ("A: one head is worse than eight.", "base", "A1"),
        ("A: 32 heads are worse than eight.", "base", "A4"),
        ("B: smaller keys hurt.", "base", "B1"),
        ("C: fewer layers are worse.", "base", "C1"),
        ("C: a narrower model is worse.", "base", "C4"),
        ("C: a wider model is better.", "C5", "base"),
        ("C: a wider feed-forward layer is better.", "C7", "base"),
        ("D: no dropout is worse.", "base", "D1"),
        ("big is better.", "big", "base"),
    )
    findings += [better(measured, claim, a, b) for claim, a, b in statements if {a, b} <= set(rows)]
    base, learned = of_variant(measured, "base", "bleu"), of_variant(measured, "E", "bleu")
    band = 2 * (noise(measured, "bleu") or 0.0) * (1 / len(base) + 1 / len(learned)) ** 0.5
    same = alike([mean(base)], [mean(learned)], max(band, 0.2))
    findings.append(Finding("E: learned positions are as good as sinusoids.", same,
                            f"BLEU {shown(base)} and {shown(learned)}"))  # fmt: skip
    return findings


def run(settings: LabSettings) -> ExperimentResult:
    measured = measure_variants(settings, arms(settings))
    rows, base = names_of(measured), mean(of_variant(measured, "base", "bleu"))
    base_perplexity = mean(of_variant(measured, "base", "perplexity"))
    band = 2 * (noise(measured, "bleu") or 0.0)
    table = []
    for row in rows:
        bleus, perplexities = of_variant(measured, row, "bleu"), of_variant(measured, row, "perplexity")
        ours, paper = mean(bleus) - base, PAPER[row][1] - PAPER["base"][1]
        if abs(ours) <= band:
            direction = "within the noise"
        elif abs(paper) <= SAME_IN_PAPER:
            direction = "a change, where the paper has none"
        else:
            direction = "agrees" if ours * paper > 0 else "disagrees"
        table.append(
            {
                "row": row,
                "what": WHAT[row],
                "seeds": len(bleus),
                "parameters": int(of_variant(measured, row, "parameters")[0]),
                "perplexity": mean(perplexities),
                "paper perplexity": PAPER[row][0],
                "BLEU": mean(bleus),
                "paper BLEU": PAPER[row][1],
                "BLEU beside base": ours,
                "paper beside base": paper,
                "direction": "" if row == "base" else direction,
            }
        )
    at = list(range(len(rows)))
    figures = [
        Figure("BLEU beside the base row", at,
               {"here": [mean(of_variant(measured, row, "bleu")) - base for row in rows],
                "paper": [PAPER[row][1] - PAPER["base"][1] for row in rows]},
               "", "difference in BLEU", "bars", labels=rows, spread={"here": [band] * len(rows)}),
        Figure("Perplexity over the base row's", at,
               {"here": [mean(of_variant(measured, row, "perplexity")) / base_perplexity for row in rows],
                "paper": [PAPER[row][0] / PAPER["base"][0] for row in rows]},
               "", "ratio", "bars", labels=rows),
    ]  # fmt: skip
    notes = [
        f"The band on “here” is two standard deviations of the base row over its "
        f"{len(of_variant(measured, 'base', 'bleu'))} seeds: {band:.2f} BLEU. Perplexities are of wordpieces of other "
        f"vocabularies: set their ratios beside each other, not the figures themselves.",
    ]
    return conclude("table3", settings, measured, judge(measured), (), figures, notes, table)
