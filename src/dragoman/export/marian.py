"""Writes a run as a directory of Hugging Face's Marian: the same model under other names.

In a position encoding, Marian has all sines before all cosines, while the paper and this code alternate them. So every
tensor with a model dimension has that dimension in another order (importing/huggingface_tensors.py).

Marian normalises after each sub-layer, as the paper does. A run that normalises before it (`norm_order = "pre"`) is
written as Pegasus: the same model with that order, in the same library and with the same tokenizer files.
"""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors.numpy import save_file

from dragoman.config import ModelConfig, RunConfig
from dragoman.data.imported_tokenizer import TARGET_VOCABULARY
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines.numpy_weights import Weights, position_table
from dragoman.errors import DataError
from dragoman.importing.huggingface_tensors import reordered, sines_first, tensors
from dragoman.run_directory import RunDirectory

POSITIONS = 1024  # rows of the table that goes with the weights


def refusal(config: ModelConfig) -> str | None:
    """Why neither Marian nor Pegasus of Hugging Face can represent this model; None if one can."""
    wrong = {
        f"it is no Transformer (model.architecture = {config.architecture})": config.architecture != "transformer",
        f"it has no {config.norm} normalisation (model.norm)": config.norm != "layer",
        "it always has residual connections (model.residual = false)": not config.residual,
        f"its positions are sinusoids (model.positions = {config.positions})": config.positions != "sinusoidal",
        "it does not normalise embeddings (model.embedding_norm = true)": config.embedding_norm,
        f"its heads have d_model / num_heads dimensions (model.d_k = {config.d_k}, model.d_v = {config.d_v})": (
            {config.key_size, config.value_size} != {config.d_model // config.num_heads}
        ),
    }
    return next((reason for reason, holds in wrong.items() if holds), None)


def _refusal_of_tokens(tokenizer: Tokenizer) -> str | None:
    """Why Hugging Face's Marian cannot read and write what this tokenizer makes; None: it can."""
    wrong = (
        (tokenizer.has_language_tokens, "its languages are tags in the text"),
        (not tokenizer.ends_source, "its sources end with the end symbol, and this model reads none"),
        (len(tokenizer.start_ids) > 1, "its translations begin with no token that is given"),
        (
            bool(tokenizer.case_marks),
            "it was trained with data.casing = inline, and Marian's text goes through sentencepiece alone, which would "
            "show the marks: train with --set data.casing=plain, or use --format ctranslate2 or onnx",
        ),
    )
    return next((reason for holds, reason in wrong if holds), None)


def write_marian(run: RunDirectory, tokenizer: Tokenizer, directory: Path) -> str:
    """Writes a directory that transformers loads; returns the name of the class that loads it."""
    config = run.read_config()
    model = config.model
    if reason := refusal(model) or _refusal_of_tokens(tokenizer):
        raise DataError(f"{run.path}: Hugging Face's Marian cannot be this model: {reason}")
    weights = Weights(run.model_path, model)
    order = sines_first(model.d_model)
    found = {}
    for tensor in tensors(model):
        array = reordered(weights.take(tensor.ours, *tensor.shape), tensor, order)
        found[tensor.theirs] = array[None] if tensor.is_row else array
    weights.check_all_taken()
    scale = {"1/sqrt(d_k)": 1.0, "1/d_k": model.key_size**-0.5, "1": model.key_size**0.5}[model.attention_scale]
    for name in [name for name in found if name.endswith("_proj.weight")]:
        bias = name.removesuffix("weight") + "bias"
        found.setdefault(bias, np.zeros(model.d_model, np.float32))  # the paper has none
        if name.endswith("q_proj.weight") and scale != 1.0:  # theirs is always 1/sqrt(d_k)
            found[name], found[bias] = found[name] * np.float32(scale), found[bias] * np.float32(scale)
    table = np.ascontiguousarray(position_table(model, POSITIONS)[:, order])
    for side in ("encoder", "decoder"):
        found[f"model.{side}.embed_positions.weight"] = table
    found.setdefault("final_logits_bias", np.zeros((1, model.vocab_size), np.float32))
    save_file(found, directory / "model.safetensors", metadata={"format": "pt"})

    vocabulary = {tokenizer.piece(index): index for index in range(tokenizer.vocab_size)}
    own = {
        "source.spm": tokenizer.model_bytes,
        "target.spm": tokenizer.model_bytes,
        "vocab.json": (json.dumps(vocabulary, indent=2, ensure_ascii=False) + "\n").encode(),
    }
    for name, content in (tokenizer.files or own).items():
        (directory / name).write_bytes(content)
    kind: Literal["marian", "pegasus"] = "pegasus" if model.norm_order == "pre" else "marian"
    loaded_by = {"marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration"}[kind]
    files = {
        "config.json": _their_config(model, tokenizer, kind) | {"architectures": [loaded_by]},
        "generation_config.json": _generation(config, tokenizer),
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            "model_max_length": POSITIONS - 1,
            "unk_token": tokenizer.piece(tokenizer.unk_id),
            "eos_token": tokenizer.piece(tokenizer.eos_id),
            "pad_token": tokenizer.piece(tokenizer.pad_id),
            "separate_vocabs": TARGET_VOCABULARY in tokenizer.files,
        },
    }
    for name, values in files.items():
        (directory / name).write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return loaded_by


def _their_config(model: ModelConfig, tokenizer: Tokenizer, kind: str) -> dict[str, Any]:
    return {
        "model_type": kind,
        "vocab_size": model.source_tokens,
        "decoder_vocab_size": model.vocab_size,
        "max_position_embeddings": POSITIONS,
        "d_model": model.d_model,
        "encoder_layers": model.encoder_layers,
        "decoder_layers": model.decoder_layers,
        "encoder_ffn_dim": model.d_ff,
        "decoder_ffn_dim": model.d_ff,
        "encoder_attention_heads": model.num_heads,
        "decoder_attention_heads": model.num_heads,
        "activation_function": model.activation,
        "scale_embedding": model.scale_embeddings,
        "dropout": model.dropout,
        "is_encoder_decoder": True,
        "share_encoder_decoder_embeddings": model.ties_source_target,
        "tie_word_embeddings": model.ties_target_output,
        "pad_token_id": tokenizer.pad_id,
        "eos_token_id": tokenizer.eos_id,
        "bos_token_id": tokenizer.bos_id,
        "decoder_start_token_id": tokenizer.bos_id,
        "forced_eos_token_id": None,
        "bad_words_ids": [[token] for token in tokenizer.suppressed] or None,
    }


def _generation(config: RunConfig, tokenizer: Tokenizer) -> dict[str, Any]:
    """Beam and length penalty of the run. Theirs divides by length^alpha; the paper's, by ((5 + length) / 6)^alpha, is
    not to be had there."""
    return {
        "num_beams": config.search.beam,
        "length_penalty": config.search.alpha,
        "max_length": 512,
        "pad_token_id": tokenizer.pad_id,
        "eos_token_id": tokenizer.eos_id,
        "bos_token_id": tokenizer.bos_id,
        "decoder_start_token_id": tokenizer.bos_id,
        "bad_words_ids": [[token] for token in tokenizer.suppressed] or None,
    }
