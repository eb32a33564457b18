"""Converts weights and configuration to Hugging Face's Marian and back: the same model under other names.

In a position encoding, Marian has all sines before all cosines, while the paper and this code alternate them. So every
tensor with a model dimension has that dimension in another order: one order is a permutation of the other.

Marian normalises after each sub-layer, as the paper does. A run that normalises before it (`norm_order = "pre"`) is
written as Pegasus: the same model with that order, in the same library and with the same tokenizer files.
"""

import json
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from dragoman.config import ModelConfig, RunConfig, SearchConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines.numpy_weights import Array, Weights, position_table
from dragoman.errors import DataError
from dragoman.files import read_json
from dragoman.run_directory import RunDirectory

POSITIONS = 1024  # rows of the table that goes with the weights


@dataclass(frozen=True)
class TensorMapping:
    """A tensor that both models have: its names, and which of its axes are model dimensions."""

    ours: str
    theirs: str
    axes: tuple[int, ...]
    shape: tuple[int, ...]


def tensors(config: ModelConfig) -> Iterator[TensorMapping]:
    """All tensors that both models have."""
    d_model, d_ff = config.d_model, config.d_ff

    def norm(ours: str, theirs: str) -> Iterator[TensorMapping]:
        for part in ("weight", "bias"):
            yield TensorMapping(f"{ours}.{part}", f"{theirs}.{part}", (0,), (d_model,))

    def attention(ours: str, theirs: str) -> Iterator[TensorMapping]:
        for letter, axis in (("q", 1), ("k", 1), ("v", 1), ("o", 0)):
            their_name = "out_proj" if letter == "o" else f"{letter}_proj"
            yield TensorMapping(
                f"{ours}.w_{letter}.weight", f"{theirs}.{their_name}.weight", (axis,), (d_model, d_model)
            )

    def layer(ours: str, theirs: str, across: bool) -> Iterator[TensorMapping]:
        yield from attention(f"{ours}.self_attention", f"{theirs}.self_attn")
        yield from norm(f"{ours}.around_self.norm", f"{theirs}.self_attn_layer_norm")
        if across:
            yield from attention(f"{ours}.cross_attention", f"{theirs}.encoder_attn")
            yield from norm(f"{ours}.around_cross.norm", f"{theirs}.encoder_attn_layer_norm")
        yield TensorMapping(f"{ours}.feed_forward.w_1.weight", f"{theirs}.fc1.weight", (1,), (d_ff, d_model))
        yield TensorMapping(f"{ours}.feed_forward.w_1.bias", f"{theirs}.fc1.bias", (), (d_ff,))
        yield TensorMapping(f"{ours}.feed_forward.w_2.weight", f"{theirs}.fc2.weight", (0,), (d_model, d_ff))
        yield TensorMapping(f"{ours}.feed_forward.w_2.bias", f"{theirs}.fc2.bias", (0,), (d_model,))
        yield from norm(f"{ours}.around_feed_forward.norm", f"{theirs}.final_layer_norm")

    yield TensorMapping("source_embedding.tokens.weight", "model.shared.weight", (1,), (config.vocab_size, d_model))
    for index in range(config.encoder_layers):
        yield from layer(f"encoder.{index}", f"model.encoder.layers.{index}", across=False)
    for index in range(config.decoder_layers):
        yield from layer(f"decoder.{index}", f"model.decoder.layers.{index}", across=True)
    if config.norm_order == "pre":
        yield from norm("encoder_norm", "model.encoder.layer_norm")
        yield from norm("decoder_norm", "model.decoder.layer_norm")


def refusal(config: ModelConfig) -> str | None:
    """Why neither Marian nor Pegasus of Hugging Face can represent this model; None if one can."""
    wrong = {
        f"it is no Transformer (model.architecture = {config.architecture})": config.architecture != "transformer",
        f"it has no {config.norm} normalisation (model.norm)": config.norm != "layer",
        "it always has residual connections (model.residual = false)": not config.residual,
        f"its positions are sinusoids (model.positions = {config.positions})": config.positions != "sinusoidal",
        "its embeddings are one matrix (model.tie_embeddings = false)": not config.tie_embeddings,
        f"its heads have d_model / num_heads dimensions (model.d_k = {config.d_k}, model.d_v = {config.d_v})": (
            {config.key_size, config.value_size} != {config.d_model // config.num_heads}
        ),
    }
    return next((reason for reason, holds in wrong.items() if holds), None)


def write_marian(run: RunDirectory, tokenizer: Tokenizer, directory: Path) -> str:
    """Writes a directory that transformers loads; returns the name of the class that loads it."""
    config = run.read_config()
    model = config.model
    if reason := refusal(model):
        raise DataError(f"{run.path}: Hugging Face's Marian cannot be this model: {reason}")
    weights = Weights(run.model_path, model)
    order = np.concatenate([np.arange(0, model.d_model, 2), np.arange(1, model.d_model, 2)])  # sines, then cosines
    found = {tensor.theirs: _reordered(weights.take(tensor.ours, *tensor.shape), tensor, order)
             for tensor in tensors(model)}  # fmt: skip
    weights.check_all_taken()
    scale = {"1/sqrt(d_k)": 1.0, "1/d_k": model.key_size**-0.5, "1": model.key_size**0.5}[model.attention_scale]
    for name in [name for name in found if name.endswith("_proj.weight")]:
        if name.endswith("q_proj.weight") and scale != 1.0:
            found[name] = found[name] * np.float32(scale)  # theirs is always 1/sqrt(d_k)
        found[name.removesuffix("weight") + "bias"] = np.zeros(model.d_model, np.float32)  # the paper has none
    table = np.ascontiguousarray(position_table(model, POSITIONS)[:, order])
    for side in ("encoder", "decoder"):
        found[f"model.{side}.embed_positions.weight"] = table
    found["final_logits_bias"] = np.zeros((1, model.vocab_size), np.float32)
    save_file(found, directory / "model.safetensors", metadata={"format": "pt"})

    (directory / "source.spm").write_bytes(tokenizer.model_bytes)
    (directory / "target.spm").write_bytes(tokenizer.model_bytes)
    kind: Literal["marian", "pegasus"] = "pegasus" if model.norm_order == "pre" else "marian"
    loaded_by = {"marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration"}[kind]
    vocabulary = {tokenizer.piece(index): index for index in range(tokenizer.vocab_size)}
    files = {
        "vocab.json": vocabulary,
        "config.json": _their_config(model, tokenizer, kind) | {"architectures": [loaded_by]},
        "generation_config.json": _generation(config, tokenizer),
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            "model_max_length": POSITIONS - 1,
            "unk_token": tokenizer.piece(tokenizer.unk_id),
            "eos_token": tokenizer.piece(tokenizer.eos_id),
            "pad_token": tokenizer.piece(tokenizer.pad_id),
            "separate_vocabs": False,
        },
    }
    for name, values in files.items():
        (directory / name).write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return loaded_by


def _reordered(array: Array, tensor: TensorMapping, order: NDArray[np.int64]) -> Array:
    for axis in tensor.axes:
        array = array.take(order, axis=axis)
    return np.ascontiguousarray(array)


def _their_config(model: ModelConfig, tokenizer: Tokenizer, kind: str) -> dict[str, Any]:
    return {
        "model_type": kind,
        "vocab_size": model.vocab_size,
        "max_position_embeddings": POSITIONS,
        "d_model": model.d_model,
        "encoder_layers": model.encoder_layers,
        "decoder_layers": model.decoder_layers,
        "encoder_ffn_dim": model.d_ff,
        "decoder_ffn_dim": model.d_ff,
        "encoder_attention_heads": model.num_heads,
        "decoder_attention_heads": model.num_heads,
        "activation_function": "relu",
        "scale_embedding": model.scale_embeddings,
        "dropout": model.dropout,
        "is_encoder_decoder": True,
        "tie_word_embeddings": True,
        "pad_token_id": tokenizer.pad_id,
        "eos_token_id": tokenizer.eos_id,
        "bos_token_id": tokenizer.bos_id,
        "decoder_start_token_id": tokenizer.bos_id,
        "forced_eos_token_id": None,
    }


def _generation(config: RunConfig, tokenizer: Tokenizer) -> dict[str, Any]:
    """Beam and length penalty of the run: theirs divides by length^alpha, the paper by ((5 + length) / 6)^alpha."""
    return {
        "num_beams": config.search.beam,
        "length_penalty": config.search.alpha,
        "max_length": 512,
        "pad_token_id": tokenizer.pad_id,
        "eos_token_id": tokenizer.eos_id,
        "bos_token_id": tokenizer.bos_id,
        "decoder_start_token_id": tokenizer.bos_id,
    }


@dataclass(frozen=True)
class ImportedModel:
    """The parts of a run that a Marian directory has."""

    config: RunConfig
    weights: dict[str, Array]
    tokenizer: Tokenizer


def read_marian(directory: Path) -> ImportedModel:
    """Reads a directory of Hugging Face's Marian or Pegasus; raises if our model cannot represent it."""
    values = read_json(directory / "config.json")
    config = _our_config(values, directory)
    found = _their_tensors(directory)
    order = np.arange(config.d_model).reshape(2, -1).T.flatten()
    weights: dict[str, Array] = {}
    for tensor in tensors(config):
        if tensor.theirs not in found or found[tensor.theirs].shape != tensor.shape:
            what = f"has shape {found[tensor.theirs].shape}" if tensor.theirs in found else "is missing"
            raise DataError(
                f"{directory}: {tensor.theirs} {what}, and config.json says {tensor.shape}; fetch the directory again"
            )
        weights[tensor.ours] = _reordered(found[tensor.theirs].astype(np.float32), tensor, order)
    for name, bias in sorted(found.items()):
        # A key's bias adds the same number to all scores of a query, and does not change the softmax.
        wanted = name.endswith(("q_proj.bias", "v_proj.bias", "out_proj.bias")) or name == "final_logits_bias"
        if wanted and np.any(bias != 0):
            raise DataError(f"{directory}: {name} is not zero, and this model has no such bias; it cannot be imported")
    from dragoman.export.marian_vocabulary import joined_tokenizer

    tokenizer = joined_tokenizer(directory, values, config.vocab_size)
    generation = directory / "generation_config.json"
    settings = values | (read_json(generation) if generation.is_file() else {})
    beam, alpha = settings.get("num_beams") or 4, settings.get("length_penalty")
    search = SearchConfig(beam=int(beam), alpha=0.6 if alpha is None else float(alpha))
    return ImportedModel(RunConfig(model=config, search=search), weights, tokenizer)


def _our_config(values: Mapping[str, Any], directory: Path) -> ModelConfig:
    kind = values.get("model_type")
    if kind is None:
        raise DataError(f"{directory}: its config.json names no model_type; marian and pegasus can be imported")
    if kind not in ("marian", "pegasus"):
        raise DataError(f"{directory}: a model of type {kind}; marian and pegasus can be imported")

    def value(name: str, default: Any = None) -> Any:
        if name not in values and default is None:
            raise DataError(f"{directory}/config.json: {name} is missing; fetch the directory again")
        return values.get(name, default)

    expected: dict[str, Callable[[], bool]] = {
        "activation_function must be relu": lambda: value("activation_function") == "relu",
        "encoder and decoder must have one feed-forward size": lambda: (
            value("encoder_ffn_dim") == value("decoder_ffn_dim")
        ),
        "encoder and decoder must have one number of heads": lambda: (
            value("encoder_attention_heads") == value("decoder_attention_heads")
        ),
        "embeddings must be one matrix": lambda: (
            bool(value("share_encoder_decoder_embeddings", True))
            and value("tie_word_embeddings", True)
            and value("decoder_vocab_size", value("vocab_size")) == value("vocab_size")
        ),
    }
    for requirement, holds in expected.items():
        if not holds():
            raise DataError(f"{directory}/config.json: {requirement}; this model cannot be imported")
    return ModelConfig(
        vocab_size=value("vocab_size"),
        encoder_layers=value("encoder_layers"),
        decoder_layers=value("decoder_layers"),
        d_model=value("d_model"),
        d_ff=value("encoder_ffn_dim"),
        num_heads=value("encoder_attention_heads"),
        dropout=float(value("dropout", 0.1)),
        norm_order="pre" if kind == "pegasus" else "post",
        scale_embeddings=bool(value("scale_embedding", False)),
    )


def _unpickled(path: Path) -> dict[str, Array]:
    """The tensors of a pickle. It could name any function to be called; none is."""
    import torch

    try:
        with warnings.catch_warnings(action="ignore"):  # they name torch's own options
            found = torch.load(path, map_location="cpu", weights_only=True)
        return {str(name): tensor.float().numpy() for name, tensor in found.items()}
    except (
        pickle.UnpicklingError,
        RuntimeError,
        EOFError,
        LookupError,
        AttributeError,
        ValueError,
        TypeError,
    ) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{path}: holds something else than tensors ({reason}); do not trust it, fetch it again"
        ) from None


def _their_tensors(directory: Path) -> dict[str, Array]:
    path = directory / "model.safetensors"
    if path.is_file():
        try:
            found: dict[str, Array] = load_file(path)
        except SafetensorError as error:
            raise DataError(f"{path}: not a readable safetensors file ({error}); fetch it again") from None
    elif (directory / "pytorch_model.bin").is_file():
        found = _unpickled(directory / "pytorch_model.bin")
    else:
        raise DataError(f"{directory}: neither model.safetensors nor pytorch_model.bin is there; fetch it again")
    for shared in ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"):
        if "model.shared.weight" not in found and shared in found:  # the file keeps a tied tensor once
            found["model.shared.weight"] = found[shared]
    return found
