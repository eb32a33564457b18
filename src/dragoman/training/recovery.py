"""Handles what would otherwise end a training: requests to stop, out-of-memory errors, losses that are not finite."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Self

import numpy as np

from dragoman.data.dataset import Dataset
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DragomanError, is_about_memory
from dragoman.model.checkpoint import TrainingProgress, last_sound_checkpoint
from dragoman.run_directory import RunDirectory
from dragoman.training.saving import save
from dragoman.training.setup import Training, go_back, log_checkpoint

SKIPS_BEFORE_A_SETBACK = 3  # steps in a row that are not finite, before the run goes back to its last checkpoint
SAME_REQUEST_SECONDS = 0.5  # two signals within this time are one request
MOST_SETBACKS = 3  # before the training fails


class Interruption:
    """Turns Ctrl-C and SIGTERM into a request to stop after the current step; a second signal stops at once. `timeout`
    sends two at the same moment, to a process and to its group: they are one request."""

    def __init__(self) -> None:
        self.asked, self._since = False, 0.0
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Self:
        def ask(_number: int, _frame: FrameType | None) -> None:
            if not self.asked:
                self.asked, self._since = True, time.monotonic()
            elif time.monotonic() - self._since > SAME_REQUEST_SECONDS:
                raise KeyboardInterrupt

        try:
            self._before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread: the caller has other ways to stop it
            self._before = {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def longest(data: Dataset) -> int:
    """Returns the number of tokens in the longest side, including its end symbol."""
    return int(max(data.source_lengths.max(), data.target_lengths.max())) + 1


def largest_batch(data: Dataset, tokens: int) -> np.ndarray:
    """Returns the rows of the micro-batch that needs the most memory: the longest pairs of this data."""
    longer = np.maximum(data.source_lengths, data.target_lengths) + 1
    count = max(1, tokens // int(longer.max()))
    return np.argsort(longer, kind="stable")[-count:]


def passes(data: Dataset, rows: np.ndarray, pass_tokens: int) -> Iterator[np.ndarray]:
    """Yields a micro-batch in parts that fit into memory. `pass_tokens`: the most tokens in one part; 0: no limit."""
    if not pass_tokens:
        yield rows
        return
    longest = int(max(data.source_lengths[rows].max(), data.target_lengths[rows].max())) + 1
    at_once = max(1, pass_tokens // longest)
    for first in range(0, len(rows), at_once):
        yield rows[first : first + at_once]


def smaller_passes(data: Dataset, rows: Sequence[np.ndarray], pass_tokens: int) -> int:
    """Returns half of the number of tokens that did not fit; raises a DragomanError if that was a single pair."""
    longest = int(max(max(data.source_lengths[r].max(), data.target_lengths[r].max()) for r in rows)) + 1
    tried = pass_tokens or max(len(r) for r in rows) * longest
    if tried <= longest:
        raise DragomanError(
            f"not enough memory for one pair of {longest} tokens and its gradients; lower data.max_length "
            f"in a new --out, make the model smaller, or free memory"
        )
    return max(longest, tried // 2)


def record_skipped(
    run: RunDirectory, data: Dataset, tokenizer: Tokenizer, step: int, rows: Sequence[np.ndarray]
) -> None:
    """Writes the pairs of a step whose loss or gradient was not finite to a file, to find the cause."""
    pairs = [
        {
            "row": int(row),
            "source_ids": data.source(int(row)).tolist(),
            "target_ids": data.target(int(row)).tolist(),
            "source": tokenizer.decode_source(data.source(int(row)).tolist()),
            "target": tokenizer.decode(data.target(int(row)).tolist()),
        }
        for micro_batch in rows
        for row in micro_batch
    ]
    with run.skipped_path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"step": step, "pairs": pairs}, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def after_a_setback(progress: TrainingProgress, good: TrainingProgress, run: RunDirectory) -> TrainingProgress:
    """Returns the progress to go on from after steps that were not finite: the last good one, with half the rate."""
    if progress.setbacks >= MOST_SETBACKS:
        raise DragomanError(
            f"{run.path}: the loss is not finite at step {progress.step + 1}, even at {progress.rate_factor:g} of the "
            f"rate asked for; lower train.peak_rate in a new --out, or look for the cause in {run.skipped_path.name}"
        )
    good.setbacks = progress.setbacks + 1
    good.rate_factor = progress.rate_factor / 2
    good.pass_tokens = progress.pass_tokens
    good.seconds = progress.seconds
    return good


def require_about_memory(training: Training, error: BaseException) -> None:
    """Re-raises an error unless it is an out-of-memory that smaller passes can solve."""
    if not is_about_memory(error):
        raise error
    if training.config.train.shard:
        raise DragomanError("out of memory; lower train.micro_batch_tokens (divided models cannot split a batch)")


def make_room(training: Training, data: Dataset, rows: Sequence[np.ndarray]) -> None:
    """Makes passes smaller after an out-of-memory on some rank; on all ranks alike, so that one log describes them."""
    progress, log = training.progress, training.log
    training.gradients.clear()
    progress.pass_tokens = smaller_passes(data, rows, progress.pass_tokens)
    log.write("memory", progress.step, pass_tokens=progress.pass_tokens)
    log.say(f"step {progress.step + 1}: out of memory; from now on in passes of at most "
            f"{progress.pass_tokens:,} tokens, more of them for each step")  # fmt: skip


def skip(training: Training, data: Dataset, rows: Sequence[np.ndarray], loss: float, gradient_norm: float) -> None:
    """Skips a step whose loss or gradient is not finite, so that it does not change the weights. After a few such steps
    in a row the run goes back to its last checkpoint."""
    progress, run, log, ranks = training.progress, training.run, training.log, training.ranks
    training.gradients.clear()
    if ranks.leads:
        record_skipped(run, data, training.prepared.tokenizer, progress.step + 1, rows)
    in_a_row = progress.skipped_in_a_row + 1
    progress.advance()
    progress.skipped_in_a_row = in_a_row
    log.write("skipped", progress.step, loss=str(loss), gradient_norm=str(gradient_norm))
    log.say(f"step {progress.step:,}: loss {loss}, gradient norm {gradient_norm}: not finite; skipped, "
            f"its pairs are in {run.skipped_path}")  # fmt: skip
    if in_a_row < SKIPS_BEFORE_A_SETBACK:
        return
    if training.config.train.shard:
        raise DragomanError(f"{in_a_row} steps in a row were not finite; lower train.peak_rate in a new --out "
                            f"(divided models cannot go back by themselves)")  # fmt: skip
    reached = progress.step
    checkpoint = ranks.first(f"setback {progress.setbacks}", lambda: last_sound_checkpoint(run, log.say))
    good = go_back(training.config, training.model, training.optimizer, checkpoint, training.learned)
    vars(progress).update(vars(after_a_setback(progress, good, run)))
    log.write("setback", progress.step, reached=reached, rate_factor=progress.rate_factor)
    log.say(f"{in_a_row} steps in a row were not finite: back to step {progress.step:,}, from here on at "
            f"{progress.rate_factor:g} of the rate")  # fmt: skip
    ranks.gather("all have read the checkpoint")
    save(training)  # so that the lowered rate is not lost if the run is killed now
    if checkpoint is not None:
        log_checkpoint(training, checkpoint)
