"""Chooses model, batch, warm-up and schedule for so many pairs and so much time. Imports no torch.

Where each figure comes from, and what is still a guess, is in docs/guides/your-data.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dragoman.config import Optimizer, TrainConfig
from dragoman.data.tokenizer import choose_vocab_size

# Target tokens a second of the smallest model, for what is decided before the probe: usual, and more than can be had.
ROUGH_SPEED, QUICKEST = 5_000, 30_000


@dataclass(frozen=True)
class Size:
    """A model, and from when on it is worth its time."""

    name: str
    encoder_layers: int
    decoder_layers: int
    d_model: int
    d_ff: int
    num_heads: int
    optimizer: Optimizer
    peak_rate: float
    least_pairs: int
    least_epochs: float  # a smaller model that sees the data more often beats a larger one that sees it less


SIZES = (
    Size("tiny", 4, 2, 128, 512, 4, "muon", 8e-3, 0, 0.0),
    Size("small", 4, 2, 192, 768, 6, "muon", 6e-3, 20_000, 6.0),
    Size("medium", 6, 3, 256, 1024, 8, "muon", 4e-3, 200_000, 6.0),
    Size("base", 6, 6, 512, 2048, 8, "adam", 7e-4, 1_000_000, 6.0),
)

HELD_OUT = 1000  # sentences for validation, and as many for the test ...
LEAST_SHARE = 20  # ... but no more than a twentieth of the pairs each
_MOST_EPOCHS = 60  # what Multi30k still gained from
_LEAST_STEPS = 3_000  # with which a small corpus may be seen more often than that
_HURRY = 3.0  # minutes, below which validating takes too large a share of them
_SMALL_TOKENS, _LARGE_TOKENS = 200_000, 5_000_000  # of the target side


@dataclass(frozen=True)
class CorpusSize:
    """What sizing needs to know of the training text."""

    pairs: int
    target_tokens: int


@dataclass(frozen=True)
class Plan:
    """What will be trained, and what that is expected to come to."""

    size: str
    tokens_per_second: float  # as probed
    minutes: float  # of training
    steps: int
    epochs: float
    settings: dict[str, Any]  # for the configuration


def held_out(pairs: int) -> int:
    """Returns how many sentences to validate with, and as many again to test with."""
    return min(HELD_OUT, pairs // LEAST_SHARE)


def vocabulary(characters: int, minutes: float) -> int:
    """Returns the vocabulary's size: as many pieces as the text supports; in a hurry half, since the last layer's time
    goes by them."""
    supported = choose_vocab_size(characters)
    hurried = minutes * 60 * ROUGH_SPEED < 5 * characters / 8  # both sides' characters, some four a token
    return max(1000, supported // 2) if hurried else supported


def candidates(corpus: CorpusSize, minutes: float) -> Sequence[Size]:
    """What a probe should try, the largest first, until one sees the text often enough: those that so many pairs may be
    worth, without those that no ordinary machine would be quick enough for."""
    return [
        size
        for size in reversed(SIZES)
        if size.least_pairs <= corpus.pairs and often_enough(size, corpus, minutes, QUICKEST)
    ]


def often_enough(size: Size, corpus: CorpusSize, minutes: float, speed: float) -> bool:
    return _epochs(corpus, minutes, speed) >= size.least_epochs


def batch_of(corpus: CorpusSize) -> dict[str, int]:
    """Returns the tokens of a step: small text needs many small steps, a large one steadier ones."""
    if corpus.target_tokens < _SMALL_TOKENS:
        return {"train.batch_tokens": 500, "train.micro_batch_tokens": 125}
    if corpus.target_tokens < _LARGE_TOKENS:
        return {"train.batch_tokens": 1000, "train.micro_batch_tokens": 250}
    return {"train.batch_tokens": 2000, "train.micro_batch_tokens": 500}


def model_and_optimizer(size: Size, dropout: float) -> dict[str, Any]:
    """Returns all settings of a size that decide how long a step takes."""
    return {
        "model.encoder_layers": size.encoder_layers,
        "model.decoder_layers": size.decoder_layers,
        "model.d_model": size.d_model,
        "model.d_ff": size.d_ff,
        "model.num_heads": size.num_heads,
        "model.dropout": dropout,
        "model.norm_order": "pre",
        "train.optimizer": size.optimizer,
    }


def choose(
    corpus: CorpusSize,
    minutes: float,
    speeds: Mapping[str, float],
    batch_tokens: int | None = None,
    optimizer: Optimizer | None = None,
) -> Plan:
    """Chooses the largest probed model that sees the text often enough in the time; the smallest, where none does.

    batch_tokens of a step and optimizer: where the user insists.
    """
    probed = [size for size in SIZES if size.name in speeds]
    fitting = (s for s in reversed(probed) if often_enough(s, corpus, minutes, speeds[s.name]))
    size = next(fitting, probed[0])
    speed = speeds[size.name]
    batch = batch_of(corpus)
    step_tokens = batch_tokens or batch["train.batch_tokens"]
    in_time = int(speed * 60 * minutes / step_tokens)
    enough = max(_LEAST_STEPS, round(_MOST_EPOCHS * corpus.target_tokens / step_tokens))
    steps = max(1, min(in_time, enough))
    tokens = steps * step_tokens
    epochs = tokens / corpus.target_tokens
    validations = max(50, steps // 12)
    settings = {
        **model_and_optimizer(size, _dropout(epochs)),
        **batch,
        # The clock ends a run that has less time than steps; the rate falls to zero by whichever comes first.
        "train.steps": enough,
        "train.minutes": minutes,
        "train.schedule": "linear",
        "train.warmup_steps": max(20, min(400, steps // 10)),
        # What Adam was measured with, at both sizes; on the demo's text the whole of it was worse.
        "train.peak_rate": size.peak_rate / 2 if (size.optimizer, optimizer) == ("muon", "adam") else size.peak_rate,
        "train.valid_steps": validations,
        "train.valid_sentences": 200 if minutes >= _HURRY else 100,
        "train.processes": 0,
    }
    return Plan(size.name, speed, tokens / speed / 60, steps, epochs, settings)


def longer(settings: TrainConfig, plan: Plan, minutes: float) -> Plan:
    """The plan of a run that gets so many minutes of training in all, where it had fewer: the same model."""
    steps = max(plan.steps, min(settings.steps, round(plan.steps * minutes / max(plan.minutes, 1e-9))))
    return replace(plan, minutes=minutes, steps=steps, epochs=plan.epochs * steps / plan.steps)


def _epochs(corpus: CorpusSize, minutes: float, speed: float) -> float:
    return speed * 60 * minutes / corpus.target_tokens


def _dropout(epochs: float) -> float:
    """Returns the dropout: what is seen five times cannot be learned by heart, what is seen fifty times can."""
    for most, dropout in ((8, 0.0), (20, 0.1), (40, 0.2)):
        if epochs < most:
            return dropout
    return 0.3
