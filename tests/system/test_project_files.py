"""What a forge and its readers expect of a repository is there, can be parsed, and says what is so."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def parsed(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def makefile_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_citation_is_one_and_of_this_version() -> None:
    citation = parsed("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # what its format requires
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"].split(" AND ")[0]  # what is vendored has its own
    (paper,) = citation["references"]
    assert (paper["title"], paper["year"], len(paper["authors"])) == ("Attention Is All You Need", 2017, 8)


def test_the_workflow_runs_make_test_on_every_python_that_is_promised() -> None:
    jobs = parsed(".github/workflows/test.yml")["jobs"]
    pythons = jobs["test"]["strategy"]["matrix"]["python"]
    assert pythons == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    assert jobs["versions"]["strategy"]["matrix"]["versions"] == ["lowest", "newest"]
    for job in jobs.values():
        commands = "\n".join(step.get("run", "") for step in job["steps"])
        assert "make test" in commands
        assert set(re.findall(r"\bmake ([a-z-]+)", commands)) <= makefile_targets()
        assert job["timeout-minutes"] > 0


def test_the_lower_bounds_that_the_workflow_installs_are_all_there() -> None:
    required = [*PROJECT["dependencies"], *(one for some in PROJECT["optional-dependencies"].values() for one in some)]
    assert [one for one in required if ">=" not in one and not one.startswith("dragoman[")] == []


def test_every_direct_dependency_has_the_version_that_it_was_tested_with() -> None:
    pinned = {
        line.partition("==")[0].lower()
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    required = [*PROJECT["dependencies"], *(one for some in PROJECT["optional-dependencies"].values() for one in some)]
    names = {re.split(r"[\[>=<;! ]", one)[0].lower() for one in required} - {"dragoman"}
    assert names - pinned == set()


def test_the_hooks_before_a_commit_need_no_network() -> None:
    repositories = parsed(".pre-commit-config.yaml")["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    hooks = [hook for repository in repositories for hook in repository["hooks"]]
    assert {hook["entry"].split()[0] for hook in hooks} == {".venv/bin/ruff", ".venv/bin/mypy"}
    assert {hook["language"] for hook in hooks} == {"system"}


@pytest.mark.parametrize("name", ["fault", "wish"])
def test_an_issue_form_asks_for_what_is_needed(name: str) -> None:
    form = parsed(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert {"name", "description", "body"} <= set(form)
    asked = [field["id"] for field in form["body"]]
    assert len(set(asked)) == len(asked) >= 3
    for field in form["body"]:
        assert field["type"] in ("input", "textarea", "dropdown", "markdown", "checkboxes")
        assert field["attributes"]["label"]


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md", "README.md"])
def test_the_files_and_targets_that_are_named_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) <= makefile_targets()
    folders = ["src", "tests", "docs", "bench", "recipes"]
    named = re.findall(rf"(?:{'|'.join(folders)})/[\w./-]*\w", text)
    new = {  # what the steps of CONTRIBUTING.md make
        "src/dragoman/documents/arb.py", "tests/documents/test_arb.py",
        "src/dragoman/lab/experiments/dropout.py", "src/dragoman/decoding/engines/NAME.py",
        "tests/decoding/engines/test_NAME.py",
    }  # fmt: skip
    assert [path for path in named if not (ROOT / path).exists() and path not in new] == []
    if name == "CONTRIBUTING.md":
        assert new <= set(named)


def test_every_decision_has_its_number_in_its_title() -> None:
    """So that the site lists them by it."""
    decisions = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(path.name[:3]) for path in decisions] == list(range(1, len(decisions) + 1))
    titles = [path.read_text(encoding="utf-8").partition("\n")[0] for path in decisions]
    assert [t for path, t in zip(decisions, titles, strict=True) if not re.match(rf"# {path.name[:3]}: [A-Z]", t)] == []


def test_the_readme_is_short_names_the_two_commands_and_shows_one_small_picture() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 130
    assert "make demo" in text
    assert "make test" in text
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert (ROOT / picture).stat().st_size < 200_000
    measured = re.search(r"^## Measured\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    assert measured
    rows = [line for line in measured[1].splitlines() if line.startswith("|")][2:]
    assert 1 <= len(rows) <= 10
    assert all(row.count("|") == 4 for row in rows)
