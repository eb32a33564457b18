"""Finds a public model by what a user calls it: a path on this machine, or a name on the Hugging Face hub.

A path that exists wins. Of a model on the hub only what an import reads comes into huggingface_hub's own cache, each
file once; where the hub cannot be reached, or must not be (HF_HUB_OFFLINE), what the cache has is taken.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.data.imported_tokenizer import ONE_MODEL, SOURCE_MODEL, TARGET_MODEL, TARGET_VOCABULARY, VOCABULARY
from dragoman.errors import DataError, DragomanError, UsageError, require_package, require_torch
from dragoman.files import read_json
from dragoman.importing.huggingface import INDEX, best_weights, family_of, parts_of
from dragoman.importing.model_card import LICENCE_FILES
from dragoman.importing.tokenizers import FAST, GENERATION, SETTINGS
from dragoman.progress import to_stderr, waiting
from dragoman.run_directory import ORIGINAL_CARD

CONFIG = "config.json"
# What is read beside the weights. The weights come last: where they are, the rest is.
READ = (
    CONFIG, GENERATION, SETTINGS, FAST, SOURCE_MODEL, TARGET_MODEL, VOCABULARY, TARGET_VOCABULARY, ONE_MODEL,
    ORIGINAL_CARD, *LICENCE_FILES,
)  # fmt: skip
EXAMPLE = "Helsinki-NLP/opus-mt-en-de"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Located:
    """Where the files of a model are."""

    path: Path
    name: str  # what the model is called, without its owner
    origin: dict[str, str] = field(default_factory=dict)  # what the run's record says of where it came from


def located(model: str | Path, revision: str | None = None, out: str | Path = "RUN") -> Located:
    """Finds a model, and fetches it if it is a name. `revision`: a branch, a tag or a commit on the hub; `out`: the run
    that is made of it, for what an error advises."""
    path, name = Path(model), str(model)
    if path.exists():
        if revision is not None:
            raise UsageError(f"--revision {revision}: {path} is a path on this machine and has none; leave it out")
        return Located(path, path.resolve().name)
    before, at, after = name.partition("@")
    if at and _NAME.fullmatch(before):
        raise UsageError(f"{name}: the revision of a model has an option of its own: {before} --revision {after}")
    if not _NAME.fullmatch(name):
        raise DataError(
            f"{name}: no such file or directory; give a model's directory or archive, or its whole name on the Hugging "
            f"Face hub, for example {EXAMPLE}"
        )
    require_package("huggingface_hub", f"{name}: no such path here, and a name on the Hugging Face hub")
    return _HubModel(name, revision, out).found()


class _UnreachableError(Exception):
    """The hub cannot be asked; the message says why."""


@dataclass(frozen=True)
class _HubModel:
    """A model on the hub. Each error is one line, and where the network is at fault it says how to do without."""

    name: str
    revision: str | None
    out: str | Path

    def found(self) -> Located:
        """Its files in the cache, fetched if they are not there."""
        with _silent():
            try:
                sizes = self._listed()
            except _UnreachableError as error:
                folder = self._cached(str(error))
            else:
                folder = self._fetched(sizes)
        revision = self.revision or "main"
        origin = {"from": self.name, "hub": _hub(), "revision": revision, "commit": folder.name}
        return Located(folder, self.name.partition("/")[2], origin)

    def _listed(self) -> dict[str, int]:
        """The files that the hub has of it, with their sizes."""
        from huggingface_hub import HfApi, constants, errors

        timeout = constants.HF_HUB_ETAG_TIMEOUT
        try:
            with self._explained():
                info = HfApi().model_info(self.name, revision=self.revision, files_metadata=True, timeout=timeout)
                return {file.rfilename: file.size or 0 for file in info.siblings or ()}
        except errors.OfflineModeIsEnabled:
            raise _UnreachableError("HF_HUB_OFFLINE lets nothing be fetched") from None
        except errors.HfHubHTTPError as error:
            raise _UnreachableError(f"{_hub()} answers {error.response.status_code}") from None
        except (ValueError, LookupError, TypeError):  # the page of a network that one must log in to
            raise _UnreachableError(f"{_hub()} does not answer as a hub does, see HF_ENDPOINT") from None
        except _transport_errors() as error:
            raise _UnreachableError(f"{_hub()} cannot be reached ({_reason(error)})") from None

    def _fetched(self, sizes: dict[str, int]) -> Path:
        """The directory of its files in the cache, after those that are not there have come."""
        from huggingface_hub import constants, hf_hub_download

        def one(file: str, revision: str | None) -> Path:
            return Path(hf_hub_download(self.name, file, revision=revision))

        weights = best_weights(sizes)
        if CONFIG not in sizes or weights is None:
            missing = CONFIG if CONFIG not in sizes else "model.safetensors or pytorch_model.bin"
            raise DataError(
                f"{self.name}: no {missing} among its files on {_hub()}; only models that transformers loads with "
                f"PyTorch can be imported by name"
            )
        try:
            with self._explained():
                # By the revision that was asked for, so that the cache knows it; all else of the commit that it is.
                folder = one(CONFIG, self.revision).parent
                family_of(read_json(folder / CONFIG), Path(self.name))  # before hundreds of megabytes are fetched
                if ".bin" in weights:
                    require_torch(f"{self.name}, which has {weights} and no model.safetensors,")
                parts = parts_of(one(weights, folder.name)) if weights.endswith(INDEX) else [weights]
                wanted = [*(file for file in READ if file in sizes), *parts]
                missing_files = [file for file in wanted if not (folder / file).exists()]
                if missing_files:
                    with _arriving(self.name, sum(sizes.get(file, 0) for file in missing_files), folder):
                        for file in missing_files:
                            one(file, folder.name)
                return folder
        except _transport_errors() as error:
            if getattr(error, "errno", None) is not None and not isinstance(error, ConnectionError | TimeoutError):
                raise DragomanError(
                    f"{constants.HF_HUB_CACHE}: cannot be written ({_reason(error)}); make room, or give another "
                    f"directory in HF_HOME"
                ) from None
            raise DragomanError(
                f"{self.name}: did not arrive whole ({_reason(error)}); the same command fetches what is missing, or "
                f"{self._by_hand()}"
            ) from None

    def _cached(self, why: str) -> Path:
        """The directory of its files in the cache, where the hub cannot be asked. `why`: why it cannot."""
        from huggingface_hub import constants, errors, hf_hub_download

        how_much = "not in the cache"
        with suppress(errors.LocalEntryNotFoundError):
            config = hf_hub_download(self.name, CONFIG, revision=self.revision, local_files_only=True)
            folder = Path(config).parent
            weights = best_weights([path.name for path in folder.iterdir()])
            if weights and all((folder / part).exists() for part in parts_of(folder / weights)):
                if not constants.HF_HUB_OFFLINE:
                    to_stderr(f"{self.name}: {why}; commit {folder.name[:8]} is in the cache, and is taken")
                return folder
            how_much = "only a part of it is in the cache"
        raise DragomanError(f"{self.name}: {how_much} ({constants.HF_HUB_CACHE}), and {why}; {self._by_hand()}")

    def _by_hand(self) -> str:
        directory = self.name.partition("/")[2]
        revision = "" if self.revision is None else f" --revision {self.revision}"
        return (
            f"on a machine with a network: hf download {self.name}{revision} --local-dir {directory} and then here: "
            f"dragoman import {directory} --out {self.out}"
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Says in a line what the hub refuses. Other errors pass through."""
        from huggingface_hub import errors

        page = f"{_hub()}/{self.name}"
        try:
            yield
        except errors.GatedRepoError:
            raise DataError(
                f"{self.name}: its owners ask for an agreement first; accept it on {page}, and give your token in "
                f"HF_TOKEN (or log in: hf auth login)"
            ) from None
        except errors.RepositoryNotFoundError:
            raise DataError(
                f"{self.name}: no such path here, and no such model on {_hub()}; check the name, or give your token in "
                f"HF_TOKEN if the model is private"
            ) from None
        except errors.RevisionNotFoundError:
            raise DataError(
                f"{self.name}: no revision {self.revision}; give a branch, a tag or a commit, as "
                f"{page}/commits/main lists them"
            ) from None
        except errors.HFValidationError:
            raise DataError(
                f"{self.name}: no such path here, and no name that a model can have on the hub; those are as {EXAMPLE}"
            ) from None
        except errors.HfHubHTTPError as error:
            status = error.response.status_code
            if status not in (401, 403):
                raise
            raise DataError(
                f"{self.name}: {_hub()} answers {status}; check the token in HF_TOKEN, and that it may read this model"
            ) from None


@contextmanager
def _silent() -> Iterator[None]:
    """Keeps huggingface_hub from writing to stderr: bars, and a line for each new attempt."""
    from logging import ERROR

    from huggingface_hub import constants
    from huggingface_hub.utils import logging
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    bars = constants.HF_HUB_DISABLE_PROGRESS_BARS is None and not are_progress_bars_disabled()
    before = logging.get_verbosity()
    logging.set_verbosity(ERROR)
    if bars:
        disable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            enable_progress_bars()


@contextmanager
def _arriving(name: str, size: int, folder: Path) -> Iterator[None]:
    """Says how much has arrived: how much the model's part of the cache has grown. (What huggingface_hub itself would
    tell differs from version to version.)"""
    cached = folder.parents[1]

    def held() -> int:
        total = 0
        for path in cached.rglob("*"):
            with suppress(OSError):  # it was renamed just now
                total += path.lstat().st_size if path.is_file() and not path.is_symlink() else 0
        return total

    before = held()
    with waiting(f"fetching {name}, {_megabytes(size)}", done=lambda: _megabytes(held() - before)):
        yield


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _hub() -> str:
    """The address of the hub, without what logs in there."""
    from huggingface_hub import constants

    return re.sub(r"//[^/@]*@", "//", constants.ENDPOINT)


def _transport_errors() -> tuple[Any, ...]:
    """What is raised where no answer comes. Which library huggingface_hub asks with differs from version to version;
    its own errors descend from that library's."""
    from huggingface_hub import errors

    return OSError, *errors.HfHubHTTPError.__bases__


def _reason(error: BaseException) -> str:
    """What went wrong below, in a few words."""
    below = error.__cause__ or error
    text = str(below).strip().partition("\n")[0].rstrip(".")
    from_system = re.search(r"\[Errno -?\d+\] ([\w ]+)", text)
    return from_system[1] if from_system else text or type(below).__name__
