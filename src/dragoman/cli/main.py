"""The command `dragoman`: all its commands, and what becomes of errors. stdout is data, stderr is progress.

Exit codes: 0 done, 2 wrong usage, 3 data or configuration at fault, 4 checked and found not good enough, 1 another
failure, 130 asked to stop: interrupted, or whoever read its progress has left.
"""

import importlib
import io
import os
import sys
import traceback
import warnings
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

from dragoman.cli.registration import Group, command
from dragoman.cli.terminal import say, show
from dragoman.errors import DragomanError, UnheardError, is_about_memory, missing_package

# What `dragoman --help` shows, under these headings and in this order: the name of each command, and the function or
# the group of commands that it is. They are imported when they are asked for, as a translation waits for its start.
COMMANDS = {
    "Start here": {"demo": "quickstart.demo", "quickstart": "quickstart.quickstart"},
    "Train": {
        "train": "training.train",
        "finetune": "finetune.finetune",
        "distill": "distill.distill",
        "average": "training.average",
        "verify": "training.verify",
        "config": "configurations.config",
    },
    "Translate and serve": {
        "translate": "translation.translate",
        "translate-file": "documents.translate_file",
        "serve": "serve.serve",
        "corrections": "corrections.corrections",
        "calibrate": "evaluation.calibrate",
        "quantize": "evaluation.quantize",
    },
    "Look inside and measure": {
        "inspect": "inspection.inspect",
        "evaluate": "evaluation.evaluate",
        "compare": "evaluation.compare",
        "score": "evaluation.score",
        "stress": "stress.stress",
        "lab": "lab.lab",
    },
    "Data": {"doctor": "doctor.doctor", "backtranslate": "finetune.backtranslate", "tasks": "language_models.tasks"},
    "Exchange": {
        "export": "export.export",
        "import": "export.import_",
        "bundle": "export.bundle",
        "unbundle": "export.unbundle",
        "reproduce": "export.reproduce",
    },
    "Elsewhere": {
        "parse": "parsing.parse",
        "lm": "language_models.lm",
        "mlm": "language_models.mlm",
        "vit": "vision.vit",
    },
}


def command_line(only: str | None = None) -> typer.Typer:
    """The whole command line; or that with one of its commands, which is there in a third of the time."""
    app = typer.Typer(
        name="dragoman",
        cls=Group,
        help='The Transformer of "Attention Is All You Need": from sentence pairs to a translator.',
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=only is None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(options)
    for heading, commands in COMMANDS.items():
        for name, place in commands.items():
            if only not in (None, name):
                continue
            module, _, attribute = place.partition(".")
            found = getattr(importlib.import_module(f"dragoman.cli.{module}"), attribute)
            if isinstance(found, typer.Typer):
                app.add_typer(found, name=name, rich_help_panel=heading)
            else:
                command(app, name, heading)(found)
    return app


def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        from importlib import metadata

        show(metadata.version("dragoman"))
        raise typer.Exit


def main() -> NoReturn:
    """Run a command; turn what goes wrong into one line and an exit code."""
    _speak_utf8()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _one_line
            asked = sys.argv[1] if len(sys.argv) > 1 else ""
            known = any(asked in commands for commands in COMMANDS.values())
            code = command_line(asked if known else None)(prog_name="dragoman", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except DragomanError as error:
        _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except typer.TyperException as error:
        asked = getattr(getattr(error, "ctx", None), "command_path", "dragoman")
        complaint = " ".join(error.format_message().split()).replace("Value error, ", "")  # what pydantic puts before
        _fail(f"{complaint.rstrip('.')}; see: {asked} --help", 2)
    except ModuleNotFoundError as error:
        _fail(str(missing_package(error) or error), 1)
    except OSError as error:
        _fail(f"{error.filename or 'the system'}: {error.strerror or error}", 1)
    except Exception as error:
        complaint = " ".join(str(error).split())
        if is_about_memory(error):
            _fail("not enough memory; free some, or give less at once; to see where, add --verbose", 1)
        _fail(f"{type(error).__name__}: {complaint}; to see where, add --verbose", 1)


def _speak_utf8() -> None:
    """Whatever the locale says: it is what we read, too. Names of files that are not UTF-8 come out as they are."""
    for stream, errors in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


def _one_line(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning for a person: what it says, and not the line of code that says it."""
    say(" ".join(str(message).split()))


def _fail(message: str, code: int) -> NoReturn:
    if os.environ.get("DRAGOMAN_TRACEBACK"):
        traceback.print_exc()
    with suppress(UnheardError):
        say(f"dragoman: {message}")
    sys.exit(code)
