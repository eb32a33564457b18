"""Reads directories that transformers loads: Marian (OPUS-MT), M2M100, NLLB, mBART, BART and Pegasus.

Marian's and Pegasus' positions have all sines before all cosines, while the paper and this code alternate them. So
every tensor with a model dimension has that dimension in another order: one order is a permutation of the other. The
other families keep theirs. Biases that are all zero are left out: such a model is the paper's.
"""

import pickle
import re
import warnings
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.config import Activation, ModelConfig, NormOrder, Positions, RunConfig, SearchConfig, TiedPair
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines.numpy_weights import Array
from dragoman.errors import ConfigError, DataError, require_torch
from dragoman.files import read_json
from dragoman.importing.huggingface_tensors import TensorMapping, alternating, reordered, tensors
from dragoman.importing.imported_model import ImportedModel
from dragoman.importing.safetensors_file import read_safetensors

# The files of the weights, the best first; an index names the parts that they are cut into.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
INDEX = ".index.json"
_PART = re.compile(r"[\w-][\w.-]*\.(safetensors|bin)")  # a name, not a path
_LAYER = re.compile(r"model\.(?P<side>encoder|decoder)\.layers\.(?P<number>\d{1,9})\.")
_KINDS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a name"}
ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
SHARED, OF_SOURCE, OF_TARGET, OUTPUT = (
    "model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight",
)  # fmt: skip


@dataclass(frozen=True)
class Family:
    """How a family of models differs from the paper's."""

    norm_order: NormOrder
    positions: Positions
    embedding_norm: bool = False


FAMILIES = {
    "marian": Family("post", "sinusoidal"),
    "pegasus": Family("pre", "sinusoidal"),
    "m2m_100": Family("pre", "sinusoidal-fairseq"),  # NLLB too
    "mbart": Family("pre", "learned", embedding_norm=True),
    "bart": Family("post", "learned", embedding_norm=True),
}


def read_huggingface(directory: Path) -> ImportedModel:
    """Reads a directory of one of the families; raises if our model cannot represent it."""
    values = read_json(directory / "config.json")
    config, weights = read_weights(directory, values)
    tokenizer = _tokenizer(directory, values)
    run_config = RunConfig(model=config, search=_search(directory, values))
    return ImportedModel(run_config, weights, tokenizer, _languages(directory), {"from": directory.name})


def read_weights(directory: Path, values: Mapping[str, Any]) -> tuple[ModelConfig, dict[str, Array]]:
    """The model and its weights in our terms. `values`: what config.json holds."""
    family, found = family_of(values, directory), _their_tensors(directory)
    if values["model_type"] == "marian" and values.get("tie_word_embeddings", True) and OF_TARGET in found:
        # transformers' own conversion of Marian's models wrote random numbers there until its version 4.41, and until 5
        # it did not look at them.
        found[OUTPUT] = found[OF_TARGET]
    try:
        return in_our_terms(family, values, found, directory)
    except ConfigError as error:
        raise DataError(f"{directory}/config.json: {error}; other models can be imported") from None


def in_our_terms(
    family: Family, values: Mapping[str, Any], found: Mapping[str, Array], directory: Path
) -> tuple[ModelConfig, dict[str, Array]]:
    """The model and its weights in our terms. `found`: all tensors by transformers' names."""
    config = model_config(family, values, found, directory)
    _require_layers(config, found, directory)
    order = alternating(config.d_model) if config.positions == "sinusoidal" else np.arange(config.d_model)
    return config, {
        tensor.ours: reordered(_taken(found, tensor, directory), tensor, order) for tensor in tensors(config)
    }


def _require_layers(config: ModelConfig, found: Mapping[str, Array], directory: Path) -> None:
    """Raises if there are weights of more layers than the model has: without them it would be another model."""
    for name in found:
        if (of := _LAYER.match(name)) is None:
            continue
        layers = config.encoder_layers if of["side"] == "encoder" else config.decoder_layers
        if int(of["number"]) >= layers:
            raise DataError(
                f"{directory}/config.json: {of['side']}_layers = {layers}, and there are weights of more, {name}; "
                f"fetch the directory again"
            )


def family_of(values: Mapping[str, Any], directory: Path) -> Family:
    """The family of a model. `values`: what its config.json holds."""
    kind, can = values.get("model_type"), f"{', '.join(FAMILIES)} can be imported"
    if kind is None:
        raise DataError(f"{directory}: its config.json names no model_type; {can}")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise DataError(f"{directory}/config.json: model_type = {kind}; {can}")
    if values.get("quantization_config"):
        raise DataError(
            f"{directory}/config.json: quantization_config = {values['quantization_config']}; weights that are not "
            f"quantised can be imported, and be quantised afterwards: dragoman quantize"
        )
    return FAMILIES[kind]


def model_config(family: Family, values: Mapping[str, Any], found: Mapping[str, Array], directory: Path) -> ModelConfig:
    """The configuration in our terms. `found`: the tensors, which tell what is tied, and whether biases are zero."""

    def value(name: str, default: Any = None, kind: type = int) -> Any:
        if name not in values and default is None:
            raise DataError(f"{directory}/config.json: {name} is missing; fetch the directory again")
        stated = values.get(name, default)
        if type(stated) is not kind and not (kind is float and type(stated) is int):
            raise DataError(
                f"{directory}/config.json: {name} = {stated!r}; {_KINDS[kind]} is needed: fetch the directory again"
            )
        return stated

    def both(name: str) -> Any:
        """A number that encoder and decoder must share."""
        encoder, decoder = value(f"encoder_{name}"), value(f"decoder_{name}")
        if encoder != decoder:
            raise DataError(
                f"{directory}/config.json: encoder_{name} = {encoder} and decoder_{name} = {decoder}; only models in "
                f"which they are the same can be imported"
            )
        return encoder

    activation = value("activation_function", "gelu", str)
    if activation not in ACTIVATIONS:
        raise DataError(
            f"{directory}/config.json: activation_function = {activation}; models with {', '.join(ACTIVATIONS)} can "
            f"be imported"
        )
    tied, pair = _tying(found)
    shared = tied or pair == "source-target"
    size, learned = value("vocab_size"), family.positions == "learned"
    target_size = value("decoder_vocab_size") if values.get("decoder_vocab_size") else size
    settings = {
        "vocab_size": size if shared else target_size,
        "source_vocab_size": 0 if shared else size,
        "encoder_layers": value("encoder_layers"),
        "decoder_layers": value("decoder_layers"),
        "d_model": value("d_model"),
        "d_ff": both("ffn_dim"),
        "num_heads": both("attention_heads"),
        "dropout": float(value("dropout", 0.1, float)),
        "scale_embeddings": value("scale_embedding", False, bool),
        "activation": ACTIVATIONS[activation],
    } | ({"max_positions": value("max_position_embeddings")} if learned else {})
    return ModelConfig(
        **settings,
        norm_order=family.norm_order,
        positions=family.positions,
        embedding_norm=family.embedding_norm,
        tie_embeddings=tied,
        tied_pair=pair,
        attention_bias=any(name.endswith("_proj.bias") and np.any(bias) for name, bias in found.items()),
        output_bias="final_logits_bias" in found and bool(np.any(found["final_logits_bias"])),
    )


def _tying(found: Mapping[str, Array]) -> tuple[bool, TiedPair]:
    """Whether all three matrices are one, and if not, which two are. The numbers tell it: what the settings mean has
    changed between versions of transformers."""
    source, target, output = (found.get(name) for name in (OF_SOURCE, OF_TARGET, OUTPUT))
    inputs, outputs = _same(source, target), _same(target, output)
    if inputs and outputs:
        return True, "none"
    return False, "source-target" if inputs else "target-output" if outputs else "none"


def _same(one: Array | None, other: Array | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


def _taken(found: Mapping[str, Array], tensor: TensorMapping, directory: Path) -> Array:
    """Their tensor, in our shape."""
    wanted = (1, *tensor.shape) if tensor.is_row else (tensor.shape[0] + tensor.added, *tensor.shape[1:])
    if tensor.theirs not in found or found[tensor.theirs].shape != wanted:
        what = f"has shape {found[tensor.theirs].shape}" if tensor.theirs in found else "is missing"
        raise DataError(
            f"{directory}: {tensor.theirs} {what}, and config.json says {wanted}; fetch the directory again"
        )
    array = found[tensor.theirs].astype(np.float32)
    if not np.isfinite(array).all():
        raise DataError(f"{directory}: {tensor.theirs} has numbers that are not finite; fetch the directory again")
    return array[0] if tensor.is_row else array[tensor.added :]


def _tokenizer(directory: Path, values: Mapping[str, Any]) -> Tokenizer:
    from dragoman.importing import tokenizers

    if values["model_type"] in ("marian", "pegasus"):
        return tokenizers.marian_tokenizer(directory, values)
    settings = directory / "tokenizer_config.json"
    kind = str(read_json(settings).get("tokenizer_class", "") if settings.is_file() else "")
    if kind.removesuffix("Fast") == "NllbTokenizer":
        return tokenizers.nllb_tokenizer(directory, values)
    if kind.removesuffix("Fast") == "MBart50Tokenizer":
        return tokenizers.nllb_tokenizer(directory, values, tokenizers.MBART_LANGUAGES)
    if values["model_type"] == "m2m_100" and kind in ("", "M2M100Tokenizer"):
        return tokenizers.m2m_tokenizer(directory, values)
    raise DataError(
        f"{directory}: tokenizer_class = {kind or 'none'} in tokenizer_config.json; MarianTokenizer, M2M100Tokenizer, "
        f"NllbTokenizer and MBart50Tokenizer can be imported"
    )


def _search(directory: Path, values: Mapping[str, Any]) -> SearchConfig:
    """Beam and length penalty, as transformers has them."""
    generation = directory / "generation_config.json"
    settings = {**values, **(read_json(generation) if generation.is_file() else {})}
    beam, alpha = settings.get("num_beams"), settings.get("length_penalty")
    try:
        # Where they name no penalty, transformers has 1 and searches greedily.
        return SearchConfig(beam=int(beam or 4), alpha=1.0 if alpha is None else float(alpha), penalty="length")
    except (ConfigError, TypeError, ValueError):
        return SearchConfig(penalty="length")


def _languages(directory: Path) -> tuple[str, str] | None:
    """The languages that a bilingual model names in tokenizer_config.json; None: it names none, or groups of them."""
    settings = directory / "tokenizer_config.json"
    named = read_json(settings) if settings.is_file() else {}
    codes = named.get("source_lang"), named.get("target_lang")
    if all(isinstance(code, str) and 2 <= len(code) <= 3 and code.isalpha() for code in codes) and "mul" not in codes:
        return str(codes[0]), str(codes[1])
    return None


def _their_tensors(directory: Path) -> dict[str, Array]:
    """All tensors by their names; a tied one under each of its names."""
    first = best_weights([path.name for path in directory.iterdir()])
    if first is None:
        raise DataError(f"{directory}: neither model.safetensors nor pytorch_model.bin is there; fetch it again")
    found: dict[str, Array] = {}
    for name in parts_of(directory / first):
        path = directory / name
        found |= _unpickled(path) if path.suffix == ".bin" else read_safetensors(path)
    # The file keeps a tied tensor once, under any of its names.
    for name, others in (
        (OF_SOURCE, (SHARED, OF_TARGET, OUTPUT)), (OF_TARGET, (SHARED, OUTPUT, OF_SOURCE)), (OUTPUT, (OF_TARGET,)),
    ):  # fmt: skip
        there = next((other for other in (name, *others) if other in found), None)
        if there is not None:
            found[name] = found[there]
    if OF_SOURCE in found:
        found[SHARED] = found[OF_SOURCE]
    return found


def best_weights(names: Container[str]) -> str | None:
    """The file that an import begins with, of those that are there: of the weights, or of the names of their parts."""
    return next((name for name in WEIGHTS if name in names), None)


def parts_of(path: Path) -> list[str]:
    """The files that the weights are in: this one, or those that it names as an index."""
    if not path.name.endswith(INDEX):
        return [path.name]
    named = read_json(path).get("weight_map")
    parts = set(named.values()) if isinstance(named, dict) and all(isinstance(n, str) for n in named.values()) else ()
    if not parts or not all(_PART.fullmatch(part) for part in parts):
        raise DataError(f"{path}: names no files of weights beside it; fetch it again")
    return sorted(parts)


def _unpickled(path: Path) -> dict[str, Array]:
    """The tensors of a pickle. It could name any function to be called; none is."""
    require_torch(f"a model as {path.name}")
    import torch

    try:
        with warnings.catch_warnings(action="ignore"):  # they name torch's own options
            found = torch.load(path, map_location="cpu", weights_only=True)
        return {str(name): tensor.float().numpy() for name, tensor in found.items()}
    except (
        pickle.UnpicklingError,
        RuntimeError,
        OSError,
        EOFError,
        LookupError,
        AttributeError,
        ValueError,
        TypeError,
    ) as error:
        raise DataError(
            f"{path}: holds something else than tensors ({_found_in_pickle(error)}); do not trust it, fetch it again"
        ) from None


def _found_in_pickle(error: Exception) -> str:
    """What was there, without torch's advice to load it all the same."""
    if not isinstance(error, pickle.UnpicklingError):
        return str(error).partition("\n")[0] or type(error).__name__
    named = re.search(r"(?:GLOBAL|global) ([\w.]+\.\w+)", str(error))
    return f"it asks for {named[1]}" if named else "more than numbers and names"
