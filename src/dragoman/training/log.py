"""Writes a training's log: metrics as JSON lines for programs, a progress bar or plain lines for people.

Everything for people goes to stderr. TensorBoard gets the numbers too where it is installed.
"""

import contextlib
import json
import os
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from dragoman.errors import DragomanError, UnheardError
from dragoman.progress import reader_has_left, to_stderr
from dragoman.run_directory import RunDirectory


class NoLog:
    """Writes nothing: for all ranks but the first, which writes the log."""

    @property
    def unheard(self) -> bool:
        """Whether nobody reads the messages any more."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def write(self, event: str, step: int, **values: Any) -> int:  # noqa: ARG002
        return 0

    def sync(self) -> int:
        return 0

    def say(self, line: str) -> None:
        pass

    def show(self, done: float, line: str) -> None:
        pass


class RunLog(NoLog):
    """Writes metrics.jsonl, lines for people and TensorBoard's files; open for the length of a training."""

    def __init__(self, run: RunDirectory, keep_bytes: int) -> None:
        """`keep_bytes`: how much of an earlier log to keep; what was written after the checkpoint is cut off."""
        run.path.mkdir(parents=True, exist_ok=True)
        self._file = run.metrics_path.open("ab")
        self._file.truncate(min(keep_bytes, self._file.tell()))  # if the log was deleted, do not fill it with zeros
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._unheard = False
        if self._console.is_terminal:
            columns = (
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("", total=1.0)
        self._tensorboard: Any = None
        with contextlib.suppress(ImportError):
            from torch.utils.tensorboard import SummaryWriter

            self._tensorboard = SummaryWriter(str(run.path / "tensorboard"))

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
        with contextlib.suppress(
            OSError
        ):  # only a line that failed can be left to write, and `write` has raised that error
            self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()

    def write(self, event: str, step: int, **values: Any) -> int:
        """Writes one line of metrics.jsonl; returns the size of the file after it."""
        line = json.dumps({"event": event, "step": step, **values}, ensure_ascii=False)
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise DragomanError(f"{self._file.name}: cannot be written ({error.strerror}); free some disk") from None
        if self._tensorboard is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._tensorboard.add_scalar(f"{event}/{name}", value, step)
        return self._file.tell()

    def sync(self) -> int:
        """Makes sure that all lines are on the disk; returns the size of the file."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def say(self, line: str) -> None:
        """Writes a line for people, above the bar. It is plain text, not markup, as it may contain text of users."""
        if self._bar is not None:
            self._console.print(Text(line), soft_wrap=True)
            return
        try:
            to_stderr(line)
        except UnheardError:
            self._unheard = True

    @property
    def unheard(self) -> bool:
        """Whether the reader of stderr has left, as `head` does; the loop then stops after its step, and saves."""
        return self._unheard or reader_has_left()

    def show(self, done: float, line: str) -> None:
        """Shows the progress: on the bar, or as a plain line if there is no terminal."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, description=line)
        else:
            self.say(f"{done:4.0%}  {line}")
