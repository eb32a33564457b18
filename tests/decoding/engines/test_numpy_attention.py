"""The pass in numpy looks where the model in torch looks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from dragoman.config import ModelConfig
from dragoman.decoding.engines.numpy_attention import NumpyAttention, can_compute
from dragoman.model.probe import Probe, Site
from dragoman.model.transformer import Transformer

SMALL = ModelConfig(vocab_size=30, encoder_layers=2, decoder_layers=2, d_model=16, d_ff=32, num_heads=4)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm_order": "post"},
        {"positions": "learned", "max_positions": 20},
        {"activation": "swish", "attention_bias": True},
        {"embedding_norm": True, "scale_embeddings": False, "tie_embeddings": False},
        {"d_k": 3, "d_v": 5, "attention_scale": "1/d_k"},
    ],
)
def test_it_looks_where_the_model_looks(changes: dict[str, Any], tmp_path: Path) -> None:
    config = replace(SMALL, **changes)
    torch.manual_seed(1)
    model = Transformer(config).eval()
    for name, parameter in model.named_parameters():
        if "norm" in name or name.endswith("bias"):
            torch.nn.init.normal_(parameter, 1 if name.endswith("weight") else 0, 0.3)
    save_file({name: tensor.detach().clone() for name, tensor in model.named_parameters()}, tmp_path / "model")
    source, fed = [5, 6, 7, 8, 2], [1, 9, 10, 11]
    probe = Probe()
    with torch.inference_mode():
        model(torch.tensor([source]), torch.tensor([fed]), probe=probe)
    found = NumpyAttention(tmp_path / "model", config).weights(source, fed, 2)
    assert can_compute(config)
    for layer, weights in enumerate(found):
        torch.testing.assert_close(torch.tensor(weights), probe.weights[Site("cross", layer)][0], atol=1e-5, rtol=1e-4)


def test_what_it_cannot_compute_is_left_to_torch() -> None:
    for changes in ({"architecture": "lstm"}, {"norm": "batch"}, {"residual": False}, {"activation": "gelu"}):
        assert not can_compute(replace(SMALL, **changes))
