"""The command `dragoman`: all its commands, and what becomes of errors. stdout is data, stderr is progress.

Exit codes: 0 done, 2 wrong usage, 3 data or configuration at fault, 4 checked and found not good enough, 1 another
failure, 130 asked to stop: interrupted, or whoever read its progress has left.
"""

import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

from dragoman.cli.configurations import config
from dragoman.cli.corrections import corrections
from dragoman.cli.doctor import doctor
from dragoman.cli.documents import translate_file
from dragoman.cli.evaluation import calibrate, compare, evaluate, quantize, score
from dragoman.cli.export import bundle, export, import_, reproduce, unbundle
from dragoman.cli.finetune import backtranslate, finetune
from dragoman.cli.inspection import inspect
from dragoman.cli.lab import lab
from dragoman.cli.language_models import lm, mlm, tasks
from dragoman.cli.parsing import parse
from dragoman.cli.quickstart import demo, quickstart
from dragoman.cli.registration import Group, command
from dragoman.cli.serve import serve
from dragoman.cli.stress import stress
from dragoman.cli.terminal import say, show
from dragoman.cli.training import average, train, verify
from dragoman.cli.translation import translate
from dragoman.cli.vision import vit
from dragoman.errors import DragomanError, UnheardError, is_about_memory, missing_package

app = typer.Typer(
    name="dragoman",
    cls=Group,
    help='The Transformer of "Attention Is All You Need": from sentence pairs to a translator.',
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        from importlib import metadata

        show(metadata.version("dragoman"))
        raise typer.Exit


# What `dragoman --help` shows, under these headings and in this order.
COMMANDS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Start here": {"demo": demo, "quickstart": quickstart},
    "Train": {"train": train, "finetune": finetune, "average": average, "verify": verify, "config": config},
    "Translate and serve": {
        "translate": translate,
        "translate-file": translate_file,
        "serve": serve,
        "corrections": corrections,
        "calibrate": calibrate,
        "quantize": quantize,
    },
    "Look inside and measure": {
        "inspect": inspect,
        "evaluate": evaluate,
        "compare": compare,
        "score": score,
        "stress": stress,
        "lab": lab,
    },
    "Data": {"doctor": doctor, "backtranslate": backtranslate, "tasks": tasks},
    "Exchange": {
        "export": export,
        "import": import_,
        "bundle": bundle,
        "unbundle": unbundle,
        "reproduce": reproduce,
    },
    "Elsewhere": {"parse": parse, "lm": lm, "mlm": mlm, "vit": vit},
}
for heading, commands in COMMANDS.items():
    for name, found in commands.items():
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, rich_help_panel=heading)
        else:
            command(app, name, heading)(found)


def main() -> NoReturn:
    """Run a command; turn what goes wrong into one line and an exit code."""
    _speak_utf8()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _one_line
            code = app(prog_name="dragoman", standalone_mode=False)
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
