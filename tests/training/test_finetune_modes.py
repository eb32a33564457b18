"""What learns in a fine-tuning, through the real loop: the rest keeps its bits, and a stop changes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dragoman
from dragoman.config import Learn
from dragoman.files import sha256
from dragoman.model.checkpoint import read_tensors
from dragoman.run_directory import RunDirectory
from dragoman.training import loop
from dragoman.training.saving import validate_and_save
from dragoman.training.setup import Training
from support.commands import Ran
from support.lexicon import lexicon_pairs


def settings(learn: Learn, **changes: Any) -> list[tuple[str, Any, str]]:
    values = {"learn": learn, "learn_layers": 1, "learn_rank": 4, "steps": 12, "valid_steps": 4, **changes}
    return [(f"train.{name}", value, "test") for name, value in values.items()]


@pytest.fixture(scope="module")
def new_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("new") / "new.tsv"
    lines = (f"near near {source}\tapud apud {target}\n" for source, target in lexicon_pairs(60, seed=7))
    path.write_text("".join(lines), encoding="utf-8")
    return path


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("learn", ["all", "top", "low-rank"])
def test_a_stop_changes_nothing_and_what_is_frozen_keeps_its_bits(
    learn: Learn, tiny_run: Path, new_pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, whole, stopped = settings(learn), tmp_path / "whole", tmp_path / "stopped"
    dragoman.finetune(tiny_run, new_pairs, whole, overrides=asked)

    def stop_at_8(training: Training) -> None:
        if training.progress.step == 8:
            raise StoppedError
        validate_and_save(training)

    with monkeypatch.context() as patched:
        patched.setattr(loop, "validate_and_save", stop_at_8)
        with pytest.raises(StoppedError):
            dragoman.finetune(tiny_run, new_pairs, stopped, overrides=asked)
    dragoman.finetune(tiny_run, new_pairs, stopped, overrides=asked)
    last = RunDirectory(whole).checkpoints()[-1].name
    for file in (
        "model.safetensors",
        f"checkpoints/{last}/model.safetensors",
        f"checkpoints/{last}/optimizer.safetensors",
    ):
        assert sha256(whole / file) == sha256(stopped / file)

    before, after = (read_tensors(run / "model.safetensors") for run in (tiny_run, whole))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    last_layer = f"decoder.{RunDirectory(tiny_run).read_config().model.decoder_layers - 1}."
    expected = {
        "all": set(before),
        "top": {name for name in before if name.startswith((last_layer, "decoder_norm."))},
        "low-rank": {name for name in before if ".w_" in name and name.endswith(".weight")},
    }[learn]
    assert changed == expected
    assert before.keys() == after.keys()  # a plain model of the same shape


@pytest.mark.parametrize("learn", ["top", "low-rank"])
def test_two_processes_learn_as_one_does(learn: Learn, tiny_run: Path, new_pairs: Path, tmp_path: Path) -> None:
    for processes in (1, 2):
        asked = settings(learn, steps=3, processes=processes, threads=1, batch_tokens=800, micro_batch_tokens=200)
        dragoman.finetune(tiny_run, new_pairs, tmp_path / str(processes), overrides=asked)
    one, two = (read_tensors(tmp_path / name / "model.safetensors") for name in ("1", "2"))
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-4, atol=1e-6)


def test_a_run_of_low_rank_additions_can_be_verified(
    cli: Callable[..., Ran], tiny_run: Path, new_pairs: Path, tmp_path: Path
) -> None:
    command = ["finetune", tiny_run, "--pairs", new_pairs, "--out", tmp_path / "out", "--learn", "low-rank"]
    ran = cli(*command, "--steps", "6", "--set", "train.valid_steps=3", "--set", "train.learn_rank=2")
    assert ran.code == 0, ran.stderr
    assert "learn: low-rank)" in ran.stderr
    config = RunDirectory(tmp_path / "out").read_config().train
    assert (config.learn, config.optimizer) == ("low-rank", "adam")
    ran = cli("verify", tmp_path / "out")
    assert ran.code == 0, ran.stderr
