"""The systems that the Transformer replaced.

Claim: The Transformer is better than recurrent encoder-decoders and trains in a fraction of the time (abstract, Table
2). Attention had been what made those work on longer sentences (section 1 and its references).

Method: On Multi30k, LSTM encoder-decoders without attention, with additive and with multiplicative attention, of
about as many parameters as the base row, trained as it is (same steps, tokens and rate): BLEU, BLEU by sentence
length, and BLEU on 200 validation sentences as training goes on, against processor time, from steps × the measured
time of one step.

Rule: Better: BLEU of the base is above that of the best LSTM by more than two standard errors, by the spread over
seeds, mostly the base row's. At equal time: at the time when the quicker of the two is done, the Transformer's BLEU
while training is above the best LSTM's by at least 0.5. Attention: the better of both kinds of attention is above
none by more than two standard errors.
"""

import itertools
import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch

from dragoman.data.batching import make_batch, plan_epoch
from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.rules import higher, mean
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import (
    LENGTHS,
    base_arms,
    config_of,
    measure_translation,
    prepared_text,
    scaled,
    translation_arm,
)
from dragoman.lab.variants import COLUMNS, better, of_variant, quality_figures
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.sequence_model import make_model

KINDS = {"none": "LSTM", "additive": "LSTM, additive", "multiplicative": "LSTM, multiplicative"}


def arms(settings: LabSettings) -> list[Arm]:
    steps = scaled("table3-base", settings.size).train.steps
    smoke = settings.size == "smoke"
    sentences, every = (1, 2) if smoke else (200, steps // 5)
    watched: dict[str, Any] = {"train__valid_steps": every, "train__valid_sentences": sentences}
    width = 16 if smoke else 192  # so that the parameters come out as those of the base row
    lstm: dict[str, Any] = {
        "model__architecture": "lstm", "model__d_model": width, "model__num_heads": 1, "model__d_k": None,
        "model__d_v": None, "model__encoder_layers": 1, "model__decoder_layers": 2,
    }  # fmt: skip
    found = [translation_arm(settings, "Transformer", 1, **watched)]
    found += [
        translation_arm(settings, name, 1, **watched, **lstm, model__recurrent_attention=kind)
        for kind, name in KINDS.items()
    ]
    timed = [Arm("rnn-time", arm.name, arm.configuration, 0.1) for arm in found]
    return base_arms(settings) + found + timed


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    return measure_translation(arm, settings) if arm.kind == "translation" else step_time(arm, settings)


def step_time(arm: Arm, settings: LabSettings) -> Measurements:
    """Processor time of a training step: the median of several with different batches."""
    config, prepared = config_of(arm), prepared_text(settings)
    took = []
    with one_thread():
        model = make_model(config.model)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        for step in plan_epoch(prepared.train, config.train.batch_tokens, config.train.micro_batch_tokens, 1, 0)[:8]:
            began = time.process_time()
            for rows in step:
                batch = make_batch(prepared.train, rows, prepared.tokenizer)
                hidden = model.states(batch.source, batch.target, batch.source_mask)
                loss, _ = smoothed_cross_entropy(batch.real_states(hidden), model.output.weight, batch.labels, 0.1)
                (loss / batch.tokens).backward()
            optimizer.step()
            optimizer.zero_grad()
            took.append(time.process_time() - began)
    epoch = len(plan_epoch(prepared.train, config.train.batch_tokens, config.train.micro_batch_tokens, 1, 0))
    return {"step_seconds": statistics.median(took[1:]), "epoch_seconds": statistics.median(took[1:]) * epoch}


def curve(measured: Sequence[MeasuredArm], name: str) -> list[tuple[float, float]]:
    """Points (seconds, BLEU) of a training, from its start on."""
    trained = next(k for k in measured if k.arm.kind == "translation" and k.arm.name == f"{name}, seed 1")
    step = next(
        k.measurements["step_seconds"] for k in measured if k.arm.kind == "rnn-time" and k.arm.name == f"{name}, seed 1"
    )
    return [(0.0, 0.0)] + [(at * step, score) for at, _, score in trained.measurements["validations"]]


def at_time(points: Sequence[tuple[float, float]], seconds: float) -> float:
    """BLEU at a time, interpolated between validations; after the last one, its BLEU."""
    for (x, y), (next_x, next_y) in itertools.pairwise(points):
        if seconds <= next_x:
            return y + (next_y - y) * (seconds - x) / (next_x - x)
    return points[-1][1]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    best = max(KINDS.values(), key=lambda name: mean(of_variant(measured, name, "bleu")))
    ours, theirs = curve(measured, "Transformer"), curve(measured, best)
    seconds = min(ours[-1][0], theirs[-1][0])
    here, there = at_time(ours, seconds), at_time(theirs, seconds)
    attentive = max(
        (KINDS["additive"], KINDS["multiplicative"]), key=lambda name: mean(of_variant(measured, name, "bleu"))
    )
    return [
        better(measured, "The Transformer is better than the best LSTM at equal steps.", "base", best),
        Finding("And at equal time.", higher([here], [there], least=0.5),
                f"after {seconds:.0f} s of one core: BLEU {here:.1f} against {there:.1f} ({best})"),
        better(measured, "Attention helps the LSTM.", attentive, KINDS["none"]),
    ]  # fmt: skip


def run(settings: LabSettings) -> ExperimentResult:
    measured = settings.queue.measure_all(arms(settings), lambda arm: measure(arm, settings))
    names = ["Transformer", *KINDS.values()]
    by_length = {
        name: next(k.measurements["bleu_by_length"] for k in measured if k.arm.name == f"{name}, seed 1")
        for name in names
    }
    curves = {name: curve(measured, name) for name in names}
    ends = sorted({round(seconds) for points in curves.values() for seconds, _ in points})
    figures = [
        *quality_figures([one for one in measured if one.arm.kind == "translation"])[:2],
        Figure("BLEU while training, by processor time", ends,
               {name: [at_time(points, s) if s <= points[-1][0] + 1 else None for s in ends]
                for name, points in curves.items()}, "seconds of one core", "BLEU (greedy, 200 validation sentences)"),
        Figure("BLEU by words of the source", list(range(len(LENGTHS))), by_length, "words", "BLEU", "bars",
               labels=[f"{low} to {high}" if high < 999 else f"{low} and more" for low, high in LENGTHS]),
    ]  # fmt: skip
    notes = [
        f"{one.arm.name}: {one.measurements['step_seconds'] * 1000:.0f} ms a step, "
        f"{one.measurements['epoch_seconds']:.0f} s an epoch"
        for one in measured
        if one.arm.kind == "rnn-time"
    ]
    return conclude("rnn", settings, measured, judge(measured), (*COLUMNS, "step_seconds"), figures, notes)
