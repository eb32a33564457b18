"""Files are whole or not there, hashes and manifests tell what was changed, locks let one in at a time."""

import hashlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dragoman import files
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.files import (
    damage,
    directory_made,
    discard,
    flush_to_disk,
    locked,
    open_exclusively,
    read_json,
    read_manifest,
    replacing,
    sha256,
    try_lock,
    write_atomically,
    write_manifest,
)


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


def synced_paths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is flushed to the disk from now on, in order."""
    flushed: list[str] = []

    def note(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    monkeypatch.setattr("os.fsync", note)
    return flushed


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = synced_paths(monkeypatch)
    write_atomically(tmp_path / "file", b"new")
    assert flushed == [".file.partial", tmp_path.name]


def test_all_of_a_directory_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = synced_paths(monkeypatch)
    with replacing(tmp_path / "directory") as temporary:
        (temporary / "inner").mkdir(parents=True)
        (temporary / "inner" / "file").write_bytes(b"1")
        (temporary / "link").symlink_to("nowhere")
    assert sorted(flushed[:-2]) == ["file", "inner"]
    assert flushed[-2:] == [".directory.partial", tmp_path.name]


def test_flushing_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = synced_paths(monkeypatch)
    with (tmp_path / "file").open("wb") as file:
        file.write(b"text")
        flush_to_disk(file)
        assert (tmp_path / "file").read_bytes() == b"text"
    assert flushed == ["file"]


def test_a_directory_stays_where_something_came_of_it(tmp_path: Path) -> None:
    with directory_made(tmp_path / "a" / "b"):
        pass
    assert (tmp_path / "a" / "b").is_dir()

    def fail_with_a_file() -> None:
        with directory_made(tmp_path / "c" / "d"):
            (tmp_path / "c" / "file").write_bytes(b"1")
            raise BrokenError

    with pytest.raises(BrokenError):
        fail_with_a_file()
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["file"]


def test_the_hash_of_a_file(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(content)
    expected = hashlib.sha256(content).hexdigest()
    assert sha256(tmp_path / "file") == sha256(str(tmp_path / "file")) == expected


def test_a_manifest_tells_what_was_changed_and_misses_nothing_that_was_removed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    write_manifest(tmp_path, made_by={"version": "1"})
    assert read_manifest(tmp_path)["made_by"] == {"version": "1"}
    assert read_manifest(tmp_path)["files"] == {name: hashlib.sha256(name.encode()).hexdigest() for name in ("a", "b")}
    assert damage(tmp_path) is None
    (tmp_path / "a").unlink()
    assert damage(tmp_path) is None
    (tmp_path / "b").write_text("c", encoding="utf-8")
    assert damage(tmp_path) == "b is not what was written"
    (tmp_path / "manifest.json").write_text('{"files": [1]}', encoding="utf-8")
    assert "AttributeError" in (damage(tmp_path) or "")
    (tmp_path / "manifest.json").unlink()
    assert "cannot be read" in (damage(tmp_path) or "")


HOLD = """
import sys
from pathlib import Path
from dragoman.files import open_exclusively
with open_exclusively(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_file_that_another_process_writes_is_refused_until_that_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "out"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(DragomanError, match="out: another process is writing it"), open_exclusively(path):
            pass
        holder.kill()
        holder.wait(30)
    with open_exclusively(path) as file:
        file.write(b"ours")
    assert path.read_bytes() == b"ours"


def test_what_is_in_an_exclusive_file_stays_and_is_added_to(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"before ")
    with open_exclusively(tmp_path / "out") as file:
        file.write(b"after")
    assert (tmp_path / "out").read_bytes() == b"before after"
    with (
        pytest.raises(DragomanError, match=r"below: cannot be written \(Not a directory\)"),
        open_exclusively(tmp_path / "out" / "below"),
    ):
        pass


def test_readers_share_a_lock_and_a_writer_has_it_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with (tmp_path / "file").open("rb") as first, (tmp_path / "file").open("rb") as second:
        assert try_lock(first.fileno(), shared=True)
        assert try_lock(second.fileno(), shared=True)
        assert not try_lock(second.fileno())


def test_one_thread_at_a_time_is_let_into_a_locked_directory(tmp_path: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with locked(tmp_path):
            entered.set()

    with locked(tmp_path):
        waiting = threading.Thread(target=enter, daemon=True)
        waiting.start()
        assert not entered.wait(0.2)
    assert entered.wait(30)
    waiting.join(30)
    assert list(tmp_path.iterdir()) == []


def test_where_the_system_has_no_locks_all_are_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    with locked(tmp_path), locked(tmp_path), open_exclusively(tmp_path / "a"), open_exclusively(tmp_path / "a"):
        pass


def test_where_the_file_system_has_no_locks_all_are_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with locked(tmp_path), locked(tmp_path), open_exclusively(tmp_path / "a"), open_exclusively(tmp_path / "a"):
        pass


WITHOUT_UNIX = """
import importlib, os, pathlib, select, sys, types
sys.modules["portalocker"] = types.ModuleType("portalocker")  # sacreBLEU's, which has its own way for each system
for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for module, name in ((os, "sched_getaffinity"), (os, "pread"), (os, "fork"), (select, "poll")):
    delattr(module, name)
for name in ("cli.main", "translation.translator", "documents.resumable_file", "serve.app", "serve.service"):
    importlib.import_module(f"dragoman.{name}")
from dragoman.files import locked, open_exclusively, write_atomically
from dragoman.processes import cores
here = pathlib.Path(sys.argv[1])
write_atomically(here / "file", b"new")
with locked(here), open_exclusively(here / "out"):
    print(cores() >= 1, (here / "file").read_bytes())
"""


def test_what_translates_serves_and_reads_documents_asks_for_nothing_that_only_unix_has(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (ran.stdout, ran.stderr) == ("True b'new'\n", "")
