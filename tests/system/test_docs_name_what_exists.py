"""The documents say what the command line does: every command and option that they show exists."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from dragoman.cli.main import command_line
from dragoman.cli.old_names import RENAMED

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "bench").rglob("*.md")),
]


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
        command: Any = typer.main.get_command(command_line())
        while hasattr(command, "commands") and not words[0].startswith("-"):
            name, *words = words
            assert name in command.commands, f"{document.name}: no command {name}"
            command = command.commands[name]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for word in words:
            option = word.split("=")[0]
            assert not option.startswith("--") or option in known, f"{document.name}: {command.name} {option}"


def options_of_all(command: Any) -> set[str]:
    below = getattr(command, "commands", {}).values()
    own = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return own.union(*map(options_of_all, below))


def test_no_old_name_of_an_option_is_left_in_documents_and_messages() -> None:
    """Also in comments and in running text, which the test above does not read."""
    old = {name for renamed in RENAMED.values() for name in renamed}
    gone = re.compile(
        rf"(?<![\w-])(?:{'|'.join(old - options_of_all(typer.main.get_command(command_line())))})(?![\w-])"
    )
    sources = set((ROOT / "src" / "dragoman").rglob("*.py")) - {ROOT / "src" / "dragoman" / "cli" / "old_names.py"}
    scripts = sorted((ROOT / "src" / "dragoman" / "web" / "static" / "views").rglob("*.js"))
    left = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in [*DOCUMENTS, *sorted(sources), *scripts]
        for line in path.read_text(encoding="utf-8").splitlines()
        if gone.search(line) and "bench/" not in line  # whose scripts have options of their own
    ]
    assert left == []


FILES = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if ".venv" not in path.parts[len(ROOT.parts)]}
SOURCE = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in sorted(FILES) if name.startswith("src/"))
DEFINED = set(re.findall(r"^\s*(?:async )?(?:def|class) (\w+)", SOURCE, re.MULTILINE))

# The files and functions that the examples of CONTRIBUTING.md have the reader write.
MADE_IN_CONTRIBUTING = {
    "src/dragoman/documents/arb.py", "tests/documents/test_arb.py",
    "src/dragoman/lab/experiments/dropout.py", "arb_pieces",
}  # fmt: skip


def prose(document: Path) -> str:
    """The document without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_is_named_exists(document: Path) -> None:
    named = set(re.findall(r"(?<![\w/.-])(?:[\w-]+/)*[a-z_0-9]+\.py\b", prose(document))) - MADE_IN_CONTRIBUTING
    assert [name for name in sorted(named) if not any(f"/{path}".endswith(f"/{name}") for path in FILES)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_and_public_name_that_is_named_exists(document: Path) -> None:
    for dotted in re.findall(r"\bdragoman\.((?:[a-z_]\w*\.)*\w+)", document.read_text(encoding="utf-8")):
        parts = [part for part in dotted.split(".") if part not in ("zip", "json")]
        modules = [f"src/dragoman/{'/'.join(parts[:n])}" for n in range(len(parts), 0, -1)]
        found = next((name for name in modules if f"{name}.py" in FILES or (ROOT / name).is_dir()), None)
        assert found or set(parts) <= DEFINED, f"{document.name}: dragoman.{dotted}"


@pytest.mark.parametrize("name", ["architecture.md", "paper-map.md"])
def test_every_function_and_class_that_the_house_speaks_of_exists(name: str) -> None:
    text = prose(ROOT / "docs" / name)
    functions = set(re.findall(r"`(?:\w+\.)*(\w+)\(\)`", text))
    classes = set(re.findall(r"`(?:\w+\.)*([A-Z][a-z]+(?:[A-Z]\w*)?)`", text))
    assert functions | classes
    assert (functions | classes) - DEFINED == set()


def test_every_name_of_the_code_that_contributors_are_told_exists() -> None:
    named = set(re.findall(r"`(\w+)(?:\([^`]*\))?`", prose(ROOT / "CONTRIBUTING.md"))) - MADE_IN_CONTRIBUTING
    code = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in FILES if name.startswith(("src/", "tests/")))
    assert "Flow" in named
    assert named - set(re.findall(r"\w+", code)) == set()
