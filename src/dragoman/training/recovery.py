"""What keeps a training from being lost: asked to stop, out of memory, numbers that are not finite."""

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
from dragoman.errors import DragomanError
from dragoman.model.checkpoint import TrainingProgress
from dragoman.run_directory import RunDirectory

SKIPS_BEFORE_A_SETBACK = 3  # steps in a row that were not finite before the run goes back to its last checkpoint
SAME_REQUEST_SECONDS = 0.5  # two signals this near to each other are one
MOST_SETBACKS = 3  # before it stops for good


class Interruption:
    """Ctrl-C and SIGTERM ask the loop to stop after the step it is in; a later one stops at once. `timeout` sends two
    in the same moment, to a process and to its group: they are one request."""

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
        except ValueError:  # not the main thread: whoever runs it there has other ways to stop it
            self._before = {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def is_about_memory(error: BaseException) -> bool:
    """torch has a class of its own for GPUs only; its CPU allocator raises a plain RuntimeError."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in said or "can't allocate memory" in said


def longest(data: Dataset) -> int:
    """Tokens of the longest side, with its end symbol."""
    return int(max(data.source_lengths.max(), data.target_lengths.max())) + 1


def largest_batch(data: Dataset, tokens: int) -> np.ndarray:
    """The micro-batch that needs the most memory of all that this data can give: its longest pairs together."""
    longer = np.maximum(data.source_lengths, data.target_lengths) + 1
    count = max(1, tokens // int(longer.max()))
    return np.argsort(longer, kind="stable")[-count:]


def passes(data: Dataset, rows: np.ndarray, pass_tokens: int) -> Iterator[np.ndarray]:
    """A micro-batch in as many passes as memory asks for; 0: in one."""
    if not pass_tokens:
        yield rows
        return
    longest = int(max(data.source_lengths[rows].max(), data.target_lengths[rows].max())) + 1
    at_once = max(1, pass_tokens // longest)
    for first in range(0, len(rows), at_once):
        yield rows[first : first + at_once]


def smaller_passes(data: Dataset, rows: Sequence[np.ndarray], pass_tokens: int) -> int:
    """Half of what did not fit, or a DragomanError where that was a single pair."""
    longest = int(max(max(data.source_lengths[r].max(), data.target_lengths[r].max()) for r in rows)) + 1
    tried = pass_tokens or max(len(r) for r in rows) * longest
    if tried <= longest:
        raise DragomanError(
            f"memory does not hold one pair of {longest} tokens with its gradients; lower data.max_length "
            f"in a new --out, make the model smaller, or free memory"
        )
    return max(longest, tried // 2)


def record_skipped(
    run: RunDirectory, data: Dataset, tokenizer: Tokenizer, step: int, rows: Sequence[np.ndarray]
) -> None:
    """The pairs of a step whose loss or gradient was not finite, for whoever wants to know why."""
    pairs = [
        {
            "row": int(row),
            "source_ids": data.source(int(row)).tolist(),
            "target_ids": data.target(int(row)).tolist(),
            "source": tokenizer.decode(data.source(int(row)).tolist()),
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
    """Where the run goes on from after steps that were not finite: its last good state, with half the rate."""
    if progress.setbacks >= MOST_SETBACKS:
        raise DragomanError(
            f"{run.path}: the loss is not finite at step {progress.step + 1}, at {progress.rate_factor:g} of the rate "
            f"asked for too; lower train.peak_rate in a new --out, or look for the cause in {run.skipped_path.name}"
        )
    good.setbacks = progress.setbacks + 1
    good.rate_factor = progress.rate_factor / 2
    good.pass_tokens = progress.pass_tokens
    good.seconds = progress.seconds
    return good
