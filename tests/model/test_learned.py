"""What of a model learns: all of it, its top layers, or low-rank additions; the rest has no gradient and no state."""

from typing import Any

import pytest
import torch

from dragoman.config import Learn, ModelConfig, TrainConfig
from dragoman.errors import ConfigError, DataError
from dragoman.model.checkpoint import optimizer_state_of
from dragoman.model.learned import Learned, learned_of
from dragoman.model.loss import smoothed_cross_entropy
from dragoman.model.sequence_model import SequenceModel, make_model
from dragoman.training.optimizer import make_optimizer

SMALL: dict[str, Any] = {"vocab_size": 20, "d_model": 8, "d_ff": 12, "num_heads": 2, "dropout": 0.0}


def made(learn: Learn, **changes: Any) -> tuple[SequenceModel, Learned, TrainConfig]:
    torch.manual_seed(1)
    model = make_model(ModelConfig(**{**SMALL, "encoder_layers": 2, "decoder_layers": 3, **changes}))
    settings = TrainConfig(learn=learn, learn_layers=2, learn_rank=2)
    learned = learned_of(model, settings)
    learned.start(3)
    return model, learned, settings


@pytest.mark.parametrize("learn", ["all", "top", "low-rank"])
def test_only_what_learns_changes_and_has_a_state(learn: Learn) -> None:
    model, learned, settings = made(learn)
    optimizer = make_optimizer(model, settings, learned)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    ids = torch.tensor([[3, 4, 5, 6]])
    for _ in range(2):
        states = model.states(ids, ids)
        loss, _ = smoothed_cross_entropy(states.flatten(0, 1), model.output.weight, ids.flatten(), 0.1)
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.01
        optimizer.step()
        learned.merge()
    changed = {name for name, parameter in model.named_parameters() if not torch.equal(before[name], parameter)}
    expected = {
        "all": set(before),
        "top": {name for name in before if name.startswith(("decoder.1", "decoder.2"))},
        "low-rank": {name for name in before if ".w_" in name and name.endswith("weight")},
    }[learn]
    assert changed == expected
    moments = {key.split(":")[0] for key in optimizer_state_of(model, optimizer, learned) if ":" in key}
    assert moments == set(learned.parameters)
    assert all(parameter.grad is None for parameter in model.parameters() if not parameter.requires_grad)


def test_top_of_an_encoder_alone_is_its_own() -> None:
    _, learned, _ = made("top", encoder_layers=3, decoder_layers=0)
    assert {name.split(".")[1] for name in learned.parameters} == {"1", "2"}


def test_what_cannot_be_is_said_in_a_line() -> None:
    with pytest.raises(ConfigError, match="learn_layers = 2; the decoder has 1"):
        made("top", decoder_layers=1)
    with pytest.raises(ConfigError, match="an LSTM learns as a whole"):
        made("low-rank", architecture="lstm")
    with pytest.raises(ConfigError, match="use adam"):
        TrainConfig(learn="low-rank", optimizer="muon")
    with pytest.raises(ConfigError, match="no shard"):
        TrainConfig(learn="top", shard=True)


def test_a_state_without_its_factors_is_refused() -> None:
    _, learned, _ = made("low-rank")
    with pytest.raises(DataError, match=r"file: not of these weights \(.*w_q.up\)"):
        learned.load_state({}, "file")
    learned.load_state(learned.state(), "file")
