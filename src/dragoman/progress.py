"""Reports the progress of long work: to stderr, to a function of the caller's, or nowhere."""

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass

from dragoman.errors import UnheardError

Say = Callable[[str], None]

_END = b"\0 end of the progress\n"


def to_stderr(line: str) -> None:
    """Writes a line to stderr. The first time that this fails it raises an UnheardError; later lines are dropped, so
    that the caller can still save its work."""
    stream = sys.stderr
    if stream is None:  # closed from the start: nobody wants to know
        return
    try:
        print(line, file=stream, flush=True)
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        raise UnheardError(f"stderr: cannot be written ({error.strerror}); stopped") from None


def reader_has_left() -> bool:
    """Tells, without writing to it, whether stderr is a pipe that nobody reads any more."""
    try:
        descriptor = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # there is no stderr, or a program has put its own object there
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def clock(seconds: float) -> str:
    """Formats a duration as 1:05:09, or as 5:09 under an hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class ProgressLine:
    """Shows how much is done, how fast, and the time left: on a terminal in one line that is rewritten, elsewhere in a
    new line every 30 seconds."""

    EVERY = 30.0  # seconds between two lines where there is no terminal

    def __init__(self, total: int, already: int, say: Say, unit: str = "lines") -> None:
        self.total, self.already, self.unit = total, already, unit
        self.say = say
        self.began = self.last_said = time.monotonic()
        self.terminal = sys.stderr is not None and sys.stderr.isatty()

    def show(self, done: int) -> None:
        """Reports that `done` units of the total are finished."""
        now = time.monotonic()
        rate = (done - self.already) / max(now - self.began, 1e-9)
        left = (self.total - done) / rate if rate else 0.0
        line = f"{done:,} of {self.total:,} {self.unit}  {rate:,.0f} {self.unit}/s  {clock(left)} left"
        if self.terminal:
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()
        elif now - self.last_said >= self.EVERY or done == self.total:
            self.say(line)
            self.last_said = now

    def warn(self, line: str) -> None:
        """Writes a line of its own above the progress line."""
        self.close()
        self.say(line)

    def close(self) -> None:
        """Clears the line on a terminal."""
        if self.terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@dataclass
class StderrRelay:
    """Passes lines that were written to stderr on to a function, and remembers the last error message among them."""

    say: Say
    error_message: str = ""  # of a started process that failed
    error: Exception | None = None  # raised by `say` itself

    def take(self, line: str) -> None:
        """Passes one line on. After an error of `say`, further lines are dropped."""
        if line.startswith("dragoman: "):
            self.error_message = line.removeprefix("dragoman: ")
        try:
            self.say(line)
        except Exception as error:
            self.error = self.error or error  # raised when the work is done, not in the middle of it
            self.say = discard


def discard(line: str) -> None:
    """Drops a line: for callers that want no progress."""


@contextmanager
def relaying_stderr(say: Say | None) -> Iterator[StderrRelay]:
    """Within the block, calls `say` with every line that this process, or one that it starts, writes to stderr. None
    drops the lines.

    A training is several processes that share the terminal, so stderr itself is replaced, not a parameter of every
    function on the way. With `to_stderr` nothing is replaced, so that progress lines are still rewritten in place.
    """
    if say is to_stderr:
        yield StderrRelay(to_stderr)
        return
    relay = StderrRelay(say or discard)
    reading, writing = os.pipe()
    listener = threading.Thread(target=_listen, args=(reading, relay))
    listener.start()
    try:
        text = os.fdopen(os.dup(writing), "w", 1, "utf-8", "backslashreplace")
        with _descriptor_replaced(2, writing), text, redirect_stderr(text):
            yield relay
    finally:
        # Processes that go on may hold the pipe open: a last line marks its end, in place of waiting for it to close.
        os.write(writing, b"\n" + _END)
        os.close(writing)
        listener.join()
    if relay.error is not None:
        raise relay.error


def _listen(reading: int, relay: StderrRelay) -> None:
    """Gives the relay each line that comes out of the pipe, up to the one that marks its end."""
    with os.fdopen(reading, "rb") as stream:
        for line in stream:
            if line == _END:
                break
            if line.strip():
                relay.take(line.decode(errors="backslashreplace").rstrip("\n"))


@contextmanager
def _descriptor_replaced(descriptor: int, other: int) -> Iterator[None]:
    """Replaces a file descriptor of this process by another within the block. Started processes inherit it."""
    try:
        original = os.dup(descriptor)
    except OSError:  # it is closed, so started processes inherit nothing either
        yield
        return
    os.dup2(other, descriptor, inheritable=True)
    try:
        yield
    finally:
        os.dup2(original, descriptor, inheritable=True)
        os.close(original)


@contextmanager
def waiting(what: str, first: float = 2.0, done: Callable[[], str] | None = None) -> Iterator[None]:
    """Writes what the block waits for and, after `first` seconds, for how long it has waited: on a terminal in a line
    that is rewritten, elsewhere in further lines at growing intervals. `done`: says how much of it is there."""
    stream, ended, began = sys.stderr, threading.Event(), time.monotonic()
    terminal = stream is not None and stream.isatty()

    def report() -> None:
        pause = first
        with suppress(OSError, ValueError):  # nobody reads it any more: no reason to stop working
            while not ended.wait(pause):
                so_far = clock(int(time.monotonic() - began)) + (f", {done()}" if done else "")
                moving, fixed = f"\r  {what} {so_far}\x1b[K", f"  {what}: {so_far} so far\n"
                stream.write(moving if terminal else fixed)
                stream.flush()
                pause = 1.0 if terminal else min(30.0, 2 * pause)
            if terminal and time.monotonic() - began > first:
                stream.write("\r\x1b[K")
                stream.flush()

    to_stderr(what)
    reporter = threading.Thread(target=report, daemon=True)
    if stream is not None:
        reporter.start()
    try:
        yield
    finally:
        ended.set()
        if stream is not None:
            reporter.join()
