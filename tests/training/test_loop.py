"""Training through the real command line: it learns, it resumes bit for bit, it repeats itself."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.tokenizer import Tokenizer

WORDS = ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va"]


def dragoman(*arguments: str | Path, text: str = "") -> str:
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sequences(count: int, seed: int) -> list[str]:
    """Different random sequences of words: to copy one, each word and its place must be known."""
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found[" ".join(draw.choices(WORDS, k=draw.randint(2, 9)))] = None
    return list(found)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("copy") / "pairs.tsv"
    path.write_text("".join(f"{s}\t{s}\n" for s in sequences(3000, seed=1)), encoding="utf-8")
    return path


def copy_settings(**changes: float | str) -> list[str]:
    """A model that copies after a quarter of a minute."""
    values: dict[str, float | str] = {
        "model.vocab_size": 300,
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "model.d_model": 64,
        "model.d_ff": 128,
        "model.num_heads": 4,
        "model.dropout": 0.0,
        "data.hold_out": 100,
        "train.batch_tokens": 1000,
        "train.micro_batch_tokens": 1000,
        "train.peak_rate": 5e-3,
        "train.warmup_steps": 50,
        "train.valid_steps": 200,
        "train.valid_sentences": 50,
        "train.threads": 1,
        **changes,
    }
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


def test_copy_task(copies: Path, tmp_path: Path) -> None:
    """A decoder that sees the future, lost positions or a wrong cache all end far below the bound."""
    dragoman("train", "--pairs", copies, "--out", tmp_path / "run", "--steps", "600", *copy_settings())
    unseen = [s for s in sequences(3300, seed=1)[3000:] if s.count(" ") > 3][:100]
    output = dragoman("translate", tmp_path / "run", text="".join(f"{s}\n" for s in unseen)).splitlines()
    right = sum(a == b for a, b in zip(unseen, output, strict=True))
    assert right >= 90


def metrics(run: Path) -> list[dict[str, object]]:
    """What the log says, but for clock readings."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "tokens_per_second")} for line in lines]


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_resumed_equals_uninterrupted_and_seed_decides(optimizer: str, copies: Path, tmp_path: Path) -> None:
    changes: dict[str, float | str] = {"model.dropout": 0.1, "train.valid_steps": 60, "train.schedule": "paper"}
    settings = copy_settings(**changes, **{"train.optimizer": optimizer})

    def run(name: str, *more: str) -> Path:
        dragoman("train", "--pairs", copies, "--out", tmp_path / name, *settings, *more)
        return tmp_path / name

    whole = run("whole", "--steps", "120")
    run("parts", "--steps", "60")
    parts = run("parts", "--steps", "120")
    other = run("other", "--steps", "60", "--seed", "2")
    for name in ("model.safetensors", "optimizer.safetensors"):
        last = f"checkpoints/step-00000120/{name}"
        assert (whole / last).read_bytes() == (parts / last).read_bytes()
    assert (whole / "model.safetensors").read_bytes() == (parts / "model.safetensors").read_bytes()
    first = "checkpoints/step-00000060/model.safetensors"
    assert (whole / first).read_bytes() == (parts / first).read_bytes()
    assert (whole / first).read_bytes() != (other / first).read_bytes()
    # The stretch that ended at step 60 has said so; all else is the same.
    assert [line for line in metrics(parts) if line["event"] != "end"] == [
        line for line in metrics(whole) if line["event"] != "end"
    ]
    # A third time, there is nothing to do.
    before = (parts / "metrics.jsonl").read_bytes()
    run("parts", "--steps", "120")
    assert (parts / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize(("norm", "tried"), [("layer", True), ("batch", True), ("layer", False)])
def test_a_pair_longer_than_the_table_of_positions_began_with(
    norm: str, tried: bool, tiny_settings: list[str], tmp_path: Path, cli: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The largest batch is tried first and makes the table grow; what is put back after that is not the table. Where it
    is not tried, a step makes it grow."""
    if not tried:
        monkeypatch.setattr("dragoman.training.loop.try_largest_batch", lambda _: 0.0)
    long = " ".join(WORDS * 40)  # 640 words
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{s}\t{s}\n" for s in (*sequences(200, seed=1), long)), encoding="utf-8")
    more = ("data.max_length=2000", "data.hold_out=10", f"model.norm={norm}", "train.valid_sentences=1")
    settings = [*tiny_settings, *(part for change in more for part in ("--set", change))]
    for steps in (2, 8):  # and it goes on; eight steps see every pair
        ran = cli("train", "--pairs", pairs, "--out", tmp_path / "run", "--steps", str(steps), *settings)
        assert ran.code == 0, ran.stderr
    assert len(Tokenizer.load(tmp_path / "run" / "tokenizer.model").encode(long)) > 512


def test_a_vocabulary_that_its_alphabet_made_larger_than_asked_for_is_gone_on_with(
    tiny_text: Path, tiny_settings: list[str], tmp_path: Path, cli: Callable[..., Any]
) -> None:
    flags = ["--pairs", tiny_text / "train.tsv", "--out", tmp_path / "run", *tiny_settings]
    for steps, size in ((1, 5), (2, 5), (3, 40)):
        ran = cli("train", *flags, "--steps", str(steps), "--set", f"model.vocab_size={size}")
        assert ran.code == 0, ran.stderr
    learned = Tokenizer.load(tmp_path / "run" / "tokenizer.model")
    assert learned.is_alphabet()
    assert learned.vocab_size > 256  # bytes, and the characters
