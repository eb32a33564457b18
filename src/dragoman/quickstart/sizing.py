"""Chooses model, batch, warm-up and schedule for a number of pairs and a time. Imports no torch.

docs/guides/your-data.md says where each figure comes from, and which are still guesses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dragoman.config import Optimizer, TrainConfig
from dragoman.data.tokenizer import choose_vocab_size

# Target tokens per second of the smallest model, for decisions before the probe: a usual speed, and an upper limit.
ROUGH_SPEED, QUICKEST = 5_000, 30_000


@dataclass(frozen=True)
class Size:
    """A model size, and the amount of data and training from which on it is worth its time."""

    name: str
    encoder_layers: int
    decoder_layers: int
    d_model: int
    d_ff: int
    num_heads: int
    optimizer: Optimizer
    peak_rate: float
    least_pairs: int
    least_epochs: float  # with fewer, a smaller model, which sees the data more often, is better


SIZES = (
    Size("tiny", 4, 2, 128, 512, 4, "muon", 8e-3, 0, 0.0),
    Size("small", 4, 2, 192, 768, 6, "muon", 6e-3, 20_000, 6.0),
    Size("medium", 6, 3, 256, 1024, 8, "muon", 4e-3, 200_000, 6.0),
    Size("base", 6, 6, 512, 2048, 8, "adam", 7e-4, 1_000_000, 6.0),
)

HELD_OUT = 1000  # sentences for validation, and as many for the test ...
LEAST_SHARE = 20  # ... but no more than a twentieth of the pairs each
_MOST_EPOCHS = 60  # up to which Multi30k still gained
_LEAST_STEPS = 3_000  # even if a small corpus is then seen more often than that
_HURRY = 3.0  # minutes; with fewer, validation would take too large a share
_UNHURRIED_EPOCHS = 5  # from which on a vocabulary may be as large as the text supports
_EPOCHS_A_VIEW = 4
_SMALL_TOKENS, _LARGE_TOKENS = 200_000, 5_000_000  # of the target side


@dataclass(frozen=True)
class CorpusSize:
    """The size of the training text."""

    pairs: int
    target_tokens: int


@dataclass(frozen=True)
class Plan:
    """The planned training, with its expected time, steps and epochs."""

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
    """Returns the vocabulary's size: as many pieces as the text supports; half of that if time is short, since the last
    layer takes time for each piece."""
    supported = choose_vocab_size(characters)
    return max(1000, supported // 2) if _rough_epochs(characters, minutes) < _UNHURRIED_EPOCHS else supported


def views(characters: int, minutes: float) -> int:
    """Returns how many versions of the text are worth their time: one where it will be seen a few times only."""
    return max(1, int(_rough_epochs(characters, minutes) / _EPOCHS_A_VIEW))


def _rough_epochs(characters: int, minutes: float) -> float:
    """Estimates how often the text is seen, before anything is known of it but its characters on both sides."""
    return minutes * 60 * ROUGH_SPEED / (characters / 8)  # about four per token


def candidates(corpus: CorpusSize, minutes: float, sizes: Sequence[Size] = SIZES) -> Sequence[Size]:
    """Returns the sizes to probe, the largest first: those that there are enough pairs for, without those that no
    ordinary machine would be fast enough for. `sizes`: those to choose among, the smallest first."""
    return [
        size
        for size in reversed(sizes)
        if size.least_pairs <= corpus.pairs and often_enough(size, corpus, minutes, QUICKEST)
    ]


def often_enough(size: Size, corpus: CorpusSize, minutes: float, speed: float) -> bool:
    """Tells whether a model of this size sees the text often enough in the time."""
    return _epochs(corpus, minutes, speed) >= size.least_epochs


def batch_of(corpus: CorpusSize) -> dict[str, int]:
    """Returns the tokens per step: a small text needs many small steps, a large one fewer and larger ones."""
    if corpus.target_tokens < _SMALL_TOKENS:
        return {"train.batch_tokens": 500, "train.micro_batch_tokens": 125}
    if corpus.target_tokens < _LARGE_TOKENS:
        return {"train.batch_tokens": 1000, "train.micro_batch_tokens": 250}
    return {"train.batch_tokens": 2000, "train.micro_batch_tokens": 500}


def model_and_optimizer(size: Size, dropout: float) -> dict[str, Any]:
    """Returns the settings of a size, which decide how long a step takes."""
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
    sizes: Sequence[Size] = SIZES,
) -> Plan:
    """Chooses the largest probed model that sees the text often enough in the time; the smallest, where none does.

    `batch_tokens` (of a step) and `optimizer`: if the user asked for them. `sizes`: those to choose among.
    """
    probed = [size for size in sizes if size.name in speeds]
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
        # Time or steps end the run, whichever comes first; the rate falls to zero at that point.
        "train.steps": enough,
        "train.minutes": minutes,
        "train.schedule": "linear",
        "train.warmup_steps": max(20, min(400, steps // 10)),
        # Adam needs half of Muon's rate, as measured at both sizes; with all of it, the demo was worse.
        "train.peak_rate": size.peak_rate / 2 if (size.optimizer, optimizer) == ("muon", "adam") else size.peak_rate,
        "train.valid_steps": validations,
        "train.valid_sentences": 200 if minutes >= _HURRY else 100,
        "train.processes": 0,
    }
    return Plan(size.name, speed, tokens / speed / 60, steps, epochs, settings)


def longer(settings: TrainConfig, plan: Plan, minutes: float) -> Plan:
    """Returns the plan of a run that now gets `minutes` of training in all, with the same model."""
    steps = max(plan.steps, min(settings.steps, round(plan.steps * minutes / max(plan.minutes, 1e-9))))
    return replace(plan, minutes=minutes, steps=steps, epochs=plan.epochs * steps / plan.steps)


def _epochs(corpus: CorpusSize, minutes: float, speed: float) -> float:
    return speed * 60 * minutes / corpus.target_tokens


def _dropout(epochs: float) -> float:
    """Returns the dropout for a number of epochs: a text seen five times is not learned by heart, one seen fifty times
    is."""
    for most, dropout in ((8, 0.0), (20, 0.1), (40, 0.2)):
        if epochs < most:
            return dropout
    return 0.3
