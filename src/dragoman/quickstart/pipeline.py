"""Runs all stages of a quickstart: read, clean, split, learn a vocabulary, probe, size, train, score, calibrate,
quantise, report.

Every stage leaves its result in the run's directory and finds it there again: after a stop, the same command goes on;
with more minutes, it trains longer; after the end, it has nothing to do.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.config.recipes import load
from dragoman.data.language_codes import write_languages
from dragoman.data.pair_formats import WantedLanguages
from dragoman.progress import Say
from dragoman.quickstart import report
from dragoman.quickstart.budget import TimeBudget
from dragoman.quickstart.finished import FinishedResult, earlier_result, keep_result, trained_before
from dragoman.quickstart.planning import plan_training
from dragoman.quickstart.scoring import finish
from dragoman.quickstart.text import prepare_data
from dragoman.run_directory import RunDirectory


def quickstart(
    paths: Sequence[Path],
    out: Path,
    minutes: float,
    wanted: WantedLanguages,
    seed: int,
    changes: Sequence[Any],
    again: str,
    say: Say,
) -> FinishedResult:
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
    clock = TimeBudget(minutes, trained_before(run))
    data = prepare_data(paths, run, wanted, seed, say)
    config, plan = plan_training(data, run, seed, changes, clock, say)
    from dragoman.training.loop import train  # torch is not needed before

    train(config, run, again)
    if (earlier := earlier_result(run)) is not None:
        say("training is finished and measured already: nothing is left to do")
        return earlier
    if data.languages:
        write_languages(run, *data.languages)
    insists = any(key == "search.alpha" for key, *_ in changes)
    outcome = finish(run, data, plan, insists, clock, say)
    report.write(outcome, config)
    return keep_result(run, list(report.terminal_lines(outcome)), outcome.to_dict())
