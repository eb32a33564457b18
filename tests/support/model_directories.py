"""Makes small directories as transformers writes them, with random numbers."""

import json
from collections.abc import Sequence
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


def marian_directory(directory: Path, *, tags: Sequence[str] = (), separate: bool = False, **tokenizer: str) -> Path:
    """A model with two sentencepiece models over one vocabulary, or, `separate`, each with its own. `tags`: of its
    target languages; `tokenizer`: what its settings say besides."""
    from transformers import MarianConfig, MarianMTModel

    directory.mkdir(parents=True)
    unigram: dict[str, Any] = {"model_type": "unigram", "bos_id": -1, "eos_id": 0, "unk_id": 1}
    sides = [pieces_of(learned(directory / f"{side}.spm", 300, seed, **unigram))
             for seed, side in enumerate(("source", "target"))]  # fmt: skip
    names = [*dict.fromkeys([*sides[0], *sides[1]]), *tags, "<pad>"]
    vocabularies = {"vocab.json": names}
    if separate:  # of one size, so that both have their padding at one id
        vocabularies = {"vocab.json": [*sides[0], "<pad>"], "target_vocab.json": [*sides[1], "<pad>"]}
        size = max(map(len, vocabularies.values()))
        for names in vocabularies.values():
            names[-1:] = [*(f"<filled-{index}>" for index in range(size - len(names))), "<pad>"]
    for file, pieces in vocabularies.items():
        (directory / file).write_text(json.dumps({name: index for index, name in enumerate(pieces)}))
    settings = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate, **tokenizer}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    pad = len(names) - 1
    config = MarianConfig(
        vocab_size=len(names), pad_token_id=pad, eos_token_id=0, bos_token_id=0, decoder_start_token_id=pad,
        activation_function="swish", forced_eos_token_id=None, decoder_vocab_size=len(names),
        share_encoder_decoder_embeddings=not separate, **SMALL,
    )  # fmt: skip
    save(MarianMTModel(config), directory, bad_words_ids=[[pad]], num_beams=4, length_penalty=0.0)
    return directory


def m2m100_directory(directory: Path) -> Path:
    """A model of a hundred languages, each of which is a token."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    directory.mkdir(parents=True)
    model = learned(directory / "sentencepiece.bpe.model", 400, 3, model_type="bpe")
    names = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece in pieces_of(model) if not piece.startswith("<"))]
    (directory / "vocab.json").write_text(json.dumps({name: index for index, name in enumerate(names)}))
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "M2M100Tokenizer"}))
    config = M2M100Config(
        vocab_size=len(names) + 108, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
        activation_function="relu", **SMALL,
    )  # fmt: skip
    save(M2M100ForConditionalGeneration(config), directory, num_beams=4, length_penalty=0.0)
    return directory


def mbart_directory(directory: Path) -> Path:
    """A model as mBART-50's are: learned positions, a norm after the embeddings, and languages that are tokens."""
    from transformers import MBartConfig, MBartForConditionalGeneration

    directory.mkdir(parents=True)
    pieces = learned(directory / "sentencepiece.bpe.model", 300, 4, model_type="unigram").vocab_size()
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MBart50Tokenizer"}))
    config = MBartConfig(
        vocab_size=pieces + 1 + 52 + 1, max_position_embeddings=128, activation_function="relu",
        decoder_start_token_id=2, forced_eos_token_id=None, **SMALL,
    )  # fmt: skip
    save(MBartForConditionalGeneration(config), directory, num_beams=5, length_penalty=1.0)
    return directory
