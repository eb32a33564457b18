"""Runs all stages of a quickstart: read, clean, split, learn a vocabulary, probe, size, train, score, calibrate,
quantise, report.

Every stage leaves its result in the run's directory and finds it there again: after a stop, the same command goes on;
with more minutes, it trains longer; after the end, it has nothing to do.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.config import RunConfig
from dragoman.config.recipes import load
from dragoman.data.dataset import prepare
from dragoman.data.language_codes import write_languages
from dragoman.data.pair_formats import WantedLanguages
from dragoman.data.tokenizer import load_tokenizer
from dragoman.decoding.engines.ct2_cache import digest_of
from dragoman.errors import DataError
from dragoman.files import read_json, write_atomically
from dragoman.progress import Say, waiting
from dragoman.quickstart import report, sizing
from dragoman.quickstart.budget import PROBING, TimeBudget, after_training
from dragoman.quickstart.probe import measure
from dragoman.quickstart.scoring import finish
from dragoman.quickstart.text import QuickstartText, prepare_data
from dragoman.run_directory import RunDirectory

_FEW_EPOCHS = 3  # with fewer, a model has hardly begun to learn


@dataclass(frozen=True)
class QuickstartResult:
    """The result of a quickstart: lines for people, and the same as values for programs."""

    lines: tuple[str, ...]
    values: dict[str, Any]


def quickstart(
    paths: Sequence[Path],
    out: Path,
    minutes: float,
    wanted: WantedLanguages,
    seed: int,
    changes: Sequence[Any],
    again: str,
    say: Say,
) -> QuickstartResult:
    """Makes a translator from pairs, in about so many minutes.

    `changes`: settings that the user asked for; `again`: the command that goes on with a stopped training.
    """
    from dragoman.training.distributed import require_room

    load(
        None, [("train.seed", seed, "--seed"), ("train.minutes", minutes, "--minutes")]
    )  # raises an error if one is out of range
    asked = {key: value for key, value, _ in changes}
    require_room(asked.get("train.processes", 0), asked.get("train.threads", 0))
    run = RunDirectory(out)
    clock = TimeBudget(minutes, _trained_before(run))
    data = prepare_data(paths, run, wanted, seed, say)
    config, plan = plan_training(data, run, seed, changes, clock, say)
    from dragoman.training.loop import train  # torch is not needed before

    train(config, run, again)
    if (earlier := _result_before(run)) is not None:
        say("training is finished and measured already: nothing is left to do")
        return earlier
    if data.languages:
        write_languages(run, *data.languages)
    insists = any(key == "search.alpha" for key, *_ in changes)
    outcome = finish(run, data, plan, insists, clock, say)
    report.write(outcome, config)
    result = QuickstartResult(tuple(report.terminal_lines(outcome)), outcome.to_dict())
    content = json.dumps({"state": _state(run), **asdict(result)}, indent=2, ensure_ascii=False) + "\n"
    write_atomically(_outcome_path(run), content.encode())
    return result


def _trained_before(run: RunDirectory) -> float:
    """Returns the seconds of training by earlier commands, which count as time of the whole."""
    return max((event.get("seconds", 0.0) for event in run.events()), default=0.0)


def _outcome_path(run: RunDirectory) -> Path:
    return run.path / "outcome.json"


def _state(run: RunDirectory) -> list[str | int]:
    """Identifies the weights and the steps trained; training may have gone on without finding better weights."""
    return [digest_of(run, load_tokenizer(run.path)), read_json(run.model_card_path)["finished_at"]]


def _result_before(run: RunDirectory) -> QuickstartResult | None:
    """Returns the result of an earlier quickstart with the same weights and steps; None if none has finished."""
    if not _outcome_path(run).is_file():
        return None
    values = read_json(_outcome_path(run))
    return QuickstartResult(tuple(values["lines"]), values["values"]) if values["state"] == _state(run) else None


# --------------------------------------------------------------------------------------------------------- the plan


def plan_training(
    data: QuickstartText, run: RunDirectory, seed: int, changes: Sequence[Any], clock: TimeBudget, say: Say
) -> tuple[RunConfig, sizing.Plan]:
    """Plans the training, once: a run that goes on keeps its plan, except for its time."""
    path = run.quickstart_plan_path
    insisted = json.loads(json.dumps([[key, value] for key, value, _ in changes]))
    if path.exists():
        config, plan = _planned_before(path, run, insisted, clock, say)
    else:
        config, plan = _plan_anew(data, run, seed, changes, clock, say)
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
    data: QuickstartText, run: RunDirectory, seed: int, changes: Sequence[Any], clock: TimeBudget, say: Say
) -> tuple[RunConfig, sizing.Plan]:
    minutes = clock.minutes
    first = [
        ("data.train", [{"pairs": str(data.train)}], "quickstart"),
        ("data.valid", [{"pairs": str(data.valid)}], "quickstart"),
        ("model.vocab_size", sizing.vocabulary(data.about["characters"], minutes), "quickstart"),
        ("train.seed", seed, "quickstart"),
        ("train.processes", 0, "quickstart"),
    ]
    config = load(None, [*first, *changes]).config
    with waiting("learning a vocabulary"):
        prepared = prepare(config.data, config.model.vocab_size, seed, run.path, say)
    config = replace(config, model=replace(config.model, vocab_size=prepared.tokenizer.vocab_size))
    corpus = sizing.CorpusSize(len(prepared.train), int(prepared.train.target_lengths.sum()) + len(prepared.train))
    del prepared
    speeds, batch_tokens = {}, 0
    candidates = list(sizing.candidates(corpus, minutes))
    while candidates:
        size = candidates.pop(0)
        if clock.elapsed - clock.before > PROBING * 60 * minutes and candidates:
            continue  # no time to probe all: only the smallest one is left
        asked = [
            (key, value, "quickstart")
            for key, value in (sizing.model_and_optimizer(size, 0.1) | sizing.batch_of(corpus)).items()
        ]
        probed = _with(first, asked, changes, config)
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
    insists = any(key == "train.optimizer" for key, *_ in changes)
    plan = sizing.choose(
        corpus, clock.training_minutes(), speeds, batch_tokens, config.train.optimizer if insists else None
    )
    asked = [(key, value, "quickstart") for key, value in plan.settings.items()]
    config = _with(first, asked, changes, config)
    if config.train.steps < plan.steps:  # the user asked for fewer
        part = config.train.steps / plan.steps
        plan = replace(plan, steps=config.train.steps, minutes=part * plan.minutes, epochs=part * plan.epochs)
    say(f"planned: the {plan.size} model, about {plan.steps:,} steps in {plan.minutes:.1f} minutes, each pair seen "
        f"{plan.epochs:.1f} times")  # fmt: skip
    if plan.epochs < _FEW_EPOCHS:
        needed = math.ceil(minutes * _FEW_EPOCHS / plan.epochs)
        say(f"  that is little: --minutes {needed} would show the text {_FEW_EPOCHS} times")
    return config, plan


def _in_words(changes: list[list[Any]]) -> str:
    return ", ".join(f"{key}={value}" for key, value in changes) or "nothing"


def _with(first: Sequence[Any], asked: Sequence[Any], changes: Sequence[Any], prepared: RunConfig) -> RunConfig:
    config = load(None, [*first, *asked, *changes]).config
    return replace(config, model=replace(config.model, vocab_size=prepared.model.vocab_size))
