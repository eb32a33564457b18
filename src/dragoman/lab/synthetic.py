"""Arms that train a small Transformer on a made-up translation task: the target is the source in reverse order.

Seconds each, so that a question about training can have several seeds and several rates. One rule for all: widths 48,
two layers a side, 24 sequences of 4 to 10 symbols a step, Adam with the paper's betas, a rate that rises over the
warm-up and falls straight to zero. What an experiment changes is in the arm's configuration.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Measurements
from dragoman.lab.rules import mean
from dragoman.lab.tasks import FIRST, Pairs, fit, generator, one_thread, sequence_loss, thinned, token_accuracy
from dragoman.model.transformer import Transformer

SYMBOLS, SHORTEST, LONGEST, BATCH = 12, 4, 10, 24
STEPS, WARMUP, RATE, D_MODEL = 500, 100, 2e-3, 48
TESTED = (4, 6, 8, 10)  # lengths


def synthetic_arm(
    settings: LabSettings, name: str, seed: int, *, rate: float = RATE, warmup: int = WARMUP,
    embedding_std: float = 1.0, **model: Any,
) -> Arm:  # fmt: skip
    """An arm whose model has these changes. `embedding_std` multiplies the first weights of the input embeddings."""
    smoke = settings.size == "smoke"
    configuration = {
        "seed": seed, "rate": rate, "warmup": warmup, "model": model, "embedding_std": embedding_std,
        "steps": 3 if smoke else STEPS, "tested": 2 if smoke else 100,
    }  # fmt: skip
    layers = model.get("encoder_layers", 2) / 2
    return Arm("synthetic", f"{name}, seed {seed}", configuration, layers)


def make_reverser(seed: int, embedding_std: float = 1.0, **changes: Any) -> Transformer:
    torch.manual_seed(seed)
    shape: dict[str, Any] = {
        "vocab_size": FIRST + SYMBOLS, "encoder_layers": 2, "decoder_layers": 2, "d_model": D_MODEL, "d_ff": 96,
        "num_heads": 4, "dropout": 0.0, "norm_order": "pre",
    }  # fmt: skip
    model = Transformer(ModelConfig(**(shape | changes)))
    if embedding_std != 1.0:
        with torch.no_grad():
            for embedding in (model.source_embedding, model.target_embedding):
                next(embedding.tokens.parameters()).mul_(embedding_std)
    return model


def draw_reversed(count: int, length: int, draw: torch.Generator) -> Pairs:
    source = torch.randint(FIRST, FIRST + SYMBOLS, (count, length), generator=draw)
    return source, source.flip(1)


def train_reverser(
    model: Transformer,
    seed: int,
    steps: int,
    rate: float = RATE,
    warmup: int = WARMUP,
    norms: list[float] | None = None,
) -> list[float]:
    """The losses of its training; the norms of its gradients are added to `norms`."""

    def loss_at(step: int) -> Tensor:
        draw = generator(seed, step)
        length = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=draw))
        return sequence_loss(model, draw_reversed(BATCH, length, draw))

    return fit(model, loss_at, steps, rate, warmup, norms)


def measure_synthetic(arm: Arm) -> Measurements:
    values = arm.configuration
    with one_thread():
        model = make_reverser(values["seed"], values["embedding_std"], **values["model"])
        norms: list[float] = []
        losses = train_reverser(model, values["seed"], values["steps"], values["rate"], values["warmup"], norms)
        accuracies = [token_accuracy(model, draw_reversed(values["tested"], n, generator(values["seed"], 0, n)))
                      for n in TESTED]  # fmt: skip
    last = losses[-max(1, len(losses) // 20) :]
    return {
        "accuracy": mean(accuracies),
        "final_loss": mean(last),
        "losses": thinned(losses),
        "gradient_norms": thinned(norms),
    }


def of_synthetic(measured: Sequence[MeasuredArm], name: str, measurement: str) -> list[float]:
    """One measurement of the arms of a name, a value for each seed."""
    return [one.measurements[measurement] for one in measured
            if one.arm.kind == "synthetic" and one.arm.name.rpartition(", seed ")[0] == name]  # fmt: skip
