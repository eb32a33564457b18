"""Recall over a distance, and the two sides of parallelism.

Claim: Paths of constant length make dependencies over a distance easier to learn than a recurrent layer's (section
4); and training is parallel over positions where a recurrent model's is not (section 1), while generation is one
token at a time for both.

Method: The target begins with a symbol; noise follows, then a sign that asks for the symbol, 10 to 500 positions after
it. The source says nothing. A Transformer and an LSTM with attention to its source (1 + 2 layers each, the same number
of parameters; the LSTM's forget gates begin open) are trained for each distance with equal steps, on the answer alone.
Then processor time of one training pass over 16 targets of T tokens, and of writing T tokens one at a time.

Rule: Recall: at the longest distance the Transformer's mean accuracy is above the LSTM's by more than two standard
errors and at least 0.1; undecided if not both have 0.9 at the shortest, for then the task itself was not learned.
Training time: at the longest T the Transformer's pass takes less than the LSTM's. Generation: for both models one at
a time takes at least three times one pass forward over the same tokens.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.evaluation.charts import Figure
from dragoman.lab.catalogue import conclude
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements, values_of
from dragoman.lab.result import ExperimentResult, Finding
from dragoman.lab.rules import higher, mean, shown, spread, yes
from dragoman.lab.tasks import END, FIRST, START, fit, generator, one_thread, thinned
from dragoman.model.sequence_model import SequenceModel, make_model, next_logits
from dragoman.model.transformer import count_parameters

SYMBOLS = 12
NOISE_FROM = FIRST + SYMBOLS
ASK = NOISE_FROM + SYMBOLS
MODELS = ("transformer", "lstm")


def arms(settings: LabSettings) -> list[Arm]:
    smoke = settings.size == "smoke"
    distances, steps, tested = ((10, 20), 2, 4) if smoke else ((10, 30, 100, 250, 500), 1000, 300)
    lengths = [8, 16] if smoke else [16, 64, 128, 256]
    return [
        Arm("distance", f"{model}, {distance} back, seed {seed}",
            {"part": "recall", "model": model, "distance": distance, "seed": seed, "steps": steps,
             "tested": tested}, distance / 100)
        for distance in distances
        for model in MODELS
        for seed in settings.seed_list(2)
    ] + [
        Arm("distance", f"time of {model}", {"part": "time", "model": model, "lengths": lengths}, 0.3)
        for model in MODELS
    ]  # fmt: skip


def measure(arm: Arm) -> Measurements:
    values = arm.configuration
    with one_thread():
        if values["part"] == "recall":
            return recall(values["model"], values["distance"], values["seed"], values["steps"], values["tested"])
        return times(values["model"], values["lengths"])


def model_of(name: str, d_model: int = 64) -> SequenceModel:
    """Both have about 160,000 parameters, embeddings included."""
    shape: dict[str, Any] = {"vocab_size": ASK + 1, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.0}
    if name == "transformer":
        return make_model(ModelConfig(**shape, d_model=d_model, d_ff=3 * d_model, num_heads=4, norm_order="pre"))
    model = make_model(ModelConfig(**shape, architecture="lstm", d_model=d_model + 8, num_heads=1))
    for parameter_name, parameter in model.named_parameters():
        if "bias_hh" in parameter_name:  # torch's order of gates: input, forget, cell, output
            torch.nn.init.ones_(parameter.detach().chunk(4)[1])
    return model


def draw_recall(count: int, distance: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, decoder inputs (B, distance + 2), and the right answer after the last token (B)."""
    asked = torch.randint(FIRST, FIRST + SYMBOLS, (count, 1), generator=draw)
    noise = torch.randint(NOISE_FROM, NOISE_FROM + SYMBOLS, (count, distance - 1), generator=draw)
    start, ask, source = (torch.full((count, 1), symbol) for symbol in (START, ASK, END))
    return source, torch.cat((start, asked, noise, ask), dim=1), asked[:, 0]


def recall(name: str, distance: int, seed: int, steps: int, tested: int) -> Measurements:
    torch.manual_seed(seed)
    model = model_of(name)

    def answers(source: Tensor, fed: Tensor) -> Tensor:
        return model.output(model.states(source, fed)[:, -1])  # type: ignore[no-any-return]

    def loss_at(step: int) -> Tensor:
        source, fed, right = draw_recall(16, distance, generator(seed, step))
        return F.cross_entropy(answers(source, fed), right)

    losses = fit(model, loss_at, steps, 2e-3, 50)
    model.eval()
    with torch.inference_mode():
        source, fed, right = draw_recall(tested, distance, generator(seed, 0))
        accuracy = float((answers(source, fed).argmax(-1) == right).float().mean())
    return {"accuracy": accuracy, "losses": thinned(losses), "parameters": count_parameters(model)}


def times(name: str, lengths: Sequence[int]) -> Measurements:
    torch.manual_seed(1)
    model, source = model_of(name), torch.randint(FIRST, ASK, (16, 16))

    def train_pass(target: torch.Tensor) -> None:
        logits = model(source, target)
        F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()

    def forward(target: torch.Tensor) -> None:
        with torch.inference_mode():
            model(source, target)

    def write(target: torch.Tensor) -> None:
        with torch.inference_mode():
            state, last = model.start(source), torch.full((16, 1), START)
            for _ in range(target.shape[1]):
                last = next_logits(model, last, state).argmax(-1)

    found: Measurements = {"lengths": list(lengths)}
    for label, work in (("train", train_pass), ("forward", forward), ("write", write)):
        found[f"{label} ms"] = [
            1000 * least(partial(work, torch.randint(FIRST, ASK, (16, length)))) for length in lengths
        ]
    return found


def least(work: Callable[[], None], rounds: int = 4) -> float:
    """The least processor time of several calls, in seconds."""
    took = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def judge(measured: Sequence[MeasuredArm]) -> list[Finding]:
    distances = [one.arm.configuration["distance"] for one in measured if "distance" in one.arm.configuration]
    shortest, longest = min(distances), max(distances)
    near, far = (
        [values_of(measured, "accuracy", part="recall", model=m, distance=distance) for m in MODELS]
        for distance in (shortest, longest)
    )
    learned = min(map(mean, near)) >= 0.9
    timed = {
        one.arm.configuration["model"]: one.measurements for one in measured if one.arm.configuration["part"] == "time"
    }
    length = timed["lstm"]["lengths"][-1]
    training = {model: found["train ms"][-1] for model, found in timed.items()}
    slower = {model: found["write ms"][-1] / found["forward ms"][-1] for model, found in timed.items()}
    return [
        Finding("Over a long distance the Transformer learns what the LSTM does not.",
                higher(far[0], far[1], least=0.1) if learned else "undecided",
                f"accuracy {longest} positions back: {' against '.join(shown(values, 3) for values in far)}; "
                f"{shortest} back: {' and '.join(shown(values, 3) for values in near)}"),
        Finding("A training pass is quicker.", yes(training["transformer"] < training["lstm"]),
                f"{training['transformer']:.0f} ms against {training['lstm']:.0f} ms at {length} tokens, on one core"),
        Finding("Generation is one token at a time for both.", yes(min(slower.values()) >= 3),
                ", ".join(f"{model}: writing takes {ratio:.1f} times a pass" for model, ratio in slower.items())),
    ]  # fmt: skip


def run(settings: LabSettings) -> ExperimentResult:
    measured = settings.queue.measure_all(arms(settings), measure)
    distances = sorted({one.arm.configuration["distance"] for one in measured if "distance" in one.arm.configuration})
    timed = {
        one.arm.configuration["model"]: one.measurements for one in measured if one.arm.configuration["part"] == "time"
    }

    def found(model: str, distance: int) -> list[float]:
        return values_of(measured, "accuracy", part="recall", model=model, distance=distance)

    figures = [
        Figure("Accuracy of recall by distance", distances, {m: [mean(found(m, d)) for d in distances] for m in MODELS},
               "positions back", "accuracy", log_x=True,
               spread={m: [spread(found(m, d)) for d in distances] for m in MODELS}),
        Figure("Time by target length, 16 sentences", timed["lstm"]["lengths"],
               {f"{model}, {what}": timed[model][f"{what} ms"] for model in MODELS for what in ("train", "write")},
               "tokens", "milliseconds of one core", log_x=True, log_y=True),
    ]  # fmt: skip
    notes = [
        "On one core nothing is parallel: what is left of the advantage in training is that of large matrix products."
    ]
    return conclude("distance", settings, measured, judge(measured), ("accuracy", "parameters"), figures, notes)
