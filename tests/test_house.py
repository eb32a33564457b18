"""The house stays in order: who imports whom, what needs no torch, what is in the wheel."""

import ast
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dragoman"

# The way of the data, docs/architecture.md. A module imports only from modules above it.
ORDER = [
    "errors",
    "ranges",
    "config",
    "telling",
    # text -> tokens -> batches
    "parallel",
    "corpus",
    "tables",
    "formats",
    "identify",
    "cleaning",
    "splitting",
    "tokenizer",
    "excerpts",
    "augment",
    "dataset",
    "batching",
    "objectives",
    # the model
    "dropout",
    "decoding",
    "model",
    "recurrent",
    "loss",
    "schedule",
    "optimizer",
    "trace",
    # what is kept
    "rundir",
    "language_codes",
    "checkpoint",
    "runlog",
    "history",
    "ranks",
    # beam search -> text
    "glossary",
    "phrases",
    "faults",
    "code_spans",
    "protected_spans",
    "masking",
    "words",
    "confidence",
    "confidence_plots",
    "memory",
    "translations",
    "fallbacks",
    "hypotheses",
    "sharing",
    "candidates",
    "search",
    "engines",
    "abbreviations",
    "sentences",
    "line_translation",
    "translate",
    "explain",
    "resumable",
    "evaluate",
    "calibrating",
    "comparison",
    "vocabulary_map",
    "quantize",
    "validation",
    "safeguards",
    "starting",
    "train",
    "verify",
    # further uses of the same blocks
    "options",
    "terminal",
    "measuring",
    "adapt",
    "corrections",
    "parsing",
    "inspection",
    "languages",
    "vision",
    "documents",
    "doctor",
    "stress",
    "quickstart",
    "export",
    # faces
    "lab",
    "serve",
    "tatoeba",
    "demo",
    "run",
    "cli",
    "__init__",
    "__main__",
]
NAMES_THAT_SAY_NOTHING = {"util", "utils", "helper", "helpers", "common", "manager", "base", "misc"}
WITHOUT_TORCH = [
    "errors",
    "ranges",
    "config",
    "telling",
    "parallel",
    "corpus",
    "tables",
    "formats",
    "identify",
    "cleaning",
    "splitting",
    "tokenizer",
    "excerpts",
    "augment",
    "dataset",
    "rundir",
    "glossary",
    "phrases",
    "faults",
    "code_spans",
    "protected_spans",
    "masking",
    "words",
    "confidence",
    "confidence_plots",
    "memory",
    "history",
    "protected_spans",
    "masking",
    "translations",
    "fallbacks",
    "hypotheses",
    "sharing",
    "engines.conversion",
    "engines.converted",
    "engines.ctranslate2",
    "engines.selection",
    "sentences",
    "line_translation",
    "translate",
    "resumable",
    "evaluate",
    "calibrating",
    "comparison",
    "vocabulary_map",
    "quantize",
    "options",
    "terminal",
    "measuring",
    "adapt.cli",
    "export.cli",
    "export.writing",
    "export.marian",
    "export.onnx",
    "export.bundle",
    "language_codes",
    "run",
    "documents.formats",
    "documents.journal",
    "documents.markdown",
    "parsing.evalb",
    "parsing.draw",
    "parsing.vocabulary",
    "serve.pairs",
    "lab.catalogue",
    "lab.report",
    "cli",
]

FILES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    """The entry of ORDER that a file belongs to: engines/reference.py is in engines."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def imported_rooms(path: Path) -> Iterator[tuple[int, str]]:
    """Each import of ours, wherever in the file it stands: in a function or for the type checker too."""
    package = ("dragoman", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            # `from dragoman import config` is the module config; `from dragoman.config import load` is too.
            names = [f"dragoman.{alias.name}" for alias in node.names] if module == "dragoman" else [module]
        else:
            continue
        for name in names:
            first, _, rest = name.partition(".")
            if first == "dragoman":
                inner = rest.partition(".")[0]
                yield node.lineno, inner if inner in ORDER else "__init__"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_above(path: Path) -> None:
    own = room(path)
    assert own in ORDER, f"{own} has no place in the house yet: give it one here and in docs/architecture.md"
    upwards = [
        f"line {line}: {other} is below {own}"
        for line, other in imported_rooms(path)
        if other != own and ORDER.index(other) > ORDER.index(own)
    ]
    assert not upwards


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_is_named_after_what_it_does(path: Path) -> None:
    names = path.relative_to(PACKAGE).with_suffix("").parts
    assert not NAMES_THAT_SAY_NOTHING & {name.strip("_") for name in names}


def test_the_picture_of_the_house_shows_every_room() -> None:
    picture = ROOT / "docs" / "architecture.md"
    text = picture.read_text(encoding="utf-8")
    shown = {path: f"{room(path)}{'/' if path.parent != PACKAGE else '.py'}" for path in FILES}
    assert [name for name in sorted(set(shown.values())) if name not in text] == []


def exists(module: str) -> bool:
    path = PACKAGE.joinpath(*module.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


@pytest.mark.parametrize("module", ["", *filter(exists, WITHOUT_TORCH)], ids=lambda module: module or "dragoman")
def test_what_needs_no_torch_does_not_import_it(module: str) -> None:
    name = f"dragoman.{module}".rstrip(".")
    program = f"import sys, {name}; print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == ("False", "")


def test_a_first_translation_waits_for_no_heavy_import(tiny_run: Path) -> None:
    """With a run that was converted before: the way from the shell to the first line."""
    translate = ["translate", str(tiny_run), "--engine", "ctranslate2"]
    program = (
        "import sys; from dragoman.cli import main\ntry:\n    main()\nfinally:\n    print(*sys.modules, sep='\\n')"
    )
    for _ in range(2):  # the first may convert
        ran = subprocess.run(
            [sys.executable, "-c", program, *translate], input="the dog\n", capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, "")
    imported = set(ran.stdout.split("\n"))
    assert "ctranslate2" in imported
    heavy = {"torch", "numpy", "safetensors", "rich", "sacrebleu", "transformers", "ctranslate2.specs"}
    ours = {f"dragoman.{name}" for name in ("model", "dataset", "evaluate", "train", "search", "engines.conversion")}
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


# What a user installs.


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    # Without isolation, so that building needs no network: hatchling is among the test tools.
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(directory), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = directory.glob("dragoman-*.whl")
    return path


def test_the_wheel_holds_every_module_the_recipes_the_types_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    modules = {f"dragoman/{path.relative_to(PACKAGE).as_posix()}" for path in FILES}
    recipes = {f"dragoman/recipes/{path.name}" for path in (ROOT / "recipes").glob("*.toml")}
    page = {f"dragoman/{path.relative_to(PACKAGE).as_posix()}" for path in PACKAGE.rglob("web/**/*") if path.is_file()}
    assert recipes
    assert page
    assert modules | recipes | page | {"dragoman/py.typed"} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "docs/")) or "__pycache__" in name]


@pytest.mark.full
def test_the_wheel_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--constraint", str(ROOT / "constraints.txt"), str(wheel)], check=True)
    # Away from the checkout: the recipes must come from the wheel.
    outside = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [str(environment / "bin" / "dragoman"), "config", "show", "table3-A1"]
    shown = subprocess.run(command, cwd=tmp_path, env=outside, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "model.d_k" in shown.stdout
