"""One matrix for both embeddings and the output, and its scaling.

Claim: The two embeddings and the projection before the softmax share one matrix, and embeddings are multiplied by
√d_model (3.4): fewer parameters at no loss.

Method: Leaving out the factor √d_model also makes the embeddings small beside the positions at the start, which would
be a finding about initialisation. So the synthetic task (sequences reversed; one vocabulary for both sides) has,
untied and without the factor, first embeddings √d_model times as large: the same function at the first step. Five
seeds of: tied; untied; untied without the factor, so begun; tied without the factor, which cannot be begun so, since
the same numbers are the output's. On Multi30k, the paper's family: tied against untied, three seeds, equal rates.
Their recorded arms of the quick family (one seed) are shown beside them.

Rule: Tying costs nothing: on the synthetic task the shares of right tokens are within 0.03, and on Multi30k BLEU
within 0.5. The factor itself, with equal beginnings: right tokens are within 0.03 with and without. What is left of
it where the matrix is tied: with it they are more by at least 0.1.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import alike, higher
from dragoman.lab.synthetic import D_MODEL, of_synthetic, synthetic_arm
from dragoman.lab.translation import paper_trials, row_arm
from dragoman.lab.variants import COLUMNS, as_good, measure_any, quality_figures, with_base

UNTIED: dict[str, Any] = {"tie_embeddings": False}
SYNTHETIC: dict[str, dict[str, Any]] = {
    "tied": {},
    "untied": UNTIED,
    "untied, no factor, begun alike": {**UNTIED, "scale_embeddings": False, "embedding_std": D_MODEL**0.5},
    "tied, no factor": {"scale_embeddings": False},
}
QUICK = {
    "untied": {"model__tie_embeddings": False},
    "unscaled": {"model__scale_embeddings": False},
    "untied and unscaled": {"model__tie_embeddings": False, "model__scale_embeddings": False},
}


def arms(settings: LabSettings) -> list[Arm]:
    synthetic = [
        synthetic_arm(settings, name, seed, **changes)
        for name, changes in SYNTHETIC.items()
        for seed in settings.seed_list(5)
    ]
    rows: dict[str, dict[str, Any]] = {"paper: tied": {}, "paper: untied": {"model__tie_embeddings": False}}
    translated = [
        row_arm(settings, name, seed, **changes) for name, changes in rows.items() for seed in settings.seed_list(3)
    ]
    return synthetic + with_base(settings, QUICK, 1) + list(paper_trials(settings).values()) + translated


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    return measure_any(arm, settings)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    def right(name: str) -> list[float]:
        return of_synthetic(measured, name, "accuracy")

    def same(claim: str, a: str, b: str) -> Finding:
        return alike(claim, right(a), right(b), (a, b), "of the tokens right", 0.03, 3)

    tied = "tied", "tied, no factor"
    return [
        same("Synthetic task: tying costs nothing.", "tied", "untied"),
        same("Synthetic task: with equal beginnings the factor √d_model changes nothing.", "untied",
             "untied, no factor, begun alike"),
        higher("Synthetic task: where the matrix is tied the factor is needed.", right(tied[0]), right(tied[1]), tied,
               "of the tokens right", 0.1, 3),
        as_good(measured, "Multi30k: tying costs nothing.", "paper: tied", "paper: untied", 0.5),
    ]  # fmt: skip


def show(measured: Sequence[MeasuredArm]) -> Shown:
    return Shown(("accuracy", "final_loss", *COLUMNS), quality_figures(measured))
