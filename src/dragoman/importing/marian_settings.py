"""What the settings in a Marian model say of it, in our terms; those that our model cannot represent are errors."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.config import NormOrder
from dragoman.errors import DataError
from dragoman.importing.huggingface import Family
from dragoman.importing.marian_files import ModelFiles, readable
from dragoman.importing.marian_text import MarianOptions, read_settings

_MOST_LAYERS = 100  # of a stack; one layer in the file can be many in the model
# What a setting must be for our model to represent it, Marian's default first.
_REPRESENTED = {
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-no-projection": ("false",),
    "transformer-train-position-embeddings": ("false",),
    "transformer-disable-position-embeddings": ("false",),
    "transformer-attention-mask": ("default",),
    "transformer-no-bias": ("false",),
    "transformer-no-affine": ("false",),
    "transformer-pool": ("false",),
    "transformer-ffn-activation": ("swish", "relu", "gelu"),
    "transformer-postprocess-emb": ("d", "", "n", "nd", "dn"),
    "right-left": ("false",),
    "ulr": ("false",),
    "lemma-dim-emb": ("0",),
    "lemma-dependency": ("",),
}
# transformer-preprocess, -postprocess and -postprocess-top, without the d's, which are dropout.
_ORDERS: dict[tuple[str, ...], NormOrder] = {("", "an", ""): "post", ("n", "a", "n"): "pre"}


@dataclass(frozen=True)
class Marian:
    """What a model's settings say that matters here."""

    family: Family
    values: Mapping[str, Any]  # in the terms of transformers' config.json, without the vocabularies' sizes
    decoder_layers: tuple[int, ...]  # the number in the file of each decoder layer
    shares_source_target: bool
    shares_target_output: bool
    output_bias: bool
    alignment_layer: int  # the decoder layer whose first head was trained to align; 0: none was

    @property
    def encoder_layers(self) -> range:
        return range(1, self.values["encoder_layers"] + 1)


def represented(settings: MarianOptions, where: str, aligns: bool) -> Marian:
    """The settings in our terms; raises if our model cannot represent one."""

    def word(key: str, default: str = "") -> str:
        value = settings.get(key, default)
        return value if isinstance(value, str) else " ".join(value)

    def number(key: str, most: int) -> int:
        value = word(key, "none")
        if not (re.fullmatch("[0-9]{1,9}", value) and 1 <= int(value) <= most):
            raise DataError(f"{where}: {key} = {value}; models with 1 to {most:,} can be imported")
        return int(value)

    if word("type") != "transformer":
        raise DataError(f"{where}: type = {word('type') or 'none'}; models of type transformer can be imported")
    for key, allowed in _REPRESENTED.items():
        if word(key, allowed[0]) not in allowed:
            can = " or ".join(name or '""' for name in allowed)
            raise DataError(f"{where}: {key} = {word(key)}; models with {can} can be imported")
    d_ff, of_decoder = number("transformer-dim-ffn", 2**20), word("transformer-decoder-dim-ffn", "0")
    if of_decoder not in ("0", str(d_ff)):
        raise DataError(
            f"{where}: transformer-decoder-dim-ffn = {of_decoder} and transformer-dim-ffn = {d_ff}; only models in "
            f"which they are the same can be imported"
        )
    depth = number("dec-depth", _MOST_LAYERS)
    tied_all = word("tied-embeddings-all") == "true"
    values = {
        "encoder_layers": number("enc-depth", _MOST_LAYERS),
        "decoder_layers": depth,
        "d_model": number("dim-emb", 2**17),
        **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), d_ff),
        **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), number("transformer-heads", 2**17)),
        "activation_function": word("transformer-ffn-activation", "swish"),
        "scale_embedding": True,
    }
    normalised = "n" in word("transformer-postprocess-emb", "d")
    return Marian(
        Family(_norm_order(settings, where), "sinusoidal", embedding_norm=normalised),
        values,
        _decoder_layers(settings, depth, where),
        shares_source_target=tied_all or word("tied-embeddings-src") == "true",
        shares_target_output=tied_all or word("tied-embeddings") == "true",
        output_bias=word("output-omit-bias") != "true",
        alignment_layer=_alignment_layer(word("transformer-guided-alignment-layer", "last"), depth, where)
        if aligns
        else 0,
    )


def _norm_order(settings: MarianOptions, where: str) -> NormOrder:
    keys = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
    found = {key: str(settings.get(key, default)) for key, default in zip(keys, ("", "dan", ""), strict=True)}
    order = _ORDERS.get(tuple(value.replace("d", "") for value in found.values()))
    if order is None:
        said = ", ".join(f'{key} = "{value}"' for key, value in found.items())
        raise DataError(f'{where}: {said}; models with "", "dan" and "", or "n", "da" and "n" can be imported')
    return order


def _decoder_layers(settings: MarianOptions, depth: int, where: str) -> tuple[int, ...]:
    """The number that each decoder layer has in the file: several can be one."""
    tied = settings.get("transformer-tied-layers", [])
    numbers = tied.split() if isinstance(tied, str) else tied
    if not numbers:
        return tuple(range(1, depth + 1))
    if len(numbers) != depth or not all(number.isascii() and number.isdigit() for number in numbers):
        raise DataError(
            f"{where}: transformer-tied-layers = {' '.join(numbers)}; models that name the layer of each of their "
            f"{depth} decoder layers can be imported"
        )
    return tuple(map(int, numbers))


def trained_to_align(name: str, settings: MarianOptions, files: ModelFiles) -> bool:
    """Whether a head was trained to show the alignment. The settings in the .npz file do not say it: those that Marian
    writes beside it do, and in OPUS-MT's archives the name of the type of model, such as transformer-align."""
    if f"{name}.yml" in files.names:
        with readable(files.where(f"{name}.yml")):
            settings = {**settings, **read_settings(files.read(f"{name}.yml"))}
    if "guided-alignment" in settings:
        return settings["guided-alignment"] not in ("", "none")
    return re.search(r"\.transformer(-\w+)?-align\.", name) is not None


def _alignment_layer(value: str, depth: int, where: str) -> int:
    layer = depth if value == "last" else int(value) if value.isascii() and value.isdigit() else 0
    if not 1 <= layer <= depth:
        raise DataError(
            f"{where}: transformer-guided-alignment-layer = {value}; models with last or 1 to {depth} can be imported"
        )
    return layer
