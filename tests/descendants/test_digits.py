"""Digits as lines of text, told apart by patches; and where the model looks."""

import json
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.descendants.digits import LEVELS, Digits, load_digits, pixel_tokenizer
from dragoman.descendants.masked_model import Classifier
from dragoman.descendants.patch_attention import patch_attention
from support.commands import run_in_process

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def digits() -> Digits:
    return load_digits()


@pytest.fixture(scope="module")
def vit_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has seen each picture about seven times."""
    out = tmp_path_factory.mktemp("vit") / "run"
    small = {"model.encoder_layers": 2, "model.d_model": 32, "model.d_ff": 64, "model.dropout": 0.0}
    small |= {"train.batch_tokens": 1560, "train.micro_batch_tokens": 1560}  # 24 pictures
    settings = {**small, "train.valid_steps": 200, "train.peak_rate": 0.004, "train.threads": 1}
    flags = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    ran = run_in_process(["vit", "train", "--out", out, "--steps", "400", *flags])
    assert ran.code == 0, ran.stderr
    return out


def test_a_fifth_is_held_out_and_nothing_is_in_two_parts(digits: Digits) -> None:
    parts = (digits.train, digits.valid, digits.test)
    assert [len(part) for part in parts] == [1295, 143, 359]
    pictures = [picture for part in parts for picture, _ in part]
    assert len(set(pictures)) == len(pictures) == 1797
    assert {len(picture) for picture in pictures} == {64}
    assert min(Counter(label for _, label in digits.test).values()) > 20


def test_a_pixel_is_a_token_and_ids_rise_with_brightness() -> None:
    tokenizer = pixel_tokenizer()
    assert tokenizer.encode(LEVELS) == list(range(4, 21))
    assert tokenizer.vocab_size == 21
    assert tokenizer.decode(tokenizer.encode("00g7")) == "00g7"


def test_digits_are_told_apart(vit_run: Path, digits: Digits, cli: Cli) -> None:
    found = json.loads(cli("vit", "evaluate", vit_run, "--json").stdout)
    assert found["pictures"] == 359
    assert found["accuracy"] > 0.8  # by chance: a tenth
    for one in found["wrong"]:
        assert digits.test[one["number"]][1] == one["is"] != one["taken_for"]
    assert cli("vit", "evaluate", vit_run).stdout.startswith(f"accuracy {found['accuracy']:.2%} of 359 pictures\n")


def test_attention_over_patches_is_drawn(vit_run: Path, digits: Digits, tmp_path: Path, cli: Cli) -> None:
    picture, label = digits.test[5]
    seen = patch_attention(Classifier.load(vit_run), picture)
    assert (len(seen.heads), len(seen.heads[0])) == (2, 4)
    for layer in seen.heads:
        for grid in layer:
            assert (len(grid), len(grid[0])) == (4, 4)
            assert 0 < sum(map(sum, grid)) <= 1 + 1e-5  # the rest is for the end symbol itself
    ran = cli("vit", "show", vit_run, "--number", "5", "--out", tmp_path / "five.svg")
    lines = ran.stdout.splitlines()
    assert lines[0].split() == ["picture", "layer", "1", "layer", "2"]
    assert len(lines) == 10
    assert lines[-1].startswith(f"a {label}; taken for {seen.classification.label} (")
    bright = [[LEVELS.index(pixel) > 13 for pixel in picture[8 * row : 8 * row + 8]] for row in range(8)]
    drawn = [[line[2 * column] == "█" for column in range(8)] for line in lines[1:9]]
    assert drawn == bright
    root = ET.parse(tmp_path / "five.svg").getroot()
    names = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert names == ["picture", *(f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3, 4))]


def test_a_number_that_no_picture_has_is_refused(vit_run: Path, cli: Cli) -> None:
    ran = cli("vit", "show", vit_run, "--number", "359")
    assert (ran.code, ran.stderr) == (2, "dragoman: vit show: --number 359; the held-out pictures are 0 to 358\n")
