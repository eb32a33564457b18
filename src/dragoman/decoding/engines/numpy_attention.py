"""One pass over a sentence and its translation in numpy, for the cross-attention alone: which source tokens each target
token looks at. A document needs no more of the model for its tags, and need not wait for torch.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dragoman.config import ModelConfig
from dragoman.decoding.engines.numpy_weights import Array, Weights, matrix_names, position_table

_EPSILON = 1e-5  # of torch's LayerNorm
_POSITIONS = 512


def can_compute(config: ModelConfig) -> bool:
    """Whether the model is one that is computed here: the others are left to torch."""
    plain = config.architecture == "transformer" and config.task == "translate" and config.patch == 0
    return plain and config.norm == "layer" and config.residual and config.activation in ("relu", "swish")


class NumpyAttention:
    """The weights of a run, and the pass that gives the cross-attention of its decoder layers."""

    def __init__(self, weights: Path, config: ModelConfig) -> None:
        self.config = config
        self.tensors = Weights(weights, config).tensors
        scales = {"1/sqrt(d_k)": self.config.key_size**-0.5, "1/d_k": 1 / self.config.key_size, "1": 1.0}
        self.scale = scales[self.config.attention_scale]
        self.table = None if self.config.positions == "learned" else position_table(self.config, _POSITIONS)

    def weights(self, source: Sequence[int], fed: Sequence[int], layers: int) -> list[Array]:
        """The weights of the first so many decoder layers: each (heads, tokens fed, source tokens)."""
        x = self._embedded(source, "source")
        for layer in range(self.config.encoder_layers):
            name = f"encoder.{layer}"
            x = self._around(x, f"{name}.around_self.norm", f"{name}.self_attention")
            x = self._around(x, f"{name}.around_feed_forward.norm", f"{name}.feed_forward")
        encoded = self._norm(x, "encoder_norm") if self.config.norm_order == "pre" else x
        x = self._embedded(fed, "target")
        future = ~np.tri(len(fed), dtype=bool)
        found: list[Array] = []
        for layer in range(layers):
            name = f"decoder.{layer}"
            x = self._around(x, f"{name}.around_self.norm", f"{name}.self_attention", hidden=future)
            x = self._around(x, f"{name}.around_cross.norm", f"{name}.cross_attention", encoded, found=found)
            x = self._around(x, f"{name}.around_feed_forward.norm", f"{name}.feed_forward")
        return found

    def _embedded(self, ids: Sequence[int], side: str) -> Array:
        config = self.config
        source, target, _ = matrix_names(config)
        x = self.tensors[source if side == "source" else target][list(ids)]
        if config.scale_embeddings:
            x = x * np.float32(config.d_model**0.5)
        if self.table is not None and len(self.table) < len(ids):
            self.table = position_table(config, 2 * len(ids))
        table = self.tensors[f"{side}_embedding.positions"] if self.table is None else self.table
        x = x + table[: len(ids)]
        return self._norm(x, f"{side}_embedding.norm") if config.embedding_norm else x

    def _around(
        self,
        x: Array,
        norm: str,
        name: str,
        encoded: Array | None = None,
        hidden: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None" = None,
        found: list[Array] | None = None,
    ) -> Array:
        """A sublayer with its normalisation and the sum around it."""
        pre = self.config.norm_order == "pre"
        y = self._norm(x, norm) if pre else x
        if name.endswith("feed_forward"):
            hidden_layer = self._linear(y, f"{name}.w_1")
            rectified = np.maximum(hidden_layer, 0)
            if self.config.activation == "swish":
                rectified = hidden_layer / (1 + np.exp(-hidden_layer))
            added = self._linear(rectified, f"{name}.w_2")
        else:
            added = self._attention(y, y if encoded is None else encoded, name, hidden, found)
        return x + added if pre else self._norm(x + added, norm)

    def _attention(
        self,
        queries: Array,
        others: Array,
        name: str,
        hidden: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None",
        found: list[Array] | None,
    ) -> Array:
        query, key, value = (
            self._heads(self._linear(x, f"{name}.w_{letter}"))
            for x, letter in ((queries, "q"), (others, "k"), (others, "v"))
        )
        scores = (query @ key.transpose(0, 2, 1)) * np.float32(self.scale)
        if hidden is not None:
            scores = np.where(hidden, np.float32(-np.inf), scores)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        if found is not None:
            found.append(weights)
        context: Array = (weights @ value).transpose(1, 0, 2).reshape(len(queries), -1)
        return self._linear(context, f"{name}.w_o")

    def _heads(self, x: Array) -> Array:
        return x.reshape(len(x), self.config.num_heads, -1).transpose(1, 0, 2)  # (T, H d) -> (H, T, d)

    def _linear(self, x: Array, name: str) -> Array:
        product: Array = x @ self.tensors[f"{name}.weight"].T
        bias = self.tensors.get(f"{name}.bias")
        return product if bias is None else product + bias

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(_EPSILON))
        normalised: Array = scaled * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]
        return normalised
