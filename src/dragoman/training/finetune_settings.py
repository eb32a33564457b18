"""Chooses the settings of a fine-tuning: what learns, at which rate, for how long and in which batches."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dragoman.config import Learn, RunConfig, TrainConfig
from dragoman.config.recipes import with_overrides
from dragoman.run_directory import RunDirectory
from dragoman.training.finetune_text import FineTuningText, corpus_at
from dragoman.training.schedule import rate_at

# Share of the highest rate of the old training. Additions begin at nothing, and take more.
RATE: dict[Learn, float] = {"all": 0.2, "top": 0.2, "low-rank": 1.0}
# Of a run that left no training behind: usual for models of this size, and what bench/finetune_modes.py compares.
USUAL_RATE: dict[Learn, float] = {"all": 5e-5, "top": 1e-4, "low-rank": 5e-4}
WARMUP_STEPS = 50  # while the optimiser has no statistics yet
EPOCHS = 8  # over the mixed text, if no number of steps is given
EPOCHS_WITHOUT_HISTORY = 3  # a large model that knows much already, on a CPU
FEWEST_STEPS, MOST_STEPS = 100, 20_000
VALIDATIONS = 5
# Of a run that left no training behind: steps that a CPU takes in seconds, and activations of half a gigabyte with 77
# million parameters.
BATCH_TOKENS, MICRO_BATCH_TOKENS = 2048, 1024
CHECKPOINTS = 3  # a gigabyte each, with the optimiser


def fine_tuning_config(
    before: RunConfig,
    text: FineTuningText,
    old: float,
    after: RunDirectory,
    overrides: Sequence[tuple[str, Any, str]] = (),
) -> RunConfig:
    """Returns the old run's configuration with the mixed text, a lower rate and a budget for so much text. `overrides`:
    what the user asks for."""
    asked = with_overrides(RunConfig(), [change for change in overrides if change[0] == "train.learn"])
    settings = _settings_of(before, asked.train.learn)
    known = sum(corpus.weight * pairs for corpus, pairs in text.old)
    share = min(1.0, old * text.train_pairs / known) if known else 0.0
    mixed = tuple(replace(corpus, weight=corpus.weight * share) for corpus, _ in text.old if share)
    seen = text.train_tokens * (1 + share * known / text.train_pairs)  # if old pairs are about as long as new ones
    epochs = EPOCHS if has_history(before) else EPOCHS_WITHOUT_HISTORY
    steps = min(MOST_STEPS, max(FEWEST_STEPS, round(epochs * seen / settings.batch_tokens)))
    valid = corpus_at(after.finetune_path, "valid")
    config = replace(
        before,
        data=replace(
            before.data,
            train=(text.train, *mixed),
            valid=(valid,),
            hold_out=0,
            tokenizer=str(after.tokenizer_path),
        ),
        train=replace(settings, steps=steps, valid_steps=max(1, steps // VALIDATIONS)),
    )
    return with_overrides(config, overrides)


def has_history(config: RunConfig) -> bool:
    """Whether a run was trained here. An imported one was not: its training's settings are defaults, which say nothing
    about it."""
    return bool(config.data.train)


def _settings_of(before: RunConfig, learn: Learn) -> TrainConfig:
    """Returns the old training's settings with a rate, an optimiser and batches for what learns now."""
    settings = replace(
        before.train,
        learn=learn,
        optimizer="adam" if learn == "low-rank" else before.train.optimizer,  # Muon is for whole matrices
        minutes=None,
        schedule="linear",
        warmup_steps=WARMUP_STEPS,
        patience=0,
    )
    if has_history(before):
        peak = max(rate_at(before, step, 0.0) for step in (1, before.train.warmup_steps))
        return replace(settings, peak_rate=RATE[learn] * peak)
    return replace(
        settings,
        optimizer="adam",
        peak_rate=USUAL_RATE[learn],
        batch_tokens=BATCH_TOKENS,
        micro_batch_tokens=MICRO_BATCH_TOKENS,
        keep_checkpoints=CHECKPOINTS,
        average_checkpoints=CHECKPOINTS,
    )
