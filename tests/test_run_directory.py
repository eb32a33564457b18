"""A run's files are whole or not there, and a directory that is no run says so."""

import json
import os
import stat
from pathlib import Path

import pytest

from dragoman.config import ModelConfig, RunConfig, SearchConfig
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.run_directory import FORMAT, RunDirectory, discard, read_json, replacing, step_of, write_atomically


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


class BrokenError(Exception):
    pass


def write_and_fail(path: Path, error: BaseException) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(b"half of the n")
        raise error


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with replacing(path) as temporary:
        temporary.write_text("half", encoding="utf-8")
        assert not path.exists()
        temporary.write_text("whole", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "whole"
    assert names(path.parent) == ["file"]


@pytest.mark.parametrize("error", [BrokenError, KeyboardInterrupt])
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(error):
        write_and_fail(path, error())
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_full_disk_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(
        DragomanError, match=r"file: cannot be written \(No space left on device\); .*unchanged"
    ) as raised:
        write_and_fail(path, OSError(28, os.strerror(28)))
    assert raised.value.exit_code == 1
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_what_a_crash_left_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / ".file.partial").mkdir()
    (tmp_path / ".file.partial" / "rubbish").write_bytes(b"1")
    (tmp_path / ".file.outdated").mkdir()
    write_atomically(tmp_path / "file", b"new")
    assert names(tmp_path) == ["file"]


def test_what_else_is_in_the_directory_is_nobodys_business(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # whoever opens it waits for a writer
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_directories_that_nothing_came_of_do_not_stay(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()

    def write(path: Path) -> None:
        with replacing(path) as temporary:
            temporary.write_bytes(b"half")
            raise BrokenError

    for path in (tmp_path / "old" / "new" / "newer" / "file", tmp_path / "old" / "file"):
        with pytest.raises(BrokenError):
            write(path)
    assert list(tmp_path.rglob("*")) == [tmp_path / "old"]


def test_a_path_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(DragomanError, match="below: cannot be written"):
        write_atomically(tmp_path / "file" / "below", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_file_never_replaces_a_directory(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "work").write_bytes(b"of years")
    with pytest.raises(DragomanError, match="Is a directory"):
        write_atomically(tmp_path / "precious", b"new")
    assert names(tmp_path) == ["precious"]
    assert (tmp_path / "precious" / "work").read_bytes() == b"of years"


def test_a_directory_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "step-00000001"
    for content in ("first", "second"):
        with replacing(path) as directory:
            directory.mkdir()
            (directory / content).write_text(content, encoding="utf-8")
            if content == "second":
                assert names(path) == ["first"]
    assert names(path) == ["second"]
    assert names(tmp_path) == ["step-00000001"]


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
    assert names(tmp_path) == []


def test_discarding_removes_all_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "step-1" / "inner").mkdir(parents=True)
    (tmp_path / "step-1" / "inner" / "file").write_bytes(b"1")
    discard(tmp_path / "step-1")
    assert names(tmp_path) == []


def test_files_have_the_users_own_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_files_have_the_users_own_permissions_whoever_wrote_them(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "directory") as temporary:
            (temporary / "within").mkdir(parents=True)
            for name in ("a", "within/b"):  # as safetensors does, and tempfile
                os.close(os.open(temporary / name, os.O_CREAT, 0o600))
    finally:
        os.umask(before)
    found = [path for path in (tmp_path / "directory").rglob("*") if path.is_file()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in found] == [0o640, 0o640]


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


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"a": 1}}'])
def test_what_is_not_json_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.json: not valid JSON"):
        read_json(tmp_path / "config.json")


def test_json_must_be_an_object_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_bytes(b"[1]")
    with pytest.raises(ConfigError, match="expected a JSON object, found list"):
        read_json(tmp_path / "list.json")
    with pytest.raises(DataError, match="Is a directory"):
        read_json(tmp_path)


def test_opening_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such run directory; make one: dragoman train"):
        RunDirectory.open(tmp_path / "none")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="no such run directory"):
        RunDirectory.open(tmp_path / "file")
    with pytest.raises(DataError, match=r"\(config\.json is missing\)"):
        RunDirectory.open(tmp_path)
    RunDirectory(tmp_path).write_config(RunConfig())
    with pytest.raises(DataError, match=r"\(tokenizer\.model is missing\)"):
        RunDirectory.open(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(b"...")
    assert RunDirectory.open(tmp_path).read_config() == RunConfig()
