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

from dragoman.config import SearchConfig
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.rules import higher, mean, shown, spread
from dragoman.lab.tasks import one_thread
from dragoman.lab.translation import bleu, prepared_text, scaled, test_set, trained, translation_arm
from dragoman.model.checkpoint import average, load_model, weights_of
from dragoman.translation.translator import Translator

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
    like = {key: value for key, value in arm.configuration.items() if key not in ("rate", "seed")}
    run = trained(Arm("translation", arm.name, like), settings)
    sources, references = test_set(settings)
    model, tokenizer = load_model(run), prepared_text(settings).tokenizer
    search = SearchConfig(beam=1)
    found: Measurements = {}
    with one_thread():
        for count in COUNTS:
            weights = average(run.checkpoints()[-count:])
            with torch.no_grad():
                for name, tensor in weights_of(model).items():
                    tensor.copy_(weights[name])
            translator = Translator(ReferenceEngine([model], tokenizer), tokenizer, search)
            outputs = translator.translate(sources, whole=True, protect=False)
            found[f"bleu of {count}"] = bleu(outputs, references)
    return found


def _differences(measured: Sequence[MeasuredArm]) -> tuple[list[float], list[float]]:
    found = [one.measurements for one in measured if one.arm.configuration["rate"] == "equation 3"]
    return [one["bleu of 5"] for one in found], [one["bleu of 1"] for one in found]


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    five, last = _differences(measured)
    # Paired: both are of the same training, so that the spread of their difference is what counts.
    gains = [a - b for a, b in zip(five, last, strict=True)]
    verdict = higher(gains, [0.0] * len(gains), spread(gains), least=0.1)
    return [
        Finding(
            "The average of the last 5 is better than the last.",
            verdict,
            f"BLEU (greedy) {shown(five)} and {shown(last)}; gains {', '.join(f'{g:+.2f}' for g in gains)}",
        )
    ]


def run(settings: LabSettings) -> ExperimentResult:
    measured = settings.queue.measure_all(arms(settings), lambda arm: measure(arm, settings))
    rates = list(dict.fromkeys(one.arm.configuration["rate"] for one in measured))

    def of(rate: str, count: int) -> list[float]:
        return [one.measurements[f"bleu of {count}"] for one in measured if one.arm.configuration["rate"] == rate]

    figure = Figure("BLEU (greedy) of the average of the last checkpoints", COUNTS,
                    {rate: [mean(of(rate, count)) for count in COUNTS] for rate in rates}, "checkpoints", "BLEU",
                    spread={rate: [spread(of(rate, count)) for count in COUNTS] for rate in rates})  # fmt: skip
    notes = ["Where the rate falls to zero, an average goes back in time."]
    columns = [f"bleu of {count}" for count in COUNTS]
    return conclude("averaging", settings, measured, judge(measured), columns, [figure], notes)
