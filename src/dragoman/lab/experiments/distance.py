"""Recall over a distance, and the two sides of parallelism.

Claim: Paths of constant length make dependencies over a distance easier to learn than a recurrent layer's (section
4); and training is parallel over positions where a recurrent model's is not (section 1), while generation is one
token at a time for both.

Method: A source of four (key, value) pairs, then noise, then one of the keys, asked for 10 to 500 positions later;
the target is its value. The key must meet the pair inside the encoder: a decoder that looks once cannot do it. A
Transformer (2 + 1 layers) and a bidirectional LSTM with attention of the same number of parameters, a training each
for each distance with equal steps. Then processor time of one training pass over 16 targets of T tokens, and of
writing T tokens one at a time.

Rule: Recall: at the longest distance the Transformer's mean accuracy is above the LSTM's by more than two standard
errors and at least 0.1. Training time: at the longest T the Transformer's pass takes less than the LSTM's.
Generation: for both models one at a time takes at least three times one pass forward over the same tokens.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F

from dragoman.config import ModelConfig
from dragoman.lab.catalogue import concluded
from dragoman.lab.queue import Arm, Kept, Measured, Settings, values_of
from dragoman.lab.result import Figure, Finding, Result
from dragoman.lab.rules import higher, mean, shown, spread, yes
from dragoman.lab.tasks import FIRST, START, Pairs, fit, generator, one_thread, sequence_loss, thinned, with_ends
from dragoman.model import Transformer, count_parameters
from dragoman.recurrent import make_model

PAIRS, SYMBOLS = 4, 12
KEYS_FROM, NOISE_FROM = FIRST + SYMBOLS, FIRST + 2 * SYMBOLS  # values, then keys, then noise
MODELS = ("transformer", "lstm")


def arms(settings: Settings) -> list[Arm]:
    smoke = settings.size == "smoke"
    distances, steps, tested = ((10, 20), 2, 4) if smoke else ((10, 30, 100, 250, 500), 700, 300)
    lengths = [8, 16] if smoke else [16, 64, 128, 256]
    return [
        Arm("distance", f"{model}, {distance} back, seed {seed}",
            {"part": "recall", "model": model, "distance": distance, "seed": seed, "steps": steps,
             "tested": tested}, distance / 100)
        for distance in distances
        for model in MODELS
        for seed in settings.seed_list(1)
    ] + [
        Arm("distance", f"time of {model}", {"part": "time", "model": model, "lengths": lengths}, 0.3)
        for model in MODELS
    ]  # fmt: skip


def measure(arm: Arm) -> Measured:
    values = arm.configuration
    with one_thread():
        if values["part"] == "recall":
            return recall(values["model"], values["distance"], values["seed"], values["steps"], values["tested"])
        return times(values["model"], values["lengths"])


def model_of(name: str, d_model: int = 64) -> Transformer:
    """Both have about 150,000 parameters, embeddings included."""
    if name == "lstm":
        config = ModelConfig(architecture="lstm", vocab_size=NOISE_FROM + SYMBOLS, encoder_layers=2, decoder_layers=1,
                             d_model=d_model + 8, num_heads=1, dropout=0.0)  # fmt: skip
    else:
        config = ModelConfig(vocab_size=NOISE_FROM + SYMBOLS, encoder_layers=2, decoder_layers=1, d_model=d_model,
                             d_ff=3 * d_model, num_heads=4, dropout=0.0, norm_order="pre")  # fmt: skip
    return make_model(config)


def draw_recall(count: int, distance: int, draw: torch.Generator) -> Pairs:
    keys = torch.rand(count, SYMBOLS, generator=draw).argsort(1)[:, :PAIRS]
    values = torch.randint(SYMBOLS, (count, PAIRS), generator=draw)
    asked = torch.randint(PAIRS, (count, 1), generator=draw)
    noise = torch.randint(NOISE_FROM, NOISE_FROM + SYMBOLS, (count, distance - 1), generator=draw)
    pairs = torch.stack((keys + KEYS_FROM, values + FIRST), dim=2).flatten(1)
    source = torch.cat((pairs, noise, keys.gather(1, asked) + KEYS_FROM), dim=1)
    return source, values.gather(1, asked) + FIRST


def recall(name: str, distance: int, seed: int, steps: int, tested: int) -> Measured:
    torch.manual_seed(seed)
    model = model_of(name)
    losses = fit(
        model, lambda step: sequence_loss(model, draw_recall(16, distance, generator(seed, step))), steps, 2e-3, 50
    )
    source, fed, labels = with_ends(draw_recall(tested, distance, generator(seed, 0)))
    model.eval()
    with torch.inference_mode():
        parts = [slice(i, i + 50) for i in range(0, tested, 50)]
        guesses = [model(source[part], fed[part, :1])[:, 0].argmax(-1) for part in parts]
    return {
        "accuracy": float((torch.cat(guesses) == labels[:, 0]).float().mean()),
        "losses": thinned(losses),
        "parameters": count_parameters(model),
    }


def times(name: str, lengths: Sequence[int]) -> Measured:
    torch.manual_seed(1)
    model, source = model_of(name), torch.randint(FIRST, NOISE_FROM, (16, 16))

    def train_pass(target: torch.Tensor) -> None:
        logits = model(source, target)
        F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()  # type: ignore[no-untyped-call]

    def forward(target: torch.Tensor) -> None:
        with torch.inference_mode():
            model(source, target)

    def write(target: torch.Tensor) -> None:
        with torch.inference_mode():
            state, last = model.start(source), torch.full((16, 1), START)
            for _ in range(target.shape[1]):
                last = model.step(last, state).argmax(-1)

    found: Measured = {"lengths": list(lengths)}
    for label, work in (("train", train_pass), ("forward", forward), ("write", write)):
        found[f"{label} ms"] = [
            1000 * least(partial(work, torch.randint(FIRST, NOISE_FROM, (16, length)))) for length in lengths
        ]
    return found


def least(work: Callable[[], None], rounds: int = 4) -> float:
    took = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def judge(kept: Sequence[Kept]) -> list[Finding]:
    longest = max(one.arm.configuration.get("distance", 0) for one in kept)
    ours, theirs = (values_of(kept, "accuracy", part="recall", model=m, distance=longest) for m in MODELS)
    timed = {one.arm.configuration["model"]: one.measured for one in kept if one.arm.configuration["part"] == "time"}
    length = timed["lstm"]["lengths"][-1]
    training = {model: found["train ms"][-1] for model, found in timed.items()}
    slower = {model: found["write ms"][-1] / found["forward ms"][-1] for model, found in timed.items()}
    return [
        Finding("Over a long distance the Transformer learns what the LSTM does not.", higher(ours, theirs, least=0.1),
                f"accuracy {longest} positions back: {shown(ours, 3)} against {shown(theirs, 3)}"),
        Finding("A training pass is quicker.", yes(training["transformer"] < training["lstm"]),
                f"{training['transformer']:.0f} ms against {training['lstm']:.0f} ms at {length} tokens, on one core"),
        Finding("Generation is one token at a time for both.", yes(min(slower.values()) >= 3),
                ", ".join(f"{model}: writing takes {ratio:.1f} times a pass" for model, ratio in slower.items())),
    ]  # fmt: skip


def run(settings: Settings) -> Result:
    kept = settings.queue.measured(arms(settings), measure)
    distances = sorted({one.arm.configuration["distance"] for one in kept if "distance" in one.arm.configuration})
    timed = {one.arm.configuration["model"]: one.measured for one in kept if one.arm.configuration["part"] == "time"}

    def found(model: str, distance: int) -> list[float]:
        return values_of(kept, "accuracy", part="recall", model=model, distance=distance)

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
    return concluded("distance", settings, kept, judge(kept), ("accuracy", "parameters"), figures, notes)
