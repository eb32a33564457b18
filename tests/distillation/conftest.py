"""What the tests of students share: the smallest student, and a copy of the tiny run that may teach."""

import shutil
from pathlib import Path

import pytest

from support.lexicon import lexicon_pairs


@pytest.fixture(scope="session")
def student_settings(tiny_settings: list[str]) -> list[str]:
    """Flags of `distill` for a student that is done in a moment."""
    values: dict[str, float] = {
        "train.steps": 30, "train.valid_steps": 30, "train.processes": 1, "search.max_extra_length": 5,
    }  # fmt: skip
    return [*tiny_settings, *(part for key, value in values.items() for part in ("--set", f"{key}={value}"))]


@pytest.fixture(scope="session")
def teacher(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tiny run: it grows converted models. Do not change it otherwise."""
    return Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("teachers") / "one"))


@pytest.fixture(scope="session")
def more_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of the source language, one twice, one empty."""
    path = tmp_path_factory.mktemp("more") / "more.en"
    sentences = [source for source, _ in lexicon_pairs(60, seed=11)]
    path.write_text("".join(f"{line}\n" for line in [*sentences, "", sentences[0]]), encoding="utf-8")
    return path
