"""Averaging checkpoints.

Claim: Averaging the last 5 checkpoints (base) or 20 (big) gives the model that is scored (6.1): it is better than the
last.

Method: The base row on Multi30k with a checkpoint at every twentieth of the training, by a rate in the form of
equation 3, which does not fall to zero, and by one that does; BLEU and loss of the averages of the last 1, 2, 3, 5
and 10 checkpoints.

Rule: By equation 3's rate, the mean BLEU of the average of 5 is above that of the last checkpoint alone by more than
two standard errors over the seeds (paired differences) and at least 0.1; the reverse is "does not hold here".
"""

from collections.abc import Sequence
from typing import Any

import torch

from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.rules import higher_in_pairs, mean, spread
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import bleu, prepared_text, run_of, scaled, test_set, translate_greedily, translation_arm
from dragoman.model.checkpoint import average, load_model, weights_of

COUNTS = (1, 2, 3, 5, 10)


def arms(settings: LabSettings) -> list[Arm]:
    steps = scaled("table3-base", settings.size).train.steps
    saving: dict[str, Any] = {
        "train__valid_steps": max(1, steps // 20),
        "train__keep_checkpoints": 10,
        "train__average_checkpoints": 1,
    }
    rates: dict[str, dict[str, Any]] = {"equation 3": {"train__schedule": "paper"}, "to zero": {}}
    found = []
    for rate, changes in rates.items():
        for seed in settings.seed_list(2):
            like = translation_arm(settings, rate, seed, **saving, **changes)
            found.append(Arm("averaging", like.name, {**like.configuration, "rate": rate, "seed": seed}, like.cost))
    return found


def measure(arm: Arm, settings: LabSettings) -> Measurements:
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


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    five, last = (values_of(measured, f"bleu of {count}", rate="equation 3") for count in (5, 1))
    return [
        higher_in_pairs("The average of the last 5 is better than the last.", five, last, "BLEU (greedy)", least=0.1)
    ]


def run(settings: LabSettings) -> ExperimentResult:
    measured = settings.queue.measure_all(arms(settings), lambda arm: measure(arm, settings))
    rates = list(dict.fromkeys(one.arm.configuration["rate"] for one in measured))

    def of(rate: str, count: int) -> list[float]:
        return values_of(measured, f"bleu of {count}", rate=rate)

    figure = Figure("BLEU (greedy) of the average of the last checkpoints", COUNTS,
                    {rate: [mean(of(rate, count)) for count in COUNTS] for rate in rates}, "checkpoints", "BLEU",
                    spread={rate: [spread(of(rate, count)) for count in COUNTS] for rate in rates})  # fmt: skip
    notes = ["Where the rate falls to zero, an average goes back in time."]
    columns = [f"bleu of {count}" for count in COUNTS]
    return conclude("averaging", settings, measured, judge(measured), columns, [figure], notes)
