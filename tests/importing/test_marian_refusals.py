"""What a Marian model may not be, or be tampered into, is said in a line; nothing of it is executed or written."""

import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.errors import ConfigError, DataError
from dragoman.importing.read import read_model
from support.commands import Ran
from support.marian_archives import NAME, VOCABULARY, archive_of, save_npz, write_marian

SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "another type": ({"type": "s2s"}, r"type = s2s; models of type transformer can be imported"),
    "several encoders": ({"type": "multi-transformer"}, r"type = multi-transformer; models of type transformer"),
    "recurrent": (
        {"transformer_decoder_autoreg": "rnn"},
        r"transformer-decoder-autoreg = rnn; models with self-attention can be imported",
    ),
    "averaged": (
        {"transformer_decoder_autoreg": "average-attention"},
        r"autoreg = average-attention; models with self",
    ),
    "learned positions": (
        {"transformer_train_position_embeddings": True},
        r"transformer-train-position-embeddings = true; models with false can be imported",
    ),
    "order": (
        {"transformer_preprocess": "n"},
        r'transformer-preprocess = "n", transformer-postprocess = "dan", transformer-postprocess-top = ""; models with '
        r'"", "dan" and "", or "n", "da" and "n" can be imported',
    ),
    "highway": ({"transformer_postprocess": "dhn"}, r'transformer-postprocess = "dhn"'),
    "no projection": ({"transformer_no_projection": True}, "transformer-no-projection = true; models with false can"),
    "deep feed-forward": ({"transformer_ffn_depth": 3}, r"transformer-ffn-depth = 3; models with 2 can be imported"),
    "activation": ({"transformer_ffn_activation": "leakyrelu"}, r"= leakyrelu; models with swish or relu or gelu can"),
    "factors": ({"lemma_dim_emb": 8}, r"lemma-dim-emb = 8; models with 0 can be imported"),
    "right to left": ({"right_left": True}, r"right-left = true; models with false can be imported"),
    "widths": ({"transformer_decoder_dim_ffn": 12}, r"transformer-decoder-dim-ffn = 12 and transformer-dim-ffn = 24"),
    "no width": ({"dim_emb": 0}, r"dim-emb = 0; models with 1 to 131,072 can be imported"),
    "absurd depth": ({"enc_depth": 10**12}, r"enc-depth = 1000000000000; models with 1 to 100 can be imported"),
    "tied layers": ({"transformer_tied_layers": [1]}, r"transformer-tied-layers = 1; models that name the layer of"),
    "alignment": ({"transformer_guided_alignment_layer": 9}, r"alignment-layer = 9; models with last or 1 to 2 can"),
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_marian(tmp_path / "model")
    return tmp_path / "model"


def refused(path: Path, message: str) -> None:
    before = set(path.parent.rglob("*"))
    with pytest.raises(DataError, match=message) as raised:
        read_model(path)
    assert "\n" not in str(raised.value)
    assert set(path.parent.rglob("*")) == before


def arrays_of(model: Path) -> dict[str, Any]:
    with np.load(model / NAME) as file:
        return {name: file[name] for name in file.files}


def rewritten(model: Path, **changes: Any) -> None:
    """The model with some arrays replaced; None: left out."""
    arrays = {name: array for name, array in (arrays_of(model) | changes).items() if array is not None}
    np.savez(model / NAME, **arrays)


@pytest.mark.parametrize("case", SETTINGS)
def test_a_setting_that_cannot_be_represented_is_named(case: str, model: Path) -> None:
    changes, message = SETTINGS[case]
    arrays = arrays_of(model)
    save_npz(model / NAME, {name: arrays[name] for name in arrays if "special" not in name}, write_settings(changes))
    refused(model, message)


def write_settings(changes: dict[str, Any]) -> dict[str, Any]:
    from support.marian_archives import SETTINGS as GOOD

    return {**GOOD, **{key.replace("_", "-"): value for key, value in changes.items()}}


def test_arrays_that_do_not_fit_are_named(model: Path) -> None:
    arrays = arrays_of(model)
    name = "decoder_l2_context_Wk"
    for wrong, message in (
        (None, f"{name} is missing"),
        (arrays[name][:-1], rf"{name} has shape \(15, 16\), and the model's settings say 16 x 16"),
        (arrays[name][None], rf"{name} has shape \(1, 16, 16\)"),
        (arrays[name].astype(np.int8), f"{name} has numbers of type int8; models whose weights are not quantised"),
        (arrays[name].astype(complex), f"{name} has numbers of type complex128"),
        (arrays[name].astype("U8"), f"{name} has numbers of type <U8"),
    ):
        rewritten(model, **{name: wrong})
        refused(model, message)
    rewritten(model, **{name: arrays[name], "Wpos": arrays["Wemb"]})
    refused(model, "holds Wpos, which no Transformer that can be imported has")
    rewritten(model, **{"Wpos": None, "special:model.yml": None})
    refused(model, "holds no special:model.yml; models that keep their settings in the .npz file")
    rewritten(model, **{"special:model.yml": np.zeros((3, 3), np.int8)})
    refused(model, r"special:model.yml holds int8 of shape \(3, 3\), not text")
    rewritten(model, **{"special:model.yml": np.frombuffer(b"\xff\xfe: \0", np.int8)})
    refused(model, r"special:model.yml: cannot be read \('utf-8' codec")
    rewritten(model, **{"special:model.yml": arrays["special:model.yml"]})
    save_npz(model / NAME, {}, write_settings({"transformer_heads": 3}))
    rewritten(model, **{key: array for key, array in arrays.items() if "special" not in key})
    with pytest.raises(ConfigError, match="num_heads = 3; must be a divisor"):
        read_model(model)


class Bomb:
    """Executed where it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def test_nothing_in_an_array_is_executed(model: Path, tmp_path: Path) -> None:
    good = (model / NAME).read_bytes()
    for name in ("Wemb", "special:model.yml"):
        rewritten(model, **{name: np.array([Bomb(tmp_path / "executed")], dtype=object)})
        refused(model, f"{name} (has numbers of type object|holds object of shape)")
        (model / NAME).write_bytes(good)
    npy = io.BytesIO()
    np.lib.format.write_array_header_1_0(npy, {"descr": "<f4", "fortran_order": False, "shape": (1, 16)})
    with zipfile.ZipFile(model / NAME, "a") as archive:
        archive.writestr("decoder_ff_logit_out_b2.npy", npy.getvalue() + pickle.dumps(Bomb(tmp_path / "executed")))
    refused(model, "holds decoder_ff_logit_out_b2, which no Transformer")
    assert not (tmp_path / "executed").exists()


def with_member(model: Path, name: str, content: bytes, compressed: bool = False) -> None:
    """Replaces one member of the .npz file by other bytes."""
    with zipfile.ZipFile(model / NAME) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    members[name] = content
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(model / NAME, "w", method) as archive:
        for member, data in members.items():
            archive.writestr(member, data)


def npy(shape: object, data: bytes = b"", descr: str = "'<f4'") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def test_headers_that_lie_allocate_nothing(model: Path) -> None:
    for content, message in (
        (npy("(10**12, 16)", b"\0" * 64), "Wemb: cannot be read"),
        (npy(f"({10**12}, 16)", b"\0" * 64), "Wemb is not as long as it says"),
        (npy(f"({2**62}, 16)", b"\0" * 64), "Wemb is not as long as it says"),
        (npy("(-4, 16)", b"\0" * 64), "Wemb is not as long as it says"),
        (npy("(2, 16)", b"\0" * 129), "Wemb is not as long as it says"),
        (npy("(" * 900), "Wemb: cannot be read"),
        (npy("(2, 16)", b"\0" * 128, descr="__import__('os').mkdir('x')"), "Wemb: cannot be read"),
        (b"\x93NUMPY\x09\x00 nothing", "Wemb: cannot be read"),
        (b"", "Wemb: cannot be read"),
    ):
        with_member(model, "Wemb.npy", content)
        refused(model, message)


def test_damaged_files_are_named(model: Path) -> None:
    whole = (model / NAME).read_bytes()
    for damaged in (
        whole[:-1000],
        whole[: len(whole) // 2],
        b"",
        b"PK\x03\x04" + b"\0" * 40,
        whole[:3000] + whole[3100:],
    ):
        (model / NAME).write_bytes(damaged)
        refused(model, "cannot be read|is missing|is not as long")
    middle = len(whole) // 2
    (model / NAME).write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    refused(model, "cannot be read .*CRC")
    (model / NAME).write_bytes(whole)
    for name, content, message in (
        (VOCABULARY, b"\xff\xff: 1\n", f"{VOCABULARY}: cannot be read .*utf-8"),
        (VOCABULARY, b"</s>: 0\n<unk>: 1\n- a\n", "'- a' is no entry of a vocabulary"),
        (VOCABULARY, b"</s>: 0\n<unk>: 1\na: 2\na: 3\n", "'a' is there twice"),
        (VOCABULARY, b"</s>: 0\n<unk>: 1\na: 1\n", "each needs one of its own"),
        (VOCABULARY, b"</s>: 0\n<unk>: 1\na: 99999\n", "pieces have ids up to 99,999"),
        (VOCABULARY, b"</s>: 0\na: 1\n", "the unknown symbol <unk> is not in it"),
        (VOCABULARY, b"eos: 0\n<unk>: 1\n", r"</s> has the ids None and None"),
        (VOCABULARY, b'"\\ud800": 0\n', "is no character"),
        (VOCABULARY, b'"\\q": 0\n', "is no escape of YAML"),
        (VOCABULARY, b'"a: 0\n', "does not end on its line"),
        ("source.spm", b"nothing", "source.spm: not a sentencepiece model"),
        ("decoder.yml", b"nothing\n", "decoder.yml: cannot be read .*'nothing' is no entry"),
        ("decoder.yml", b"models:\n  - a.npz\n  - b.npz\n", "decoder.yml names 2 models, an ensemble"),
    ):
        kept = (model / name).read_bytes()
        (model / name).write_bytes(content)
        refused(model, message)
        (model / name).write_bytes(kept)
    read_model(model)


def test_files_that_are_missing_or_of_another_kind_are_named(model: Path, tmp_path: Path) -> None:
    (model / "source.spm").rename(model / "source.bpe")
    refused(model, "source.spm is missing; models whose text is cut by sentencepiece")
    (model / "source.bpe").rename(model / "source.spm")
    decoder = (model / "decoder.yml").read_text()
    (model / VOCABULARY).rename(model / "vocab.fsv")
    refused(model, f"decoder.yml names the vocabularies {VOCABULARY} and {VOCABULARY}, and no vocab.yml, or .src.vocab")
    (model / "decoder.yml").write_text(decoder.replace(VOCABULARY, "vocab.fsv"))
    refused(model, "vocab.fsv: a vocabulary of this kind; those in .yml or .vocab can be imported")
    (model / NAME).rename(model / "model.npz")
    (model / "another.npz").write_bytes(b"")
    refused(model, "holds 2 models; give one of them, such as another.npz")
    quantised = tmp_path / "student"
    quantised.mkdir()
    for name in ("model.intgemm.alphas.bin", "lex.s2t.bin", "vocab.spm"):
        (quantised / name).write_bytes(b"")
    refused(quantised, "holds model.intgemm.alphas.bin, quantised weights; models with their weights in an .npz file")


def test_two_vocabularies_for_one_embedding_are_refused(model: Path) -> None:
    (model / "b.yml").write_bytes((model / VOCABULARY).read_bytes().replace(b"x", b"y", 1))
    decoder = (model / "decoder.yml").read_text()
    (model / "decoder.yml").write_text(decoder[::-1].replace(VOCABULARY[::-1], "lmy.b", 1)[::-1])
    refused(model, "vocab.yml and b.yml differ, and source and target have one embedding")


def test_archives_that_point_elsewhere_or_explode_are_refused(model: Path, tmp_path: Path) -> None:
    for name in ("../source.spm", "/tmp/source.spm", "a/../../source.spm", "..\\source.spm", "C:/source.spm"):
        archive = archive_of(model, tmp_path / "model.zip")
        with zipfile.ZipFile(archive, "a") as file:
            file.writestr(name, b"x")
        refused(archive, "points out of the archive; do not trust it")
    with zipfile.ZipFile(archive_of(model, tmp_path / "model.zip"), "a") as file:
        file.writestr("folder/source.spm", b"x")
    refused(tmp_path / "model.zip", "has two files source.spm")
    with zipfile.ZipFile(archive_of(model, tmp_path / "model.zip"), "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros.yml", b"\0" * (70 << 20))
    refused(tmp_path / "model.zip", r"unpacks to [\d,]+ bytes, far more than any model; do not trust it")
    with zipfile.ZipFile(archive_of(model, tmp_path / "model.zip"), "a", zipfile.ZIP_BZIP2) as file:
        file.writestr("b.yml", b"a: 1")
    refused(tmp_path / "model.zip", "b.yml is compressed in a way that is not read")
    whole = archive_of(model, tmp_path / "model.zip").read_bytes()
    (tmp_path / "model.zip").write_bytes(whole[:5000] + bytes(100) + whole[5100:])
    refused(tmp_path / "model.zip", "cannot be read")


def test_arrays_that_explode_are_refused(model: Path) -> None:
    with_member(model, "Wemb.npy", npy("(1200000, 16)", b"\0" * (1_200_000 * 64)), compressed=True)
    refused(model, r"unpacks to [\d,]+ bytes, far more than any model")


def test_what_is_beside_the_model_is_not_followed(model: Path, tmp_path: Path) -> None:
    """decoder.yml may name any path; only its last part is looked for, beside it."""
    (tmp_path / "secret.yml").write_text("</s>: 0\n")
    decoder = (model / "decoder.yml").read_text()
    (model / "decoder.yml").write_text(decoder.replace(VOCABULARY, "../secret.yml"))
    model_read = read_model(model)
    assert len(model_read.tokenizer.files) == 3
    (model / VOCABULARY).unlink()
    refused(model, "decoder.yml names the vocabularies secret.yml and secret.yml")


def test_a_truncated_archive_is_a_line_of_the_command(model: Path, tmp_path: Path, cli: Callable[..., Ran]) -> None:
    whole = archive_of(model, tmp_path / "model.zip").read_bytes()
    (tmp_path / "model.zip").write_bytes(whole[: len(whole) // 2])
    ran = cli("import", tmp_path / "model.zip", "--out", tmp_path / "run")
    assert (ran.code, ran.stderr.count("\n")) == (3, 1)
    rewritten(model, Wemb=None)
    ran = cli("import", model, "--out", tmp_path / "run")
    assert (ran.code, ran.stderr.count("\n")) == (3, 1)
    assert "Wemb is missing" in ran.stderr
    assert not (tmp_path / "run").exists()
