"""The errors a user can meet. Every message is one line: what was found, what is allowed, what to do.

Exit codes: 2 the command line was wrong, 3 data or configuration was wrong, 4 something was checked and did not pass,
130 it was asked to stop, 1 anything else failed.
"""

import importlib.util
import re


class DragomanError(Exception):
    """A failure that is explained to the user in one line, without a traceback."""

    exit_code = 1

    def __str__(self) -> str:
        """One line, whatever it quotes: a name or a value may hold line feeds and what steers a terminal."""
        return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda found: repr(found[0])[1:-1], super().__str__())


class UsageError(DragomanError):
    """The command was called in a way that cannot work."""

    exit_code = 2


class ConfigError(DragomanError):
    """A recipe, a `--set` or a run's configuration holds a value that is not allowed."""

    exit_code = 3


class DataError(DragomanError):
    """A file of text, a tokenizer or a checkpoint is not what it should be."""

    exit_code = 3


class CheckError(DragomanError):
    """Something was checked, and it did not pass: nothing failed, but the answer is no."""

    exit_code = 4


class MissingPackageError(DragomanError):
    """A package that only a part of Dragoman needs is not installed."""

    exit_code = 1


class UnheardError(DragomanError):
    """stderr cannot be written to, mostly because whoever read it has left, as `head` does: a request to stop."""

    exit_code = 130


# What a plain install leaves out: the package that is imported, and the extra that installs it.
EXTRAS = {
    "torch": "train",
    "lxml": "formats",
    "polib": "formats",
    "openpyxl": "formats",
    "defusedxml": "formats",
    "PIL": "inspect",
    "onnx": "export",
    "google": "export",
    "sklearn": "vision",
    "tensorboard": "tensorboard",
    "huggingface_hub": "hub",
}


def has_torch() -> bool:
    """Whether torch is installed; seen without importing it."""
    return importlib.util.find_spec("torch") is not None


def require_torch(what: str) -> None:
    """Raises a MissingPackageError where torch is not installed. `what`: what needs it."""
    require_package("torch", what)


def require_package(name: str, what: str) -> None:
    """Raises a MissingPackageError where a package of an extra is not installed. `what`: what needs it."""
    if importlib.util.find_spec(name) is None:
        extra = EXTRAS[name]
        raise MissingPackageError(f"{what} needs {name}, which is not installed; pip install 'dragoman[{extra}]'")


def missing_package(error: ModuleNotFoundError) -> MissingPackageError | None:
    """The error as a user should meet it; None where the package is in no extra."""
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS:
        return None
    return MissingPackageError(f"this needs {name}, which is not installed; pip install 'dragoman[{EXTRAS[name]}]'")


def is_about_memory(error: BaseException) -> bool:
    """Tells whether an error is an out-of-memory. torch has a class for it for GPUs only; its CPU allocator raises a
    plain RuntimeError."""
    message = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in message or "can't allocate memory" in message
