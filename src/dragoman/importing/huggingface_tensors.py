"""The names of a Transformer's tensors in Hugging Face's Marian, Pegasus, M2M100, BART and mBART, beside ours."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.config import ModelConfig
from dragoman.decoding.engines.numpy_weights import Array, matrix_names


@dataclass(frozen=True)
class TensorMapping:
    """A tensor that both models have: its names, and which of its axes are model dimensions."""

    ours: str
    theirs: str
    axes: tuple[int, ...]
    shape: tuple[int, ...]  # ours
    added: int = 0  # rows that theirs has before ours: of positions that no sequence has
    is_row: bool = False  # theirs is (1, V) where ours is (V,)


def tensors(config: ModelConfig) -> Iterator[TensorMapping]:
    """All tensors that both models have. (Their tables of sinusoids are no parameters of ours.)"""
    for side in ("encoder", "decoder"):
        ours = "source_embedding" if side == "encoder" else "target_embedding"
        if config.positions == "learned":
            shape, theirs = (config.max_positions, config.d_model), f"model.{side}.embed_positions.weight"
            yield TensorMapping(f"{ours}.positions", theirs, (), shape, added=2)
        if config.embedding_norm:
            yield from _norm(f"{ours}.norm", f"model.{side}.layernorm_embedding", config)
        if config.norm_order == "pre":
            yield from _norm(f"{side}_norm", f"model.{side}.layer_norm", config)
    yield from _matrices(config)
    for index in range(config.encoder_layers):
        yield from _layer(f"encoder.{index}", f"model.encoder.layers.{index}", config, across=False)
    for index in range(config.decoder_layers):
        yield from _layer(f"decoder.{index}", f"model.decoder.layers.{index}", config, across=True)


def _matrices(config: ModelConfig) -> Iterator[TensorMapping]:
    """The embeddings and the output projection, each matrix once."""
    source, target, output = matrix_names(config)
    of_source = "model.shared.weight" if config.ties_source_target else "model.encoder.embed_tokens.weight"
    yield TensorMapping(source, of_source, (1,), (config.source_tokens, config.d_model))
    shape = (config.vocab_size, config.d_model)
    if target != source:
        yield TensorMapping(target, "model.decoder.embed_tokens.weight", (1,), shape)
    if output != target:
        yield TensorMapping(output, "lm_head.weight", (1,), shape)
    if config.output_bias:
        yield TensorMapping("output.bias", "final_logits_bias", (), (config.vocab_size,), is_row=True)


def _norm(ours: str, theirs: str, config: ModelConfig) -> Iterator[TensorMapping]:
    for part in ("weight", "bias"):
        yield TensorMapping(f"{ours}.{part}", f"{theirs}.{part}", (0,), (config.d_model,))


def _attention(ours: str, theirs: str, config: ModelConfig) -> Iterator[TensorMapping]:
    d_model = config.d_model
    for letter, axis in (("q", 1), ("k", 1), ("v", 1), ("o", 0)):
        name = f"{theirs}.{'out' if letter == 'o' else letter}_proj"
        yield TensorMapping(f"{ours}.w_{letter}.weight", f"{name}.weight", (axis,), (d_model, d_model))
        if config.attention_bias:
            yield TensorMapping(f"{ours}.w_{letter}.bias", f"{name}.bias", (0,) if letter == "o" else (), (d_model,))


def _layer(ours: str, theirs: str, config: ModelConfig, across: bool) -> Iterator[TensorMapping]:
    d_model, d_ff = config.d_model, config.d_ff
    yield from _attention(f"{ours}.self_attention", f"{theirs}.self_attn", config)
    yield from _norm(f"{ours}.around_self.norm", f"{theirs}.self_attn_layer_norm", config)
    if across:
        yield from _attention(f"{ours}.cross_attention", f"{theirs}.encoder_attn", config)
        yield from _norm(f"{ours}.around_cross.norm", f"{theirs}.encoder_attn_layer_norm", config)
    inner = f"{ours}.feed_forward"
    yield TensorMapping(f"{inner}.w_1.weight", f"{theirs}.fc1.weight", (1,), (d_ff, d_model))
    yield TensorMapping(f"{inner}.w_1.bias", f"{theirs}.fc1.bias", (), (d_ff,))
    yield TensorMapping(f"{inner}.w_2.weight", f"{theirs}.fc2.weight", (0,), (d_model, d_ff))
    yield TensorMapping(f"{inner}.w_2.bias", f"{theirs}.fc2.bias", (0,), (d_model,))
    yield from _norm(f"{ours}.around_feed_forward.norm", f"{theirs}.final_layer_norm", config)


def sines_first(d_model: int) -> NDArray[np.int64]:
    """The order of model dimensions in Marian and Pegasus, whose positions have all sines before all cosines, while
    the paper and this code alternate them."""
    return np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])


def alternating(d_model: int) -> NDArray[np.int64]:
    """The way back from `sines_first`."""
    return np.arange(d_model).reshape(2, -1).T.flatten()


def reordered(array: Array, tensor: TensorMapping, order: NDArray[np.int64]) -> Array:
    """The tensor with its model dimensions in another order."""
    for axis in tensor.axes:
        array = array.take(order, axis=axis)
    return np.ascontiguousarray(array)
