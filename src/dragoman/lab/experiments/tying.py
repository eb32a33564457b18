"""One matrix for both embeddings and the output, and its scaling.

Claim: The two embeddings and the projection before the softmax share one matrix, and embeddings are multiplied by
√d_model (3.4): fewer parameters at no loss.

Method: The base row on Multi30k against three matrices of their own, against no scaling, and against neither.

Rule: Tying costs nothing: BLEU untied is not above BLEU tied by more than two standard errors (if it is: does not
hold here; if tied is above untied by that much: holds; between: undecided). Scaling helps: BLEU with is above that
without by more than two standard errors.
"""

from collections.abc import Sequence

from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.variants import COLUMNS, better, measure_variants, quality_figures, with_base

VARIANTS = {
    "untied": {"model__tie_embeddings": False},
    "unscaled": {"model__scale_embeddings": False},
    "untied and unscaled": {"model__tie_embeddings": False, "model__scale_embeddings": False},
}


def arms(settings: LabSettings) -> list[Arm]:
    return with_base(settings, VARIANTS)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    return [
        better(measured, "Tied embeddings are at least as good.", "base", "untied"),
        better(measured, "Scaling embeddings by √d_model helps.", "base", "unscaled"),
    ]


def run(settings: LabSettings) -> ExperimentResult:
    measured = measure_variants(settings, arms(settings))
    return conclude("tying", settings, measured, judge(measured), COLUMNS, quality_figures(measured))
