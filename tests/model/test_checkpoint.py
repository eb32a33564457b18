"""Weights and training state: exactly what was saved comes back, and what does not fit is refused."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from dragoman.config import ModelConfig, Optimizer, RunConfig, TrainConfig
from dragoman.errors import DataError, DragomanError, UsageError
from dragoman.model.checkpoint import (
    TrainingProgress,
    average,
    load_model,
    load_training_state,
    load_weights,
    optimizer_state_of,
    promote,
    save_checkpoint,
    save_weights,
    weights_of,
)
from dragoman.model.sequence_model import SequenceModel
from dragoman.model.transformer import Transformer
from dragoman.run_directory import RunDirectory
from dragoman.training.optimizer import make_optimizer

SHAPE: dict[str, Any] = {
    "vocab_size": 20,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "d_model": 8,
    "d_ff": 16,
    "num_heads": 2,
}


def make(seed: int = 0, **changes: object) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(ModelConfig(**{**SHAPE, **changes}))


def adam(model: Transformer) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9, fused=True)


def take_step(model: Transformer, optimizer: torch.optim.Optimizer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    optimizer.step()


def saved(run: RunDirectory, *steps: int, keep: int = 3) -> tuple[Transformer, torch.optim.Optimizer]:
    """A model trained with random gradients, with a checkpoint at each of the steps."""
    model = make()
    optimizer = adam(model)
    for step in range(1, max(steps) + 1):
        take_step(model, optimizer, seed=step)
        if step in steps:
            save_checkpoint(
                run,
                weights_of(model),
                optimizer_state_of(model, optimizer),
                TrainingProgress(step=step, log_bytes=10 * step),
                keep,
            )
    return model, optimizer


def same(a: SequenceModel, b: SequenceModel) -> bool:
    return all(torch.equal(x, y) for x, y in zip(weights_of(a).values(), weights_of(b).values(), strict=True))


@pytest.mark.parametrize(("tied", "matrices"), [(True, 1), (False, 3)])
def test_tied_weights_are_stored_once(tmp_path: Path, tied: bool, matrices: int) -> None:
    model = make(tie_embeddings=tied)
    save_weights(tmp_path / "w", weights_of(model))
    found = load_file(tmp_path / "w")
    assert len(found) == len(list(model.parameters()))
    assert sum(tensor.shape == (20, 8) for tensor in found.values()) == matrices
    other = make(seed=1, tie_embeddings=tied)
    load_weights(tmp_path / "w", other)
    assert (other.output.weight is other.source_embedding.tokens.weight) == tied
    assert torch.equal(other.output.weight, model.output.weight)


def test_weights_come_back_bit_for_bit(tmp_path: Path) -> None:
    model, other = make(seed=0), make(seed=1)
    assert not same(model, other)
    save_weights(tmp_path / "w", weights_of(model))
    load_weights(tmp_path / "w", other)
    assert same(model, other)


def test_running_statistics_of_batch_norm_are_kept(tmp_path: Path) -> None:
    model = make(norm="batch")
    ids = torch.randint(0, 20, (4, 6))
    model.train()
    model(ids, ids)
    save_weights(tmp_path / "w", weights_of(model))
    other = make(norm="batch")
    load_weights(tmp_path / "w", other)
    assert torch.equal(model.eval()(ids, ids), other.eval()(ids, ids))
    assert any("running_mean" in name for name in load_file(tmp_path / "w"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_ff": 32}, r"has shape \(16,\), the configuration says \(32,\); weights and config.json are of different"),
        ({"encoder_layers": 2}, r"encoder\.1\.\S+ is missing from the file"),
        ({"tie_embeddings": False}, r"is missing from the file"),
    ],
)
def test_weights_of_another_model_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    save_weights(tmp_path / "w", weights_of(make()))
    other = make(**changes)
    before = {name: tensor.clone() for name, tensor in weights_of(other).items()}
    with pytest.raises(DataError, match=message):
        load_weights(tmp_path / "w", other)
    assert all(torch.equal(before[name], tensor) for name, tensor in weights_of(other).items())


def test_weights_that_the_model_lacks_are_refused(tmp_path: Path) -> None:
    save_file({**weights_of(make()), "extra": torch.zeros(1)}, tmp_path / "w")
    with pytest.raises(DataError, match="extra is missing from the configuration's model"):
        load_weights(tmp_path / "w", make())


@pytest.mark.parametrize("content", [b"", b"\xff" * 100, b"\x02\0\0\0\0\0\0\0{}", b'{"not": "tensors"}'])
def test_a_file_that_holds_no_such_tensors_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(DataError):
        load_weights(tmp_path / "w", make())


@pytest.mark.parametrize("kept", [7, 100, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, kept: int) -> None:
    save_weights(tmp_path / "w", weights_of(make()))
    (tmp_path / "w").write_bytes((tmp_path / "w").read_bytes()[:kept])
    with pytest.raises(DataError, match="not a readable safetensors file"):
        load_weights(tmp_path / "w", make())


def test_weights_are_for_all_to_read_that_the_user_lets(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    saved(run, 1)
    (tmp_path / "plain").write_bytes(b"")
    wanted = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert {stat.S_IMODE(file.stat().st_mode) for file in run.checkpoints()[0].iterdir()} == {wanted}


def test_weights_that_cannot_be_written_leave_the_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors import SafetensorError

    run = RunDirectory(tmp_path)
    promote(run, weights_of(make()), "last", [1])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert set(before) == {"model.safetensors", "model.json"}

    def full(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("dragoman.model.checkpoint.save_file", full)
    with pytest.raises(DragomanError, match=r"model\.safetensors: cannot be written \(.*No space left on device"):
        promote(run, weights_of(make(seed=1)), "last", [2])
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_the_average_is_the_mean(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    saved(run, 1, 2, 5)
    members = [load_file(checkpoint / "model.safetensors") for checkpoint in run.checkpoints()]
    mean = average(run.checkpoints())
    assert mean.keys() == members[0].keys()
    for name, tensor in mean.items():
        expected = torch.stack([member[name].double() for member in members]).mean(dim=0).float()
        assert tensor.dtype == torch.float32
        torch.testing.assert_close(tensor, expected, rtol=1e-7, atol=0)
        assert not torch.equal(tensor, members[0][name])
    backwards = average(run.checkpoints()[::-1])
    assert all(torch.equal(mean[name], backwards[name]) for name in mean)
    alone = average(run.checkpoints()[:1])
    assert all(torch.equal(alone[name], members[0][name]) for name in mean)


def test_the_newest_checkpoints_are_kept_and_the_last_twos_optimiser(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    saved(run, 1, 2, 3, 4, 5, keep=3)
    assert [path.name for path in run.checkpoints()] == ["step-00000003", "step-00000004", "step-00000005"]
    assert len(list(run.checkpoints_path.iterdir())) == 3
    with_optimiser = [path.name for path in run.checkpoints() if (path / "optimizer.safetensors").exists()]
    assert with_optimiser == ["step-00000004", "step-00000005"]
    assert all((path / "model.safetensors").exists() for path in run.checkpoints())


def test_one_checkpoint_may_be_all_that_is_kept(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    saved(run, 1, 2, 3, keep=1)
    assert [path.name for path in run.checkpoints()] == ["step-00000003"]


def test_training_goes_on_bit_for_bit(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    model, optimizer = saved(run, 3)
    other = make(seed=1)
    restored = adam(other)
    assert load_training_state(run.checkpoints()[-1], other, restored) == TrainingProgress(step=3, log_bytes=30)
    assert same(model, other)
    for parameter, twin in zip(model.parameters(), other.parameters(), strict=True):
        assert optimizer.state[parameter].keys() == restored.state[twin].keys() == {"step", "exp_avg", "exp_avg_sq"}
        assert all(torch.equal(optimizer.state[parameter][key], value) for key, value in restored.state[twin].items())
    take_step(model, optimizer, seed=99)
    take_step(other, restored, seed=99)
    assert same(model, other)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_the_optimiser_s_state_is_where_the_parameters_are(optimizer: Optimizer, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    model = make(tie_embeddings=False)  # moving to meta would untie them
    trained = make_optimizer(model, TrainConfig(optimizer=optimizer))
    take_step(model, trained, seed=1)
    save_checkpoint(run, weights_of(model), optimizer_state_of(model, trained), TrainingProgress(step=1), keep=2)
    other = make(seed=1, tie_embeddings=False)
    restored = make_optimizer(other, TrainConfig(optimizer=optimizer))
    other.to("meta")  # the one device beside the CPU that every machine has
    load_training_state(run.checkpoints()[-1], other, restored)
    for parameter in other.parameters():
        assert restored.state[parameter]
        assert {value.device for value in restored.state[parameter].values()} == {torch.device("meta")}


def test_a_training_interrupted_before_its_first_step_goes_on(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    model = make()
    optimizer = adam(model)
    save_checkpoint(run, weights_of(model), optimizer_state_of(model, optimizer), TrainingProgress(), keep=2)
    other = make(seed=1)
    restored = adam(other)
    assert load_training_state(run.checkpoints()[-1], other, restored) == TrainingProgress()
    take_step(model, optimizer, seed=1)
    take_step(other, restored, seed=1)
    assert same(model, other)


def test_training_state_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    saved(run, 2)
    (checkpoint,) = run.checkpoints()
    state = load_file(checkpoint / "optimizer.safetensors")
    name = next(name for name, tensor in state.items() if tensor.shape == (16,))
    save_file({**state, name: torch.zeros(3)}, checkpoint / "optimizer.safetensors")
    with pytest.raises(DataError, match=r"optimizer\.safetensors: not of these weights"):
        load_training_state(checkpoint, model := make(), adam(model))
    save_file({}, checkpoint / "optimizer.safetensors")
    with pytest.raises(DataError, match=r"optimizer\.safetensors: not of these weights"):
        load_training_state(checkpoint, model := make(), adam(model))
    save_file(state, checkpoint / "optimizer.safetensors")
    (checkpoint / "progress.json").write_text('{"step": 2, "moon": "full"}', encoding="utf-8")
    with pytest.raises(DataError, match=r"progress\.json: damaged"):
        load_training_state(checkpoint, model := make(), adam(model))


def test_the_card_says_which_weights_translate(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.write_config(RunConfig(model=ModelConfig(**SHAPE)))
    model = make(seed=5)
    promote(run, weights_of(model), "average", [10, 20])
    assert json.loads(run.model_card_path.read_bytes()) == {"kind": "average", "steps": [10, 20]}
    loaded = load_model(run)
    assert same(model, loaded)
    assert not loaded.training


def test_without_promoted_weights_the_last_checkpoint_translates(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.write_config(RunConfig(model=ModelConfig(**SHAPE)))
    with pytest.raises(DataError, match=r"model\.safetensors: no such file"):
        load_model(run)
    model, _ = saved(run, 1, 4)
    assert same(load_model(run), model)
    assert not same(load_model(run, "step-00000001"), model)
    with pytest.raises(UsageError, match="no checkpoint step-7; kept: step-00000001, step-00000004"):
        load_model(run, "step-7")


def test_an_interruption_leaves_the_checkpoints_to_average_as_they_would_have_been(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    model, optimizer = saved(run, 1, 2, 3, keep=3)
    save_checkpoint(
        run, weights_of(model), optimizer_state_of(model, optimizer), TrainingProgress(step=4, validated=False), keep=3
    )
    assert [path.name[-1] for path in run.checkpoints()] == ["1", "2", "3", "4"]
    assert load_training_state(run.checkpoints()[-1], make(), adam(make())).step == 4
    save_checkpoint(run, weights_of(model), optimizer_state_of(model, optimizer), TrainingProgress(step=5), keep=3)
    assert [path.name[-1] for path in run.checkpoints()] == ["2", "3", "5"]
