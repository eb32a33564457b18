"""Inspectors of untrained models with several layers and strong opinions, for tests of what is seen inside."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from dragoman.config import ModelConfig, SearchConfig
from dragoman.data.tokenizer import load_tokenizer
from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.inspection.explain import Explainer
from dragoman.inspection.inspector import Inspector
from dragoman.model.transformer import Transformer

SENTENCE = "the old dog sees the red house"
SHAPE: dict[str, Any] = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 12, "d_ff": 20, "num_heads": 3}


def deep_inspector(run: Path, **changes: Any) -> Inspector:
    """In float64, so that a test may ask for more than rounding leaves."""
    tokenizer = load_tokenizer(run)
    torch.manual_seed(0)
    model = Transformer(ModelConfig(vocab_size=tokenizer.vocab_size, **{**SHAPE, **changes})).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5 if parameter.dim() > 1 else 0.3)
    for name, parameter in model.named_parameters():
        if "norm" in name and name.endswith("weight"):
            parameter.data += 1
    return Inspector(Explainer(ReferenceEngine([model], tokenizer), SearchConfig(beam=2, max_extra_length=4)))
