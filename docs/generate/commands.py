"""The reference of every command, made of the command line itself."""

import html
import re
from collections.abc import Iterator
from typing import Any

import typer.main

from dragoman.cli.main import command_line

HEAD = """\
# Commands

Every command with its arguments and options, as `dragoman COMMAND --help` prints them. Results go to standard output,
progress and errors to standard error. Exit codes: {codes}.
"""
EXIT_CODES = {
    0: "done",
    1: "a failure",
    2: "wrong usage",
    3: "data or configuration at fault",
    4: "checked, and it did not pass",
    130: "asked to stop",
}


def every_command() -> Iterator[tuple[str, Any]]:
    """The name (`lab run`) and the command of each, in the order of `dragoman --help`."""
    yield from _below("", typer.main.get_command(command_line()))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for own, below in command.commands.items():
        if not below.hidden:
            yield from _below(f"{name} {own}".strip(), below)


def page() -> str:
    codes = ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    sections: dict[str, list[str]] = {}
    root: Any = typer.main.get_command(command_line())
    for name, command in every_command():
        panel = _panel(root.commands[name.split()[0]])
        sections.setdefault(panel, []).append(_section(name, command))
    parts = [HEAD.format(codes=codes)]
    for panel, texts in sections.items():
        parts += [f"## {panel}\n", *texts]
    return "\n".join(parts)


def _panel(command: Any) -> str:
    """The group of `dragoman --help` that a command stands in."""
    panel = getattr(command, "rich_help_panel", None)
    return panel if isinstance(panel, str) else "All commands"


def _section(name: str, command: Any) -> str:
    context = command.make_context(f"dragoman {name}", [], resilient_parsing=True)
    usage = command.get_usage(context).removeprefix("Usage: ")
    records = [record for parameter in command.params if (record := parameter.get_help_record(context))]
    rows = [f"| {_code(names)} | {_cell(text)} |" for names, text in records]
    about = re.sub(r"(?<!\n)\n(?!\n)", " ", (command.help or "").replace("\b", "")).strip()
    parts = [f"### dragoman {name}\n", about, f"\n```text\n{usage}\n```\n"]
    if rows:
        parts += ["| argument or option | meaning |", "|---|---|", *rows, ""]
    return "\n".join(parts)


def _code(text: str) -> str:
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"


def _cell(text: str) -> str:
    return html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;").replace("*", "\\*")
