"""Translates a file of any length into a file: in constant memory, with progress, and it can be stopped and resumed.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypedDict, Unpack

from dragoman.data.corpus import read_lines
from dragoman.data.glossary import Requirements
from dragoman.errors import DragomanError, UsageError
from dragoman.files import flush_to_disk, open_exclusively, read_json, sha256, write_atomically
from dragoman.progress import ProgressLine, Say, discard
from dragoman.run_directory import RunDirectory
from dragoman.translation.pivot import PivotTranslator
from dragoman.translation.result import Translation
from dragoman.translation.translator import WINDOW, Translator


@dataclass(frozen=True)
class FileProgress:
    """How much of a file is translated: the content of <name>.progress."""

    fingerprint: str
    lines: int = 0  # of the input
    bytes: int = 0  # of the output


class LineOptions(TypedDict, total=False):
    """How each line is translated; `Translator.translate_stream` says what each means."""

    required: Requirements | None
    repair: bool
    rate: bool
    whole: bool
    protect: bool


def translate_file(
    translator: Translator | PivotTranslator,
    source: Path,
    output: Path,
    write: Callable[[Translation], str],
    *,
    identity: Sequence[object],
    n_best: int = 1,
    seed: int = 0,
    scores: bool = True,
    say: Callable[[str], None],
    tell: Say = discard,
    window: int = WINDOW,
    **options: Unpack[LineOptions],
) -> None:
    """Translates `source` line by line into `output`, or goes on where an earlier call was stopped.

    `write` makes the text of one translation, with its line feeds. `identity`: all that the output depends on beside
    the input, this window and the translator's search settings. `tell` is given how far a window is. The other options
    are those of `Translator.translate_stream`."""
    _require_another_file(source, output)
    total, digest = _read_through(source)
    settings = [dataclasses.asdict(translator.search), n_best, seed, scores, window, digest, *map(str, identity)]
    fingerprint = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    with open_exclusively(_partial_path(output)) as file:
        done = _where_it_stopped(output, fingerprint, file)
        if done.lines:
            say(f"{output}: going on after line {done.lines:,}")
        meter = ProgressLine(total, done.lines, say)
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
                    tell=tell,
                    **options,
                )
                file.write("".join(map(write, translations)).encode())
                flush_to_disk(file)
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


def _require_another_file(source: Path, output: Path) -> None:
    if output.is_dir():
        raise UsageError(f"--out {output}: a directory; name a file")
    if output.exists() and source.exists() and output.samefile(source):
        raise UsageError(f"--out {output}: the input itself; name another file")


def identity_of(runs: Sequence[Path], checkpoint: str | None) -> list[str]:
    """Digests of the weights and tokenizers of these runs."""
    digests = []
    for run in map(RunDirectory.open, runs):
        weights = run.model_path if checkpoint is None else run.checkpoints_path / checkpoint / run.model_path.name
        if not weights.is_file() and run.checkpoints():  # a run without its own model translates with its newest
            weights = run.checkpoints()[-1] / run.model_path.name
        for path in (weights, run.tokenizer_path, run.config_path):
            digests.append(sha256(path))
    return digests


def _partial_path(output: Path) -> Path:
    return output.with_name(output.name + ".partial")


def _progress_path(output: Path) -> Path:
    return output.with_name(output.name + ".progress")


def _read_through(source: Path) -> tuple[int, str]:
    """The number of lines, and a digest of them. Reading all of them first finds an unreadable line before the work
    begins."""
    if source.exists() and not source.is_file():
        raise UsageError(f"--input {source}: not a regular file; with --out it is read twice, so save it first")
    count, digest = 0, hashlib.sha256()
    for line in read_lines(source):
        digest.update(line.encode() + b"\n")
        count += 1
    return count, digest.hexdigest()


def _where_it_stopped(output: Path, fingerprint: str, file: BinaryIO) -> FileProgress:
    """How far an earlier call with the same fingerprint came; what comes after that is cut off the file."""
    done = FileProgress(fingerprint)
    if _progress_path(output).is_file():
        with contextlib.suppress(DragomanError, TypeError):  # damaged: begin again
            found = FileProgress(**read_json(_progress_path(output)))
            if found.fingerprint == fingerprint and found.bytes <= os.fstat(file.fileno()).st_size:
                done = found
    file.truncate(done.bytes)
    file.seek(done.bytes)
    return done
