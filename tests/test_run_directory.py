"""A run's directory keeps its names and its format, and a directory that is no run says so."""

import json
from pathlib import Path

import pytest

from dragoman.config import ModelConfig, RunConfig, SearchConfig
from dragoman.errors import DataError
from dragoman.files import replacing
from dragoman.run_directory import FORMAT, RunDirectory, step_of


class BrokenError(Exception):
    pass


def test_a_directory_half_written_is_not_seen(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)

    def write() -> None:
        with replacing(run.checkpoints_path / "step-00000005") as directory:
            directory.mkdir()
            (directory / "model.safetensors").write_bytes(b"half")
            assert run.checkpoints() == []
            raise BrokenError

    with pytest.raises(BrokenError):
        write()
    assert list(tmp_path.iterdir()) == []


def test_checkpoints_come_oldest_first_whatever_their_digits(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert run.checkpoints() == []
    for name in ("step-00000900", "step-00001000", "step-123456789", ".step-00002000.partial", "step-x", "stop-5"):
        (run.checkpoints_path / name).mkdir(parents=True)
    assert [step_of(path) for path in run.checkpoints()] == [900, 1000, 123456789]


def test_the_configuration_comes_back(tmp_path: Path) -> None:
    config = RunConfig(model=ModelConfig(d_model=64, num_heads=2), search=SearchConfig(beam=7))
    run = RunDirectory(tmp_path)
    run.write_config(config)
    assert run.read_config() == config
    assert json.loads(run.config_path.read_bytes())["format"] == FORMAT


@pytest.mark.parametrize("number", [FORMAT + 1, FORMAT - 1, "1", None])
def test_another_format_is_refused(tmp_path: Path, number: object) -> None:
    run = RunDirectory(tmp_path)
    run.write_config(RunConfig())
    values = json.loads(run.config_path.read_bytes()) | {"format": number}
    run.config_path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(DataError, match="another version"):
        run.read_config()


def test_a_configuration_without_a_format_is_refused(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.config_path.write_text(RunConfig().to_json(), encoding="utf-8")
    with pytest.raises(DataError, match="another version"):
        run.read_config()


def test_opening_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such run directory; make one: dragoman train"):
        RunDirectory.open(tmp_path / "none")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="a file, and no whole bundle of a run"):
        RunDirectory.open(tmp_path / "file")
    with pytest.raises(DataError, match=r"\(config\.json is missing\)"):
        RunDirectory.open(tmp_path)
    RunDirectory(tmp_path).write_config(RunConfig())
    with pytest.raises(DataError, match=r"\(tokenizer\.model is missing\)"):
        RunDirectory.open(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(b"...")
    assert RunDirectory.open(tmp_path).read_config() == RunConfig()
