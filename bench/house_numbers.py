"""Counts how the code is built: entries at the root, lengths and complexity of functions, lines written twice.

python bench/house_numbers.py [REVISION ...]        e.g. 3091311 HEAD; without one: the files as they are now

Prints a table in Markdown, a column for each revision. Complexity is McCabe's, as ruff counts it (C901).
"""

import argparse
import ast
import io
import json
import re
import statistics
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests")
LONG = 60  # lines: what a function should not exceed
COMPLEX = 12  # what its complexity should not exceed
RUN = 6  # lines of code that are a duplicate where they stand a second time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revisions", nargs="*", metavar="REVISION")
    revisions: list[str] = parser.parse_args().revisions
    columns = {revision: numbers_of_revision(revision) for revision in revisions} or {"now": numbers(ROOT)}
    print("| | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name in next(iter(columns.values())):
        print(f"| {name} | " + " | ".join(found[name] for found in columns.values()) + " |")


def numbers_of_revision(revision: str) -> dict[str, str]:
    command = ["git", "-C", str(ROOT), "archive", revision, *FOLDERS]
    packed = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if packed.returncode:
        sys.exit(packed.returncode)  # git has said what is wrong
    with TemporaryDirectory() as directory, tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(directory, filter="data")
        return numbers(Path(directory))


def numbers(root: Path) -> dict[str, str]:
    """What is counted, by name, in the order of the table."""
    package = root / "src" / "dragoman"
    entries = [entry for entry in package.iterdir() if entry.name != "__pycache__"]
    sources, tests = (python_files(root / folder) for folder in FOLDERS)
    functions = [found for path in sources for found in functions_of(path)]
    lengths = [length for length, _ in functions]
    complexities = complexities_below(root / "src")
    longest, most_complex = max(functions), max(complexities)
    return {
        "entries in src/dragoman": f"{len(entries)}",
        "modules in src/dragoman itself": f"{sum(entry.suffix == '.py' for entry in entries)}",
        "Python files in src": f"{len(sources):,}",
        "lines of src": f"{sum(map(line_count, sources)):,}",
        "lines of tests": f"{sum(map(line_count, tests)):,}",
        "functions in src": f"{len(functions):,}",
        "median length of a function, lines": f"{statistics.median(lengths):.0f}",
        f"functions over {LONG} lines": f"{sum(length > LONG for length in lengths)}",
        "longest function, lines": f"{longest[0]} (`{longest[1]}`)",
        f"functions of complexity over {COMPLEX}": f"{sum(value > COMPLEX for value, _ in complexities)}",
        "highest complexity": f"{most_complex[0]} (`{most_complex[1]}`)",
        "files over 400 lines in src": f"{sum(line_count(path) > 400 for path in sources)}",
        "names of classes and types that several modules define": f"{len(ambiguous_names(sources))}",
        f"lines of src in runs of {RUN} or more that stand twice": f"{duplicated_lines(sources):,}",
        f"lines of tests in runs of {RUN} or more that stand twice": f"{duplicated_lines(tests):,}",
    }


def python_files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.py"))


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions_of(path: Path) -> Iterator[tuple[int, str]]:
    """Length and name of every function and method, those within others too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.end_lineno - node.lineno + 1, f"{path.stem}.{node.name}"


def complexities_below(directory: Path) -> list[tuple[int, str]]:
    """Complexity and name of every function, from ruff with a limit that none can keep."""
    settings = ["--isolated", "--ignore-noqa", "--select", "C901", "--config", "lint.mccabe.max-complexity=0"]
    command = [sys.executable, "-m", "ruff", "check", "--exit-zero", "--output-format", "json", *settings, directory]
    found = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    messages = [(Path(entry["filename"]).stem, entry["message"]) for entry in json.loads(found.stdout)]
    parts = [(stem, re.fullmatch(r"`(.*)` is too complex \((\d+) > 0\)", message)) for stem, message in messages]
    return [(int(part[2]), f"{stem}.{part[1]}") for stem, part in parts if part is not None]


def ambiguous_names(paths: Sequence[Path]) -> list[str]:
    """Names of classes and type aliases at the top of more than one module."""
    counts: Counter[str] = Counter()
    for path in paths:
        names = set()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        counts.update(name for name in names if re.match(r"_?[A-Z]", name) and not name.isupper())
    return sorted(name for name, count in counts.items() if count > 1)


def duplicated_lines(paths: Sequence[Path]) -> int:
    """Lines of code that are part of a run which stands, to the letter, in another place too."""
    code = [list(code_lines(path)) for path in paths]
    places: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for file, lines in enumerate(code):
        for first in range(len(lines) - RUN + 1):
            places.setdefault(tuple(lines[first : first + RUN]), []).append((file, first))
    twice = (place for several in places.values() if len(several) > 1 for place in several)
    return len({(file, first + offset) for file, first in twice for offset in range(RUN)})


def code_lines(path: Path) -> Iterator[str]:
    """The lines that say something: no blank ones, comments, imports, or brackets alone."""
    for line in path.read_text(encoding="utf-8").splitlines():
        text = " ".join(line.split())
        if re.search(r"\w", text) and not re.match(r"#|import |from \S+ import ", text):
            yield text


if __name__ == "__main__":
    main()
