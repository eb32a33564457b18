"""A language model, a masked model and a classifier, trained by the real command line."""

from pathlib import Path

import pytest

from support.descendants import trained
from support.lexicon import lexicon_pairs


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("halves")


def trained_on_text(command: str, runs: Path, text: Path, *settings: str) -> Path:
    sides = ("--text", text / "train.source", "--valid-text", text / "valid.source")
    trained(command, "train", *sides, "--out", runs / command, "--steps", "60", *settings)
    return runs / command


@pytest.fixture(scope="session")
def lm_run(runs: Path, tiny_text: Path, tiny_settings: list[str]) -> Path:
    half = ("--set", "model.encoder_layers=0", "--set", "train.valid_steps=30")
    return trained_on_text("lm", runs, tiny_text, *tiny_settings, *half)


@pytest.fixture(scope="session")
def mlm_run(runs: Path, tiny_text: Path, tiny_settings: list[str]) -> Path:
    half = ("--set", "model.decoder_layers=0", "--set", "train.valid_steps=30")
    return trained_on_text("mlm", runs, tiny_text, *tiny_settings, *half)


@pytest.fixture(scope="session")
def labelled(runs: Path) -> Path:
    """Which animal comes first: the words alone do not tell, as many sentences have both."""
    path = runs / "labelled.tsv"
    lines = []
    for sentence, _ in lexicon_pairs(600, seed=5):
        words = sentence.split()
        animals = [word for word in words if word in ("dog", "cat")]
        if animals:
            lines.append(f"{sentence}\t{animals[0]} first\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def classifier_run(runs: Path, mlm_run: Path, labelled: Path) -> Path:
    settings = ("--set", "train.peak_rate=0.01", "--set", "train.threads=1", "--set", "train.valid_steps=60")
    trained(
        *("mlm", "train", "--labelled", labelled, "--valid-labelled", labelled, "--start-from", mlm_run),
        *("--out", runs / "classifier", "--steps", "120", "--set", "model.dropout=0.0", *settings),
    )
    return runs / "classifier"
