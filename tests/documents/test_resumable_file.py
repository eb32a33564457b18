"""`dragoman translate-file`: the command, its report, and going on after a stop."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from dragoman.documents.resumable_file import translate_document
from dragoman.documents.sentence_translator import RunSentenceTranslator
from dragoman.translation.result import SourceSentence, Translation

PAGE = (
    "<html><body><h1>the old dog</h1>"
    + "".join(
        f"<p>the child sees the <b>red house</b> near tree {number}</p>\n<p>the {word} hears <i>the river</i>.</p>\n"
        for number, word in [("7", "dog"), ("", "cat"), ("", "child"), ("42", "old dog")]
    )
    + '<p>see https://example.org/x or <a href="mailto:a@b.org">a@b.org</a> {name}</p></body></html>\n'
)


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run, tmp_path / "run"))


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_the_command(run: Path, page: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    out, report = tmp_path / "out.html", tmp_path / "report.json"
    ran = cli("translate-file", run, page, "--out", out, "--report", report, "--source-language", "en", "--json")
    assert ran.code == 0, ran.stderr
    before, after = (BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in (page, out))
    assert [(t.name, t.attrs) for t in after(True) if t.name not in "ib"] == [
        (t.name, t.attrs) for t in before(True) if t.name not in "ib"
    ]
    for paragraph_before, paragraph_after in zip(before("p"), after("p"), strict=True):
        assert sorted(t.name for t in paragraph_before(True)) == sorted(t.name for t in paragraph_after(True))
    text = after.get_text()
    assert "hundo" in text
    assert "https://example.org/x" in text
    assert [link.text for link in after("a")] == ["a@b.org"]
    assert text.count("{name}") == 1
    assert "7" in text
    assert "42" in text
    said = json.loads(report.read_text(encoding="utf-8"))
    assert said["sentences"] == sum(said["how"].values()) == json.loads(ran.stdout)["sentences"] == 10
    assert said["format"] == "html"
    assert len(said["sentences_listed"]) == said["listed"] > 0
    # The tiny model never saw a digit or an address: each such sentence is listed with what it lost.
    listed = {one["sentence"]: one for one in said["sentences_listed"]}
    assert listed[10]["how"] != "plain"
    assert all({"sentence", "how", "explanation", "notes", "source", "output"} == set(one) for one in listed.values())
    assert {path.name for path in tmp_path.iterdir()} == {"run", "page.html", "out.html", "report.json"}
    # Without a report, the last line says how many there would be in it.
    ran = cli("translate-file", run, page, "--out", tmp_path / "again.html", "--source-language", "en")
    assert ran.stderr.endswith(f"; --report FILE lists {said['listed']} to look at\n")


class _StoppedError(Exception):
    pass


def test_a_stopped_document_goes_on_and_ends_the_same(run: Path, page: Path, tmp_path: Path) -> None:
    translator = RunSentenceTranslator.load(run, engine="reference", beam=1)
    said: list[str] = []

    def document(out: Path) -> None:
        translate_document(translator, page, out, "html", identity=["x"], say=said.append, window=5)

    document(tmp_path / "whole.html")
    asked: list[int] = []
    plain = translator.translate

    def stopping(sentences: Sequence[SourceSentence]) -> list[Translation]:
        if len(sentences) == 5:
            asked.append(len(sentences))
        if len(asked) == 2:
            raise _StoppedError
        return plain(sentences)

    translator.translate = stopping  # type: ignore[method-assign]
    with pytest.raises(_StoppedError):
        document(tmp_path / "out.html")
    assert not (tmp_path / "out.html").exists()
    journal = tmp_path / "out.html.journal"
    lines = journal.read_bytes()
    finished = lines.count(b"\n") - 1
    assert finished == 5
    journal.write_bytes(lines + b'["plain", ["half a li')  # the disk was full in the middle of a line
    translator.translate = plain  # type: ignore[method-assign]
    document(tmp_path / "out.html")
    assert f"{tmp_path / 'out.html'}: going on after sentence {finished}" in said
    assert (tmp_path / "out.html").read_bytes() == (tmp_path / "whole.html").read_bytes()
    assert not journal.exists()


def test_the_journal_of_another_work_is_not_gone_on_with(run: Path, page: Path, tmp_path: Path) -> None:
    (tmp_path / "out.html.journal").write_text('{"fingerprint": "other"}\n["plain", ["x"], []]\n', encoding="utf-8")
    said: list[str] = []
    translator = RunSentenceTranslator.load(run, beam=1)
    translate_document(translator, page, tmp_path / "out.html", "html", identity=[], say=said.append)
    assert not [line for line in said if "going on" in line]


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.txt", "--out", "o.txt"], 3, "missing.txt: no such file; check the path"),
        (["page.odg", "--out", "o.odg"], 2, "page.odg: not a known kind of document; known are .txt"),
        (["page.pdf", "--out", "o.pdf"], 2, "or its text alone: pdftotext page.pdf page.txt"),
        (["page.html", "--out", "o.html", "--column", "a"], 2, "--column a: only CSV and TSV have columns"),
        (["page.html", "--out", "page.html"], 2, "--out page.html: the document itself; name another file"),
        (["page.html", "--out", "run"], 2, "--out run: a directory; name a file"),
        (["page.html", "--out", "no/o.html"], 2, "--out no/o.html: no directory no; make it first"),
        (["page.html", "--out", "o.docx", "--format", "docx"], 3, "page.html: no DOCX file, or a damaged one"),
    ],
)
def test_what_is_wrong_is_named(
    arguments: list[str],
    code: int,
    message: str,
    page: Path,
    cli: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(page.parent)
    (page.parent / "page.pdf").write_bytes(b"x")
    ran = cli("translate-file", "run", *arguments)
    assert ran.code == code
    assert message in ran.stderr
    assert not list(page.parent.glob("*.journal"))
