"""What transformers computes with a directory, the imported run computes too: the same logits and the same searches."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn

from dragoman.config import RunConfig
from dragoman.errors import DataError
from dragoman.files import read_json
from dragoman.importing.huggingface import read_weights
from dragoman.model.transformer import Transformer

SMALL = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
         "encoder_attention_heads": 4, "decoder_attention_heads": 4}  # fmt: skip
# As the models on the hub are configured, but for their size.
MARIAN = {"vocab_size": 61, "pad_token_id": 60, "eos_token_id": 0, "decoder_start_token_id": 60, "bos_token_id": 0,
          "activation_function": "swish", "scale_embedding": True, "bad_words_ids": [[60]]}  # fmt: skip
M2M100 = {"vocab_size": 61, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2,
          "activation_function": "relu", "scale_embedding": True}  # fmt: skip
BART = {"vocab_size": 61, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2,
        "activation_function": "gelu", "max_position_embeddings": 40}  # fmt: skip
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "opus-mt-en-de": ("Marian", MARIAN),
    "relu and unscaled": ("Marian", MARIAN | {"activation_function": "relu", "scale_embedding": False}),
    "two vocabularies": (
        "Marian",
        MARIAN | {"vocab_size": 70, "decoder_vocab_size": 61, "share_encoder_decoder_embeddings": False},
    ),
    "output apart": ("Marian", MARIAN | {"tie_word_embeddings": False}),
    "all apart": ("Marian", MARIAN | {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}),
    "m2m100_418M": ("M2M100", M2M100),
    "mbart-large-50": ("MBart", BART | {"scale_embedding": True}),
    "bart-base": ("Bart", BART),
}
CLASSES = {
    "Marian": ("MarianConfig", "MarianMTModel"),
    "M2M100": ("M2M100Config", "M2M100ForConditionalGeneration"),
    "MBart": ("MBartConfig", "MBartForConditionalGeneration"),
    "Bart": ("BartConfig", "BartForConditionalGeneration"),
}


def theirs(family: str, settings: dict[str, Any], seed: int = 3, std: float = 0.3) -> Any:
    """A model of transformers with random numbers in every tensor, biases and norms too."""
    import transformers

    config_class, model_class = (getattr(transformers, name) for name in CLASSES[family])
    torch.manual_seed(seed)
    model = model_class(config_class(**(SMALL | settings)))
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name or family in ("MBart", "Bart"):
            nn.init.normal_(parameter, mean=1.0 if "norm" in name and name.endswith("weight") else 0.0, std=std)
    for name, buffer in model.named_buffers():
        if name.endswith("final_logits_bias"):
            nn.init.normal_(buffer, std=0.5)
    return model.eval()


def ours(directory: Path) -> Transformer:
    config, weights = read_weights(directory, read_json(directory / "config.json"))
    model = Transformer(config).eval()
    names = dict(model.named_parameters())
    assert names.keys() == weights.keys()
    for name, array in weights.items():
        names[name].data.copy_(torch.from_numpy(array))
    return model


def padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows])
    return ids, torch.tensor([[index < len(row) for index in range(longest)] for row in rows])


SOURCES = [[5, 9, 33, 12, 7, 2], [8, 41, 2], [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 2]]
TARGETS = [[11, 29, 8, 5], [30, 31, 32, 33], [7, 7, 9, 9]]


@pytest.mark.parametrize("shape", SHAPES)
def test_logits_are_those_of_transformers(shape: str, tmp_path: Path) -> None:
    family, settings = SHAPES[shape]
    reference = theirs(family, settings)
    reference.save_pretrained(tmp_path)
    model = ours(tmp_path).double()
    reference = reference.double()
    source, mask = padded(SOURCES, settings["pad_token_id"])
    fed = torch.tensor([[settings["decoder_start_token_id"], *row] for row in TARGETS])
    with torch.no_grad():
        expected = reference(input_ids=source, attention_mask=mask.long(), decoder_input_ids=fed).logits
        found = model(source, fed, mask)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    if family == "Marian":
        assert (model.config.attention_bias, model.config.output_bias) == (True, True)


def test_a_tied_projection_that_was_left_random_is_the_embedding(tmp_path: Path) -> None:
    """As in the directories of opus-mt-tc-big-*, which transformers' conversion of the time made."""
    reference = theirs("Marian", MARIAN)
    reference.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"] = np.full_like(tensors["model.shared.weight"], 0.5)
    save_file(tensors, tmp_path / "model.safetensors")
    assert ours(tmp_path).config.tie_embeddings


# The configurations of the models on the hub, at their true size.
OPUS = MARIAN | {
    "d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048,
    "encoder_attention_heads": 8, "decoder_attention_heads": 8, "vocab_size": 58_101, "decoder_vocab_size": 58_101,
    "pad_token_id": 58_100, "decoder_start_token_id": 58_100, "max_position_embeddings": 512,
}  # fmt: skip
OPUS_BIG = OPUS | {
    "d_model": 1024, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, "encoder_attention_heads": 16,
    "decoder_attention_heads": 16, "activation_function": "relu", "vocab_size": 53_017, "decoder_vocab_size": 53_017,
    "pad_token_id": 53_016, "decoder_start_token_id": 53_016, "share_encoder_decoder_embeddings": False,
}  # fmt: skip
LARGE = M2M100 | {
    "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_attention_heads": 16, "max_position_embeddings": 1024,
}  # fmt: skip
TRUE_SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "opus-mt-en-de": ("Marian", OPUS),
    "opus-mt-tc-big-en-fr": ("Marian", OPUS_BIG),
    "opus-mt-en-mul": (
        "Marian",
        OPUS
        | dict.fromkeys(("vocab_size", "decoder_vocab_size"), 64110)
        | dict.fromkeys(("pad_token_id", "decoder_start_token_id"), 64109),
    ),
    "m2m100_418M": ("M2M100", LARGE | {"vocab_size": 128_112}),
    "nllb-200-distilled-600M": ("M2M100", LARGE | {"vocab_size": 256_206}),
}


@pytest.mark.full
@pytest.mark.parametrize("shape", TRUE_SIZES)
def test_logits_are_those_of_transformers_at_true_size(shape: str, tmp_path: Path) -> None:
    family, settings = TRUE_SIZES[shape]
    reference = theirs(family, settings, std=0.05)
    reference.save_pretrained(tmp_path)
    source, mask = padded(SOURCES, settings["pad_token_id"])
    fed = torch.tensor([[settings["decoder_start_token_id"], *row] for row in TARGETS])
    reference = reference.double()
    with torch.no_grad():
        expected = reference(input_ids=source, attention_mask=mask.long(), decoder_input_ids=fed).logits
        del reference  # two of the largest in float64 are ten gigabytes
        torch.testing.assert_close(ours(tmp_path).double()(source, fed, mask), expected, rtol=1e-9, atol=1e-9)


def test_a_file_of_bfloat16_is_read(tmp_path: Path) -> None:
    reference = theirs("Marian", MARIAN).bfloat16()
    reference.save_pretrained(tmp_path)
    source, mask = padded(SOURCES, 60)
    fed = torch.tensor([[60, *row] for row in TARGETS])
    reference = reference.float()
    for part in (reference.model.encoder, reference.model.decoder):  # the table is no weight: it keeps its precision
        part.embed_positions.weight.data.copy_(part.embed_positions.create_weight())
    with torch.no_grad():
        expected = reference(input_ids=source, attention_mask=mask.long(), decoder_input_ids=fed).logits
        torch.testing.assert_close(ours(tmp_path)(source, fed, mask), expected, rtol=1e-5, atol=1e-5)


def test_numbers_that_are_none_are_said_in_a_line(tmp_path: Path) -> None:
    reference = theirs("Marian", MARIAN)
    reference.model.decoder.layers[1].fc1.bias.data[3] = float("nan")
    reference.save_pretrained(tmp_path)
    with pytest.raises(DataError, match=r"model.decoder.layers.1.fc1.bias has numbers that are not finite"):
        read_weights(tmp_path, read_json(tmp_path / "config.json"))


def test_a_pickled_file_of_half_precision_is_read(tmp_path: Path) -> None:
    reference = theirs("Marian", MARIAN)
    reference.config.save_pretrained(tmp_path)
    torch.save({name: tensor.half() for name, tensor in reference.state_dict().items()}, tmp_path / "pytorch_model.bin")
    model = ours(tmp_path)
    learned = [tensor for name, tensor in reference.named_parameters() if "embed_positions" not in name]
    for parameter in [*learned, reference.final_logits_bias]:
        parameter.data.copy_(parameter.data.half())
    source, mask = padded(SOURCES, 60)
    fed = torch.tensor([[60, *row] for row in TARGETS])
    with torch.no_grad():
        expected = reference(input_ids=source, attention_mask=mask.long(), decoder_input_ids=fed).logits
        torch.testing.assert_close(model(source, fed, mask), expected, rtol=1e-5, atol=1e-5)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another family": (
        {"model_type": "t5"},
        "config.json: model_type = t5; marian, pegasus, m2m_100, mbart, bart can be",
    ),
    "another activation": ({"activation_function": "gelu_new"}, "activation_function = gelu_new; models with relu"),
    "uneven heads": ({"decoder_attention_heads": 2}, "encoder_attention_heads = 4 and decoder_attention_heads = 2"),
    "a family that is no name": (
        {"model_type": ["t5"]},
        r"model_type = \['t5'\]; marian, pegasus, m2m_100, mbart, bart",
    ),
    "an activation that is no name": (
        {"activation_function": ["relu"]},
        r"activation_function = \['relu'\]; a name is",
    ),
    "a size that is no number": ({"d_model": "16"}, "config.json: d_model = '16'; a whole number is needed"),
    "no size": ({"d_model": None}, "config.json: d_model = None; a whole number is needed"),
    "a size that no model has": ({"d_model": -16}, "config.json: model.d_model = -16; must be at least 1"),
    "a fraction of a layer": ({"encoder_layers": 1.5}, "config.json: encoder_layers = 1.5; a whole number is needed"),
    "a second size that is no number": (
        {"decoder_vocab_size": "61"},
        "config.json: decoder_vocab_size = '61'; a whole",
    ),
    "a dropout that is no number": ({"dropout": "much"}, "config.json: dropout = 'much'; a number is needed"),
    "a scale that is no choice": ({"scale_embedding": "no"}, "config.json: scale_embedding = 'no'; true or false"),
    "heads that do not fit": (
        {"encoder_attention_heads": 3, "decoder_attention_heads": 3},
        "num_heads = 3; must be a d",
    ),
    "quantised": (
        {"quantization_config": {"bits": 8}},
        r"quantization_config = {'bits': 8}; weights that are not quan",
    ),
    "another size": ({"d_model": 32}, r"has shape \(\d+, 16\), and config.json says"),
    "fewer layers": (
        {"decoder_layers": 1},
        r"decoder_layers = 1, and there are weights of more, model.decoder",
    ),
    "more layers": ({"encoder_layers": 3}, r"model.encoder.layers.2.self_attn.q_proj.weight is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_imported_is_said_in_a_line(case: str, tmp_path: Path) -> None:
    changes, message = REFUSED[case]
    theirs("Marian", MARIAN).save_pretrained(tmp_path)
    with pytest.raises(DataError, match=message):
        read_weights(tmp_path, read_json(tmp_path / "config.json") | changes)


def test_a_truncated_file_is_said_in_a_line(tmp_path: Path) -> None:
    theirs("Marian", MARIAN).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="not a readable safetensors file"):
        read_weights(tmp_path, read_json(tmp_path / "config.json"))


def test_nothing_in_a_pickle_is_executed(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "executed"),)

    theirs("Marian", MARIAN).config.save_pretrained(tmp_path)
    torch.save({"model.shared.weight": Bomb()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(DataError) as refused:
        read_weights(tmp_path, read_json(tmp_path / "config.json"))
    assert not (tmp_path / "executed").exists()
    assert re.search(
        r"holds something else than tensors \(it asks for \w+\.mkdir\); do not trust it", str(refused.value)
    )
    assert "weights_only" not in str(refused.value)  # torch's advice is how to execute it


def test_the_configuration_can_be_written_and_read(tmp_path: Path) -> None:
    theirs("Marian", MARIAN).save_pretrained(tmp_path)
    config, _ = read_weights(tmp_path, read_json(tmp_path / "config.json"))
    again = RunConfig.from_json(RunConfig(model=config).to_json(), "here")
    assert again.model == config
    assert json.loads(RunConfig(model=config).to_json())["model"]["activation"] == "swish"
