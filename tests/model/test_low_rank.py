"""Low-rank additions: merged is unmerged, the gradients are those of the formula, and the model stays a plain one."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from dragoman.config import ModelConfig
from dragoman.model.checkpoint import weights_of
from dragoman.model.low_rank import SCALE, LowRankLinear, add_low_rank
from dragoman.model.transformer import Transformer

SMALL = {"vocab_size": 31, "encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "d_ff": 24, "num_heads": 2}


def model_of(**changes: object) -> Transformer:
    torch.manual_seed(1)
    model = Transformer(ModelConfig(**{**SMALL, "dropout": 0.0, **changes})).double()  # type: ignore[arg-type]
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return model.eval()


def with_random_factors(model: Transformer, rank: int = 3) -> dict[str, LowRankLinear]:
    additions = add_low_rank(model, rank)
    with torch.no_grad():
        for addition in additions.values():
            addition.factors.up.normal_()
            addition.factors.down.normal_()
            addition.merge()
    return additions


IDS = torch.tensor([[3, 5, 7, 9], [4, 6, 8, 2]])


@pytest.mark.parametrize("changes", [{}, {"activation": "swish", "attention_bias": True, "output_bias": True}])
def test_the_merged_model_is_the_unmerged_one(changes: dict[str, object]) -> None:
    model, plain = model_of(**changes), model_of(**changes)
    additions = with_random_factors(model)
    assert len(additions) == 2 * (4 + 2) + 2 * (8 + 2)
    plain.load_state_dict(model.state_dict())
    merged = plain(IDS, IDS)
    torch.testing.assert_close(model(IDS, IDS), merged, rtol=1e-12, atol=1e-12)

    def unmerged(addition: LowRankLinear, x: torch.Tensor) -> torch.Tensor:
        up, down, frozen = addition.factors
        return F.linear(x, frozen, addition.bias) + SCALE * F.linear(F.linear(x, down), up)

    for addition in additions.values():
        addition.forward = partial(unmerged, addition)  # type: ignore[method-assign]
    torch.testing.assert_close(model(IDS, IDS), merged, rtol=1e-9, atol=1e-9)


def test_its_gradients_are_those_of_the_formula() -> None:
    torch.manual_seed(2)
    layer = LowRankLinear(torch.nn.Linear(5, 7).double(), rank=2)
    with torch.no_grad():
        layer.factors.up.normal_()
        layer.factors.down.normal_()
        layer.merge()
    x, weights = torch.randn(2, 3, 5, dtype=torch.double, requires_grad=True), torch.randn(2, 3, 7, dtype=torch.double)
    up, down, frozen = layer.factors
    formula = F.linear(x, frozen + SCALE * up @ down, layer.bias)
    expected = torch.autograd.grad((formula * weights).sum(), (x, up, down))
    found = torch.autograd.grad((layer(x) * weights).sum(), (x, up, down))
    torch.testing.assert_close(found, expected)


def test_a_model_with_additions_has_a_plain_models_weights_and_begins_as_it_was() -> None:
    model, plain = model_of(), model_of()
    additions = add_low_rank(model, 3)
    generator = torch.Generator().manual_seed(5)
    for addition in additions.values():
        addition.start(generator)
        addition.merge()
    before, after = weights_of(plain), weights_of(model)
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert all(bool(addition.factors.down.abs().sum() > 0) for addition in additions.values())


def test_decoding_step_by_step_sees_the_additions() -> None:
    model = model_of(activation="gelu", attention_bias=True)
    with_random_factors(model)
    whole = model(IDS, IDS)
    state = model.start(IDS)
    for position in range(IDS.shape[1]):
        logits = model.step(IDS[:, position : position + 1], state)
        torch.testing.assert_close(logits[:, 0], whole[:, position], rtol=1e-9, atol=1e-9)
