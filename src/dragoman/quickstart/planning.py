"""Plans a training once the text is there: learns a vocabulary, probes sizes, chooses one; a run that goes on keeps its
plan, except for its time."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.config import TEXT_CHANGES, RunConfig
from dragoman.config.recipes import load
from dragoman.data.dataset import prepare
from dragoman.errors import DataError
from dragoman.files import read_json, write_atomically
from dragoman.progress import Say, waiting
from dragoman.quickstart import sizing
from dragoman.quickstart.budget import TimeBudget, after_training
from dragoman.quickstart.probe import measure
from dragoman.quickstart.text import QuickstartText
from dragoman.run_directory import RunDirectory

_FEW_EPOCHS = 3  # with fewer, a model has hardly begun to learn


@dataclass(frozen=True)
class SizeChoice:
    """The sizes to choose among, and the settings that each of them gets, by full name."""

    sizes: Sequence[sizing.Size] = sizing.SIZES
    settings: Mapping[str, Any] = field(default_factory=dict)


ANY = SizeChoice()


@dataclass(frozen=True)
class _Settings:
    """The settings of a training by full name: those for its text, those of every size, and what the user asked for."""

    of_text: Mapping[str, Any]
    of_every_size: Mapping[str, Any]
    changes: Sequence[Any]

    def config(self, of_size: Mapping[str, Any] | None = None, vocab_size: int | None = None) -> RunConfig:
        """Returns the configuration; of what is set twice, the later one stands. `vocab_size`: of the vocabulary that
        was learned."""
        ours = [*self.of_text.items(), *(of_size or {}).items(), *self.of_every_size.items()]
        config = load(None, [*((key, value, "quickstart") for key, value in ours), *self.changes]).config
        return config if vocab_size is None else replace(config, model=replace(config.model, vocab_size=vocab_size))


def plan_training(
    data: QuickstartText,
    run: RunDirectory,
    seed: int,
    changes: Sequence[Any],
    clock: TimeBudget,
    say: Say,
    choice: SizeChoice = ANY,
) -> tuple[RunConfig, sizing.Plan]:
    """Plans the training, once: a run that goes on keeps its plan, except for its time.

    `changes`: settings that the user asked for.
    """
    path = run.quickstart_plan_path
    insisted = json.loads(json.dumps([[key, value] for key, value, _ in changes]))
    if path.exists():
        config, plan = _planned_before(path, run, insisted, clock, say)
    else:
        settings = _Settings(_settings_of_text(data, clock.minutes, seed), choice.settings, changes)
        config, plan = _plan_anew(settings, run, seed, clock, choice.sizes, say)
    values = {
        "minutes": clock.minutes,
        "changes": insisted,
        "plan": asdict(plan),
        "config": json.loads(config.to_json()),
    }
    write_atomically(path, (json.dumps(values, indent=2) + "\n").encode())
    return config, plan


def _planned_before(
    path: Path, run: RunDirectory, insisted: list[list[Any]], clock: TimeBudget, say: Say
) -> tuple[RunConfig, sizing.Plan]:
    values = read_json(path)
    before = values.get("minutes", clock.minutes)
    if values.get("changes", insisted) != insisted:
        raise DataError(
            f"{run.path}: planned with --set {_in_words(values['changes'])}, not {_in_words(insisted)}; give another "
            f"--out, or remove that directory"
        )
    if clock.minutes < before:
        raise DataError(
            f"{run.path}: planned with --minutes {before:g}, not {clock.minutes:g}, and the learning rate follows "
            f"that plan; give as many minutes or more, or another --out"
        )
    config, plan = RunConfig.from_json(json.dumps(values["config"]), str(path)), sizing.Plan(**values["plan"])
    if clock.minutes == before:
        say("going on as planned before")
        return config, plan
    longer = sizing.longer(config.train, plan, clock.before / 60 + clock.training_minutes())
    if longer.steps == plan.steps and plan.steps >= config.train.steps:
        say(f"each pair has been seen {plan.epochs:.0f} times, and more would not help: there is no further training")
        return config, plan
    say(
        f"planned for {before:g} minutes before, going on to {clock.minutes:g}: about {longer.steps:,} steps in all, "
        f"each pair seen {longer.epochs:.1f} times; the rate rises again, and falls by the new plan"
    )
    train = replace(config.train, minutes=longer.minutes, valid_steps=max(50, longer.steps // 12))
    return replace(config, train=train), longer


def _plan_anew(
    settings: _Settings, run: RunDirectory, seed: int, clock: TimeBudget, sizes: Sequence[sizing.Size], say: Say
) -> tuple[RunConfig, sizing.Plan]:
    minutes = clock.minutes
    config = settings.config()
    with waiting("learning a vocabulary"):
        prepared = prepare(config.data, config.model.vocab_size, seed, run.path, say)
    vocab_size = prepared.tokenizer.vocab_size
    corpus = sizing.CorpusSize(len(prepared.train), int(prepared.train.target_lengths.sum()) + len(prepared.train))
    del prepared
    speeds, batch_tokens = {}, 0
    candidates = list(sizing.candidates(corpus, minutes, sizes))
    while candidates:
        size = candidates.pop(0)
        if clock.probed_enough() and candidates:
            continue  # no time to probe all: only the smallest one is left
        probed = settings.config(sizing.model_and_optimizer(size, 0.1) | sizing.batch_of(corpus), vocab_size)
        with waiting(f"measuring how fast this machine trains the {size.name} model"):
            speeds[size.name], batch_tokens = measure(run, probed), probed.train.batch_tokens
        say(f"  {size.name}: {speeds[size.name]:,.0f} tokens per second")
        if sizing.often_enough(size, corpus, clock.training_minutes(), speeds[size.name]):
            break
    if clock.too_short():
        fixed = (clock.elapsed - clock.before + after_training(minutes)) / 60
        say(
            f"  --minutes {minutes:g} is little: reading, probing and scoring alone take about {fixed:.1f} minutes; so "
            f"it will take longer than asked for, and train for only {60 * clock.training_minutes():.0f} seconds"
        )
    insists = any(key == "train.optimizer" for key, *_ in settings.changes)
    optimizer = config.train.optimizer if insists else None
    plan = sizing.choose(corpus, clock.training_minutes(), speeds, batch_tokens, optimizer, sizes)
    config = settings.config(plan.settings, vocab_size)
    if config.train.steps < plan.steps:  # the user asked for fewer
        part = config.train.steps / plan.steps
        plan = replace(plan, steps=config.train.steps, minutes=part * plan.minutes, epochs=part * plan.epochs)
    say(f"planned: the {plan.size} model, about {plan.steps:,} steps in {plan.minutes:.1f} minutes, each pair seen "
        f"{plan.epochs:.1f} times")  # fmt: skip
    if plan.epochs < _FEW_EPOCHS:
        needed = math.ceil(minutes * _FEW_EPOCHS / plan.epochs)
        say(f"  that is little: --minutes {needed} would show the text {_FEW_EPOCHS} times")
    return config, plan


def _settings_of_text(data: QuickstartText, minutes: float, seed: int) -> dict[str, Any]:
    return {
        "data.train": [{"pairs": str(data.train)}],
        "data.valid": [{"pairs": str(data.valid)}],
        "model.vocab_size": sizing.vocabulary(data.about["characters"], minutes),
        "train.seed": seed,
        "train.processes": 0,
        **{f"data.{name}": value for name, value in _robust_text(data, minutes).items()},
    }


def _robust_text(data: QuickstartText, minutes: float) -> dict[str, Any]:
    """Returns the settings of text that make a model robust: those of the recipe small, with as many views as will be
    seen."""
    recipe = load("small").config.data
    settings = {name: getattr(recipe, name) for name in ("casing", "split_digits", *TEXT_CHANGES)}
    return settings | {"views": min(recipe.views, sizing.views(data.about["characters"], minutes))}


def _in_words(changes: list[list[Any]]) -> str:
    return ", ".join(f"{key}={value}" for key, value in changes) or "nothing"
