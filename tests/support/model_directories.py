"""Makes small directories as transformers writes them, with random numbers."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from support.public_models import learned, pieces_of

SMALL: dict[str, Any] = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "scale_embedding": True,
}  # fmt: skip


def save(model: Any, directory: Path, **generation: Any) -> None:
    """Writes a model with random numbers in every tensor, whose outputs end now and then."""
    torch.manual_seed(5)
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            nn.init.normal_(parameter, mean=1.0 if "norm" in name and name.endswith("weight") else 0.0, std=0.2)
    if hasattr(model, "final_logits_bias"):
        nn.init.normal_(model.final_logits_bias, std=0.3)
        model.final_logits_bias[0, model.config.eos_token_id] += 2.0
    model.generation_config.update(**generation)
    model.save_pretrained(directory)


def marian_directory(directory: Path, **tokenizer: str) -> Path:
    """A model with two sentencepiece models over one vocabulary. `tokenizer`: what its settings say besides."""
    from transformers import MarianConfig, MarianMTModel

    directory.mkdir(parents=True)
    unigram: dict[str, Any] = {"model_type": "unigram", "bos_id": -1, "eos_id": 0, "unk_id": 1}
    sides = [pieces_of(learned(directory / f"{side}.spm", 300, seed, **unigram))
             for seed, side in enumerate(("source", "target"))]  # fmt: skip
    names = [*dict.fromkeys([*sides[0], *sides[1]]), "<pad>"]
    (directory / "vocab.json").write_text(json.dumps({name: index for index, name in enumerate(names)}))
    settings = {"tokenizer_class": "MarianTokenizer", **tokenizer}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    pad = len(names) - 1
    config = MarianConfig(
        vocab_size=len(names), pad_token_id=pad, eos_token_id=0, bos_token_id=0, decoder_start_token_id=pad,
        activation_function="swish", forced_eos_token_id=None, **SMALL,
    )  # fmt: skip
    save(MarianMTModel(config), directory, bad_words_ids=[[pad]], num_beams=4, length_penalty=0.0)
    return directory
