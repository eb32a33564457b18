"""A file of a package, from wherever pip is set up to look: over HTTP as HTML and JSON, and from this machine."""

import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.errors import DataError
from dragoman.quickstart.package_index import NotFetchedError, PipSettings, fetch_file, pip_settings
from support.loopback_files import Answer, served

CONTENT = b"a source distribution"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "thing-1.0.tar.gz"


def fetched(into: Path, *, indexes: tuple[str, ...] = (), links: tuple[str, ...] = ()) -> Path:
    into.mkdir(exist_ok=True)
    return fetch_file("thing", NAME, SHA256, into, PipSettings(indexes, links, timeout=10))


PAGE = f"""<!DOCTYPE html><html><body>
<a href="../../files/thing-0.9.tar.gz#sha256=00">thing-0.9.tar.gz</a>
<a href="../../files/{NAME}.asc">{NAME}</a>
<a href="../../files/{NAME}#sha256={SHA256}" data-requires-python="&gt;=3">{NAME}</a></body></html>""".encode()
LISTED = {
    "html": ("text/html; charset=utf-8", PAGE),
    "html with a base": ("text/html", f'<base href="/files/"><a href="{NAME}">it</a>'.encode()),
    "versioned html": ("application/vnd.pypi.simple.v1+html", PAGE),
    "json": (
        "application/vnd.pypi.simple.v1+json",
        json.dumps({"files": [{"filename": NAME, "url": f"/files/{NAME}", "hashes": {"sha256": SHA256}}]}).encode(),
    ),
}


@pytest.mark.parametrize("form", LISTED)
def test_an_index_over_http(form: str, tmp_path: Path) -> None:
    seen: list[tuple[str, dict[str, str]]] = []
    answers = {"/simple/thing/": (200, *LISTED[form]), f"/files/{NAME}": (200, "application/gzip", CONTENT)}
    with served(answers, seen) as host:
        path = fetched(tmp_path, indexes=(f"http://{host}/simple",))
    assert path == tmp_path / NAME
    assert path.read_bytes() == CONTENT
    assert [asked for asked, _ in seen] == ["/simple/thing/", f"/files/{NAME}"]
    assert "application/vnd.pypi.simple.v1+json" in seen[0][1]["Accept"]


def test_a_page_of_links_over_http(tmp_path: Path) -> None:
    answers = {"/links.html": (200, "text/html", f'<a href="{NAME}">it</a>'.encode()), f"/{NAME}": (200, "", CONTENT)}
    with served(answers) as host:
        assert fetched(tmp_path, links=(f"http://{host}/links.html",)).read_bytes() == CONTENT


def test_a_password_goes_to_its_own_host_alone(tmp_path: Path) -> None:
    seen: list[tuple[str, dict[str, str]]] = []
    elsewhere: list[tuple[str, dict[str, str]]] = []
    with served({f"/files/{NAME}": (200, "", CONTENT)}, elsewhere) as other:
        answers = {
            "/simple/thing/": (200, "text/html", f'<a href="/here/{NAME}">it</a>'.encode()),
            f"/here/{NAME}": (302, f"http://{other}/files/{NAME}", b""),
        }
        with served(answers, seen) as host:
            assert fetched(tmp_path, indexes=(f"http://me:s%40cret@{host}/simple/",)).read_bytes() == CONTENT
    basic = f"Basic {base64.b64encode(b'me:s@cret').decode()}"
    assert [headers.get("Authorization") for _, headers in seen] == [basic, basic]
    assert [headers.get("Authorization") for _, headers in elsewhere] == [None]


def test_places_on_this_machine(tmp_path: Path) -> None:
    """An index of directories with pages, a directory of files as a path and as an address, and a page of links."""
    files, index = tmp_path / "some files", tmp_path / "simple" / "thing"
    files.mkdir()
    index.mkdir(parents=True)
    (files / NAME).write_bytes(CONTENT)
    (index / "index.html").write_text(f'<a href="../../some%20files/{NAME}#sha256={SHA256}">{NAME}</a>')
    assert fetched(tmp_path / "a", indexes=(index.parent.as_uri(),)).read_bytes() == CONTENT
    assert fetched(tmp_path / "b", links=(str(files),)).read_bytes() == CONTENT
    assert fetched(tmp_path / "c", links=(files.as_uri(),)).read_bytes() == CONTENT
    assert fetched(tmp_path / "d", links=(str(index / "index.html"),)).read_bytes() == CONTENT


def test_the_next_place_is_asked_where_one_has_nothing_or_another_file(tmp_path: Path) -> None:
    wrong, right = tmp_path / "wrong", tmp_path / "right"
    for directory, content in ((wrong, b"another"), (right, CONTENT)):
        directory.mkdir()
        (directory / NAME).write_bytes(content)
    places = (str(tmp_path / "nothing"), str(wrong), str(right))
    assert fetched(tmp_path / "into", links=places).read_bytes() == CONTENT
    expected = f"sha256 is {hashlib.sha256(b'another').hexdigest()}, expected {SHA256}"
    with pytest.raises(DataError, match=expected):
        fetched(tmp_path / "refused", links=places[:2])
    assert not list((tmp_path / "refused").iterdir())


def test_a_server_cannot_name_a_file_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(CONTENT)
    page = f'<a href="{(tmp_path / NAME).as_uri()}">it</a>'.encode()
    with (
        served({"/simple/thing/": (200, "text/html", page)}) as host,
        pytest.raises(NotFetchedError, match="it has no such file"),
    ):
        fetched(tmp_path / "into", indexes=(f"http://{host}/simple",))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((403, "text/plain", b"no"), "it answers 403"),
        ((200, "text/html", b"<a href='thing-2.0.tar.gz'>"), "it has no such file"),
        ((200, "text/html", b"\xff\xfe"), "its list of files cannot be read"),
        ((200, "application/vnd.pypi.simple.v1+json", b"[]"), "its list of files cannot be read"),
        ((200, "application/vnd.pypi.simple.v1+json", b"{"), "its list of files cannot be read"),
        ((302, "file:///etc/hostname", b""), "it answers 302"),
    ],
)
def test_what_is_wrong_is_said_without_the_address(answer: Answer, reason: str, tmp_path: Path) -> None:
    with served({"/simple/thing/": answer}) as host, pytest.raises(NotFetchedError) as caught:
        fetched(tmp_path, indexes=(f"http://me:secret@{host}/simple",))
    assert str(caught.value) == f"package index: {reason}"


def test_no_connection_is_said_without_the_address(tmp_path: Path) -> None:
    with served({}) as host:
        pass  # nobody listens there now
    with pytest.raises(NotFetchedError, match=r"^package index: no connection \(Connection refused\)$"):
        fetched(tmp_path, indexes=(f"http://me:secret@{host}/simple",))


def test_the_settings_are_those_of_pip_itself(tmp_path: Path) -> None:
    """The real pip, with a file of settings and an environment of their own."""
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = http://a/simple\nextra-index-url =\n  http://b/simple\n  file:///c\ntimeout = 7\n"
        "find-links = /one /two\nproxy = http://p:1\n[download]\nindex-url = http://d/simple\n"
        "[install]\nindex-url = http://not-for-us/simple\n"
    )
    alone = {"PIP_CONFIG_FILE": str(file), "HOME": str(tmp_path), "PATH": "", "XDG_CONFIG_HOME": str(tmp_path)}
    found = pip_settings(alone)
    assert found.indexes[0] == "http://d/simple"
    assert found.indexes[1:] == ("http://b/simple", "file:///c")
    assert found.links == ("/one", "/two")
    assert (found.proxy, found.timeout) == ("http://p:1", 7.0)
    assert pip_settings({**alone, "PIP_INDEX_URL": "http://e/simple"}).indexes[0] == "http://e/simple"
    assert pip_settings({**alone, "PIP_NO_INDEX": "1"}).indexes == ()
    file.write_text("")
    [default] = pip_settings(alone).indexes
    assert default.startswith("https://")


@pytest.mark.parametrize("fails", [False, True])
def test_a_pip_that_does_not_say_is_no_end(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(command: list[str], **given: float) -> subprocess.CompletedProcess[str]:
        assert command[:3] == [sys.executable, "-m", "pip"]
        if fails:
            return subprocess.CompletedProcess(command, 1, "", "No module named pip")
        raise subprocess.TimeoutExpired(command, given["timeout"])

    monkeypatch.setattr(subprocess, "run", answer)
    with pytest.raises(NotFetchedError, match=r"pip d(id|oes) not"):
        pip_settings({})
