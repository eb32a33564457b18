"""Marian's own models, written by hand to the format that Marian writes: small, with random numbers everywhere."""

import json
import random
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from support.public_models import learned, pieces_of

Arrays = dict[str, np.ndarray[Any, Any]]
NAME = "opus.spm32k-spm32k.transformer-align.model1.npz.best-perplexity.npz"
VOCABULARY = "opus.spm32k-spm32k.vocab.yml"
# What Marian keeps in the node special:model.yml, in its order.
SETTINGS: dict[str, Any] = {
    "bert-train-type-embeddings": True, "bert-type-vocab-size": 2, "dec-cell": "gru", "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1, "dec-depth": 2, "dim-emb": 16, "dim-rnn": 1024, "enc-cell": "gru", "enc-cell-depth": 1,
    "enc-depth": 2, "enc-type": "bidirectional", "input-types": [], "layer-normalization": False, "right-left": False,
    "skip": False, "special-vocab": [], "tied-embeddings": False, "tied-embeddings-all": True,
    "tied-embeddings-src": False, "transformer-aan-activation": "swish", "transformer-aan-depth": 2,
    "transformer-aan-nogate": False, "transformer-decoder-autoreg": "self-attention", "transformer-dim-aan": 2048,
    "transformer-dim-ffn": 24, "transformer-ffn-activation": "swish", "transformer-ffn-depth": 2,
    "transformer-guided-alignment-layer": "last", "transformer-heads": 4, "transformer-no-projection": False,
    "transformer-postprocess": "dan", "transformer-postprocess-emb": "d", "transformer-preprocess": "",
    "transformer-tied-layers": [], "transformer-train-position-embeddings": False, "type": "transformer", "ulr": False,
    "ulr-dim-emb": 0, "ulr-trainable-transformation": False,
    "version": "v1.7.6 02f4af4 2018-12-12 18:51:10 -0800",
}  # fmt: skip


def as_yaml(settings: Mapping[str, Any]) -> str:
    """The settings as yaml-cpp writes them."""
    written, empty = [], '""'
    for key, value in settings.items():
        if isinstance(value, list):
            written.append(f"{key}:\n" + ("".join(f"  - {item}\n" for item in value) or "  []\n"))
        else:
            text = str(value).lower() if isinstance(value, bool) else value
            written.append(f"{key}: {text if text != '' else empty}\n")
    return "".join(written)


def random_arrays(settings: Mapping[str, Any], sizes: Sequence[int], seed: int) -> Arrays:
    """All arrays that a model with these settings has, by Marian's names and in its shapes."""
    draw = np.random.default_rng(seed)
    d_model, d_ff = settings["dim-emb"], settings["transformer-dim-ffn"]
    found: Arrays = {}

    def put(name: str, *shape: int, mean: float = 0.0) -> None:
        found[name] = draw.normal(mean, 0.25, shape).astype(np.float32)

    def norm(name: str, after: str) -> None:
        put(f"{name}_ln_scale{after}", 1, d_model, mean=1.0)
        put(f"{name}_ln_bias{after}", 1, d_model)

    tied_all = settings["tied-embeddings-all"]
    if tied_all or settings["tied-embeddings-src"]:
        put("Wemb", sizes[0], d_model)
    else:
        put("encoder_Wemb", sizes[0], d_model)
        put("decoder_Wemb", sizes[1], d_model)
    if not (tied_all or settings["tied-embeddings"]):
        put("decoder_ff_logit_out_Wt", sizes[1], d_model)
    put("decoder_ff_logit_out_b", 1, sizes[1])
    found["decoder_ff_logit_out_b"][0, 0] += 1.5  # so that outputs end
    pre = settings["transformer-preprocess"] == "n"
    for side, layers in (("encoder", range(settings["enc-depth"])), ("decoder", range(settings["dec-depth"]))):
        if "n" in settings["transformer-postprocess-emb"]:
            norm(f"{side}_emb", "_pre")
        if pre:
            norm(f"{side}_top", "")
        for layer in [index + 1 for index in layers]:
            for block in ("self", "context") if side == "decoder" else ("self",):
                for letter in "qkvo":
                    put(f"{side}_l{layer}_{block}_W{letter}", d_model, d_model)
                    put(f"{side}_l{layer}_{block}_b{letter}", 1, d_model)
                norm(f"{side}_l{layer}_{block}_Wo", "_pre" if pre else "")
            for part, shape in (("1", (d_model, d_ff)), ("2", (d_ff, d_model))):
                put(f"{side}_l{layer}_ffn_W{part}", *shape)
                put(f"{side}_l{layer}_ffn_b{part}", 1, shape[1])
            norm(f"{side}_l{layer}_ffn_ffn", "_pre" if pre else "")
    return found


def save_npz(path: Path, arrays: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """As Marian does: the settings as bytes with a zero at their end, nothing compressed."""
    text = np.frombuffer(as_yaml(settings).encode() + b"\0", dtype=np.int8)
    np.savez(path, **{**arrays, "special:model.yml": text})


def write_marian(
    directory: Path,
    seed: int = 3,
    two_vocabularies: bool = False,
    more: int = 0,
    tags: Sequence[str] = (),
    **changes: Any,
) -> dict[str, Any]:
    """Writes a model as OPUS-MT's archives hold them. `more`: tokens that the target's vocabulary has and the source's
    has not; `changes`: of the settings, with _ for -. The settings."""
    directory.mkdir(parents=True, exist_ok=True)
    unigram: dict[str, Any] = {"model_type": "unigram", "bos_id": -1, "eos_id": 0, "unk_id": 1}
    sides = [
        pieces_of(learned(directory / f"{side}.spm", 300, number, **unigram))
        for number, side in enumerate(("source", "target"))
    ]
    special = sides[0][:2]
    if two_vocabularies:
        vocabularies = {f"opus.{side}.vocab.yml": pieces for side, pieces in zip(("src", "trg"), sides, strict=True)}
        size = max(map(len, sides))
        for pieces in vocabularies.values():
            pieces += [f"filled{index}" for index in range(size - len(pieces))]
        vocabularies["opus.trg.vocab.yml"] += [f"more{index}" for index in range(more)]
    else:
        others = sorted({*sides[0], *sides[1], *tags} - set(special))
        vocabularies = {VOCABULARY: [*special, *others]}
    for name, pieces in vocabularies.items():
        ids = {piece: index for index, piece in enumerate(pieces)}
        (directory / name).write_text(yaml.dump(ids, allow_unicode=True) + "\n", encoding="utf-8")
    names = [*vocabularies, *vocabularies][:2] if len(vocabularies) == 1 else [*vocabularies]
    sizes = [len(vocabularies[name]) for name in names]
    settings = {**SETTINGS, "dim-vocabs": sizes, **{key.replace("_", "-"): value for key, value in changes.items()}}
    save_npz(directory / NAME, random_arrays(settings, sizes, seed), settings)
    decoder = {"relative-paths": True, "models": [NAME], "vocabs": names, "beam-size": 4, "normalize": 1,
               "word-penalty": 0, "mini-batch": 1, "maxi-batch": 1, "maxi-batch-sort": "src"}  # fmt: skip
    (directory / "decoder.yml").write_text(as_yaml(decoder))
    (directory / "README.md").write_text("# opus\n\n* model: transformer-align\n")
    return settings


def archive_of(directory: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(directory.iterdir()):
            archive.write(file, file.name)
    return path


def converted(directory: Path, out: Path, settings: Mapping[str, Any]) -> Path:
    """The directory that Hugging Face's converter, which transformers had until its version 5, makes of a model."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    with np.load(directory / NAME) as file:
        arrays = {name: torch.tensor(file[name]) for name in file.files if "special" not in name}
    shared = "Wemb" in arrays
    tied = settings["tied-embeddings-all"] or settings["tied-embeddings"]
    matrices = [arrays["Wemb"]] * 2 if shared else [arrays["encoder_Wemb"], arrays["decoder_Wemb"]]
    matrices = [torch.cat([matrix, torch.zeros(1, matrix.shape[1])]) for matrix in matrices]
    pad = len(matrices[0]) - 1
    config = MarianConfig(
        vocab_size=pad + 1, decoder_vocab_size=pad + 1, share_encoder_decoder_embeddings=shared,
        encoder_layers=settings["enc-depth"], decoder_layers=settings["dec-depth"], d_model=settings["dim-emb"],
        encoder_attention_heads=settings["transformer-heads"], decoder_attention_heads=settings["transformer-heads"],
        encoder_ffn_dim=settings["transformer-dim-ffn"], decoder_ffn_dim=settings["transformer-dim-ffn"],
        activation_function=settings["transformer-ffn-activation"], pad_token_id=pad, eos_token_id=0, bos_token_id=0,
        forced_eos_token_id=0, scale_embedding=True, tie_word_embeddings=tied, decoder_start_token_id=pad,
        max_position_embeddings=512, dropout=0.1,
    )  # fmt: skip
    model = MarianMTModel(config)
    state = {"final_logits_bias": torch.cat([arrays["decoder_ff_logit_out_b"], torch.zeros(1, 1)], dim=1)}
    for name, matrix in zip(("encoder", "decoder"), matrices, strict=True):
        state[f"model.{name}.embed_tokens.weight"] = matrix
    if shared:
        state["model.shared.weight"] = matrices[0]
    output = matrices[1] if tied else arrays["decoder_ff_logit_out_Wt"]
    state["lm_head.weight"] = output if tied else torch.cat([output, torch.zeros(1, output.shape[1])])
    parts = {"self": "self_attn", "context": "encoder_attn"}
    for name, array in arrays.items():
        layered = re.fullmatch(r"(encoder|decoder)_l(\d+)_(self|context|ffn)_(.*_)?(\w+)", name)
        if layered is None:
            continue
        side, layer, block, between, last = layered.groups()
        place = f"model.{side}.layers.{int(layer) - 1}"
        if between:
            norm = "final_layer_norm" if block == "ffn" else f"{parts[block]}_layer_norm"
            state[f"{place}.{norm}.{'weight' if last == 'scale' else 'bias'}"] = array.squeeze()
        else:
            kind = "weight" if last[0] == "W" else "bias"
            projection = "out" if last[1] == "o" else last[1]
            linear = f"fc{last[1]}" if block == "ffn" else f"{parts[block]}.{projection}_proj"
            state[f"{place}.{linear}.{kind}"] = array.T.squeeze()
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected
    assert all("embed_positions" in name or "shared" in name for name in missing), missing
    model.generation_config.update(bad_words_ids=[[pad]], num_beams=4, length_penalty=1.0)
    model.save_pretrained(out)
    vocabularies = {"vocab.json": VOCABULARY} if shared else {
        "vocab.json": "opus.src.vocab.yml", "target_vocab.json": "opus.trg.vocab.yml"
    }  # fmt: skip
    for name, theirs in vocabularies.items():
        ids = yaml.load((directory / theirs).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        (out / name).write_text(json.dumps({piece: int(index) for piece, index in ids.items()} | {"<pad>": pad}))
    for side in ("source", "target"):
        (out / f"{side}.spm").write_bytes((directory / f"{side}.spm").read_bytes())
    about = {"target_lang": "de", "source_lang": "en", "separate_vocabs": not shared}
    (out / "tokenizer_config.json").write_text(json.dumps(about))
    return out


def odd_pieces(count: int, seed: int) -> list[str]:
    """Pieces with all that needs a quotation in YAML. (What PyYAML writes for U+0085 or U+2028 is a line break to no
    other reader, and sentencepiece's normalisation leaves none of them in a piece.)"""
    draw = random.Random(seed)
    characters = "a▁éя家:#'\"\\-?!&*%@`|>[]{},~=. \u3000\u00a0\ufeff\t😀0123456789\x07"
    words = ["", "null", "~", "yes", "on", "12", "1_0", "0x1F", "1.5", "<<", "=", "---", "...", "#", "? a", "a: b",
             "x" * 200, "- ", "a #b", "true", ">>deu<<", "'", '"', "2020-01-01", ":"]  # fmt: skip
    made = ["".join(draw.choices(characters, k=draw.randint(1, 6))) for _ in range(count)]
    return list(dict.fromkeys([*words, *made]))
