"""A run's weights as CTranslate2 reads them, through CTranslate2's own model specification. Imports no torch.

Kept in the run as ctranslate2/<number type>-<digest of what it was made from>: other weights are converted again.
What CTranslate2 has no place for is refused. What it does otherwise than the paper is written out for it:

positions    its own sinusoids are not the paper's, so our table goes with the weights. Beyond the table's end it
             refuses to compute; who asks for a longer one gets it, except of learned positions, which have an end.
d_k, d_v     it knows one size of a head: the smaller of the two is filled up with zeros, which change no product.
1/sqrt(d_k)  the true scale is stored beside the weights, so the zeros do not change it either.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from dragoman.config import ModelConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import CannotServeError, ComputeType
from dragoman.decoding.engines.ct2_cache import VOCABULARY_MAP, Converted, converted_path, find_converted
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.files import locked, replacing
from dragoman.run_directory import RunDirectory

LEAST_POSITIONS = 512

Array = NDArray[np.float32]


def refusal(config: ModelConfig) -> str | None:
    """Why CTranslate2 cannot compute such a model; None: it can."""
    if config.architecture != "transformer":
        return f"it is no Transformer (model.architecture = {config.architecture})"
    if config.task != "translate":
        return f"it is half of one (encoder_layers = {config.encoder_layers}, decoder_layers = {config.decoder_layers})"
    if config.embedding_norm:
        return "it has no normalisation of embeddings (model.embedding_norm)"
    if config.norm != "layer":
        return f"it has no {config.norm} normalisation (model.norm)"
    if not config.residual:
        return "it always has residual connections (model.residual = false)"
    return None


def convert(
    run: RunDirectory, tokenizer: Tokenizer, compute_type: ComputeType, digest: str, positions: int
) -> Converted:
    """The run's model with room for so many positions: the one converted before, or a new one in its place."""
    config = run.read_config().model
    if reason := refusal(config):
        raise CannotServeError(f"{run.path}: ctranslate2 cannot compute this model: {reason}")
    if config.vocab_size != tokenizer.vocab_size:
        raise ConfigError(
            f"a model of {config.vocab_size} pieces and a tokenizer of {tokenizer.vocab_size}; "
            f"a run keeps the tokenizer it was trained with"
        )
    path = converted_path(run, compute_type, digest)

    def found() -> Converted | None:
        kept = find_converted(path)
        return kept if kept is not None and (kept.positions >= positions or config.positions == "learned") else None

    if kept := found():
        return kept
    if not os.access(run.path, os.W_OK):
        raise CannotServeError(f"{run.path}: cannot be written, and ctranslate2 keeps its own form of the model there")
    with locked(run.path):  # another one may be at it, and have done it when it is our turn
        return found() or _convert(run, config, tokenizer, compute_type, digest, positions)


def _convert(
    run: RunDirectory,
    config: ModelConfig,
    tokenizer: Tokenizer,
    compute_type: ComputeType,
    digest: str,
    positions: int,
) -> Converted:
    path, rows = converted_path(run, compute_type, digest), config.max_positions
    if config.positions != "learned":  # powers of two, so that a longer sentence does not convert again each time
        rows = max(LEAST_POSITIONS, 1 << (positions - 1).bit_length())
    weights = Weights(run.model_path, config)
    vocabulary_map = path / VOCABULARY_MAP
    kept_map = vocabulary_map.read_bytes() if vocabulary_map.is_file() else None
    try:
        with _specifications() as specs, replacing(path) as directory:
            directory.mkdir()
            if kept_map is not None:
                (directory / VOCABULARY_MAP).write_bytes(kept_map)
            spec = _specification(specs, config, weights, tokenizer, rows)
            weights.check_all_taken()
            spec.validate()
            # Also where nothing is quantised: equal arrays, which tied weights are, are then stored once.
            spec.optimize(quantization=None if compute_type == "float32" else compute_type)
            spec.save(str(directory))
    except DragomanError:
        # Where there are no locks, another process may have converted the same weights and been quicker.
        found = find_converted(path)
        if found is None or found.positions < rows:
            raise
    for other in run.converted_path.iterdir():  # of weights that are no longer the run's
        if other.is_dir() and not other.name.endswith(digest) and not other.name.startswith("."):
            rmtree(other, ignore_errors=True)
    return Converted(path, rows)


@contextmanager
def _specifications() -> Iterator[Any]:
    """CTranslate2's `specs`, without torch: they would import it, for seconds, to accept its tensors as well.

    While torch is hidden they find that it is not installed, so they are forgotten afterwards: whoever else in this
    process wants them gets them whole.
    """
    import ctranslate2

    if "torch" in sys.modules or "ctranslate2.specs" in sys.modules:
        yield ctranslate2.specs
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        specs = ctranslate2.specs
    finally:
        del sys.modules["torch"]
    try:
        yield specs
    finally:
        for name in [name for name in sys.modules if f"{name}.".startswith("ctranslate2.specs.")]:
            del sys.modules[name]
        vars(ctranslate2).pop("specs", None)


class Weights:
    """The tensors of model.safetensors, each to be taken once, in the shape that the configuration says."""

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
        """A copy: CTranslate2 quantises in place."""
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
        for name in sorted(self.tensors.keys() - self.taken):
            raise DataError(
                f"{self.path}: {name} is missing from the configuration's model; "
                f"weights and config.json are of different runs"
            )

    def projection(self, name: str, size: int, d_model: int) -> Array:
        """W^Q, W^K or W^V, (heads · size, d_model), each head filled up with rows of zeros to d_head."""
        weight = self.take(name, self.heads * size, d_model).reshape(self.heads, size, d_model)
        return np.pad(weight, ((0, 0), (0, self.d_head - size), (0, 0))).reshape(-1, d_model)

    def output_projection(self, name: str, d_model: int) -> Array:
        """W^O, (d_model, heads · d_v), with columns of zeros for what the values were filled up with."""
        weight = self.take(name, d_model, self.heads * self.d_v).reshape(d_model, self.heads, self.d_v)
        return np.pad(weight, ((0, 0), (0, 0), (0, self.d_head - self.d_v))).reshape(d_model, -1)


def _specification(specs: Any, config: ModelConfig, weights: Weights, tokenizer: Tokenizer, rows: int) -> Any:
    shape = {"num_heads": config.num_heads, "pre_norm": config.norm_order == "pre", "head_dim": weights.d_head}
    encoder = specs.TransformerEncoderSpec(config.encoder_layers, **shape)
    decoder = specs.TransformerDecoderSpec(config.decoder_layers, **shape)
    spec = specs.TransformerSpec(encoder, decoder)
    scale = {"1/sqrt(d_k)": config.key_size**-0.5, "1/d_k": 1 / config.key_size, "1": 1.0}[config.attention_scale]

    def attention(target: Any, name: str) -> None:
        query = weights.projection(f"{name}.w_q.weight", config.key_size, config.d_model)
        key = weights.projection(f"{name}.w_k.weight", config.key_size, config.d_model)
        value = weights.projection(f"{name}.w_v.weight", config.value_size, config.d_model)
        # Self-attention makes all three of one input; elsewhere keys and values are of another than the queries.
        joint = [[query, key, value]] if len(target.linear) == 2 else [[query], [key, value]]
        for linear, parts in zip(target.linear, joint, strict=False):
            linear.weight = np.concatenate(parts)
        target.linear[-1].weight = weights.output_projection(f"{name}.w_o.weight", config.d_model)
        target.queries_scale = scale

    def feed_forward(target: Any, name: str) -> None:
        for linear, part, size in (
            (target.linear_0, "w_1", (config.d_ff, config.d_model)),
            (target.linear_1, "w_2", (config.d_model, config.d_ff)),
        ):
            linear.weight = weights.take(f"{name}.{part}.weight", *size)
            linear.bias = weights.take(f"{name}.{part}.bias", size[0])

    def norm(target: Any, name: str) -> None:
        target.gamma = weights.take(f"{name}.weight", config.d_model)
        target.beta = weights.take(f"{name}.bias", config.d_model)

    def positions(side: str) -> Array:
        if config.positions == "learned":
            return weights.take(f"{side}_embedding.positions", config.max_positions, config.d_model)
        return position_table(config, rows)

    for index, layer in enumerate(encoder.layer):
        name = f"encoder.{index}"
        attention(layer.self_attention, f"{name}.self_attention")
        norm(layer.self_attention.layer_norm, f"{name}.around_self.norm")
        feed_forward(layer.ffn, f"{name}.feed_forward")
        norm(layer.ffn.layer_norm, f"{name}.around_feed_forward.norm")
    for index, layer in enumerate(decoder.layer):
        name = f"decoder.{index}"
        attention(layer.self_attention, f"{name}.self_attention")
        norm(layer.self_attention.layer_norm, f"{name}.around_self.norm")
        attention(layer.attention, f"{name}.cross_attention")
        norm(layer.attention.layer_norm, f"{name}.around_cross.norm")
        feed_forward(layer.ffn, f"{name}.feed_forward")
        norm(layer.ffn.layer_norm, f"{name}.around_feed_forward.norm")
    if config.norm_order == "pre":
        norm(encoder.layer_norm, "encoder_norm")
        norm(decoder.layer_norm, "decoder_norm")

    table = (config.vocab_size, config.d_model)
    source = weights.take("source_embedding.tokens.weight", *table)
    tied = config.tie_embeddings
    encoder.embeddings[0].weight = source
    decoder.embeddings.weight = source.copy() if tied else weights.take("target_embedding.tokens.weight", *table)
    decoder.projection.weight = source.copy() if tied else weights.take("output.weight", *table)
    for stack, side in ((encoder, "source"), (decoder, "target")):
        stack.scale_embeddings = config.scale_embeddings
        stack.position_encodings.encodings = positions(side)

    # The pieces are the names: sentencepiece allows none of them twice.
    names = [tokenizer.piece(index) for index in range(config.vocab_size)]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.unk_token = names[tokenizer.unk_id]
    spec.config.bos_token = spec.config.decoder_start_token = names[tokenizer.bos_id]
    spec.config.eos_token = names[tokenizer.eos_id]
    spec.config.add_source_eos = True
    spec.config.add_attribute("positions", rows)
    return spec


def position_table(config: ModelConfig, rows: int) -> Array:
    """What model/transformer.py adds at each position, of the kinds that are not learned: (rows, d_model)."""
    position = np.arange(rows, dtype=np.float64)[:, None]
    if config.positions == "sinusoidal":
        angle = position / 10_000 ** (np.arange(0, config.d_model, 2, dtype=np.float64) / config.d_model)
        return np.stack((np.sin(angle), np.cos(angle)), axis=-1).reshape(rows, -1).astype(np.float32)
    if config.positions == "index":
        return np.repeat(position / 100, config.d_model, axis=1).astype(np.float32)
    if config.positions == "none":
        return np.zeros((rows, config.d_model), dtype=np.float32)
    raise ConfigError(f"model.positions = {config.positions!r}; allowed: sinusoidal, learned, index, none")
