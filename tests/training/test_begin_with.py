"""A training that begins with the weights and the vocabulary of another run."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

Train = Callable[..., Any]


@pytest.fixture
def train(tiny_text: Path, tiny_settings: list[str], tmp_path: Path, cli: Callable[..., Any]) -> Train:
    """Trains the other direction: each pair's target is the source."""

    def command(name: str, steps: int, other: Path, *more: str) -> Any:
        data = ("--source", tiny_text / "train.target", "--target", tiny_text / "train.source")
        valid = ("--valid-source", tiny_text / "valid.target", "--valid-target", tiny_text / "valid.source")
        settings = [*tiny_settings, "--set", "train.valid_steps=2", "--set", "train.valid_sentences=3"]
        settings += ["--set", "train.schedule=paper", "--set", f"train.begin_with={other}", *more]
        return cli("train", *data, *valid, "--out", tmp_path / name, "--steps", str(steps), *settings)

    return command


def test_it_begins_with_weights_and_vocabulary_and_goes_on_without_the_other_run(
    tiny_run: Path, train: Train, tmp_path: Path
) -> None:
    other = shutil.copytree(tiny_run, tmp_path / "other")
    for name, steps in (("whole", (4,)), ("parts", (2, 4))):
        for until in steps:
            if until == 4 and name == "parts":
                shutil.rmtree(other)
            ran = train(name, until, other)
            assert ran.code == 0, ran.stderr
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert (whole / "tokenizer.model").read_bytes() == (tiny_run / "tokenizer.model").read_bytes()
    first, learned = (
        load_file(path) for path in (whole / "checkpoints/step-00000000/model.safetensors", whole / "model.safetensors")
    )
    assert all(torch.equal(tensor, first[name]) for name, tensor in load_file(tiny_run / "model.safetensors").items())
    assert any(not torch.equal(tensor, learned[name]) for name, tensor in first.items())
    for name in ("model.safetensors", "optimizer.safetensors"):
        last = f"checkpoints/step-00000004/{name}"
        assert (whole / last).read_bytes() == (parts / last).read_bytes()


def test_dropout_may_differ_and_the_rest_of_the_model_not(tiny_run: Path, train: Train) -> None:
    ran = train("dropout", 1, tiny_run, "--set", "model.dropout=0.3")
    assert ran.code == 0, ran.stderr
    ran = train("heads", 1, tiny_run, "--set", "model.num_heads=4")
    assert ran.code == 3
    assert f"train.begin_with = {tiny_run}: model.num_heads is 2 there and 4 here; make them equal" in ran.stderr


def test_the_vocabulary_is_that_of_the_other_run(tiny_run: Path, cased_run: Path, train: Train) -> None:
    ran = train("same", 1, tiny_run, "--tokenizer", str(tiny_run / "tokenizer.model"))
    assert ran.code == 0, ran.stderr
    ran = train("differs", 1, tiny_run, "--tokenizer", str(cased_run / "tokenizer.model"))
    assert ran.code == 3
    assert f"is not the vocabulary of {tiny_run}; leave data.tokenizer out" in ran.stderr


def test_what_cannot_be_begun_with_is_said(train: Train, tmp_path: Path) -> None:
    ran = train("new", 1, tmp_path / "nowhere")
    assert ran.code == 3
    assert "no such run directory" in ran.stderr
