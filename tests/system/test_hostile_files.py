"""Files from someone who means harm, or from a broken disk: each is read or refused in one line, and that is all."""

import io
import json
import os
import pickle
import random
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.pair_formats import read_any
from dragoman.documents import archive_file
from dragoman.documents.format_names import DocumentFormat
from dragoman.documents.pipeline import translate_bytes
from dragoman.errors import DataError, DragomanError
from dragoman.run_directory import unpack
from support.document_samples import DOCUMENTS, MAIN_PART, OPEN, WORD, packed
from support.fuzz import TOKENS, Target, mutated
from support.scripted_translator import Scripted, careful

Cli = Callable[..., Any]

MARKUP = [
    b"<b>",
    b"</b>",
    b"<",
    b">",
    b"&",
    b"&#0;",
    b"]]>",
    b"<!--",
    b"-->",
    b"*",
    b"`",
    b"[",
    b"](",
    b"\\",
    b'msgid "',
]


def translated(content: bytes, kind: DocumentFormat) -> bytes:
    return translate_bytes(content, kind, "document", Scripted(careful))[0]


# Documents


def damage_documents(count: int, seed: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        kind = list(DOCUMENTS)[number % len(DOCUMENTS)]
        content = DOCUMENTS[kind]
        if kind not in MAIN_PART:
            content = mutated(Target([content], Path.stat, TOKENS + MARKUP), draw)
        elif draw.random() < 0.5:  # the text in it, else the archive itself
            content = packed(kind, mutated(Target([content], Path.stat, TOKENS + MARKUP), draw))
        else:
            content = mutated(
                Target([packed(kind, content), packed(kind, content, store=True)], Path.stat, TOKENS), draw
            )
        outcomes[outcome(lambda content=content, kind=kind: translated(content, kind))] += 1  # type: ignore[misc]
    return outcomes


def outcome(read: Callable[[], object]) -> str:
    """`read`, or `refused` in one line; anything else is raised."""
    try:
        read()
    except DragomanError as error:
        if len(str(error).splitlines()) != 1:
            raise
        return "refused"
    return "read"


def test_a_whole_document_is_translated() -> None:
    for kind, content in DOCUMENTS.items():
        given = packed(kind, content) if kind in MAIN_PART else content
        assert translated(given, kind) != given


def test_a_damaged_document_is_translated_or_refused_in_one_line() -> None:
    outcomes = damage_documents(10 * len(DOCUMENTS), seed=1)
    assert outcomes["read"]
    assert outcomes["refused"]


@pytest.mark.full
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_so_are_many(seed: int) -> None:
    assert damage_documents(3000, seed).total() == 3000


@pytest.mark.parametrize(
    ("kind", "text", "unclosed"),
    [
        ("docx", b"<w:p><w:r></w:p>", "w:r"),
        ("docx", b"<w:p><w:r><w:t>The dog</w:p>", "w:r"),
        ("docx", b"<w:p><w:r><w:t>The dog</w:r></w:p>", "w:t"),
        ("docx", b"<w:p><w:r><w:rPr><w:t>The dog</w:t></w:r></w:p>", "w:rPr"),
        ("docx", b"<w:p><w:r><w:drawing></w:r></w:p>", "w:drawing"),
        ("docx", b"<w:p><w:sdt></w:p>", "w:sdt"),
        ("docx", b"<w:p><w:sdt><w:sdtContent></w:sdt></w:p>", "w:sdtContent"),
        ("docx", b"<w:p><w:pPr></w:p>", "w:pPr"),
        ("docx", b"<w:p>", "w:p"),
        ("odt", b"<text:p>The dog<text:note></text:p>", "text:note"),
        ("odt", b"<text:p>The dog<draw:frame><svg:title></draw:frame></text:p>", "svg:title"),
        ("odt", b"<text:h>The dog", "text:h"),
        ("odt", b"<text:p>", "text:p"),
    ],
)
def test_an_element_without_its_end_is_refused(kind: DocumentFormat, text: bytes, unclosed: str) -> None:
    part, around = ("word/document.xml", WORD) if kind == "docx" else ("content.xml", OPEN)
    for content in (around % text, text):  # with the ends of what is around it, and where the file is cut off
        with pytest.raises(DataError) as refused:
            translated(packed(kind, content), kind)
        told = f"document: {part} is damaged (<{unclosed}> has no end); save the document again"
        assert str(refused.value) == told


def test_a_span_without_its_end_is_left_as_it_is() -> None:
    found = translated(packed("odt", OPEN % b"<text:p>The <text:span>dog</text:p>"), "odt")
    with zipfile.ZipFile(io.BytesIO(found)) as archive:
        assert archive.read("content.xml").count(b"<text:span>") == 1


def test_an_entity_is_not_expanded(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret", encoding="utf-8")
    lol = "".join(f'<!ENTITY x{i} "{f"&x{i - 1};" * 10}">' for i in range(1, 10))
    declared = f'<!DOCTYPE w [<!ENTITY x0 "lol"><!ENTITY file SYSTEM "{secret.as_uri()}">{lol}]>'.encode()
    text = b"Dogs &file; and &x9; here."
    for given, kind in (
        (declared + b"<p>" + text + b"</p>", "html"),
        (packed("docx", declared + WORD % (b"<w:p><w:r><w:t>" + text + b"</w:t></w:r></w:p>")), "docx"),
        (packed("odt", declared + OPEN % (b"<text:p>" + text + b"</text:p>")), "odt"),
    ):
        said = translated(given, kind)  # type: ignore[arg-type]
        if kind != "html":
            with zipfile.ZipFile(io.BytesIO(said)) as archive:
                said = archive.read(archive.namelist()[0])
        assert b"secret" not in said.replace(secret.as_uri().encode(), b"")
        assert len(said) < 5000
        assert b"file" in said.lower()


def test_pairs_hold_nothing_of_another_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret", encoding="utf-8")
    lol = "".join(f'<!ENTITY x{i} "{f"&x{i - 1};" * 10}">' for i in range(1, 12))
    for entity in (f'<!ENTITY x SYSTEM "{secret.as_uri()}">', f'<!ENTITY x0 "lol">{lol}<!ENTITY x "&x11;">'):
        (tmp_path / "a.tmx").write_text(
            f'<?xml version="1.0"?><!DOCTYPE tmx [{entity}]><tmx version="1.4"><header srclang="en"/><body>'
            '<tu><tuv xml:lang="en"><seg>one &x;</seg></tuv><tuv xml:lang="fr"><seg>un &x;</seg></tuv></tu>'
            "</body></tmx>",
            encoding="utf-8",
        )
        (tmp_path / "a.xliff").write_text(
            f'<?xml version="1.0"?><!DOCTYPE xliff [{entity}]><xliff version="1.2"><file source-language="en" '
            'target-language="fr" original="x" datatype="plaintext"><body><trans-unit id="1"><source>one &x;</source>'
            "<target>un &x;</target></trans-unit></body></file></xliff>",
            encoding="utf-8",
        )
        for name in ("a.tmx", "a.xliff"):
            found: list[tuple[str, str]] = []
            outcome(lambda name=name, found=found: found.extend(read_any([tmp_path / name]).pairs))  # type: ignore[misc]
            assert all("secret" not in text and len(text) < 100 for pair in found for text in pair)


@pytest.mark.parametrize("kind", MAIN_PART)
def test_a_document_that_unpacks_without_end_is_refused(kind: DocumentFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_file, "LARGE", 1 << 20)
    bombs = [
        packed(kind, DOCUMENTS[kind], more={"media/a": bytes(4 << 20)}),
        packed(kind, DOCUMENTS[kind] + b" " * (4 << 20)),
    ]
    for bomb in bombs:
        with pytest.raises(DataError, match=r"document: unpacks to 4,\d+,\d+ bytes, [\d,]+ times its size"):
            translated(bomb, kind)
    large = packed(kind, DOCUMENTS[kind], more={"media/a": random.Random(1).randbytes(4 << 20)})
    assert translated(large, kind)


def test_a_part_that_is_packed_in_an_unknown_way_is_refused() -> None:
    content = bytearray(packed("docx", DOCUMENTS["docx"]))
    for mark, at in ((b"PK\1\2", 10), (b"PK\3\4", 8)):  # where both say how the first part is packed
        place = content.find(mark) + at
        content[place : place + 2] = b"\xf1\xf1"
    with pytest.raises(DataError, match=r"document: word/document\.xml is damaged"):
        translated(bytes(content), "docx")


def test_parts_named_like_paths_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    names = ["../outside", "../../outside", str(tmp_path / "absolute"), "word/../../outside", "C:\\outside"]
    content = packed("docx", DOCUMENTS["docx"], more=dict.fromkeys(names, b"x"))
    said = translated(content, "docx")
    with zipfile.ZipFile(io.BytesIO(said)) as archive:
        assert archive.namelist() == ["word/document.xml", *names]
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["here"]


# Runs


def bundle_of(path: Path, files: dict[str, bytes], recorded: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("card.json", json.dumps({"files": recorded}))
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "..", ".", "", "a\\..\\out", "out\0"])
def test_a_bundle_writes_nowhere_else(name: str, tmp_path: Path) -> None:
    trap = bundle_of(tmp_path / "trap.zip", {f"run/{name}": b"x"}, {name: "0"})
    with pytest.raises(DataError, match=r"no file of a run|not a bundle"):
        unpack(trap, tmp_path / "below" / "run")
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["trap.zip"]


def test_a_bundle_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.run_directory.LARGE", 1 << 20)
    trap = bundle_of(tmp_path / "trap.zip", {"run/model.safetensors": bytes(4 << 20)}, {"model.safetensors": "0"})
    with pytest.raises(DataError, match=r"unpacks to 4,194,3\d\d bytes, far more than any run"):
        unpack(trap, tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Harmful:
    """What runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_is_not_obeyed(tiny_run: Path, tmp_path: Path, cli: Cli) -> None:
    theirs = tmp_path / "theirs"
    assert cli("export", tiny_run, "--format", "marian-hf", "--out", theirs).code == 0
    (theirs / "model.safetensors").unlink()
    harmed = tmp_path / "harmed"
    import torch

    for harm in (pickle.dumps(Harmful(harmed)), _saved(torch, {"a": Harmful(harmed)}), b"\x80\x04.", b"", b"no pickle"):
        (theirs / "pytorch_model.bin").write_bytes(harm)
        ran = cli("import", theirs, "--out", tmp_path / "ours")
        assert ran.code == 3, ran.stderr
        (line,) = ran.stderr.splitlines()
        assert "pytorch_model.bin: holds something else than tensors" in line
        assert not harmed.exists()
        assert not (tmp_path / "ours").exists()


def _saved(torch: Any, value: object) -> bytes:
    found = io.BytesIO()
    torch.save(value, found)
    return found.getvalue()


def damage_runs(run: Path, cli: Cli, there: Path, count: int, seed: int) -> Counter[str]:
    """One file of a run damaged at a time: it still translates, or the command says in one line what is wrong."""
    expected = cli("translate", run, stdin="the dog\n").stdout
    assert expected
    files = sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file())
    files = [name for name in files if not name.startswith(("data", "checkpoints", "tensorboard"))]
    outcomes: Counter[str] = Counter()
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        name = files[number % len(files)]
        damaged = shutil.copytree(run, there / "run", ignore=shutil.ignore_patterns("data", "checkpoints"))
        content = mutated(Target([(damaged / name).read_bytes()], Path.stat, TOKENS), draw)
        (damaged / name).write_bytes(content)
        ran = cli("translate", damaged, stdin="the dog\n")
        lines = ran.stderr.splitlines()
        assert "Traceback" not in ran.stderr
        assert "DRAGOMAN_TRACEBACK" not in ran.stderr, name
        if ran.code == 0:
            assert len(ran.stdout.splitlines()) == 1
            outcomes["harmless"] += 1
        else:
            assert ran.code in (1, 3)
            assert [line for line in lines if line.startswith("dragoman: ")] == lines[-1:], ran.stderr
            outcomes["named"] += 1
        shutil.rmtree(damaged)
    return outcomes


def test_a_damaged_file_of_a_run_is_named_or_harmless(tiny_run: Path, tmp_path: Path, cli: Cli) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "own")
    outcomes = damage_runs(run, cli, tmp_path, 24, seed=1)
    assert outcomes["named"]
    assert outcomes["harmless"]


@pytest.mark.full
def test_so_are_hundreds_of_them(tiny_run: Path, tmp_path: Path, cli: Cli) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "own")
    assert damage_runs(run, cli, tmp_path, 320, seed=2).total() == 320
