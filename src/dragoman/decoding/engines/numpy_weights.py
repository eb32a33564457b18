"""A run's weights and its table of positions as numpy arrays, for conversion to other formats. Imports no torch."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError, DataError

Array = NDArray[np.float32]


class Weights:
    """The tensors of model.safetensors; each is taken once, in the shape that the configuration says."""

    def __init__(self, path: Path, config: ModelConfig) -> None:
        self.path = path
        self.heads = config.num_heads
        self.d_k, self.d_v = config.key_size, config.value_size
        self.d_head = max(self.d_k, self.d_v)
        try:
            self.tensors: dict[str, Array] = load_file(path)
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path}: not a readable safetensors file ({error}); use another checkpoint") from None
        self.taken: set[str] = set()

    def take(self, name: str, *shape: int) -> Array:
        """A copy of a tensor, as CTranslate2 quantises in place; a DataError if it is missing or has another shape."""
        if name not in self.tensors:
            raise DataError(
                f"{self.path}: {name} is missing from the file; weights and config.json are of different runs"
            )
        if self.tensors[name].shape != shape:
            raise DataError(
                f"{self.path}: {name} has shape {self.tensors[name].shape}, the configuration says {shape}; "
                f"weights and config.json are of different runs"
            )
        self.taken.add(name)
        return np.array(self.tensors[name], dtype=np.float32)

    def check_all_taken(self) -> None:
        """Raises a DataError if the file holds a tensor that the model has no place for."""
        for name in sorted(self.tensors.keys() - self.taken):
            raise DataError(
                f"{self.path}: {name} is missing from the configuration's model; "
                f"weights and config.json are of different runs"
            )

    def projection_bias(self, name: str, size: int) -> Array:
        """The bias of W^Q, W^K or W^V, (heads · size,), each head padded with zeros to d_head."""
        bias = self.take(name, self.heads * size).reshape(self.heads, size)
        return np.pad(bias, ((0, 0), (0, self.d_head - size))).reshape(-1)

    def projection(self, name: str, size: int, d_model: int) -> Array:
        """W^Q, W^K or W^V, (heads · size, d_model), each head padded with rows of zeros to d_head."""
        weight = self.take(name, self.heads * size, d_model).reshape(self.heads, size, d_model)
        return np.pad(weight, ((0, 0), (0, self.d_head - size), (0, 0))).reshape(-1, d_model)

    def output_projection(self, name: str, d_model: int) -> Array:
        """W^O, (d_model, heads · d_v), with columns of zeros where the values were padded."""
        weight = self.take(name, d_model, self.heads * self.d_v).reshape(d_model, self.heads, self.d_v)
        return np.pad(weight, ((0, 0), (0, 0), (0, self.d_head - self.d_v))).reshape(d_model, -1)


def matrix_names(config: ModelConfig) -> tuple[str, str, str]:
    """Under which names the embeddings of source and target and the output projection are stored: a shared matrix is
    stored once, under the first of its names."""
    source = "source_embedding.tokens.weight"
    target = source if config.ties_source_target else "target_embedding.tokens.weight"
    return source, target, target if config.ties_target_output else "output.weight"


def position_table(config: ModelConfig, rows: int) -> Array:
    """What model/transformer.py adds at each position, of the kinds that are not learned: (rows, d_model)."""
    position = np.arange(rows, dtype=np.float64)[:, None]
    if config.positions == "sinusoidal":
        angle = position / 10_000 ** (np.arange(0, config.d_model, 2, dtype=np.float64) / config.d_model)
        return np.stack((np.sin(angle), np.cos(angle)), axis=-1).reshape(rows, -1).astype(np.float32)
    if config.positions == "sinusoidal-fairseq":
        half = config.d_model // 2
        frequency = np.exp(np.arange(half, dtype=np.float32) * np.float32(-np.log(10_000) / (half - 1)))
        angle = np.arange(2, rows + 2, dtype=np.float32)[:, None] * frequency
        return np.concatenate((np.sin(angle), np.cos(angle)), axis=1)
    if config.positions == "index":
        return np.repeat(position / 100, config.d_model, axis=1).astype(np.float32)
    if config.positions == "none":
        return np.zeros((rows, config.d_model), dtype=np.float32)
    raise ConfigError(
        f"model.positions = {config.positions!r}; allowed: sinusoidal, sinusoidal-fairseq, learned, index, none"
    )
