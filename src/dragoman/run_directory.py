"""A run's directory: the names of its files, and what can be read from them without torch.

config.json         everything the run is made from
tokenizer.model     the shared vocabulary, a sentencepiece model
cleaning.json       which text the run began with, and what cleaning dropped, by rule, with examples
data/               the token ids, memory-mapped
metrics.jsonl       every measurement, one JSON object a line
checkpoints/        step-00001000/ ...: weights, optimiser, progress, and a manifest of their hashes
skipped.jsonl       the batches of steps whose loss or gradient was not finite, where there were any
model.safetensors   the weights that translate: best so far, and the average at the end
model.json          which weights those are
ctranslate2/        those weights as CTranslate2 reads them, by number type: made when first asked for, or imported
languages.json      {"source": "en", "target": "de"}, where it is known
engine.json         the number type and vocabulary map to translate with, where `quantize` found them good enough, or
                    an imported model had it
confidence.json     the calibration of its probabilities, where `calibrate` learned one
finetune/           of a fine-tuned run: its text, what it was made from (plan.json) and what came of it (result.json)
text/               of a quickstart: its text, cleaned and split, and what was found in it (about.json)
quickstart.json     of a quickstart or a distillation: the plan of its training
teaching/           of a distillation: what the teacher translated, and its translations (train.tsv)
README.md           of a run that was imported: the card of the public model, as it came with it
LICENSE             and the text of its licence
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dragoman.config import RunConfig, Task
from dragoman.errors import DataError, DragomanError
from dragoman.files import read_json, replacing, sha256, try_lock, write_atomically

FORMAT = 1  # raised when a run written before can no longer be read

CONFIG = "config.json"
TOKENIZER = "tokenizer.model"
CLEANING = "cleaning.json"
DATA = "data"
METRICS = "metrics.jsonl"
WEIGHTS = "model.safetensors"  # of a run, and of a checkpoint
MODEL_CARD = "model.json"
LANGUAGES = "languages.json"
ENGINE = "engine.json"
CONFIDENCE = "confidence.json"
BUNDLE_CARD = "card.json"  # of a bundle: what is in it, with the hash of every file
ORIGINAL_CARD = "README.md"
ORIGINAL_LICENCE = "LICENSE"


MEMORY_STEP = 2**24  # bytes: who watches a training is not told of less


class RunDirectory:
    """The names of a run's files, and what can be read from them without torch."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config_path = self.path / CONFIG
        self.tokenizer_path = self.path / TOKENIZER
        self.cleaning_path = self.path / CLEANING
        self.data_path = self.path / DATA
        self.metrics_path = self.path / METRICS
        self.model_path = self.path / WEIGHTS
        self.model_card_path = self.path / MODEL_CARD
        self.converted_path = self.path / "ctranslate2"
        self.engine_path = self.path / ENGINE
        self.confidence_path = self.path / CONFIDENCE
        self.checkpoints_path = self.path / "checkpoints"
        self.skipped_path = self.path / "skipped.jsonl"
        self.languages_path = self.path / LANGUAGES
        self.finetune_path = self.path / "finetune"
        self.finetune_plan_path = self.finetune_path / "plan.json"
        self.finetune_result_path = self.finetune_path / "result.json"
        self.quickstart_plan_path = self.path / "quickstart.json"
        self.quickstart_text_path = self.path / "text"
        self.teaching_path = self.path / "teaching"
        self.about_quickstart_text_path = self.quickstart_text_path / "about.json"

    @classmethod
    def open(cls, path: str | Path) -> "RunDirectory":
        """Opens a directory that holds a run, or a bundle of one; a DataError says what is missing."""
        run = cls(unpacked(Path(path)) if _is_zip(Path(path)) else path)
        if run.path.is_file():
            raise DataError(f"{path}: a file, and no whole bundle of a run; fetch it again, or give a run's directory")
        if not run.path.is_dir():
            raise DataError(f"{path}: no such run directory; make one: dragoman train --pairs my.tsv --out {path}")
        for needed in (run.config_path, run.tokenizer_path):
            if not needed.is_file():
                raise DataError(f"{path}: not a run directory ({needed.name} is missing); give the --out of a training")
        return run

    def read_config(self) -> RunConfig:
        values = read_json(self.config_path)
        if values.pop("format", None) != FORMAT:
            raise DataError(
                f"{self.config_path}: written by another version of dragoman (this one reads format {FORMAT}); "
                f"train the run again or use that version"
            )
        return RunConfig.from_json(json.dumps(values), str(self.config_path))

    def write_config(self, config: RunConfig) -> None:
        values = {"format": FORMAT, **json.loads(config.to_json())}
        write_atomically(self.config_path, (json.dumps(values, indent=2) + "\n").encode())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lets one training at a time into the directory; the lock ends with the process that holds it."""
        new = [path for path in (self.path, *self.path.parents) if not path.exists()]
        lock_path = self.path / ".lock"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise DragomanError(f"{self.path}: cannot be written ({error.strerror}); give another --out") from None
        try:
            if not try_lock(descriptor):
                holder = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
                raise DragomanError(
                    f"{self.path}: process {holder} is training in it; wait for it, or give another --out"
                )
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            yield
        finally:
            if new and set(self.path.iterdir()) == {lock_path}:  # nothing came of it: leave nothing behind
                lock_path.unlink()
                for path in new:
                    path.rmdir()
            os.close(descriptor)

    def is_training(self) -> bool:
        """Whether a process of this machine trains in it. The lock is tried only where the process that held it last
        is alive, so that a training that begins never finds it taken by this. On Windows nothing can be known."""
        if os.name == "nt":  # there are no locks, and os.kill ends the process instead of looking for it
            return False
        try:
            with (self.path / ".lock").open("rb") as file:
                with suppress(PermissionError):  # another user's, and alive
                    os.kill(int(file.read(20)), 0)
                return not try_lock(file.fileno(), shared=True)
        except (OSError, ValueError):
            return False

    def memory(self) -> int | None:
        """How many bytes the process that trains in it holds in memory, in steps of 16 MiB. None: none does, or the
        system does not say."""
        if not self.is_training():
            return None
        try:
            holder = int((self.path / ".lock").read_bytes()[:20])
            pages = int(Path(f"/proc/{holder}/statm").read_text(encoding="ascii").split()[1])
        except (OSError, ValueError, IndexError):
            return None
        return -(-pages * os.sysconf("SC_PAGE_SIZE") // MEMORY_STEP) * MEMORY_STEP

    def has_model(self) -> bool:
        """Whether there is something to translate with: a training has it after its first validation."""
        return self.model_path.is_file() or bool(self.checkpoints())

    def events(self) -> list[dict[str, Any]]:
        """Every measurement of its training, in order; none where there is no log."""
        return list(events_in(self.metrics_path.read_bytes())) if self.metrics_path.is_file() else []

    def checkpoints(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        found = [p for p in self.checkpoints_path.glob("step-*") if re.fullmatch(r"step-\d+", p.name)]
        return sorted(found, key=step_of)


def require_task(run: RunDirectory, task: Task) -> None:
    """Raises unless the run was trained for this task; the message names the command that uses it."""
    uses = {"translate": "dragoman translate", "continue": "dragoman lm generate", "restore": "dragoman mlm fill",
            "classify": "dragoman mlm classify, or dragoman vit"}  # fmt: skip
    trained_for = run.read_config().model.task
    if trained_for != task:
        raise DataError(f"{run.path}: was trained to {trained_for}, not to {task}; use {uses[trained_for]}")


def default_cache() -> Path:
    """$XDG_CACHE_HOME/dragoman, or ~/.cache/dragoman."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    return (configured if configured.is_absolute() else Path.home() / ".cache") / "dragoman"


def _is_zip(path: Path) -> bool:
    if not path.is_file():
        return False
    import zipfile  # imported only where a run is given as a file

    return zipfile.is_zipfile(path)


def unpacked(bundle: Path) -> Path:
    """The directory in the cache that a bundle is unpacked to, once for each content."""
    directory = default_cache() / "bundles" / sha256(bundle)[:16]
    if not (directory / CONFIG).is_file():
        unpack(bundle, directory)
    return directory


LARGE, MOST_RATIO = 64 << 20, 20  # bytes, and times its size: weights hardly shrink when they are packed


def unpack(bundle: Path, directory: Path) -> None:
    """Writes the run's files from a bundle into a new directory, each checked against its hash in card.json."""
    import zipfile

    try:
        with zipfile.ZipFile(bundle) as archive, replacing(directory) as temporary:
            size = sum(info.file_size for info in archive.infolist())
            if size > LARGE and size > MOST_RATIO * bundle.stat().st_size:
                raise DataError(f"{bundle}: unpacks to {size:,} bytes, far more than any run; do not trust this bundle")
            temporary.mkdir()
            for name, recorded in json.loads(archive.read(BUNDLE_CARD))["files"].items():
                if not re.fullmatch(r"[\w-][\w.-]*", name):  # a name, not a path: nothing is written elsewhere
                    raise DataError(f"{bundle}: {name!r} is no file of a run; do not trust this bundle")
                with archive.open(f"run/{name}") as packed, (temporary / name).open("wb") as file:
                    shutil.copyfileobj(packed, file)
                if sha256(temporary / name) != recorded:
                    raise DataError(f"{bundle}: {name} is not what was packed; fetch the bundle again")
    except OSError as error:
        raise DataError(f"{bundle}: cannot be read ({error.strerror or error}); check the path") from None
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{bundle}: not a bundle of a run ({error}); make one: dragoman bundle RUN") from None


@contextmanager
def scratch_of(run: RunDirectory) -> Iterator[RunDirectory]:
    """Gives a temporary run directory with the run's tokenizer and text, for a training that is thrown away."""
    with tempfile.TemporaryDirectory() as temporary:
        scratch = RunDirectory(temporary)
        for name in (TOKENIZER, CLEANING):
            shutil.copy(run.path / name, scratch.path / name)
        if run.languages_path.exists():  # ids depend on it where languages are tokens
            shutil.copy(run.languages_path, scratch.languages_path)
        scratch.data_path.symlink_to(run.data_path.resolve())
        yield scratch


def events_in(log: bytes) -> Iterator[dict[str, Any]]:
    """The whole lines of a metrics.jsonl."""
    for line in log.splitlines():
        try:
            event = json.loads(line)
        except ValueError:  # half a line that a kill or a power cut left
            continue
        if isinstance(event, dict):
            yield event


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))
