"""The tensors of a Marian model, by the names and in the shapes that they have in transformers."""

from collections.abc import Iterator

import numpy as np

from dragoman.decoding.engines.numpy_weights import Array
from dragoman.importing.huggingface import OF_SOURCE, OF_TARGET, OUTPUT, SHARED
from dragoman.importing.marian_files import Tensors
from dragoman.importing.marian_settings import Marian


def their_tensors(tensors: Tensors, marian: Marian) -> Iterator[tuple[str, Array]]:
    """All tensors by the names that transformers gives them, and in its shapes."""
    d_model = marian.values["d_model"]
    after = "_pre" if marian.family.norm_order == "pre" else ""

    def vector(theirs: str, name: str, size: int) -> tuple[str, Array]:
        return theirs, tensors.take(name, size).astype(np.float32)

    def norm(theirs: str, name: str, suffix: str) -> Iterator[tuple[str, Array]]:
        yield vector(f"{theirs}.weight", f"{name}_ln_scale{suffix}", d_model)
        yield vector(f"{theirs}.bias", f"{name}_ln_bias{suffix}", d_model)

    def linear(theirs: str, name: str, part: str, size_in: int, size_out: int) -> Iterator[tuple[str, Array]]:
        weight = tensors.take(f"{name}_W{part}", size_in, size_out)
        yield f"{theirs}.weight", weight.astype(np.float32).T
        yield vector(f"{theirs}.bias", f"{name}_b{part}", size_out)

    yield from _their_matrices(tensors, marian)
    for side, layers in (("encoder", marian.encoder_layers), ("decoder", marian.decoder_layers)):
        if marian.family.embedding_norm:
            yield from norm(f"model.{side}.layernorm_embedding", f"{side}_emb", "_pre")
        if marian.family.norm_order == "pre":
            yield from norm(f"model.{side}.layer_norm", f"{side}_top", "")
        attentions = {"self": "self_attn"} | ({"context": "encoder_attn"} if side == "decoder" else {})
        for index, number in enumerate(layers):
            ours, theirs = f"{side}_l{number}", f"model.{side}.layers.{index}"
            for name, attention in attentions.items():
                for letter, projection in (("q", "q"), ("k", "k"), ("v", "v"), ("o", "out")):
                    place = f"{theirs}.{attention}.{projection}_proj"
                    yield from linear(place, f"{ours}_{name}", letter, d_model, d_model)
                yield from norm(f"{theirs}.{attention}_layer_norm", f"{ours}_{name}_Wo", after)
            d_ff = marian.values["encoder_ffn_dim"]
            yield from linear(f"{theirs}.fc1", f"{ours}_ffn", "1", d_model, d_ff)
            yield from linear(f"{theirs}.fc2", f"{ours}_ffn", "2", d_ff, d_model)
            yield from norm(f"{theirs}.final_layer_norm", f"{ours}_ffn_ffn", after)


def _their_matrices(tensors: Tensors, marian: Marian) -> Iterator[tuple[str, Array]]:
    """The embeddings and the output projection, each with a row of zeros for the token that is added."""

    def extended(matrix: Array) -> Array:
        return np.pad(matrix.astype(np.float32), ((0, 1), (0, 0)))

    d_model = marian.values["d_model"]
    if marian.shares_source_target:
        source = target = extended(tensors.take("Wemb", None, d_model))
    else:
        source, target = (extended(tensors.take(f"{side}_Wemb", None, d_model)) for side in ("encoder", "decoder"))
    output, size = target, len(target) - 1
    if not marian.shares_target_output:
        name = "decoder_ff_logit_out_W"  # as older versions have it, transposed
        transposed = name in tensors.left
        output = tensors.take(name, d_model, size).T if transposed else tensors.take(f"{name}t", size, d_model)
        output = extended(output)
    yield from ((SHARED, source), (OF_SOURCE, source), (OF_TARGET, target), (OUTPUT, output))
    if marian.output_bias:
        bias = tensors.take("decoder_ff_logit_out_b", size).astype(np.float32)
        yield "final_logits_bias", np.pad(bias, (0, 1))[None]
