"""Two passes of a batch: what the second one differs in, what the loss is made of, and that a run resumes with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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


class Unknown(NamedTuple):
    """The unknown symbols of a tokenizer with two vocabularies. No token of `batch_of` is one."""

    unk_id: int = 1
    source_unk_id: int = 2


UNKNOWN = Unknown()
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
    states = batch.real_states(model.states(batch.source, batch.target, batch.source_mask))
    loss, _ = loss_of(states, batch, model.output, settings)
    loss.backward()
    found = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    return loss.detach(), torch.cat(found)


def test_without_it_a_batch_goes_through_once() -> None:
    batch = batch_of((3, 5))
    assert passes_of(batch, TrainConfig(), UNKNOWN) is batch


@pytest.mark.parametrize("lengths", [(4, 4, 4), (3, 7, 5)])
@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_r_drop_without_dropout_is_the_plain_loss(architecture: str, lengths: tuple[int, ...]) -> None:
    """Both passes are the same then, and nothing differs between their predictions."""
    model, batch = small(architecture=architecture), batch_of(lengths)
    settings = TrainConfig(consistency="r-drop")
    both = loss_and_gradients(model, passes_of(batch, settings, UNKNOWN), settings)
    one = loss_and_gradients(model, batch, TrainConfig())
    torch.testing.assert_close(both, one, **EXACT)


@pytest.mark.parametrize("lengths", [(4, 4, 4), (3, 7, 5)])
def test_r_drop_is_the_published_sum_halved(lengths: tuple[int, ...]) -> None:
    model, batch = small(dropout=0.3), batch_of(lengths)
    settings = TrainConfig(consistency="r-drop", consistency_weight=5.0)
    doubled = passes_of(batch, settings, UNKNOWN)
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


def test_simcut_unk_is_the_published_sum() -> None:
    model, batch = small(), batch_of((3, 7, 5))
    settings = TrainConfig(consistency="simcut-unk", consistency_weight=3.0, cutoff=0.5)
    torch.manual_seed(5)
    doubled = passes_of(batch, settings, UNKNOWN)
    loss, _ = loss_and_gradients(model, doubled, settings)
    clean = batch.real_states(model(batch.source, batch.target, batch.source_mask)).log_softmax(dim=1)
    changed = model(doubled.source[3:], doubled.target[3:], batch.source_mask)
    changed = batch.real_states(changed).log_softmax(dim=1)
    nll = F.cross_entropy(clean, batch.labels, reduction="sum", label_smoothing=0.1)
    apart = F.kl_div(changed, clean, reduction="sum", log_target=True)
    assert apart > 0.1
    torch.testing.assert_close(loss, (nll + 3.0 * apart).detach(), **EXACT)


def test_simcut_unk_changes_a_share_of_both_sides_in_the_second_pass_alone() -> None:
    """Each side has the unknown symbol of its own vocabulary."""
    batch, settings = batch_of((50,) * 40), TrainConfig(consistency="simcut-unk", cutoff=0.2)
    torch.manual_seed(7)
    doubled = passes_of(batch, settings, UNKNOWN)
    torch.manual_seed(7)
    again = passes_of(batch, settings, UNKNOWN)
    places = []
    for side, same, shown, unknown in (
        (doubled.source, again.source, batch.source, UNKNOWN.source_unk_id),
        (doubled.target, again.target, batch.target, UNKNOWN.unk_id),
    ):
        assert torch.equal(side, same)
        assert torch.equal(side[:40], shown)
        cut = side[40:] == unknown
        assert torch.equal(side[40:][~cut], shown[~cut])
        assert 0.17 < float(cut.float().mean()) < 0.23
        places.append(cut)
    assert not torch.equal(*places)
    assert torch.equal(doubled.labels, batch.labels)


def test_r_drop_changes_no_token() -> None:
    batch = batch_of((4, 6))
    doubled = passes_of(batch, TrainConfig(consistency="r-drop", cutoff=0.9), UNKNOWN)
    assert torch.equal(doubled.source, batch.source.repeat(2, 1))
    assert torch.equal(doubled.target, batch.target.repeat(2, 1))


@pytest.mark.parametrize("consistency", ["r-drop", "simcut-unk"])
def test_pictures_have_one_pass(consistency: Any) -> None:
    """They have fewer positions than ids, and no id of theirs is unknown."""
    model = ModelConfig(decoder_layers=0, patch=4, classes=("0", "1"))
    assert RunConfig(model=model)
    with pytest.raises(ConfigError, match=f'train.consistency = "{consistency}"; must be none where the source'):
        RunConfig(model=model, train=TrainConfig(consistency=consistency))


@pytest.mark.parametrize("consistency", ["r-drop", "simcut-unk"])
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
