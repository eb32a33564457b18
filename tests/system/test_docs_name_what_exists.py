"""The documents say what the command line does: every command and option that they show exists."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from dragoman.cli.main import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "bench").rglob("*.md"))]


def shown_commands(document: Path) -> list[list[str]]:
    """What stands after `dragoman` in the document's shell blocks, lines ending in a backslash joined."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"\||&&|;", re.sub(r"(^|\s)#.*", "", line)):
                words = shlex.split(part.strip())
                if words[:1] == ["dragoman"]:
                    found.append(words[1:])
    return found


def test_the_readme_shows_commands() -> None:
    assert len(shown_commands(ROOT / "README.md")) >= 5


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_is_shown_exists(document: Path) -> None:
    for words in shown_commands(document):
        command: Any = typer.main.get_command(app)
        while hasattr(command, "commands") and not words[0].startswith("-"):
            name, *words = words
            assert name in command.commands, f"{document.name}: no command {name}"
            command = command.commands[name]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for word in words:
            option = word.split("=")[0]
            assert not option.startswith("--") or option in known, f"{document.name}: {command.name} {option}"
