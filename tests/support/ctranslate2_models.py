"""CTranslate2 models as its converters write them, with random numbers, and as older versions of it wrote them."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from support.public_models import learned, pieces_of

LAYERS, HEADS, D_MODEL, D_FF = 2, 4, 32, 48
SPECIAL = ["<unk>", "<blank>", "<s>", "</s>"]


def numbers(*shape: int, seed: int) -> Any:
    return np.random.default_rng(seed).normal(0, 0.3, shape).astype(np.float32)


def opennmt_positions(rows: int = 600) -> Any:
    """The table of OpenNMT-py: sines and cosines take turns."""
    position = np.arange(rows, dtype=np.float32)[:, None]
    frequency = np.exp(np.arange(0, D_MODEL, 2, dtype=np.float32) * np.float32(-np.log(10_000.0) / D_MODEL))
    return np.stack((np.sin(position * frequency), np.cos(position * frequency)), axis=-1).reshape(rows, -1)


def marian_positions(rows: int = 600) -> Any:
    """The table of Marian: all sines come before all cosines."""
    table = opennmt_positions(rows)
    return np.concatenate((table[:, 0::2], table[:, 1::2]), axis=1)


def specification(source: Sequence[str], target: Sequence[str], positions: Any, **settings: Any) -> Any:
    """A Transformer with random numbers in every variable."""
    import ctranslate2

    specs = ctranslate2.specs
    spec = specs.TransformerSpec.from_config((LAYERS, LAYERS), HEADS, **settings)
    seeds = iter(range(1000))

    def linear(target: Any, rows: int, columns: int) -> None:
        target.weight, target.bias = numbers(rows, columns, seed=next(seeds)), numbers(rows, seed=next(seeds))

    def norm(target: Any) -> None:
        target.gamma, target.beta = 1 + numbers(D_MODEL, seed=next(seeds)), numbers(D_MODEL, seed=next(seeds))

    for stack in (spec.encoder, spec.decoder):
        for layer in stack.layer:
            linear(layer.self_attention.linear[0], 3 * D_MODEL, D_MODEL)
            linear(layer.self_attention.linear[1], D_MODEL, D_MODEL)
            linear(layer.ffn.linear_0, D_FF, D_MODEL)
            linear(layer.ffn.linear_1, D_MODEL, D_FF)
            norm(layer.self_attention.layer_norm)
            norm(layer.ffn.layer_norm)
            if stack is spec.decoder:
                linear(layer.attention.linear[0], D_MODEL, D_MODEL)
                linear(layer.attention.linear[1], 2 * D_MODEL, D_MODEL)
                linear(layer.attention.linear[2], D_MODEL, D_MODEL)
                norm(layer.attention.layer_norm)
        for optional in ("layer_norm", "layernorm_embedding"):
            if hasattr(stack, optional):
                norm(getattr(stack, optional))
        if positions is not None:
            stack.position_encodings.encodings = positions.astype(np.float32)
    spec.encoder.embeddings[0].weight = numbers(len(source), D_MODEL, seed=next(seeds))
    spec.decoder.embeddings.weight = numbers(len(target), D_MODEL, seed=next(seeds))
    linear(spec.decoder.projection, len(target), D_MODEL)
    spec.decoder.projection.bias[target.index("</s>")] += 2.0  # outputs end now and then
    spec.register_source_vocabulary(list(source))
    spec.register_target_vocabulary(list(target))
    return spec


def written(spec: Any, directory: Path, quantization: str | None = None) -> Path:
    directory.mkdir(parents=True)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(directory))
    return directory


def opennmt(directory: Path, quantization: str | None = "int8", **settings: Any) -> Path:
    """A model as OpenNMT-py's converter writes it, with vocabularies of its own for each side and the sentencepiece
    model of both beside it."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    model = learned(directory.parent / "sentencepiece.model", 300, 4, model_type="unigram")
    pieces = [piece for piece in pieces_of(model) if piece not in SPECIAL]
    # A vocabulary is made of what came in the training text of its side: more frequent tokens come first.
    source, target = ([*SPECIAL, *pieces[:240]], [*SPECIAL, *reversed(pieces[10:])])
    return written(specification(source, target, opennmt_positions(), **settings), directory, quantization)


def argos_files(directory: Path, **metadata: Any) -> Path:
    """A package of Argos Translate, as it is unpacked."""
    opennmt(directory / "model")
    about = {"package_version": "1.0", "argos_version": "1.5", "from_code": "en", "to_code": "es", "type": "translate"}
    (directory / "metadata.json").write_text(json.dumps(about | metadata))
    (directory / "README.md").write_text("# English to Spanish\n")
    return directory


def write_older(spec: Any, directory: Path, version: int, revision: int, more: Mapping[str, Any]) -> Path:
    """Writes a model as CTranslate2 did before it had a config.json: vocabularies are plain text."""
    variables = {name: value for name, value in spec.variables(ordered=True) if not isinstance(value, str)}
    arrays = {name: value.numpy() for name, value in variables.items()} | dict(more)
    (directory / "config.json").unlink()
    for path in directory.glob("*_vocabulary.json"):
        path.with_suffix(".txt").write_text("".join(f"{token}\n" for token in json.loads(path.read_text())))
        path.unlink()

    def string(text: str) -> bytes:
        return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"

    types = ("float32", "int8", "int16", "int32", "float16")
    content = [struct.pack("<I", version), string("TransformerSpec"), struct.pack("<II", revision, len(arrays))]
    for name, array in arrays.items():
        content += [string(name), struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)]
        kind = types.index(array.dtype.name) if version >= 4 else array.itemsize
        content += [struct.pack("<BI", kind, array.nbytes if version >= 4 else array.size), array.tobytes()]
    aliases = [(name, value) for name, value in spec.variables(ordered=True) if isinstance(value, str)]
    content += [struct.pack("<I", len(aliases)), *(string(a) + string(b) for a, b in aliases)]
    (directory / "model.bin").write_bytes(b"".join(content))
    return directory


def _random(model: Any, directory: Path) -> Path:
    """Writes a model of transformers with random numbers in every tensor, whose outputs end now and then."""
    import torch

    torch.manual_seed(5)
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            mean = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            torch.nn.init.normal_(parameter, mean=mean, std=0.2)
    if hasattr(model, "final_logits_bias"):
        torch.nn.init.normal_(model.final_logits_bias, std=0.3)
        model.final_logits_bias[0, model.config.eos_token_id] += 2.0
    model.save_pretrained(directory)
    return directory


_SMALL: dict[str, Any] = {
    "d_model": D_MODEL, "encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_ffn_dim": D_FF,
    "decoder_ffn_dim": D_FF, "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
    "scale_embedding": True,
}  # fmt: skip


def marian_of_transformers(directory: Path) -> Path:
    """A directory of Marian as transformers writes it: OPUS-MT, but for its size."""
    from transformers import MarianConfig, MarianMTModel

    directory.mkdir()
    unigram: dict[str, Any] = {"model_type": "unigram", "bos_id": -1, "eos_id": 0, "unk_id": 1}
    sides = [pieces_of(learned(directory / f"{side}.spm", 300, seed, **unigram))
             for seed, side in enumerate(("source", "target"))]  # fmt: skip
    names = [*dict.fromkeys([*sides[0], *sides[1]]), "<pad>"]
    (directory / "vocab.json").write_text(json.dumps({name: index for index, name in enumerate(names)}))
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
    pad = len(names) - 1
    config = MarianConfig(
        vocab_size=len(names), pad_token_id=pad, eos_token_id=0, bos_token_id=0, decoder_start_token_id=pad,
        activation_function="swish", forced_eos_token_id=None, **_SMALL | {"bad_words_ids": [[pad]]},
    )  # fmt: skip
    return _random(MarianMTModel(config), directory)
