"""Where the progress of long work goes: to stderr, to a function of the caller's, or nowhere."""

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
    """What is told where nobody asked for it elsewhere. If it cannot be, an UnheardError says so, once: what is told
    after that goes nowhere, so that whoever goes on to save what there is can."""
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


@dataclass
class Told:
    """`say` takes a line. `complaint`: what a process that was started said when it failed."""

    say: Say
    complaint: str = ""
    error: Exception | None = None  # of the caller's own function

    def take(self, line: str) -> None:
        if line.startswith("dragoman: "):
            self.complaint = line.removeprefix("dragoman: ")
        try:
            self.say(line)
        except Exception as error:
            self.error = self.error or error  # raised when the work is done: nobody is told in the middle of it
            self.say = nobody


def nobody(line: str) -> None:
    """Told where nobody asked."""


@contextmanager
def telling(say: Say | None) -> Iterator[Told]:
    """Inside, `say` is given every line that goes to stderr, of the processes that are started too; None: nobody is.

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
    """The descriptor that started processes inherit."""
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
    """Say what is waited for and, from `first` seconds on, for how long already: on a terminal a line that moves, else
    further lines, at growing distances."""
    stream, ended, began = sys.stderr, threading.Event(), time.monotonic()
    moves = stream is not None and stream.isatty()

    def tell() -> None:
        pause = first
        with suppress(OSError, ValueError):  # nobody reads it any more: no reason to stop working
            while not ended.wait(pause):
                seconds = int(time.monotonic() - began)
                clock = f"{seconds // 60}:{seconds % 60:02d}"
                stream.write(f"\r  {what} {clock}\x1b[K" if moves else f"  {what}: {clock} so far\n")
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
