"""The running average of the weights: what it is, how it is chosen at the end, and that a run with it is verified."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from dragoman.config import ModelConfig, TrainConfig
from dragoman.errors import ConfigError
from dragoman.model.checkpoint import weights_of
from dragoman.model.learned import learned_of
from dragoman.model.transformer import Transformer
from dragoman.training.optimizer import ema_of, make_optimizer, update_ema
from dragoman.training.validation import Validation


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_it_is_the_decaying_sum_of_all_weights(optimizer: Any) -> None:
    torch.manual_seed(1)
    model = Transformer(
        ModelConfig(vocab_size=40, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, num_heads=2)
    )
    stepping = make_optimizer(model, TrainConfig(optimizer=optimizer))
    expected: dict[str, torch.Tensor] = {}
    for step in range(30):
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        for group in stepping.param_groups:
            group["lr"] = 0.01
        stepping.step()
        update_ema(stepping, 0.7, step)
        now = {name: tensor.double() for name, tensor in weights_of(model).items()}
        decay = min(0.7, (1 + step) / (10 + step))  # the first weights, which are random, count for less
        expected = {name: decay * expected.get(name, now[name]) + (1 - decay) * now[name] for name in now}
    found = ema_of(stepping, weights_of(model), learned_of(model))
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        torch.testing.assert_close(tensor.double(), expected[name], rtol=1e-5, atol=1e-6)
        assert not torch.equal(tensor, weights_of(model)[name])


def test_without_it_nothing_is_kept() -> None:
    model = torch.nn.Linear(2, 2)
    stepping = torch.optim.Adam(model.parameters())
    model(torch.ones(2)).sum().backward()
    stepping.step()
    update_ema(stepping, 0.0, 5)
    assert all(state.keys() == {"step", "exp_avg", "exp_avg_sq"} for state in stepping.state.values())


@pytest.mark.parametrize("changes", [{"learn": "low-rank"}, {"shard": True}])
def test_only_whole_weights_are_averaged(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"train.ema = 0.99 with train"):
        TrainConfig(ema=0.99, **changes)


def trained(cli: Callable[..., Any], pairs: Path, out: Path, settings: list[str], *more: str) -> dict[str, Any]:
    changes = ["train.ema=0.5", "train.valid_steps=2", "train.schedule=paper", "train.valid_sentences=3", *more]
    flags = [part for change in changes for part in ("--set", change)]
    ran = cli("train", "--pairs", pairs, "--out", out, "--steps", "4", *settings, *flags)
    assert ran.code == 0, ran.stderr
    card: dict[str, Any] = json.loads((out / "model.json").read_text(encoding="utf-8"))
    return card


def test_without_validation_text_it_is_what_translates_and_is_verified(
    tiny_text: Path, tiny_settings: list[str], tmp_path: Path, cli: Callable[..., Any]
) -> None:
    run = tmp_path / "run"
    card = trained(cli, tiny_text / "train.tsv", run, tiny_settings, "data.hold_out=0")
    assert card == {"kind": "ema", "steps": [4], "finished_at": 4}
    state = load_file(run / "checkpoints/step-00000004/optimizer.safetensors")
    translating = load_file(run / "model.safetensors")
    assert all(torch.equal(tensor, state[f"{name}:ema"]) for name, tensor in translating.items())
    ran = cli("verify", run, "--steps", "0")
    assert ran.code == 0, ran.stderr
    assert "model.safetensors is the ema of step 4" in ran.stdout + ran.stderr
    (run / "model.safetensors").write_bytes((run / "checkpoints/step-00000004/model.safetensors").read_bytes())
    assert cli("verify", run, "--steps", "0").code == 4


@pytest.mark.parametrize(
    ("best", "average", "ema", "chosen"),
    [(20, 30, 31, "ema"), (20, 31, 30, "average"), (20, 30, 30, "average"), (20, 12, 15, "best")],
)
def test_the_validation_set_chooses(
    best: float, average: float, ema: float, chosen: str, tiny_text: Path, tiny_settings: list[str], tmp_path: Path,
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    scores = iter([best, 11.0, average, ema])  # of steps 2 and 4, and at the end
    monkeypatch.setattr(
        "dragoman.training.saving.validate", lambda *_: Validation(2.0, next(scores), "BLEU (greedy)", "made up", {})
    )
    card = trained(cli, tiny_text / "train.tsv", tmp_path / "run", tiny_settings)
    assert card["kind"] == chosen
    assert card["steps"] == {"ema": [4], "average": [2, 4], "best": [2]}[chosen]
    log = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    end = json.loads(log[-1])
    assert (end["best_bleu"], end["average_bleu"], end["ema_bleu"]) == (best, average, ema)
