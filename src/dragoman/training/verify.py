"""Verifies a run: checks all hashes and their chain in the log, and trains some steps again to compare the results.

Training is deterministic: the same machine, number of processes and threads give the same bits. Some decisions depend
on time or memory (the rate under a budget in minutes, a batch that was split, a lowered rate); these are recorded in
the log or the checkpoint, and the replay uses the recorded ones.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.errors import CheckError, DataError
from dragoman.files import damage, read_json, read_manifest, sha256
from dragoman.model.checkpoint import OPTIMIZER, average, chained, ema_in, link_of, read_progress, read_tensors
from dragoman.run_directory import WEIGHTS, RunDirectory, scratch_of, step_of
from dragoman.training.loop import Replay, train

CLOCK = ("seconds", "tokens_per_second")  # values that may differ when steps are trained again


def verify(run: RunDirectory, steps: int, say: Callable[[str], None]) -> Iterator[str]:
    """Yields a line for each check that passed; raises a CheckError at the first one that fails.

    `steps`: how many steps to train again; 0 leaves that out.
    """
    if (hashes := imported_hashes(run)) is not None:
        yield from check_imported(run, hashes)
        return
    events = read_log(run)
    checkpoints = run.checkpoints()
    if not checkpoints:
        raise DataError(f"{run.path}: has no checkpoint to verify; train it first")
    yield from check_files(run, checkpoints)
    yield from check_chain(run, checkpoints, events)
    yield from check_weights(run, checkpoints)
    if steps:
        yield from replay(run, checkpoints, events, steps, say)


def imported_hashes(run: RunDirectory) -> dict[str, str] | None:
    """Returns the hashes that an imported run's files had when it was made; None: the run was trained here."""
    if run.metrics_path.exists() or not run.model_card_path.is_file():
        return None
    card = read_json(run.model_card_path)
    return dict(card.get("files", {})) if card.get("kind") == "imported" else None


def check_imported(run: RunDirectory, hashes: dict[str, str]) -> Iterator[str]:
    """Checks the files of an imported run. That is all: its training was elsewhere."""
    if not hashes:
        raise DataError(f"{run.path}: imported without hashes of its files; import it again, and it can be verified")
    for name, recorded in hashes.items():
        path = run.path / name
        if not path.is_file() or sha256(path) != recorded:
            raise CheckError(f"{path}: not what was imported; import the model again")
    yield f"files       {' and '.join(hashes)} are as they were imported"


def read_log(run: RunDirectory) -> list[dict[str, Any]]:
    """Reads all events of a run's log; raises a DataError if it cannot be read."""
    try:
        lines = run.metrics_path.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
    except OSError as error:
        raise DataError(
            f"{run.metrics_path}: cannot be read ({error.strerror}); without it nothing can be verified"
        ) from None
    except ValueError as error:
        raise DataError(f"{run.metrics_path}: damaged ({error})") from None


def check_files(run: RunDirectory, checkpoints: list[Path]) -> Iterator[str]:
    """Checks the hashes of all checkpoints and of the tokenizer."""
    for checkpoint in checkpoints:
        if wrong := damage(checkpoint):
            raise CheckError(f"{checkpoint}: {wrong}; `dragoman train` goes on from the one before")
    trained_with = read_manifest(checkpoints[-1]).get("made_by", {}).get("tokenizer")
    if trained_with != sha256(run.tokenizer_path):
        raise CheckError(f"{run.tokenizer_path}: not the tokenizer that this run was trained with; restore it")
    yield f"files       {len(checkpoints)} checkpoints and the tokenizer are as they were written"


def check_chain(run: RunDirectory, checkpoints: list[Path], events: list[dict[str, Any]]) -> Iterator[str]:
    """Checks the chain of hashes in the log, and the kept checkpoints against it.

    Each link is a hash of the link before it and of its own files, so none can be changed, removed or added later.
    """
    links: dict[int, dict[str, Any]] = {}
    before: dict[int, str] = {}
    chain = ""
    for link in (event for event in events if event["event"] == "checkpoint"):
        step = link["step"]
        chain = before.setdefault(step, chain)  # after a setback, a run writes its last link again
        chain = chained(chain, link["model"], link["optimizer"])
        if chain != link["chain"]:
            raise CheckError(
                f"{run.metrics_path}: the chain breaks at step {step}: a line was changed, added or removed"
            )
        links[step] = link
    for checkpoint in checkpoints:
        if not read_progress(checkpoint).validated:
            continue  # written because the run was interrupted
        step = step_of(checkpoint)
        if step not in links:
            raise CheckError(f"{checkpoint}: the log has no such checkpoint; it was put there from elsewhere")
        if link_of(checkpoint, before[step])["chain"] != links[step]["chain"]:
            raise CheckError(f"{checkpoint}: not the checkpoint that the log has for this step")
    yield f"chain       {len(links)} checkpoints in the log, each with a hash of all before it"


def check_weights(run: RunDirectory, checkpoints: list[Path]) -> Iterator[str]:
    """Checks that model.safetensors has the weights that model.json names, if their checkpoints are still kept."""
    card = read_json(run.model_card_path)
    kept = {step_of(checkpoint): checkpoint for checkpoint in checkpoints}
    if not all(step in kept for step in card["steps"]):
        yield f"weights     model.safetensors is of step {card['steps']}, which is no longer kept: not checked"
        return
    expected = average([kept[step] for step in card["steps"]])
    if card["kind"] == "ema":
        state = kept[card["steps"][0]] / OPTIMIZER
        if not state.exists():  # a later step has taken its place
            yield f"weights     model.safetensors is the running average of step {card['steps']}: not checked"
            return
        expected |= ema_in(state)
    found = read_tensors(run.model_path)
    if found.keys() != expected.keys() or any(not found[name].equal(expected[name]) for name in found):
        raise CheckError(
            f"{run.model_path}: not the {card['kind']} of step {card['steps']}, as {run.model_card_path.name} says"
        )
    yield f"weights     model.safetensors is the {card['kind']} of step {', '.join(map(str, card['steps']))}"


def replay(
    run: RunDirectory, checkpoints: list[Path], events: list[dict[str, Any]], steps: int, say: Callable[[str], None]
) -> Iterator[str]:
    """Trains up to `steps` steps again from a kept checkpoint, in a temporary directory, and compares the results."""
    whole = [path for path in checkpoints if (path / OPTIMIZER).exists()]
    last = step_of(checkpoints[-1])
    start = whole[0] if len(whole) > 1 else None  # None: from the very beginning, as the last one has no steps after it
    first = step_of(start) if start else 0
    until = min(last, first + steps)
    made_by = read_manifest(checkpoints[-1])["made_by"]
    config = run.read_config()
    config = replace(config, train=replace(config.train, processes=made_by["ranks"], threads=made_by["threads"]))
    logged = [(event["step"], event["rates"]) for event in events if event["event"] == "train" and "rates" in event]
    # If a run ends between two lines of the log, its checkpoint has the rates since the last line.
    unlogged = [(progress.step, progress.pending_rates) for progress in map(read_progress, checkpoints)]
    rates = {
        step - len(step_rates) + 1 + place: rate
        for step, step_rates in (*unlogged, *logged)
        for place, rate in enumerate(step_rates)
    }
    pass_tokens = {event["step"]: event["pass_tokens"] for event in events if event["event"] == "memory"}
    say(f"training steps {first + 1:,} to {until:,} again")
    with scratch_of(run) as again:
        shutil.copy(run.config_path, again.config_path)
        if start:
            shutil.copytree(start, again.checkpoints_path / start.name)
        train(config, again, "", Replay(until, rates, pass_tokens))
        compare(run, again, first, until)
    compared = "weights, optimiser and losses" if until == last or until in map(step_of, whole) else "losses"
    yield f"replay      steps {first + 1:,} to {until:,} trained again: {compared} are the same to the bit"


def compare(run: RunDirectory, again: RunDirectory, first: int, until: int) -> None:
    """Raises a CheckError if losses, weights or optimiser state after step `first` differ from the run's own."""

    def losses(trained: RunDirectory) -> dict[int, dict[str, Any]]:
        return {
            event["step"]: {key: value for key, value in event.items() if key not in CLOCK}
            for event in read_log(trained)
            if event["event"] == "train" and first < event["step"] <= until
        }

    before, now = losses(run), losses(again)
    for step in sorted(before.keys() & now.keys()):
        if before[step] != now[step]:
            raise CheckError(
                f"{run.path}: step {step} trained again has loss {now[step]['loss']}, the log says "
                f"{before[step]['loss']}; the machine, torch, the number of threads or the data is another one"
            )
    name = f"step-{until:08d}"
    if (run.checkpoints_path / name).is_dir():
        old, new = (read_manifest(trained.checkpoints_path / name)["files"] for trained in (run, again))
        for file in (WEIGHTS, OPTIMIZER):
            if old[file] != new[file]:
                raise CheckError(
                    f"{run.path}: {name}/{file} trained again is not the same; the machine, torch or the number of "
                    f"threads is another one"
                )
