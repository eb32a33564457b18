"""What a run keeps for CTranslate2: a remembered hash of the weights is theirs, or it is not used."""

import json
import os
import time
from pathlib import Path

import pytest

from dragoman.config import ModelConfig, RunConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import ct2_cache
from dragoman.decoding.engines.ct2_cache import LARGE_WEIGHTS, digest_of
from dragoman.files import sha256
from dragoman.run_directory import RunDirectory


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read through."""
    files: list[Path] = []

    def counting(path: Path) -> str:
        files.append(path)
        return sha256(path)

    monkeypatch.setattr(ct2_cache, "sha256", counting)
    return files


def run_with(path: Path, size: int, rested: bool = True) -> tuple[RunDirectory, Tokenizer]:
    tokenizer = Tokenizer.learn(["one two three"] * 3, 300)
    run = RunDirectory(path)
    run.write_config(RunConfig(model=ModelConfig(vocab_size=tokenizer.vocab_size)))
    with run.model_path.open("wb") as file:
        file.truncate(size)
    run.converted_path.mkdir()
    if rested:
        rest(run)
    return run, tokenizer


def rest(run: RunDirectory) -> None:
    """Waits until the file may be remembered: nobody can set its ctime back."""
    while time.time_ns() - run.model_path.stat().st_ctime_ns <= ct2_cache.RESTED:
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ct2_cache, "RESTED", 2 * 10**8)


def test_large_weights_are_read_through_once(tmp_path: Path, read: list[Path]) -> None:
    run, tokenizer = run_with(tmp_path, LARGE_WEIGHTS)
    first = digest_of(run, tokenizer)
    assert digest_of(run, tokenizer) == first
    assert read == [run.model_path]


def test_weights_that_were_written_to_are_read_again_whatever_their_size_and_date(
    tmp_path: Path, read: list[Path]
) -> None:
    run, tokenizer = run_with(tmp_path, LARGE_WEIGHTS)
    first, about = digest_of(run, tokenizer), run.model_path.stat()
    with run.model_path.open("r+b") as file:
        file.write(b"other")
    os.utime(run.model_path, ns=(about.st_atime_ns, about.st_mtime_ns))  # as cp --preserve and rsync do
    assert digest_of(run, tokenizer) != first
    assert len(read) == 2


def test_weights_that_took_the_place_of_others_are_read_again(tmp_path: Path, read: list[Path]) -> None:
    run, tokenizer = run_with(tmp_path / "one", LARGE_WEIGHTS)
    other, _ = run_with(tmp_path / "other", LARGE_WEIGHTS)
    with other.model_path.open("r+b") as file:
        file.write(b"other")
    first = digest_of(run, tokenizer)
    other.model_path.replace(run.model_path)
    assert digest_of(run, tokenizer) != first
    assert len(read) == 2


def test_what_was_just_written_is_not_remembered(
    tmp_path: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ct2_cache, "RESTED", 3600 * 10**9)
    run, tokenizer = run_with(tmp_path, LARGE_WEIGHTS, rested=False)
    assert digest_of(run, tokenizer) == digest_of(run, tokenizer)
    assert len(read) == 2
    assert list(run.converted_path.iterdir()) == []


@pytest.mark.parametrize("record", ["", "{", "[]", '{"file": 3, "sha256": "0"}', '{"sha256": "0"}'])
def test_a_damaged_record_is_made_anew(record: str, tmp_path: Path) -> None:
    run, tokenizer = run_with(tmp_path, LARGE_WEIGHTS)
    (run.converted_path / "weights.json").write_text(record)
    first = digest_of(run, tokenizer)
    kept = json.loads((run.converted_path / "weights.json").read_text())
    assert kept["sha256"] == sha256(run.model_path)
    assert digest_of(run, tokenizer) == first


def test_small_weights_leave_no_record(tmp_path: Path) -> None:
    run, tokenizer = run_with(tmp_path, LARGE_WEIGHTS - 1)
    digest_of(run, tokenizer)
    assert list(run.converted_path.iterdir()) == []
