"""Makes a run of the base shape out of a trained narrow one, with the same translations.

A model of the base shape learns nothing in minutes, and one that has learned nothing never ends an output: what ends by
itself costs less than what is cut. So every state is written four times side by side (Chen et al. 2016, Net2Net):
weights are tiled and divided, layer normalisation sees the same mean and variance, further layers of a pre-norm model
add next to nothing. The work is the base model's to the last product; what it says is what the narrow one says.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.model.checkpoint import load_model, promote, weights_of
from dragoman.model.transformer import Transformer, sinusoids
from dragoman.run_directory import RunDirectory
from shapes import SHAPES

POSITIONS = 512
NEXT_TO_NOTHING = 1e-6


def widen(narrow: Path, out: Path) -> Path:
    """Writes the run, and returns where it is."""
    before = RunDirectory.open(narrow)
    config = before.read_config()
    assert config.model.norm_order == "pre", "a post-norm layer changes its input whatever its sub-layer adds"
    # Sinusoids of another width are others: the narrow model's become a table.
    shape = SHAPES["base"].model_config(config.model.vocab_size)
    model = replace(shape, norm_order="pre", positions="learned", max_positions=POSITIONS)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    after = RunDirectory(out)
    after.write_config(replace(config, model=model))
    shutil.copy(before.tokenizer_path, after.tokenizer_path)
    torch.manual_seed(1)
    promote(
        after,
        _widened(weights_of(load_model(before)), weights_of(Transformer(model)), config.model, model),
        "last",
        [0],
    )
    return out


def _widened(
    old: dict[str, Tensor], fresh: dict[str, Tensor], narrow: ModelConfig, wide: ModelConfig
) -> dict[str, Tensor]:
    times = wide.d_model // narrow.d_model
    heads, size = narrow.num_heads, narrow.key_size

    def by_head(rows: Tensor) -> Tensor:
        """Each head's rows as often as the width grows: twice within a head of twice the size, in twice the heads."""
        return rows.view(heads, size, -1).repeat_interleave(times, dim=0).reshape(heads * size * times, -1)

    def widened(name: str, like: Tensor) -> Tensor:
        if name.endswith("embedding.positions"):
            return sinusoids(POSITIONS, narrow.d_model).repeat(1, times)
        if name not in old:  # a further layer
            adds = name.endswith(("w_o.weight", "w_2.weight", "w_2.bias"))
            return like * NEXT_TO_NOTHING if adds else like
        given = old[name]
        if name.endswith("tokens.weight"):  # multiplied by the root of the width
            return given.repeat(1, times) / times**0.5
        if name.startswith(
            "decoder_norm"
        ):  # only the projection to the vocabulary reads it, whose sum is as much longer
            return given.repeat(times) / times**0.5
        if given.dim() == 1:
            return given.repeat(like.numel() // given.numel())
        if name.endswith(("w_q.weight", "w_k.weight", "w_v.weight")):
            # The products of queries and keys are as much larger as a head, and their scale as its root.
            grown = wide.key_size / size
            return by_head(given).repeat(1, times) / times / (grown**0.5 if name.endswith("w_q.weight") else 1)
        if name.endswith("w_o.weight"):
            return by_head(given.T).T.repeat(times, 1) / times
        rows, columns = like.shape[0] // given.shape[0], like.shape[1] // given.shape[1]
        return given.repeat(rows, columns) / columns

    return {name: widened(name, like).contiguous() for name, like in fresh.items()}
