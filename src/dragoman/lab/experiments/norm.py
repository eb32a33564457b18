"""Layer against batch normalisation.

Claim: Layer normalisation (3.1) suits sentences of varying length; batch normalisation, whose statistics mix
sentences and positions, does not.

Method: The base row on Multi30k with each. Batch normalisation learns running means over all positions of a
micro-batch and uses them when translating. For the trained model with batch normalisation, the validation loss also
with the statistics of the batch at hand, from which the gap to running means can be read.

Rule: BLEU with layer normalisation is above that with batch normalisation by more than two standard errors, by the
spread over seeds, mostly the base row's; likewise the validation loss below.
"""

from collections.abc import Sequence

import torch

from dragoman.data.batching import make_batch, plan_epoch
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import mean_nll, prepared_text, run_of
from dragoman.lab.variants import COLUMNS, better, measure_any, quality_figures, variant_arms, with_base
from dragoman.model.checkpoint import load_model
from dragoman.model.variants import BatchNorm

VARIANTS = {"batch norm": {"model__norm": "batch"}}


def arms(settings: LabSettings) -> list[Arm]:
    batch_norm = variant_arms(settings, VARIANTS, 2)
    return with_base(settings, VARIANTS, 2) + [Arm("norm", arm.name, arm.configuration, 0.1) for arm in batch_norm]


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    if arm.kind != "norm":
        return measure_any(arm, settings)
    model, prepared = load_model(run_of(arm, settings)), prepared_text(settings)
    plan = [rows for step in plan_epoch(prepared.valid, 1000, 1000, 0, 0) for rows in step]
    losses = {}
    with one_thread(), torch.inference_mode():
        for statistics in ("running", "of the batch"):
            for part in model.modules():
                if isinstance(part, BatchNorm):
                    part.train(statistics == "of the batch")
                    part.norm.momentum = 0.0  # look, and leave the running means as they are
            batches = (make_batch(prepared.valid, rows, prepared.tokenizer) for rows in plan)
            losses[f"nll, statistics {statistics}"] = mean_nll(model, batches)
    return losses


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    return [
        better(measured, "Layer normalisation translates better.", "base", "batch norm"),
        better(measured, "Its loss is lower.", "base", "batch norm", "nll"),
    ]


def run(settings: LabSettings) -> ExperimentResult:
    measured = settings.queue.measure_all(arms(settings), lambda arm: measure(arm, settings))
    notes = [
        f"{one.arm.name}: " + "; ".join(f"{name} {value:.3f}" for name, value in one.measurements.items())
        for one in measured
        if one.arm.kind == "norm"
    ]
    translated = [one for one in measured if one.arm.kind == "translation"]
    return conclude("norm", settings, measured, judge(measured), COLUMNS, quality_figures(translated), notes)
