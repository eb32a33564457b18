"""Averaging checkpoints.

Claim: Averaging the last 5 checkpoints (base) or 20 (big) gives the model that is scored (6.1): it is better than the
last.

Method: The base row on Multi30k with a checkpoint at every twentieth of the training; BLEU (greedy) of the averages
of the last 1, 2, 3, 5 and 10 checkpoints. Two epochs in the quick family, by a rate in the form of equation 3, which
does not fall to zero, and by one that does; and twenty epochs in the paper's family.

Rule: Paired differences over the seeds: BLEU of the average of 5 is above that of the last checkpoint alone by at
least 0.1, by equation 3's rate, for two epochs and for twenty. Where the rate falls to zero, an average goes back in
time: the average of 10 is worse than the last.
"""

from collections.abc import Sequence
from typing import Any

import torch

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import Shown
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import Finding
from dragoman.lab.rules import higher_in_pairs, mean, spread
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import (
    bleu,
    long_arm,
    measure_translation,
    paper_trials,
    prepared_text,
    run_of,
    scaled,
    test_set,
    translate_greedily,
    translation_arm,
)
from dragoman.model.checkpoint import average, load_model, weights_of

COUNTS = (1, 2, 3, 5, 10)


def arms(settings: LabSettings) -> list[Arm]:
    def saving(steps: int) -> dict[str, Any]:
        return {"train__valid_steps": max(1, steps // 20), "train__keep_checkpoints": 10,
                "train__average_checkpoints": 1}  # fmt: skip

    steps = scaled("table3-base", settings.size).train.steps
    rates: dict[str, dict[str, Any]] = {"equation 3": {"train__schedule": "paper"}, "to zero": {}}
    found = []
    for rate, changes in rates.items():
        for seed in settings.seed_list(3):
            like = translation_arm(settings, rate, seed, **saving(steps), **changes)
            found.append(Arm("averaging", like.name, {**like.configuration, "rate": rate, "seed": seed}, like.cost))
    found += list(paper_trials(settings).values())
    for seed in settings.seed_list(3):
        steps = long_arm(settings, "", seed).configuration["train"]["steps"]
        like = long_arm(settings, "20 epochs", seed, **saving(steps))
        found.append(Arm("averaging", like.name, {**like.configuration, "rate": "20 epochs", "seed": seed}, like.cost))
    return found


def measure(arm: Arm, settings: LabSettings) -> Measurements:
    if arm.kind == "translator":
        return measure_translation(arm, settings)
    run = run_of(arm, settings, "rate", "seed")
    sources, references = test_set(settings)
    model, tokenizer = load_model(run), prepared_text(settings).tokenizer
    found: Measurements = {}
    with one_thread():
        for count in COUNTS:
            weights = average(run.checkpoints()[-count:])
            with torch.no_grad():
                for name, tensor in weights_of(model).items():
                    tensor.copy_(weights[name])
            found[f"bleu of {count}"] = bleu(translate_greedily(model, tokenizer, sources), references)
    return found


def of(measured: Sequence[MeasuredArm], rate: str, count: int) -> list[float]:
    return values_of(measured, f"bleu of {count}", rate=rate)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    def compared(claim: str, rate: str, more: int, fewer: int) -> Finding:
        values = of(measured, rate, more), of(measured, rate, fewer)
        return higher_in_pairs(claim, *values, (f"average of {more}", f"of {fewer}"), "BLEU", least=0.1)

    return [
        compared("Two epochs: the average of the last 5 is better than the last.", "equation 3", 5, 1),
        compared("Twenty epochs: the average of the last 5 is better than the last.", "20 epochs", 5, 1),
        compared("By a rate that falls to zero, the last is better than the average of 10.", "to zero", 1, 10),
    ]


def show(measured: Sequence[MeasuredArm]) -> Shown:
    rates = list(dict.fromkeys(one.arm.configuration["rate"] for one in measured if one.arm.kind == "averaging"))
    figure = Figure("BLEU (greedy) of the average of the last checkpoints", COUNTS,
                    {rate: [mean(of(measured, rate, count)) for count in COUNTS] for rate in rates}, "checkpoints",
                    "BLEU", spread={rate: [spread(of(measured, rate, count)) for count in COUNTS] for rate in rates},
                    )  # fmt: skip
    return Shown([f"bleu of {count}" for count in COUNTS], [figure] if rates else [])
