"""What the paper's model does not have and experiments, imported models or descendants need.

RearrangedAddAndNorm     normalisation before each sub-layer (pre-norm), or no residual connections
BatchNorm                in place of layer normalisation
attention_scale          1/d_k, or none, in place of 1/sqrt(d_k)
activation               swish or gelu in place of relu
index_positions, no_positions, grid_positions, fairseq_positions    in place of the paper's sinusoids
Patches                  a picture in place of tokens (Dosovitskiy et al. 2021)

transformer.py is given these as plain arguments, where a configuration asks for them. Letters in shape comments are
transformer.py's.
"""

import functools
import math
import typing
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import Activation, AttentionScale, Norm, Positions
from dragoman.errors import ConfigError, DataError
from dragoman.model.dropout import Dropout

Sinusoids = Callable[[int, int], Tensor]  # (length, d_model) to a table (length, D)
Activate = Callable[[Tensor], Tensor]
# (first, count, a tensor of the same type and device) to what is added there (count, D); None: nothing is.
PositionRows = Callable[[int, int, Tensor], Tensor | None]


class RearrangedAddAndNorm(nn.Module):
    """AddAndNorm with the normalisation before the sub-layer, x + Dropout(Sublayer(Norm(x))), or without `x +`."""

    def __init__(self, norm: nn.Module, dropout: float, pre_norm: bool, residual: bool) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.pre_norm = pre_norm
        self.residual = residual

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        out = sublayer(self.norm(x) if self.pre_norm else x)
        out = self.dropout(out, onto=x if self.residual else None)
        return out if self.pre_norm else self.norm(out)  # type: ignore[no-any-return]


class BatchNorm(nn.Module):
    """Normalisation of each feature over the batch's positions, to compare with layer normalisation."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.flatten(0, -2)).view(x.shape)  # type: ignore[no-any-return]


def make_norm(norm: Norm, d_model: int) -> nn.Module:
    """The normalisation that a configuration asks for; "layer" is the paper's."""
    match norm:
        case "layer":
            return nn.LayerNorm(d_model)
        case "batch":
            return BatchNorm(d_model)
    raise ConfigError(f"model.norm = {norm!r}; allowed: layer, batch")


def attention_scale(scale: AttentionScale, d_k: int) -> float:
    """What queries times keys are multiplied by; 1/sqrt(d_k) is the paper's."""
    match scale:
        case "1/sqrt(d_k)":
            return float(d_k**-0.5)
        case "1/d_k":
            return 1 / d_k
        case "1":
            return 1.0


def activation(name: Activation) -> Activate:
    """The function inside the feed-forward layers; "relu" is the paper's, and may change what it is given."""
    match name:
        case "relu":
            return functools.partial(F.relu, inplace=True)
        case "swish":
            return F.silu
        case "gelu":
            return F.gelu


def positions_for(positions: Positions, d_model: int, sinusoids: Sinusoids) -> PositionRows | None:
    """What is added to embeddings in place of the paper's positions; None: the paper's, sinusoidal or learned."""
    match positions:
        case "sinusoidal" | "learned":
            return None
        case "index":
            return functools.partial(index_positions, d_model=d_model)
        case "sinusoidal-2d":
            return functools.partial(grid_positions, d_model=d_model, sinusoids=sinusoids)
        case "sinusoidal-fairseq":
            return functools.partial(fairseq_positions, d_model=d_model)
        case "none":
            return no_positions
    allowed = ", ".join(typing.get_args(Positions))
    raise ConfigError(f"model.positions = {positions!r}; allowed: {allowed}")


def index_positions(first: int, count: int, like: Tensor, d_model: int) -> Tensor:
    """One number in place of a vector: the position itself, scaled down to stay near the embeddings' size."""
    return (torch.arange(first, first + count).to(like) / 100)[:, None].expand(count, d_model)


def no_positions(_first: int, _count: int, _like: Tensor) -> None:
    """Nothing is added: the model does not know the order."""


def fairseq_positions(first: int, count: int, like: Tensor, d_model: int) -> Tensor:
    """The sinusoids of fairseq, which M2M100 and NLLB have: all sines before all cosines, and other wavelengths."""
    length = max(512, 1 << (first + count - 1).bit_length())
    return _fairseq_table(length, d_model)[first : first + count].to(like)


@functools.lru_cache(maxsize=4)
def _fairseq_table(length: int, d_model: int) -> Tensor:
    """(length, D), in float32 throughout, as the models that use it were trained with its rounding."""
    half = d_model // 2
    frequency = torch.exp(torch.arange(half).float() * -(math.log(10_000) / (half - 1)))
    # Two rows of their table, of the ids of the start symbol and of padding, are never used.
    angle = torch.arange(2, length + 2).float()[:, None] * frequency
    return torch.cat((angle.sin(), angle.cos()), dim=1)


def grid_positions(_first: int, count: int, like: Tensor, d_model: int, sinusoids: Sinusoids) -> Tensor:
    """Sinusoids in two dimensions for a square picture; the last position, the end symbol's, is not on the grid."""
    side = math.isqrt(count - 1)
    table = sinusoids(side, d_model // 2)
    return F.pad(grid(table, table), (0, 0, 0, 1)).to(like)


def grid(rows: Tensor, columns: Tensor) -> Tensor:
    """Tables (rows, D/2) and (columns, D/2) to one of the grid's cells: half of the features say the row, half the
    column. (rows columns, D)"""
    down, across = rows.repeat_interleave(len(columns), dim=0), columns.repeat(len(rows), 1)
    return torch.cat((down, across), dim=1)


class Patches(nn.Module):
    """A square picture, row by row, as a sequence of patches and the end symbol.

    A pixel is a token: after the four special symbols, ids rise with brightness.
    """

    FIRST_LEVEL = 4

    def __init__(self, vocab_size: int, d_model: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.brightest = vocab_size - 1 - self.FIRST_LEVEL
        self.project = nn.Linear(side * side, d_model, bias=False)
        self.end = nn.Parameter(torch.empty(1, d_model))

    def forward(self, ids: Tensor) -> Tensor:
        """Ids (B, pixels + 1) to vectors (B, patches + 1, D)."""
        count, width = ids.shape[0], math.isqrt(ids.shape[1] - 1)
        if width * width != ids.shape[1] - 1 or width % self.side:
            raise DataError(
                f"a picture of {ids.shape[1] - 1} pixels; it must be a square whose side is a multiple of {self.side}"
            )
        light = (ids[:, :-1] - self.FIRST_LEVEL) / self.brightest  # (B, pixels), from 0 to 1
        across = width // self.side
        cut = light.view(count, across, self.side, across, self.side).transpose(2, 3)
        patches = self.project(cut.reshape(count, across * across, -1))  # (B, patches, D)
        return torch.cat((patches, self.end.expand(count, 1, -1)), dim=1)
