"""The systems that the Transformer replaced.

Claim: The Transformer is better than recurrent encoder-decoders and trains in a fraction of the time (abstract, Table
2). Attention had been what made those work on longer sentences (section 1 and its references).

Method: On Multi30k, all of it and its first 5,000 pairs: the Transformer of the base row and LSTM encoder-decoders
without attention, with additive and with multiplicative attention, of about as many parameters. Equal trials for
each: three highest rates by two dropouts, one seed, the lowest validation loss is chosen; then five seeds of it.
Every training goes on to a plateau: until four validations, 300 steps apart, brought no better BLEU on 200 validation
sentences, at most 9,000 steps of 1,000 tokens. The same search for all: the reference engine, beam 4, α 0.6. Per pair
of systems and seed a paired bootstrap over the test sentences (how often the sign of the difference turns), and an
interval of the difference across seeds. The measured time of a step (processor time of one core) times the steps says
what a training cost. An earlier run's recorded arms of the quick family have one seed each at unequal rates: shown,
not judged.

Rule: For each amount of text: BLEU of the Transformer is above that of the best LSTM by at least 0.5; the better of
both kinds of attention is above none by at least 0.5. Time: the Transformer's time to the best LSTM's final
validation BLEU is below that LSTM's own (a ratio, five seeds), on all of the text.
"""

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from dragoman.data.batching import make_batch, plan_epoch
from dragoman.evaluation.charts import Figure
from dragoman.lab.bootstrap import turns
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import Finding
from dragoman.lab.rules import higher, mean, not_measured, times_higher
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import (
    LENGTHS,
    base_arms,
    chosen,
    config_of,
    measure_translation,
    paper_arm,
    prepared_text,
    scaled,
    translation_arm,
)
from dragoman.lab.variants import COLUMNS, of_variant, quality_figures, translators, variant_of
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.sequence_model import make_model

OURS = "Transformer"
KINDS = {"none": "LSTM", "additive": "LSTM, additive", "multiplicative": "LSTM, multiplicative"}
SYSTEMS = (OURS, *KINDS.values())
RATES, DROPOUTS = (1e-3, 2e-3, 4e-3), (0.1, 0.3)
AMOUNTS = {"5,000 pairs": 5000, "29,000 pairs": None}
PATIENCE, EVERY, MOST = 4, 300, 9000


def shape_of(system: str, smoke: bool) -> dict[str, Any]:
    """What makes a system: the Transformer is the base row as it is."""
    if system == OURS:
        return {}
    kind = next(kind for kind, name in KINDS.items() if name == system)
    return {
        "model__architecture": "lstm", "model__d_model": 16 if smoke else 192, "model__num_heads": 1,
        "model__d_k": None, "model__d_v": None, "model__encoder_layers": 1, "model__decoder_layers": 2,
        "model__norm_order": "post", "model__recurrent_attention": kind,
    }  # fmt: skip


def arms(settings: LabSettings) -> list[Arm]:
    smoke = settings.size == "smoke"
    plateau: dict[str, Any] = {
        "train__steps": 4 if smoke else MOST, "train__valid_steps": 2 if smoke else EVERY, "train__patience": PATIENCE,
        "train__valid_sentences": 1 if smoke else 200,
    }  # fmt: skip
    trials, final = [], []
    for amount, pairs in AMOUNTS.items():
        count = 40 if smoke and pairs else pairs
        for system in SYSTEMS:
            settings_of = plateau | shape_of(system, smoke)
            grid = [(rate, dropout) for rate in RATES for dropout in DROPOUTS][: 1 if smoke else None]
            tried = {
                (rate, dropout): paper_arm(
                    settings, f"trial: {system}, {amount}, {rate:g}, {dropout:g}", 1, pairs=count,
                    train__peak_rate=rate, model__dropout=dropout, **settings_of,
                )
                for rate, dropout in grid
            }  # fmt: skip
            trials += list(tried.values())
            rate, dropout = chosen(settings, tried)
            final += [
                paper_arm(settings, f"{system}, {amount}", seed, pairs=count, train__peak_rate=rate,
                          model__dropout=dropout, **settings_of)
                for seed in settings.seed_list(5)
            ]  # fmt: skip
    timed = [Arm("rnn-time", arm.name, arm.configuration, 0.1) for arm in final if arm.name.endswith("seed 1")]
    return recorded(settings) + trials + final + timed


def recorded(settings: LabSettings) -> list[Arm]:
    """The arms of an earlier run, whose LSTMs had another rate than the Transformer."""
    smoke = settings.size == "smoke"
    steps = scaled("table3-base", settings.size).train.steps
    watched: dict[str, Any] = {"train__valid_steps": 2 if smoke else steps // 5,
                               "train__valid_sentences": 1 if smoke else 200}  # fmt: skip
    shapes = {system: shape_of(system, smoke) for system in SYSTEMS}
    for system in KINDS.values():
        shapes[system]["model__norm_order"] = "pre"
    return base_arms(settings)[:1] + [
        translation_arm(settings, f"recorded: {system}", 1, **(watched | shape)) for system, shape in shapes.items()
    ]


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    return step_time(arm, settings) if arm.kind == "rnn-time" else measure_translation(arm, settings)


def step_time(arm: Arm, settings: LabSettings) -> Measurements:
    """Processor time of a training step: the median of several with different batches."""
    config, prepared = config_of(arm), prepared_text(settings, arm.configuration.get("pairs"))
    took = []
    with one_thread():
        model = make_model(config.model)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        plan = plan_epoch(prepared.train, config.train.batch_tokens, config.train.micro_batch_tokens, 1, 0)
        for step in plan[:16]:
            began = time.process_time()
            for rows in step:
                batch = make_batch(prepared.train, rows, prepared.tokenizer)
                hidden = model.states(batch.source, batch.target, batch.source_mask)
                loss, _ = smoothed_cross_entropy(batch.real_states(hidden), model.output.weight, batch.labels, 0.1)
                (loss / batch.tokens).backward()
            optimizer.step()
            optimizer.zero_grad()
            took.append(time.process_time() - began)
    return {"step_seconds": statistics.median(took[1:] or took), "epoch_seconds": statistics.median(took) * len(plan)}


def best_of(measured: Sequence[MeasuredArm], systems: Sequence[str], amount: str) -> str | None:
    """The system with the highest mean BLEU; None until all are measured with several seeds."""
    scores = {system: of_variant(measured, f"{system}, {amount}", "bleu") for system in systems}
    if min(map(len, scores.values())) < 2:
        return None
    return max(scores, key=lambda system: mean(scores[system]))


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    findings = []
    for amount in AMOUNTS:
        for claim, systems, others in (
            ("the Transformer is better than the best LSTM", (OURS,), tuple(KINDS.values())),
            ("attention helps the LSTM", (KINDS["additive"], KINDS["multiplicative"]), (KINDS["none"],)),
        ):
            a, b = best_of(measured, systems, amount), best_of(measured, others, amount)
            if a is None or b is None:
                findings.append(not_measured(f"{amount}: {claim}.", "waits for the trials and five seeds of each"))
                continue
            of_a, of_b = (of_variant(measured, f"{name}, {amount}", "bleu") for name in (a, b))
            found = higher(f"{amount}: {claim}.", of_a, of_b, (a, b), "BLEU", 0.5)
            findings.append(with_bootstrap(found, measured, f"{a}, {amount}", f"{b}, {amount}"))
    return [*findings, time_finding(measured)]


def with_bootstrap(found: Finding, measured: Sequence[MeasuredArm], a: str, b: str) -> Finding:
    """The finding with how often, within each seed, the sign of the difference turns when sentences are drawn again."""
    pairs = zip(
        of_variant(measured, a, "sentence_statistics"), of_variant(measured, b, "sentence_statistics"), strict=False
    )
    shares = ", ".join(f"{turns(str(one), str(other)):.1%}" for one, other in pairs)
    return replace(found, because=f"{found.because}; within the seeds the sign turns in {shares} of resamples")


def seconds_of_a_step(measured: Sequence[MeasuredArm], system: str, amount: str) -> float | None:
    return next((one.measurements["step_seconds"] for one in measured
                 if one.arm.kind == "rnn-time" and variant_of(one) == f"{system}, {amount}"), None)  # fmt: skip


def time_finding(measured: Sequence[MeasuredArm]) -> Finding:
    amount = "29,000 pairs"
    claim = f"{amount}: the Transformer is as good in less time."
    best = best_of(measured, tuple(KINDS.values()), amount)
    ours, theirs = (None if name is None else seconds_of_a_step(measured, name, amount) for name in (OURS, best))
    if best is None or ours is None or theirs is None or best_of(measured, (OURS,), amount) is None:
        return not_measured(claim, "waits for the trials and five seeds of each")
    curves = [of_variant(measured, f"{name}, {amount}", "validations") for name in (best, OURS)]
    whole, reached = [], []
    for their_curve, our_curve in zip(*curves, strict=False):
        step, _, score = max(their_curve, key=lambda point: point[2])
        whole.append(step * theirs)
        reached.append(next((at * ours for at, _, bleu in our_curve if bleu >= score), math.inf))
    if math.inf in reached:
        missed = reached.count(math.inf)
        return Finding(
            claim, "does not hold here", f"in {missed} of {len(reached)} seeds it never got to the BLEU of {best}"
        )
    return times_higher(claim, whole, reached, (f"seconds to the best of {best}", f"of {OURS} to the same"), 1.0, 0)


def show(measured: Sequence[MeasuredArm]) -> Shown:
    finals = [one for one in translators(measured) if not one.arm.name.startswith("trial")]
    figures = quality_figures(finals)[:2]
    names = list(dict.fromkeys(map(variant_of, finals)))
    by_length = {name: next(one.measurements["bleu_by_length"] for one in finals if variant_of(one) == name)
                 for name in names}  # fmt: skip
    if by_length:
        figures.append(
            Figure("BLEU by words of the source, first seed", list(range(len(LENGTHS))), by_length, "words", "BLEU",
                   "bars", labels=[f"{low} to {high}" if high < 999 else f"{low} and more" for low, high in LENGTHS])
        )  # fmt: skip
    notes = [
        f"{one.arm.name}: {one.measurements['step_seconds'] * 1000:.0f} ms a step, "
        f"{one.measurements['epoch_seconds']:.0f} s an epoch"
        for one in measured
        if one.arm.kind == "rnn-time"
    ]
    return Shown((*COLUMNS, "step_seconds"), figures, notes)
