"""The house stays in order: who imports whom, what needs no torch, what is in the wheel.

HOUSE is the one place where the order stands. The tree in docs/architecture.md is made of it and of the first sentences
of the docstrings; `python tests/test_house.py --write` writes it anew.
"""

import ast
import graphlib
import re
import subprocess
import sys
import textwrap
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.errors import EXTRAS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dragoman"
ARCHITECTURE = ROOT / "docs" / "architecture.md"

# The way of the data. A module or package imports only from what stands above it, and a package from within itself.
HOUSE = [
    # the ground
    "errors",
    "config",
    "files",
    "progress",
    "processes",
    "run_directory",
    # the stages of the data's way
    "data",
    "model",
    "decoding",
    "translation",
    "evaluation",
    "training",
    "web",
    "inspection",
    "documents",
    "parsing",
    "descendants",
    "diagnosis",
    "quickstart",
    "distillation",
    "importing",
    "export",
    "lab",
    "serve",
    "cli",
    # all of it from Python
    "run",
    "__init__",
    "__main__",
]
NAMES_THAT_SAY_NOTHING = {"util", "utils", "helper", "helpers", "common", "manager", "base", "misc"}
# Packages and modules that may import torch when they are imported; all others may not. So translating, serving,
# documents, evaluation, the command line and whatever comes new work without it until something asks for a model.
NEEDS_TORCH = [
    "model",
    "inspection",
    "lab.experiments",
    "data.batching",  # its batches are tensors
    "data.objectives",
    "decoding.beam_rows",
    "decoding.beam_search",
    "decoding.topk",
    "decoding.engines.torch_engine",
    "training.consistency",
    "training.distributed",
    "training.finetune",
    "training.gradients",
    "training.loop",
    "training.optimizer",
    "training.promotion",
    "training.recovery",
    "training.saving",
    "training.setup",
    "training.validation",
    "training.verify",
    "parsing.bracket_attention",
    "parsing.parser",
    "descendants.language_model",
    "descendants.masked_model",
    "descendants.patch_attention",
    "descendants.plain_text",
    "export.reproduce",
    "lab.synthetic",
    "lab.tasks",
    "lab.translation",
    "lab.variants",
]

FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    """dragoman.data for data/__init__.py, dragoman.data.corpus for data/corpus.py."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def entry_of(module: str) -> str:
    """The entry of HOUSE that a module belongs to: dragoman.decoding.engines.select is in decoding."""
    return module.partition(".")[2].partition(".")[0] or "__init__"


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Each module of ours that a file imports, wherever it does: in a function or for the type checker too."""
    package = ("dragoman", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            # `from dragoman.data import corpus` is the module corpus; `from dragoman.data.corpus import read` is too.
            names = [f"{module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else module for name in names]
        for name in names:
            if name.partition(".")[0] == "dragoman":
                yield getattr(node, "lineno", 0), name


def imported_from_outside(path: Path) -> set[str]:
    """The other packages that a file imports anywhere in it: torch, typer."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def first_sentence(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    found = re.match(r".+?(?<!\bal)[.!?](?=\s|$)", paragraph)
    return found[0] if found else paragraph


def described(name: str, path: Path, depth: int) -> str:
    head = f"{'  ' * depth}{name}"
    return textwrap.fill(first_sentence(path), 120, initial_indent=f"{head:<29} ", subsequent_indent=" " * 30)


def tree_of(folder: Path, depth: int) -> Iterator[str]:
    """A line for each module and package in a folder, packages last."""
    for path in sorted(folder.glob("*.py")):
        if path.name != "__init__.py":
            yield described(path.name, path, depth)
    for path in sorted(folder.glob("*/__init__.py")):
        yield described(f"{path.parent.name}/", path, depth)
        yield from tree_of(path.parent, depth + 1)


def picture() -> str:
    """The tree of docs/architecture.md."""
    lines = ["src/dragoman/"]
    for entry in HOUSE:
        package = PACKAGE / entry / "__init__.py"
        if package.exists():
            lines.append(described(f"{entry}/", package, 1))
            lines += tree_of(package.parent, 2)
        else:
            lines.append(described(f"{entry}.py", PACKAGE / f"{entry}.py", 1))
    return "\n".join(lines)


def with_picture(text: str) -> str:
    """The text of docs/architecture.md with the tree as it should be."""
    return re.sub(
        r"(<!-- tree: .*? -->\n```\n).*?(\n```\n)", lambda found: found[1] + picture() + found[2], text, flags=re.DOTALL
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_above(path: Path) -> None:
    own = entry_of(module_of(path))
    assert own in HOUSE, f"{own} has no place in the house yet: give it one in HOUSE"
    upwards = [
        f"line {line}: {module} is below {own}"
        for line, module in imports_of(path)
        if entry_of(module) != own and HOUSE.index(entry_of(module)) > HOUSE.index(own)
    ]
    assert not upwards


@pytest.mark.parametrize("entry", HOUSE)
def test_the_modules_of_a_package_import_each_other_in_no_circle(entry: str) -> None:
    own = {module: path for module, path in MODULES.items() if entry_of(module) == entry}
    imported = {module: {name for _, name in imports_of(path)} & own.keys() - {module} for module, path in own.items()}
    assert set(graphlib.TopologicalSorter(imported).static_order()) == own.keys()  # a circle raises CycleError


def test_every_entry_of_the_house_is_there_and_says_what_it_is() -> None:
    assert [module for module in MODULES if entry_of(module) not in HOUSE] == []
    assert [entry for entry in HOUSE if entry not in {entry_of(module) for module in MODULES}] == []
    assert [str(path) for path in FILES if not first_sentence(path)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_is_named_after_what_it_does(path: Path) -> None:
    names = path.relative_to(PACKAGE).with_suffix("").parts
    assert not NAMES_THAT_SAY_NOTHING & {name.strip("_") for name in names}


def test_the_picture_of_the_house_is_made_of_the_list() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    assert picture() in text, "run: python tests/test_house.py --write"
    assert with_picture(text) == text


def test_the_tests_stand_in_the_same_folders() -> None:
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    alone = {Path("browser"), Path("system")}  # what no single package does
    assert alone <= folders
    assert [str(folder) for folder in sorted(folders - alone) if not (PACKAGE / folder / "__init__.py").exists()] == []


def test_only_the_command_line_knows_typer() -> None:
    assert {entry_of(name) for name, path in MODULES.items() if "typer" in imported_from_outside(path)} == {"cli"}


def test_translation_has_no_torch_anywhere() -> None:
    inside = {name: path for name, path in MODULES.items() if entry_of(name) == "translation"}
    assert inside
    assert [name for name, path in inside.items() if "torch" in imported_from_outside(path)] == []


def exists(module: str) -> bool:
    return f"dragoman.{module}" in MODULES


def may_import_torch(module: str) -> bool:
    return any(f"{module}.".startswith(f"dragoman.{name}.") for name in NEEDS_TORCH)


def test_what_needs_torch_is_there() -> None:
    assert [name for name in NEEDS_TORCH if not exists(name)] == []


@pytest.mark.parametrize("entry", [entry for entry in HOUSE if not may_import_torch(f"dragoman.{entry}")])
def test_what_needs_no_torch_does_not_import_it(entry: str) -> None:
    """One process for an entry of the house: the first of its modules that brings torch in is named."""
    modules = [name for name in MODULES if entry_of(name) == entry and not may_import_torch(name)]
    program = (
        "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
        "    if 'torch' in sys.modules:\n        sys.exit(name)"
    )
    ran = subprocess.run([sys.executable, "-c", program, *modules], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_first_translation_waits_for_no_heavy_import(tiny_run: Path) -> None:
    """With a run that was converted before: the way from the shell to the first line."""
    translate = ["translate", str(tiny_run), "--engine", "ctranslate2"]
    program = (
        "import sys; from dragoman.cli.main import main\ntry:\n    main()\nfinally:\n    print(*sys.modules, sep='\\n')"
    )
    for _ in range(2):  # the first may convert
        ran = subprocess.run(
            [sys.executable, "-c", program, *translate], input="the dog\n", capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, "")
    imported = set(ran.stdout.split("\n"))
    assert "ctranslate2" in imported
    heavy = {"torch", "numpy", "safetensors", "rich", "sacrebleu", "transformers", "ctranslate2.specs"}
    ours = {
        f"dragoman.{name}"
        for name in (
            "model.transformer",
            "data.dataset",
            "evaluation.metrics",
            "training.loop",
            "decoding.beam_search",
            "decoding.engines.ct2_convert",
        )
    }
    assert imported & (heavy | ours) == set()


def test_the_public_names_are_listed_once_and_found() -> None:
    import dragoman

    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    for_the_type_checker = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert for_the_type_checker == dragoman._HOME
    assert dragoman.__all__ == sorted([*dragoman._HOME, "__version__"])
    assert set(dragoman.__all__) <= set(dir(dragoman))
    for name, home in dragoman._HOME.items():
        if exists(home.removeprefix("dragoman.")):
            assert getattr(dragoman, name).__module__ == home
    with pytest.raises(AttributeError, match="no attribute 'Trainer'"):
        dragoman.Trainer  # noqa: B018


def test_the_wheel_holds_every_module_the_recipes_the_types_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (described_in,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(described_in)
    modules = {f"dragoman/{path.relative_to(PACKAGE).as_posix()}" for path in FILES}
    recipes = {f"dragoman/recipes/{path.name}" for path in (ROOT / "recipes").glob("*.toml")}
    page = {
        f"dragoman/{path.relative_to(PACKAGE).as_posix()}"
        for path in (PACKAGE / "web" / "static").rglob("*")
        if path.is_file()
    }
    assert recipes
    assert page
    assert modules | recipes | page | {"dragoman/py.typed"} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    vendored = {path.name for path in (PACKAGE / "web" / "static" / "vendor").glob("LICENSE.*")}
    assert vendored == {name.rpartition("/")[2] for name in names if ".dist-info/licenses/src/" in name}
    assert b"License-Expression: Apache-2.0 AND MIT AND OFL-1.1\n" in metadata
    assert not [name for name in names if name.startswith(("tests/", "docs/")) or "__pycache__" in name]


# What is imported by another name than it is installed by.
INSTALLED_BY = {
    "PIL": "pillow",
    "google": "protobuf",
    "markdown_it": "markdown-it-py",
    "multipart": "python-multipart",
    "prometheus_client": "prometheus-client",
    "sklearn": "scikit-learn",
}


def test_what_is_imported_is_declared() -> None:
    """In the plain list, or in the extra that a user is told to install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        extra: {re.split(r"[<>=\[;]", text)[0].strip() for text in texts}
        for extra, texts in {"": project["dependencies"], **project["optional-dependencies"]}.items()
    }
    imported = {name for path in FILES for name in imported_from_outside(path)} - sys.stdlib_module_names - {"dragoman"}
    assert {"torch", "typer", "fastapi"} <= imported
    undeclared = {
        name: EXTRAS.get(name, "the plain list")
        for name in imported
        if INSTALLED_BY.get(name, name) not in declared[EXTRAS.get(name, "")]
    }
    assert undeclared == {}
    assert [name for name in EXTRAS if INSTALLED_BY.get(name, name) not in declared[EXTRAS[name]]] == []
    assert "torch" not in declared[""]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit("usage: python tests/test_house.py --write")
    ARCHITECTURE.write_text(with_picture(ARCHITECTURE.read_text(encoding="utf-8")), encoding="utf-8")
