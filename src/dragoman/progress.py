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

_END = b"\0 nothing more is told\n"


def to_stderr(line: str) -> None:
    """Writes a line to stderr. If that fails, an UnheardError says so, once; later lines go nowhere, so that the caller
    can still save its work."""
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
    """Whether stderr is a pipe that nobody reads any more: seen without writing to it."""
    try:
        descriptor = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # there is none, or it is a program's own
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def clock(seconds: float) -> str:
    """A duration as 1:05:09, or 5:09 under an hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class ProgressLine:
    """How much is done, how fast, and the time left: one line that is rewritten on a terminal; elsewhere a new line
    now and then."""

    EVERY = 30.0  # seconds between two lines where there is no terminal

    def __init__(self, total: int, already: int, say: Say, unit: str = "lines") -> None:
        self.total, self.already, self.unit = total, already, unit
        self.say = say
        self.began = self.last_said = time.monotonic()
        self.terminal = sys.stderr is not None and sys.stderr.isatty()

    def show(self, done: int) -> None:
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
        """Says a line of its own, above the progress."""
        self.close()
        self.say(line)

    def close(self) -> None:
        """Clears the line on a terminal."""
        if self.terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@dataclass
class Told:
    """Where the lines of a block go. `complaint`: the error message of a process that was started and failed."""

    say: Say
    complaint: str = ""
    error: Exception | None = None  # of the caller's own function

    def take(self, line: str) -> None:
        if line.startswith("dragoman: "):
            self.complaint = line.removeprefix("dragoman: ")
        try:
            self.say(line)
        except Exception as error:
            self.error = self.error or error  # raised when the work is done, not in the middle of it
            self.say = nobody


def nobody(line: str) -> None:
    """Takes a line and drops it."""


@contextmanager
def telling(say: Say | None) -> Iterator[Told]:
    """Within the block, gives `say` every line that goes to stderr, also of started processes; None drops them.

    A training is several processes that share the terminal. So the terminal itself is exchanged, not a parameter of
    every function on the way; with `to_stderr` it stays, and with it the bar that moves.
    """
    if say is to_stderr:
        yield Told(to_stderr)
        return
    told = Told(say or nobody)
    reading, writing = os.pipe()
    listener = threading.Thread(target=_listen, args=(reading, told))
    listener.start()
    try:
        text = os.fdopen(os.dup(writing), "w", 1, "utf-8", "backslashreplace")
        with _descriptor_replaced(2, writing), text, redirect_stderr(text):
            yield told
    finally:
        # Processes that go on may hold the pipe open: its end is said, not waited for.
        os.write(writing, b"\n" + _END)
        os.close(writing)
        listener.join()
    if told.error is not None:
        raise told.error


def _listen(reading: int, told: Told) -> None:
    with os.fdopen(reading, "rb") as stream:
        for line in stream:
            if line == _END:
                break
            if line.strip():
                told.take(line.decode(errors="backslashreplace").rstrip("\n"))


@contextmanager
def _descriptor_replaced(descriptor: int, other: int) -> Iterator[None]:
    """Replaces a descriptor of this process, which started processes inherit, by another."""
    try:
        kept = os.dup(descriptor)
    except OSError:  # closed: then nothing is inherited, either
        yield
        return
    os.dup2(other, descriptor, inheritable=True)
    try:
        yield
    finally:
        os.dup2(kept, descriptor, inheritable=True)
        os.close(kept)


@contextmanager
def waiting(what: str, first: float = 2.0) -> Iterator[None]:
    """Says what is waited for and, from `first` seconds on, for how long: on a terminal in a line that is rewritten,
    elsewhere in further lines, at growing distances."""
    stream, ended, began = sys.stderr, threading.Event(), time.monotonic()
    moves = stream is not None and stream.isatty()

    def tell() -> None:
        pause = first
        with suppress(OSError, ValueError):  # nobody reads it any more: no reason to stop working
            while not ended.wait(pause):
                seconds = int(time.monotonic() - began)
                stream.write(f"\r  {what} {clock(seconds)}\x1b[K" if moves else f"  {what}: {clock(seconds)} so far\n")
                stream.flush()
                pause = 1.0 if moves else min(30.0, 2 * pause)
            if moves and time.monotonic() - began > first:
                stream.write("\r\x1b[K")
                stream.flush()

    to_stderr(what)
    teller = threading.Thread(target=tell, daemon=True)
    if stream is not None:
        teller.start()
    try:
        yield
    finally:
        ended.set()
        if stream is not None:
            teller.join()
