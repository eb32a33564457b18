"""A file translated into a file, however long: constant memory, progress, and after a stop it goes on where it was.

While it works, the output grows under <name>.partial, and <name>.progress says how much of that is whole: how many
lines of the input, how many bytes of the output. Both are brought to the disk a window of lines at a time, the text
first, so whatever stops the work, what the progress file says is there. The next call cuts off what came after and
goes on. A window's translations depend on that window alone, so the result is the one of an undisturbed run.
`<name>` itself appears when it is complete.

Another input, model or setting has another fingerprint, and begins again.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from dragoman.data.corpus import read_lines
from dragoman.data.glossary import Requirements
from dragoman.errors import DragomanError, UsageError
from dragoman.progress import Say, nobody
from dragoman.run_directory import RunDirectory, read_json, write_atomically
from dragoman.translation.result import Translation
from dragoman.translation.translator import WINDOW, Translator


@dataclass(frozen=True)
class FileProgress:
    fingerprint: str
    lines: int = 0  # of the input
    bytes: int = 0  # of the output


def translate_file(
    translator: Translator,
    source: Path,
    output: Path,
    write: Callable[[Translation], str],
    *,
    identity: Sequence[object],
    n_best: int = 1,
    seed: int = 0,
    scores: bool = True,
    required: Requirements | None = None,
    repair: bool = True,
    rate: bool = False,
    whole: bool = False,
    protect: bool = True,
    say: Callable[[str], None],
    tell: Say = nobody,
    window: int = WINDOW,
) -> None:
    """`write` makes the text of one translation, with its line feeds. `identity`: all that the output depends on beside
    the input, this window and the translator's search settings. `tell` is given how far a window is."""
    if output.is_dir():
        raise UsageError(f"--output {output}: a directory; name a file")
    if output.exists() and source.exists() and output.samefile(source):
        raise UsageError(f"--output {output}: the input itself; name another file")
    total, digest = _read_through(source)
    settings = [dataclasses.asdict(translator.search), n_best, seed, scores, window, digest, *map(str, identity)]
    fingerprint = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    with alone(_partial_path(output)) as file:
        done = _where_it_stopped(output, fingerprint, file)
        if done.lines:
            say(f"{output}: going on after line {done.lines:,}")
        meter = Meter(total, done.lines, say)
        lines = islice(read_lines(source), done.lines, None)
        try:
            while chunk := list(islice(lines, window)):
                translations = translator.translate_stream(
                    chunk,
                    n_best,
                    seed,
                    window,
                    warn=meter.warn,
                    scores=scores,
                    first_line=done.lines + 1,
                    required=required,
                    repair=repair,
                    rate=rate,
                    whole=whole,
                    protect=protect,
                    tell=tell,
                )
                file.write("".join(map(write, translations)).encode())
                to_disk(file)
                done = FileProgress(fingerprint, done.lines + len(chunk), file.tell())
                write_atomically(_progress_path(output), json.dumps(dataclasses.asdict(done)).encode())
                meter.show(done.lines)
        except OSError as error:
            raise DragomanError(
                f"{_partial_path(output)}: cannot be written ({error.strerror}); the same command goes on after line "
                f"{done.lines:,}"
            ) from None
        finally:
            meter.close()
        _partial_path(output).replace(output)
        _progress_path(output).unlink(missing_ok=True)


def identity_of(runs: Sequence[Path], checkpoint: str | None) -> list[str]:
    """Digests of the weights and tokenizers of these runs."""
    digests = []
    for run in map(RunDirectory.open, runs):
        weights = run.model_path if checkpoint is None else run.checkpoints_path / checkpoint / run.model_path.name
        if not weights.is_file() and run.checkpoints():  # a run without its own model translates with its newest
            weights = run.checkpoints()[-1] / run.model_path.name
        for path in (weights, run.tokenizer_path, run.config_path):
            with path.open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return digests


def _partial_path(output: Path) -> Path:
    return output.with_name(output.name + ".partial")


def _progress_path(output: Path) -> Path:
    return output.with_name(output.name + ".progress")


def _read_through(source: Path) -> tuple[int, str]:
    """How many lines, and a digest of them. A line that cannot be read is thus named before the work and not in it."""
    if source.exists() and not source.is_file():
        raise UsageError(f"--input {source}: not a regular file; with --output it is read twice, so save it first")
    count, digest = 0, hashlib.sha256()
    for line in read_lines(source):
        digest.update(line.encode() + b"\n")
        count += 1
    return count, digest.hexdigest()


@contextlib.contextmanager
def alone(path: Path) -> Iterator[BinaryIO]:
    """A file open at its end, and nobody else writing it."""
    try:
        file = path.open("ab+")
    except OSError as error:
        raise DragomanError(f"{path}: cannot be written ({error.strerror}); choose another output") from None
    with file:
        with contextlib.suppress(ImportError):  # no such locks on Windows
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise DragomanError(
                    f"{path}: another process is writing it; wait for it or name another file"
                ) from None
        yield file


def _where_it_stopped(output: Path, fingerprint: str, file: BinaryIO) -> FileProgress:
    """What is whole of the same work, all else cut off."""
    done = FileProgress(fingerprint)
    if _progress_path(output).is_file():
        with contextlib.suppress(DragomanError, TypeError):  # damaged: begin again
            found = FileProgress(**read_json(_progress_path(output)))
            if found.fingerprint == fingerprint and found.bytes <= os.fstat(file.fileno()).st_size:
                done = found
    file.truncate(done.bytes)
    file.seek(done.bytes)
    return done


def to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


class Meter:
    """How much is done, how quickly, time left: one line that is rewritten on a terminal, else one now and then."""

    EVERY = 30.0  # seconds between two lines where there is no terminal

    def __init__(self, total: int, already: int, say: Callable[[str], None], unit: str = "lines") -> None:
        self.total, self.already, self.unit = total, already, unit
        self.say = say
        self.begin = time.monotonic()
        self.said = self.begin
        self.terminal = sys.stderr is not None and sys.stderr.isatty()

    def show(self, done: int) -> None:
        now = time.monotonic()
        rate = (done - self.already) / max(now - self.begin, 1e-9)
        left = (self.total - done) / rate if rate else 0.0
        line = f"{done:,} of {self.total:,} {self.unit}  {rate:,.0f} {self.unit}/s  {_clock(left)} left"
        if self.terminal:
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()
        elif now - self.said >= self.EVERY or done == self.total:
            self.say(line)
            self.said = now

    def warn(self, line: str) -> None:
        self.close()
        self.say(line)

    def close(self) -> None:
        if self.terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
