"""The student's shape, and the layers of a teacher that it begins with."""

import dataclasses
from pathlib import Path

import pytest
import torch

from dragoman.config import TEXT_CHANGES
from dragoman.data.tokenizer import load_tokenizer
from dragoman.distillation.student import SIZES, begin_with_teacher, choice_for, layers_taken
from dragoman.errors import UsageError
from dragoman.model.checkpoint import load_model, read_tensors, weights_of
from dragoman.run_directory import RunDirectory


def test_layers_are_taken_evenly_with_the_first_and_the_last() -> None:
    assert layers_taken(6, 6) == [0, 1, 2, 3, 4, 5]
    assert layers_taken(3, 6) == [0, 2, 5]
    assert layers_taken(1, 6) == [0]
    assert layers_taken(2, 6) == [0, 5]
    assert layers_taken(4, 2) == [0, 0, 1, 1]


def test_every_size_has_a_deep_encoder_and_a_shallow_decoder() -> None:
    assert all(size.encoder_layers >= 6 and size.decoder_layers <= 2 for size in SIZES)
    assert [size.d_model for size in SIZES] == sorted({size.d_model for size in SIZES})


def test_a_student_is_no_wider_than_its_teacher(teacher: Path, tmp_path: Path) -> None:
    run, tokenizer = RunDirectory(teacher), load_tokenizer(teacher)
    choice = choice_for([run], RunDirectory(tmp_path), tokenizer, "own", "scratch")
    assert [size.name for size in choice.sizes] == ["tiny 6 + 1"]  # the teacher's width is 32
    own = {"search.beam": 1, "data.views": 1, "data.casing": "plain", "data.split_digits": False}
    assert choice.settings == own | {f"data.{change}": 0.0 for change in TEXT_CHANGES}  # the noise is in its text
    like = choice_for([run], RunDirectory(tmp_path), tokenizer, "teacher", "teacher")
    (size,) = like.sizes
    assert (size.encoder_layers, size.decoder_layers, size.d_model, size.d_ff, size.num_heads) == (1, 1, 32, 64, 2)
    assert like.settings["model.norm_order"] == run.read_config().model.norm_order
    with pytest.raises(UsageError, match="add --vocabulary teacher"):
        choice_for([run], RunDirectory(tmp_path), tokenizer, "own", "teacher")


def test_a_vocabulary_of_its_own_writes_capitals_as_the_teachers_does(cased_run: Path, tmp_path: Path) -> None:
    run, tokenizer = RunDirectory(cased_run), load_tokenizer(cased_run)
    settings = choice_for([run], RunDirectory(tmp_path), tokenizer, "own", "scratch").settings
    assert (settings["data.casing"], settings["data.split_digits"]) == ("inline", True)
    assert "data.casing" not in choice_for([run], RunDirectory(tmp_path), tokenizer, "teacher", "scratch").settings


def test_a_student_begins_with_the_teachers_layers(teacher: Path, tmp_path: Path) -> None:
    before, after, tokenizer = RunDirectory(teacher), RunDirectory(tmp_path / "student"), load_tokenizer(teacher)
    config = before.read_config()
    deeper = dataclasses.replace(config, model=dataclasses.replace(config.model, encoder_layers=3, d_ff=64))
    count = begin_with_teacher(before, after, deeper, tokenizer)
    found = read_tensors(after.checkpoints()[0] / "model.safetensors")
    given = weights_of(load_model(before))
    assert count == sum(weight.numel() for weight in found.values())  # every layer has one that it begins as
    for name, weight in found.items():
        same = name.replace("encoder.1.", "encoder.0.").replace("encoder.2.", "encoder.0.")
        assert torch.equal(weight, given[same]), name
    assert begin_with_teacher(before, after, deeper, tokenizer) == 0  # what has begun is left as it is
    wider = dataclasses.replace(config, model=dataclasses.replace(config.model, d_ff=96))
    other = RunDirectory(tmp_path / "wider")
    assert 0 < begin_with_teacher(before, other, wider, tokenizer) < count
    kept = read_tensors(other.checkpoints()[0] / "model.safetensors")
    assert torch.equal(kept["encoder.0.self_attention.w_q.weight"], given["encoder.0.self_attention.w_q.weight"])
