"""The LSTM baseline: fast equals slow, padding changes nothing, and the commands take it like any other model."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.decoding.engines.ct2_convert import refusal
from dragoman.errors import ConfigError, UsageError
from dragoman.model.lstm import AttentionalLSTM
from dragoman.model.probe import Probe
from dragoman.model.sequence_model import make_model
from dragoman.model.transformer import Transformer, count_parameters

CONFIG = ModelConfig(architecture="lstm", vocab_size=30, encoder_layers=2, decoder_layers=3, d_model=16, dropout=0.3)


@pytest.fixture(params=[(1, "multiplicative"), (3, "multiplicative"), (2, "additive"), (2, "none")], ids=str)
def model(request: pytest.FixtureRequest) -> AttentionalLSTM:
    torch.manual_seed(1)
    layers, kind = request.param
    return AttentionalLSTM(replace(CONFIG, decoder_layers=layers, recurrent_attention=kind)).double().eval()


def test_the_configuration_chooses() -> None:
    assert isinstance(make_model(CONFIG), AttentionalLSTM)
    assert isinstance(make_model(replace(CONFIG, architecture="transformer", num_heads=2)), Transformer)
    tied, untied = (count_parameters(make_model(replace(CONFIG, tie_embeddings=tie))) for tie in (True, False))
    assert untied - tied == 2 * 30 * 16  # an embedding and a projection of their own
    with pytest.raises(ConfigError, match="even"):
        replace(CONFIG, d_model=15, positions="none", num_heads=1)


def test_one_position_at_a_time_is_all_at_once(model: AttentionalLSTM) -> None:
    source, target = torch.randint(4, 30, (2, 5)), torch.randint(4, 30, (2, 6))
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    expected = model(source, target, mask)
    state = model.start(source, mask)
    for position in range(6):
        logits = model.step(target[:, position, None], state)
        torch.testing.assert_close(logits[:, 0], expected[:, position])


def test_beams_go_where_they_are_told(model: AttentionalLSTM) -> None:
    source, target = torch.randint(4, 30, (3, 4)), torch.randint(4, 30, (3, 2, 3))
    state = model.start(source)
    model.step(torch.full((3, 1), 2), state)
    state = state.select(torch.arange(3), torch.zeros(3, 2, dtype=torch.long))  # widened to two beams
    model.step(target[:, :, 0], state)
    kept, swapped = torch.tensor([0, 2]), torch.tensor([[1, 0], [1, 1]])
    state = state.select(kept, swapped)
    logits = model.step(target[kept, :, 1], state)
    for row, sentence in enumerate(kept.tolist()):
        for beam in range(2):
            past = [2, int(target[sentence, swapped[row, beam], 0]), int(target[sentence, beam, 1])]
            expected = model(source[sentence, None], torch.tensor([past]))[0, -1]
            torch.testing.assert_close(logits[row, beam], expected)


def test_padding_changes_nothing(model: AttentionalLSTM) -> None:
    short, long = torch.randint(4, 30, (1, 3)), torch.randint(4, 30, (1, 6))
    target = torch.randint(4, 30, (2, 4))
    padded = torch.cat([torch.nn.functional.pad(short, (0, 3)), long])
    mask = torch.tensor([[True] * 3 + [False] * 3, [True] * 6])
    together = model(padded, target, mask)
    torch.testing.assert_close(together[:1], model(short, target[:1]))
    torch.testing.assert_close(together[1:], model(long, target[1:]))


def test_the_future_is_hidden_and_every_weight_learns(model: AttentionalLSTM) -> None:
    source, target = torch.randint(4, 30, (1, 4)), torch.randint(4, 30, (1, 5))
    before = model(source, target)
    target[0, 3] = (target[0, 3] - 3) % 26 + 4
    assert torch.equal(model(source, target)[:, :3], before[:, :3])
    model.train()
    model(source, target).logsumexp(-1).sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in model.parameters())


def test_without_attention_the_source_is_one_vector() -> None:
    torch.manual_seed(1)
    model = AttentionalLSTM(replace(CONFIG, decoder_layers=2, recurrent_attention="none")).double().eval()
    memory, query = torch.randn(1, 5, 16).double(), torch.randn(1, 3, 16).double()
    other = memory.clone()
    other[:, 1:4] += 1  # what lies between the two ends is not looked at
    assert torch.equal(model.look(query, memory, memory, None), model.look(query, other, other, None))


def test_what_it_cannot_do_is_said(model: AttentionalLSTM) -> None:
    with pytest.raises(UsageError, match="no heads"):
        model.start(torch.ones(1, 2, dtype=torch.long), probe=Probe())
    assert "no Transformer" in (refusal(CONFIG) or "")


def test_it_is_trained_kept_and_used_like_any_other(
    cli: Callable[..., object], tiny_text: Path, tiny_settings: list[str], tmp_path: Path
) -> None:
    data = ("--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv")
    flags = ("--steps", "3", *tiny_settings, "--set", "model.architecture=lstm")
    ran = cli("train", *data, "--out", tmp_path / "run", *flags)
    assert ran.code == 0, ran.stderr  # type: ignore[attr-defined]
    translated = cli("translate", tmp_path / "run", stdin="the dog\n\nthe cat\n")
    assert (translated.code, translated.stdout.count("\n")) == (0, 3)  # type: ignore[attr-defined]
