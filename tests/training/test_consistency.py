"""Two passes of a batch: what the second one differs in, what the loss is made of, and that a run resumes with them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.config import ModelConfig, RunConfig, TrainConfig
from dragoman.data.batching import Batch, pad
from dragoman.errors import ConfigError
from dragoman.model.sequence_model import SequenceModel, make_model
from dragoman.training.consistency import loss_of, passes_of

EXACT: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-6}


def small(dropout: float = 0.0, **changes: Any) -> SequenceModel:
    torch.manual_seed(1)
    sizes = {"vocab_size": 40, "encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
    return make_model(ModelConfig(dropout=dropout, **{**sizes, **changes})).train()


def batch_of(lengths: tuple[int, ...]) -> Batch:
    """Sources of these lengths, and targets of these in the other order."""
    draw = np.random.default_rng(3)
    source, source_mask = pad([draw.integers(4, 40, length) for length in lengths], 0)
    target, target_mask = pad([draw.integers(4, 40, length) for length in reversed(lengths)], 0)
    labels = torch.from_numpy(draw.integers(4, 40, sum(lengths)))
    real = None if target_mask is None else target_mask.flatten().nonzero().squeeze(1)
    return Batch(np.arange(len(lengths)), source, source_mask, target, labels, real)


def loss_and_gradients(model: SequenceModel, batch: Batch, settings: TrainConfig) -> tuple[Tensor, Tensor]:
    model.zero_grad()
    states = batch.real_states(model.states(batch.source, batch.target, batch.source_mask, cut=batch.cut))
    loss, _ = loss_of(states, batch, model.output, settings)
    loss.backward()
    found = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    return loss.detach(), torch.cat(found)


def test_without_it_a_batch_goes_through_once() -> None:
    batch = batch_of((3, 5))
    assert passes_of(batch, TrainConfig()) is batch


@pytest.mark.parametrize("lengths", [(4, 4, 4), (3, 7, 5)])
@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_r_drop_without_dropout_is_the_plain_loss(architecture: str, lengths: tuple[int, ...]) -> None:
    """Both passes are the same then, and nothing differs between their predictions."""
    model, batch = small(architecture=architecture), batch_of(lengths)
    settings = TrainConfig(consistency="r-drop")
    both = loss_and_gradients(model, passes_of(batch, settings), settings)
    one = loss_and_gradients(model, batch, TrainConfig())
    torch.testing.assert_close(both, one, **EXACT)


@pytest.mark.parametrize("lengths", [(4, 4, 4), (3, 7, 5)])
def test_r_drop_is_the_published_sum_halved(lengths: tuple[int, ...]) -> None:
    model, batch = small(dropout=0.3), batch_of(lengths)
    settings = TrainConfig(consistency="r-drop", consistency_weight=5.0)
    doubled = passes_of(batch, settings)
    torch.manual_seed(5)
    loss, _ = loss_and_gradients(model, doubled, settings)
    torch.manual_seed(5)  # the same dropout
    states = model.states(doubled.source, doubled.target, doubled.source_mask)
    logits = model.output(states)
    positions = slice(None) if batch.real is None else batch.real
    first, second = (half.flatten(0, 1)[positions] for half in logits.chunk(2))
    assert not torch.allclose(first, second)  # dropout is another one in each
    p, q = first.log_softmax(dim=1), second.log_softmax(dim=1)
    once, twice = (
        F.cross_entropy(half, batch.labels, reduction="sum", label_smoothing=0.1) for half in (first, second)
    )
    both_ways = F.kl_div(p, q, reduction="sum", log_target=True) + F.kl_div(q, p, reduction="sum", log_target=True)
    torch.testing.assert_close(loss, ((once + twice + 5.0 * both_ways / 2) / 2).detach(), **EXACT)


def test_simcut_is_the_published_sum() -> None:
    model, batch = small(), batch_of((3, 7, 5))
    settings = TrainConfig(consistency="simcut", consistency_weight=3.0, cutoff=0.5)
    torch.manual_seed(5)
    doubled = passes_of(batch, settings)
    loss, _ = loss_and_gradients(model, doubled, settings)
    assert doubled.cut is not None
    cut = doubled.cut[0][3:], doubled.cut[1][3:]
    clean = batch.real_states(model(batch.source, batch.target, batch.source_mask)).log_softmax(dim=1)
    states = model.states(batch.source, batch.target, batch.source_mask, cut=cut)
    changed = model.output(batch.real_states(states)).log_softmax(dim=1)
    nll = F.cross_entropy(clean, batch.labels, reduction="sum", label_smoothing=0.1)
    apart = F.kl_div(changed, clean, reduction="sum", log_target=True)
    assert apart > 0.1
    torch.testing.assert_close(loss, (nll + 3.0 * apart).detach(), **EXACT)


def test_simcut_hides_a_share_of_both_sides_in_the_second_pass_alone() -> None:
    batch, settings = batch_of((50,) * 40), TrainConfig(consistency="simcut", cutoff=0.2)
    torch.manual_seed(7)
    first, again = passes_of(batch, settings).cut, None
    torch.manual_seed(7)
    again = passes_of(batch, settings).cut
    assert first is not None
    assert again is not None
    for side, same in zip(first, again, strict=True):
        assert torch.equal(side, same)
        assert not side[:40].any()
        assert 0.17 < float(side[40:].float().mean()) < 0.23


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_what_is_cut_has_no_part_in_the_states(architecture: str) -> None:
    model, batch = small(architecture=architecture), batch_of((6, 6))
    cut = torch.zeros_like(batch.source, dtype=torch.bool), torch.zeros_like(batch.target, dtype=torch.bool)
    cut[0][0, 2] = cut[1][1, 3] = True
    states = model.states(batch.source, batch.target, cut=cut)
    other_source, other_target = batch.source.clone(), batch.target.clone()
    other_source[0, 2], other_target[1, 3] = 5, 5
    assert torch.equal(model.states(other_source, other_target, cut=cut), states)
    assert not torch.equal(model.states(other_source, other_target), model.states(batch.source, batch.target))


def test_a_picture_has_no_tokens_to_cut() -> None:
    model = ModelConfig(decoder_layers=0, patch=4, classes=("0", "1"))
    assert RunConfig(model=model, train=TrainConfig(consistency="r-drop"))
    with pytest.raises(ConfigError, match=r"train.consistency = .simcut.; must be none or r-drop"):
        RunConfig(model=model, train=TrainConfig(consistency="simcut"))


@pytest.mark.parametrize("consistency", ["r-drop", "simcut"])
def test_a_resumed_run_equals_an_uninterrupted_one(
    consistency: str, tiny_text: Path, tiny_settings: list[str], tmp_path: Path, cli: Callable[..., Any]
) -> None:
    changes = {"consistency": consistency, "cutoff": 0.2, "ema": 0.9, "valid_steps": 3, "valid_sentences": 3}
    more = [part for key, value in changes.items() for part in ("--set", f"train.{key}={value}")]

    def run(name: str, steps: int, *others: str) -> Path:
        data = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
        flags = [*tiny_settings, "--set", "model.dropout=0.2", "--set", "train.schedule=paper", *more, *others]
        ran = cli("train", *data, "--out", tmp_path / name, "--steps", str(steps), *flags)
        assert ran.code == 0, ran.stderr
        return tmp_path / name / "checkpoints" / f"step-{steps:08d}"

    whole = run("whole", 6)
    run("parts", 3)
    parts = run("parts", 6)
    plain = run("plain", 6, "--set", "train.consistency=none")
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes()
        assert (whole / name).read_bytes() != (plain / name).read_bytes()


def test_a_batch_keeps_what_is_cut_on_its_way_to_a_device() -> None:
    settings = TrainConfig(consistency="simcut", cutoff=0.5)
    batch = passes_of(batch_of((4, 4)), settings)
    moved = batch.to(torch.device("cpu"))
    assert batch.cut is not None
    assert moved.cut is not None
    assert torch.equal(moved.cut[0], batch.cut[0])
    assert torch.equal(moved.cut[1], batch.cut[1])
    assert replace(batch, cut=None).to(torch.device("cpu")).cut is None
