"""A run as one file: it translates, it says where it comes from, and it can be trained again."""

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.errors import DataError
from dragoman.export.bundle import About, bundle
from dragoman.export.reproduce import reproduce
from dragoman.files import sha256
from dragoman.run_directory import RunDirectory, unpack
from dragoman.translation.translator import Translator
from support.commands import Ran


@pytest.fixture(scope="module")
def packed(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundles") / "tiny.dragoman.zip"
    return bundle(tiny_run, out, About(licence="CC-BY-4.0", data_licence="CC0-1.0", author="A | B"), with_text=True)


def test_the_card_says_where_it_comes_from(packed: Path, tiny_run: Path, tiny_text: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        card, page = json.loads(archive.read("card.json")), archive.read("README.md").decode()
    assert [file["sha256"] for file in card["data"]["train"]] == [sha256(tiny_text / "train.tsv")]
    assert card["data"]["cleaning"][0]["kept"] == 200
    assert card["config"]["model"]["d_model"] == 32
    assert card["validation"]["signature"].startswith("nrefs:1|case:mixed")
    end = json.loads((tiny_run / "metrics.jsonl").read_text().splitlines()[-1])
    assert card["training"]["seconds"] == end["seconds"]
    assert card["files"]["model.safetensors"] == sha256(tiny_run / "model.safetensors")
    for entry in ("CC-BY-4.0", "CC0-1.0", r"A \| B", sha256(tiny_text / "train.tsv"), "90", "nrefs:1|case:mixed"):
        assert entry.replace("s:1|c", r"s:1\|c") in page


def test_every_command_takes_a_bundle_for_a_run(
    packed: Path, tiny_run: Path, tmp_path: Path, cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ran = cli("translate", packed, stdin="the old dog\n")
    assert ran.code == 0, ran.stderr
    assert ran.stdout == cli("translate", tiny_run, stdin="the old dog\n").stdout
    (tmp_path / "in.txt").write_text("the old dog\n", encoding="utf-8")
    into = cli("translate", packed, "--input", tmp_path / "in.txt", "--out", tmp_path / "out.txt")
    assert into.code == 0, into.stderr
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == ran.stdout
    (unpacked,) = (tmp_path / "cache" / "dragoman" / "bundles").iterdir()
    assert Translator.load(packed).translate(["the dog"]) == Translator.load(unpacked).translate(["the dog"])
    assert cli("unbundle", packed, "--out", tmp_path / "run").code == 0
    assert sha256(tmp_path / "run" / "model.safetensors") == sha256(tiny_run / "model.safetensors")
    assert cli("unbundle", packed, "--out", tmp_path / "run").code == 2  # nothing is written over


def test_what_was_calibrated_goes_along(tiny_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")
    (run / "confidence.json").write_text("{}")
    unpack(bundle(run, tmp_path / "tiny.zip", About()), tmp_path / "again")
    assert (tmp_path / "again" / "confidence.json").read_text() == "{}"


def test_a_changed_bundle_is_refused(packed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    card = json.loads(content["card.json"])

    def written(**changes: bytes) -> Path:
        path = tmp_path / "changed.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in {**content, **{key.replace("__", "/"): value for key, value in changes.items()}}.items():
                archive.writestr(name, data)
        return path

    with pytest.raises(DataError, match=r"model.safetensors is not what was packed"):
        unpack(written(**{"run/model.safetensors": b"other"}), tmp_path / "a")
    outside = json.dumps({**card, "files": {"../outside": "0"}}).encode()
    with pytest.raises(DataError, match="is no file of a run"):
        unpack(written(**{"card.json": outside}), tmp_path / "b")
    with zipfile.ZipFile(tmp_path / "text.zip", "w") as archive:
        archive.writestr("text", "no run")
    with pytest.raises(DataError, match="not a bundle of a run"):
        RunDirectory.open(tmp_path / "text.zip")
    assert not any((tmp_path / name).exists() for name in ("a", "b"))


def test_it_is_trained_again_to_the_bit(packed: Path, tmp_path: Path, cli: Callable[..., Ran]) -> None:
    ran = cli("reproduce", packed, "--out", tmp_path / "again")
    assert ran.code == 0, ran.stderr
    assert ran.stdout.splitlines()[-2:] == ["tokenizer: the same", "weights: the same to the bit"]


def test_another_result_is_found_out_by_bits_and_by_bleu(tiny_run: Path, tmp_path: Path) -> None:
    """The bundle of a run whose weights are not what its text and configuration make."""
    other = shutil.copytree(tiny_run, tmp_path / "other")
    first = RunDirectory(other).checkpoints()[0]
    shutil.copy(first / "model.safetensors", other / "model.safetensors")
    found = reproduce(bundle(other, tmp_path / "other.zip"), tmp_path / "again")
    assert (found.same_bits, found.expected_bits, found.holds) == (False, True, False)
    assert found.comparison is not None
    assert found.comparison.bleu.b > found.comparison.bleu.a  # 90 steps against 30


def test_missing_text_is_named_and_found_by_its_hash(tiny_run: Path, tiny_text: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(tiny_run, tmp_path / "moved")
    for name in ("config.json", "cleaning.json"):
        text = (moved / name).read_text(encoding="utf-8").replace(str(tiny_text), "/nowhere")
        (moved / name).write_text(text, encoding="utf-8")
    packed = bundle(moved, tmp_path / "moved.zip")
    with pytest.raises(DataError, match=r"its text /nowhere/train.tsv .* --text DIR"):
        reproduce(packed, tmp_path / "again")
    assert reproduce(packed, tmp_path / "again", [tiny_text]).same_bits
