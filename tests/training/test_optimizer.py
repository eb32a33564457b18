"""Steps of Adam and of Muon, which is held against torch's own and against the definition."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from dragoman.config import ModelConfig, TrainConfig
from dragoman.errors import ConfigError
from dragoman.model.transformer import Transformer
from dragoman.training.optimizer import ROUNDS, make_optimizer, orthogonal


def small(**changes: Any) -> Transformer:
    torch.manual_seed(1)
    return Transformer(
        ModelConfig(vocab_size=40, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=64, num_heads=2, **changes)
    )


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 16, 64), (2, 64, 16)])
def test_orthogonal_keeps_the_directions_and_evens_out_their_sizes(shape: tuple[int, ...]) -> None:
    torch.manual_seed(2)
    left, sizes, right = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    sizes = torch.linspace(1.0, 0.05, sizes.shape[1]).expand_as(sizes)  # one direction twenty times as large as another
    found = orthogonal(left @ torch.diag_embed(sizes) @ right)
    in_their_directions = left.mT @ found @ right.mT
    evened = in_their_directions.diagonal(dim1=1, dim2=2)
    assert evened.min() > 0.72
    assert evened.max() < 1.28
    assert torch.allclose(in_their_directions, torch.diag_embed(evened), atol=1e-4)


def test_the_rounds_are_the_best_of_their_kind() -> None:
    low, high = 0.01, 1.0
    for found in ROUNDS:
        x = np.unique(np.concatenate((np.geomspace(low, high, 400), np.linspace(low, high, 400))))
        powers, ones = np.stack((x, x**3, x**5), axis=1), np.ones((len(x), 1))
        # The least t for which |p(x) - 1| <= t everywhere.
        best = linprog([0, 0, 0, 1], np.block([[powers, -ones], [-powers, -ones]]), np.concatenate((ones, -ones)),
                       bounds=[(None, None)] * 3 + [(0, None)])  # fmt: skip
        assert np.abs(powers @ found - 1).max() < best.x[3] + 0.001
        low, high = 1 - best.x[3], 1 + best.x[3]


def give_gradients(model: Transformer, seed: int) -> None:
    torch.manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)


@pytest.mark.parametrize("given", [{}, {"adam_beta1": 0.6, "adam_beta2": 0.7, "adam_epsilon": 0.3}])
def test_adam_steps_by_its_formula_with_the_settings_given(given: dict[str, float]) -> None:
    """Section 5.3: beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9, unless a recipe says otherwise."""
    settings = TrainConfig(**given)  # type: ignore[arg-type]
    beta1, beta2, epsilon = (0.6, 0.7, 0.3) if given else (0.9, 0.98, 1e-9)
    model = small().double()
    parameter = dict(model.named_parameters())["encoder.0.feed_forward.w_1.weight"]
    optimizer = make_optimizer(model, settings)
    (group,) = optimizer.param_groups
    group["lr"] = 0.01
    first, second, expected = 0.0, 0.0, parameter.detach().clone()
    for step, size in enumerate((3e-9, 1.0, 2e-9), start=1):  # some so small that epsilon is felt
        gradient = torch.full_like(parameter, size)
        parameter.grad = gradient.clone()
        optimizer.step()
        first = beta1 * first + (1 - beta1) * size
        second = beta2 * second + (1 - beta2) * size**2
        expected -= 0.01 * (first / (1 - beta1**step)) / (math.sqrt(second / (1 - beta2**step)) + epsilon)
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tied", [True, False])
def test_muon_steps_as_torchs_own_and_leaves_the_rest_to_adam(tied: bool) -> None:
    ours, by_adam = small(tie_embeddings=tied), small(tie_embeddings=tied)
    muon = make_optimizer(ours, TrainConfig(optimizer="muon"))
    adam = make_optimizer(by_adam, TrainConfig())
    before = {name: parameter.detach().clone() for name, parameter in ours.named_parameters()}
    theirs = [p for name, p in by_adam.named_parameters() if ".w_" in name and name.endswith("weight")]
    torchs = torch.optim.Muon([torch.nn.Parameter(p.detach().clone()) for p in theirs], lr=0.01, weight_decay=0.0,
                              adjust_lr_fn="match_rms_adamw")  # fmt: skip
    for seed in range(3):
        for model in (ours, by_adam):
            give_gradients(model, seed)
        for copy, parameter in zip(torchs.param_groups[0]["params"], theirs, strict=True):
            copy.grad = parameter.grad
        for optimizer in (muon, adam, torchs):
            for group in optimizer.param_groups:
                group["lr"] = 0.01
            optimizer.step()
    of_torch = {id(p): copy for p, copy in zip(theirs, torchs.param_groups[0]["params"], strict=True)}
    for (name, mine), other in zip(ours.named_parameters(), by_adam.parameters(), strict=True):
        if id(other) in of_torch:
            steps = [(p - before[name]).flatten() for p in (mine.detach(), of_torch[id(other)].detach())]
            assert torch.cosine_similarity(steps[0], steps[1], dim=0) > 0.95, name
            assert 0.8 < steps[0].norm() / steps[1].norm() < 1.25, name
        else:
            assert torch.equal(mine, other), name


def test_muon_has_no_matrix_to_step_that_is_divided() -> None:
    with pytest.raises(ConfigError, match="Muon needs whole matrices"):
        TrainConfig(optimizer="muon", shard=True)
