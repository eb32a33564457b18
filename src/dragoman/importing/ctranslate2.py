"""Reads the directories that CTranslate2's converters write: its Transformer, whatever it was converted from.

Its weights become ours, so that the run is one like any other. Integers are divided by their scales, and the run is to
translate with integers as well: those that are made of these weights are the same again.
"""

import dataclasses
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.config import Activation, ModelConfig, RunConfig, SearchConfig, TiedPair
from dragoman.decoding.engines.numpy_weights import Array, matrix_names
from dragoman.errors import DataError
from dragoman.files import sha256
from dragoman.importing.ctranslate2_file import read_file
from dragoman.importing.ctranslate2_positions import position_tables
from dragoman.importing.ctranslate2_variables import SIDES, Variables
from dragoman.importing.ctranslate2_vocabulary import Vocabularies, read_vocabularies, tokenizer_of
from dragoman.importing.huggingface_tensors import reordered, tensors
from dragoman.importing.imported_model import ImportedModel

BINARY = "model.bin"
ACTIVATIONS: dict[int, Activation] = {0: "relu", 2: "swish", 3: "gelu"}
OTHER_ACTIVATIONS = {1: "gelu by tanh", 4: "gelu by sigmoid", 5: "tanh", 6: "sigmoid"}
NEVER = -100.0  # the bias of a token that is never to be chosen: its probability is zero in any precision


class _Shape(NamedTuple):
    """What the model has the same in every layer."""

    heads: int
    head: int  # dimensions of a head
    d_model: int
    d_ff: int


def read_ctranslate2(
    directory: Path,
    search: SearchConfig | None = None,
    tokenizer: Path | None = None,
    given: str = "",
    as_given: bool = False,
) -> ImportedModel:
    """Reads a directory; raises if our model cannot represent it.

    tokenizer: the directory of the sentencepiece models, if that is another. given: a token that every translation
    begins with. as_given: config.json alone decides whether the source has an end symbol, and not what is known of the
    models of a converter.
    """
    variables = Variables(read_file(directory / BINARY), directory / BINARY)
    vocabularies = read_vocabularies(directory, variables.file, given, as_given)
    config, weights, all_tokens = read_weights(variables, vocabularies)
    origin = {"from": directory.name, "sha256": sha256(directory / BINARY), "numbers": variables.file.compute_type}
    return ImportedModel(
        RunConfig(model=config, search=search or SearchConfig()),
        weights,
        tokenizer_of(tokenizer or directory, all_tokens),
        origin=origin,
        compute_type=variables.file.compute_type,
        converted=_kept(variables, vocabularies, config),
    )


def _kept(variables: Variables, vocabularies: Vocabularies, config: ModelConfig) -> dict[str, bytes]:
    """The files with which the run translates as the model itself does, to the last bit. An older model that is told
    otherwise than here whether a source has an end symbol is left out: it is converted anew, to the same integers."""
    file = variables.file
    if not vocabularies.settings and vocabularies.ends_source != bool(file.number("with_source_eos", 0)):
        return {}
    rows = [
        len(table)
        for side in SIDES
        if (table := file.variables.get(f"{side}/position_encodings/encodings")) is not None
    ]
    return {BINARY: file.content, **vocabularies.files(min(rows, default=config.max_positions))}


def read_weights(
    variables: Variables, vocabularies: Vocabularies
) -> tuple[ModelConfig, dict[str, Array], Vocabularies]:
    """The model and its weights in our terms, and the vocabularies with the start symbol that a model may lack."""
    weights: dict[str, Array] = {}
    shape = _shape(variables)
    settings = _settings(variables, shape)
    layers = {side: len(_layers_of(variables, side)) for side in SIDES}
    for side in SIDES:
        _take_side(variables, weights, side, layers[side], shape, pre_norm=settings["norm_order"] == "pre")
    matrices, bias = _matrices(variables, shape, vocabularies)
    if variables.setting("decoder/start_from_zero_embedding", 0.0):
        vocabularies, matrices, bias = _with_start(vocabularies, matrices, bias)
    tables, positions, order = position_tables(variables, shape.d_model)
    if tables:
        weights["source_embedding.positions"], weights["target_embedding.positions"] = tables
    variables.check_all_taken()
    source, target, output = matrices
    tied, pair = _tying(source, target, output)
    attention_bias = any(re.search(r"w_[qkvo]\.bias$", name) and array.any() for name, array in weights.items())
    config = ModelConfig(
        vocab_size=len(target),
        source_vocab_size=0 if tied or pair == "source-target" else len(source),
        encoder_layers=layers["encoder"],
        decoder_layers=layers["decoder"],
        positions=positions,
        tie_embeddings=tied,
        tied_pair=pair,
        attention_bias=attention_bias,
        output_bias=bool(bias.any()),
        **settings,
    )
    if positions == "learned":
        config = dataclasses.replace(config, max_positions=len(weights["source_embedding.positions"]))
    # A matrix that is shared has one name for two or three uses.
    weights |= dict(reversed(list(zip(matrix_names(config), matrices, strict=True)))) | {"output.bias": bias}
    return config, {
        tensor.ours: reordered(weights[tensor.ours], tensor, order) for tensor in tensors(config)
    }, vocabularies  # fmt: skip


def _layers_of(variables: Variables, side: str) -> set[str]:
    """The names of a side's layers, counted from 0."""
    found = {match[0] for name in variables if (match := re.match(rf"{side}/layer_\d+/", name))}
    if not found or found != {f"{side}/layer_{index}/" for index in range(len(found))}:
        raise DataError(f"{variables.path}: {side} with the layers {', '.join(sorted(found)) or 'none'}")
    return found


def _shape(variables: Variables) -> _Shape:
    d_model = variables.shape("decoder/projection/weight", 2)[1]
    heads = int(variables.both("num_heads", 8))
    if heads < 1:
        raise DataError(f"{variables.path}: num_heads = {heads}; at least 1 is needed")
    head = int(variables.setting("encoder/layer_0/self_attention/head_dim", d_model // heads))
    return _Shape(heads, head, d_model, variables.shape("encoder/layer_0/ffn/linear_0/weight", 2)[0])


def _settings(variables: Variables, shape: _Shape) -> dict[str, Any]:
    """What the model's configuration takes from the settings in the file."""
    activation = int(variables.both("activation", 0))
    if activation not in ACTIVATIONS:
        named = OTHER_ACTIVATIONS.get(activation, str(activation))
        raise DataError(
            f"{variables.path}: activation = {named}; models with {', '.join(ACTIVATIONS.values())} can be imported"
        )
    own_heads = shape.heads * shape.head != shape.d_model
    return {
        "d_model": shape.d_model,
        "d_ff": shape.d_ff,
        "num_heads": shape.heads,
        "d_k": shape.head if own_heads else None,
        "d_v": shape.head if own_heads else None,
        "norm_order": "pre" if variables.both("pre_norm", 1) else "post",
        "activation": ACTIVATIONS[activation],
        "scale_embeddings": _scales(variables, shape.d_model),
        "embedding_norm": "encoder/layernorm_embedding/gamma" in variables,
    }


def _scales(variables: Variables, d_model: int) -> bool:
    """Whether embeddings are multiplied by sqrt(d_model): a flag or the factor itself says it."""
    found = []
    for side in SIDES:
        name = f"{side}/scale_embeddings"
        older = f"{side}/embeddings/multiply_by_sqrt_depth"
        name = older if name not in variables and older in variables else name
        factor = variables.setting(name, 1.0)
        if name not in variables or variables.file.variables[name].dtype == np.int8:
            found.append(bool(factor))
        elif math.isclose(factor, math.sqrt(d_model), rel_tol=1e-3) or factor == 1:
            found.append(factor != 1)
        else:
            raise DataError(f"{variables.path}: {name} = {factor:g}; 1 and sqrt({d_model}) can be imported")
    if found[0] != found[1]:
        raise DataError(
            f"{variables.path}: scale_embeddings of encoder and decoder differ; only the same can be imported"
        )
    return found[0]


def _take_side(
    variables: Variables, weights: dict[str, Array], side: str, layers: int, shape: _Shape, pre_norm: bool
) -> None:
    """Takes everything of the encoder or decoder but its embeddings, by our names."""

    def norm(ours: str, theirs: str) -> None:
        for part, name in (("weight", "gamma"), ("bias", "beta")):
            weights[f"{ours}.{part}"] = variables.take(f"{theirs}/{name}", shape.d_model)

    for index in range(layers):
        ours, theirs = f"{side}.{index}", f"{side}/layer_{index}"
        _take_attention(variables, weights, f"{ours}.self_attention", f"{theirs}/self_attention", shape, joint=3)
        norm(f"{ours}.around_self.norm", f"{theirs}/self_attention/layer_norm")
        if side == "decoder":
            _take_attention(variables, weights, f"{ours}.cross_attention", f"{theirs}/attention", shape, joint=2)
            norm(f"{ours}.around_cross.norm", f"{theirs}/attention/layer_norm")
        for number, rows, columns in ((0, shape.d_ff, shape.d_model), (1, shape.d_model, shape.d_ff)):
            name, linear = f"{ours}.feed_forward.w_{number + 1}", f"{theirs}/ffn/linear_{number}"
            weights[f"{name}.weight"] = variables.take(f"{linear}/weight", rows, columns)
            weights[f"{name}.bias"] = variables.bias(f"{linear}/bias", rows)
        norm(f"{ours}.around_feed_forward.norm", f"{theirs}/ffn/layer_norm")
    if pre_norm:
        norm(f"{side}_norm", f"{side}/layer_norm")
    if "encoder/layernorm_embedding/gamma" in variables:
        norm(f"{'source' if side == 'encoder' else 'target'}_embedding.norm", f"{side}/layernorm_embedding")


def _take_attention(
    variables: Variables, weights: dict[str, Array], ours: str, theirs: str, shape: _Shape, joint: int
) -> None:
    """Takes an attention's projections: the last `joint` of those of queries, keys and values are one matrix."""
    inner = shape.heads * shape.head
    if (head := variables.setting(f"{theirs}/head_dim", shape.head)) != shape.head:
        raise DataError(f"{variables.path}: {theirs}/head_dim = {head:g} and {shape.head} elsewhere")
    parts = [(1, "q"), (joint, "kv")] if joint == 2 else [(joint, "qkv")]
    for number, (count, letters) in enumerate(parts):
        linear = f"{theirs}/linear_{number}"
        weight = variables.take(f"{linear}/weight", count * inner, shape.d_model)
        bias = variables.bias(f"{linear}/bias", count * inner)
        for index, letter in enumerate(letters):
            rows = slice(index * inner, (index + 1) * inner)
            weights[f"{ours}.w_{letter}.weight"], weights[f"{ours}.w_{letter}.bias"] = weight[rows], bias[rows]
    last = f"{theirs}/linear_{len(parts)}"
    weights[f"{ours}.w_o.weight"] = variables.take(f"{last}/weight", shape.d_model, inner)
    weights[f"{ours}.w_o.bias"] = variables.bias(f"{last}/bias", shape.d_model)
    usual = shape.head**-0.5
    scale = variables.setting(f"{theirs}/queries_scale", usual)
    if not math.isclose(scale, usual, rel_tol=1e-6):  # ours is the usual one, and so the queries take the rest of it
        for part in ("weight", "bias"):
            weights[f"{ours}.w_q.{part}"] = weights[f"{ours}.w_q.{part}"] * np.float32(scale / usual)


def _matrices(
    variables: Variables, shape: _Shape, vocabularies: Vocabularies
) -> tuple[tuple[Array, Array, Array], Array]:
    """The embeddings of source and target, the output projection, and its bias."""
    first = "encoder/embeddings_0/weight" if "encoder/embeddings_0/weight" in variables else "encoder/embeddings/weight"
    names = (first, "decoder/embeddings/weight", "decoder/projection/weight")
    sizes = [variables.shape(name, 2)[0] for name in names]
    sides = zip(("source", "target", "target"), sizes, strict=True)
    for (side, size), tokens in zip(sides, (vocabularies.source, *[vocabularies.target] * 2), strict=True):
        if size != len(tokens):
            raise DataError(
                f"{variables.path}: {size:,} {side} tokens, and a {side} vocabulary of {len(tokens):,}; "
                f"fetch the model again"
            )
    source, target, output = (variables.take(name, n, shape.d_model) for name, n in zip(names, sizes, strict=True))
    return (source, target, output), variables.bias("decoder/projection/bias", sizes[2])


def _with_start(
    vocabularies: Vocabularies, matrices: Sequence[Array], bias: Array
) -> tuple[Vocabularies, tuple[Array, Array, Array], Array]:
    """The same with one token more: Marian's decoder begins with zeros in place of an embedding.

    The token is never chosen, and takes no probability from the others. Where source and target share a matrix, both
    have it.
    """
    source, target, output = (np.concatenate([each, np.zeros_like(each[:1])]) for each in matrices)
    shared = np.array_equal(matrices[0], matrices[1])
    return (
        vocabularies.with_start(of_source=shared),
        (source if shared else matrices[0], target, output),
        np.append(bias, np.float32(NEVER)),
    )


def _tying(source: Array, target: Array, output: Array) -> tuple[bool, TiedPair]:
    """Whether all three matrices are one, and if not, which two are."""
    inputs, outputs = np.array_equal(source, target), np.array_equal(target, output)
    if inputs and outputs:
        return True, "none"
    return False, "source-target" if inputs else "target-output" if outputs else "none"
