"""Exported runs in the programs that they are for, and imported models in ours: the same ids, the same text."""

import itertools
import json
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from dragoman.config import ModelConfig, RunConfig
from dragoman.data.tokenizer import load_tokenizer
from dragoman.errors import DataError, UsageError
from dragoman.export.formats import ExportFormat, export
from dragoman.importing.read import import_model
from dragoman.model.checkpoint import save_weights, weights_of
from dragoman.model.transformer import Transformer
from dragoman.run_directory import RunDirectory
from dragoman.translation.result import SourceSentence
from dragoman.translation.translator import Translator
from support.commands import Ran
from support.lexicon import lexicon_pairs

SENTENCES = [source for source, _ in lexicon_pairs(12, seed=11)]

LANGUAGES = ["--source-language", "en", "--target-language", "eo"]


def make_run(path: Path, tokenizer: Path, **model: Any) -> Path:
    """A run of random weights, as different from each other as a trained one's."""
    run = RunDirectory(path)
    path.mkdir(parents=True)
    shutil.copy(tokenizer, run.tokenizer_path)
    size = load_tokenizer(path).vocab_size
    config = ModelConfig(vocab_size=size, d_model=16, d_ff=24, num_heads=2, encoder_layers=2, decoder_layers=2, **model)
    run.write_config(RunConfig(model=config))
    torch.manual_seed(5)
    network = Transformer(config)
    for name, parameter in network.named_parameters():
        if "norm" in name and name.endswith("weight"):
            torch.nn.init.normal_(parameter, std=1.0)
        elif parameter.dim() == 1:
            torch.nn.init.normal_(parameter, std=0.1)
        else:
            parameter.data *= 1.5
    save_weights(run.model_path, weights_of(network))
    return path


@pytest.fixture(scope="module")
def post_norm(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's order of normalisation, which the tiny run has not."""
    return make_run(tmp_path_factory.mktemp("post") / "run", tiny_run / "tokenizer.model", attention_scale="1/d_k")


def greedy(run: Path) -> list[list[int]]:
    """What our search finds, in ids, of a few sentences."""
    translator = Translator.load(run, engine="reference", beam=1)
    sources = translator.tokenizer.encode_batch(SENTENCES)
    found = translator.engine.translate(sources, translator.search, 1, 0, False)
    return [list(candidates[0].ids) for candidates in found]


def cut(ids: Sequence[int], end: int, longest: int) -> list[int]:
    """Up to the end symbol."""
    tokens = list(ids)
    return tokens[: tokens.index(end)] if end in tokens else tokens[:longest]


# CTranslate2


def test_ctranslate2_translates_the_exported_directory(tiny_run: Path, tmp_path: Path, cli: Callable[..., Ran]) -> None:
    import ctranslate2
    import sentencepiece

    out = tmp_path / "ct2"
    ran = cli("export", tiny_run, "--format", "ctranslate2", "--out", out)
    assert (ran.code, ran.stdout) == (0, f"{out}\n")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(out / "tokenizer.model"))
    translator = ctranslate2.Translator(str(out))
    theirs = [
        translator.translate_batch([tokens], beam_size=1, max_decoding_length=len(tokens) + 50)[0].hypotheses[0]
        for tokens in pieces.encode(SENTENCES, out_type=str)
    ]
    assert [pieces.decode(found) for found in theirs] == [
        load_tokenizer(tiny_run).decode(ids) for ids in greedy(tiny_run)
    ]


def test_inline_case_is_named_or_refused(cased_run: Path, tmp_path: Path, cli: Callable[..., Ran]) -> None:
    import ctranslate2

    run = tmp_path / "run"
    shutil.copytree(cased_run, run)
    for form in ("argos", "marian-hf"):
        languages = ("--source-language", "en", "--target-language", "eo") if form == "argos" else ()
        ran = cli("export", run, "--format", form, "--out", tmp_path / form, *languages)
        assert (ran.code, ran.stderr.count("\n")) == (3, 1)
        assert "was trained with data.casing = inline" in ran.stderr.replace("run: trained", "run: was trained")
        assert "--set data.casing=plain" in ran.stderr
        assert not (tmp_path / form).exists()
    for form in ("ctranslate2", "onnx"):
        assert cli("export", run, "--format", form, "--out", tmp_path / form).code == 0
        assert "dragoman.Tokenizer.load" in (tmp_path / form / "README.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "onnx" / "dragoman.json").read_text(encoding="utf-8"))["casing"] == "inline"
    # What the README says is what gives our translation.
    tokenizer = load_tokenizer(tmp_path / "ctranslate2")
    tokens = [tokenizer.piece(token) for token in tokenizer.encode("The dog 12.")]
    translator = ctranslate2.Translator(str(tmp_path / "ctranslate2"))
    [found] = translator.translate_batch([tokens], beam_size=1, max_decoding_length=60)[0].hypotheses
    ids = {tokenizer.piece(token): token for token in range(tokenizer.vocab_size)}
    [ours] = Translator.load(run, engine="reference", beam=1).translate_sentences(
        [SourceSentence("The dog 12.")], repair=False, protect=False
    )
    assert tokenizer.decode(ids[piece] for piece in found) == ours.text


# Hugging Face


@pytest.mark.parametrize("which", ["post_norm", "tiny_run"])
def test_transformers_finds_the_same_greedy_ids(
    which: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marian for the paper's order; Pegasus for pre-norm, which Marian has not."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    run: Path = request.getfixturevalue(which)
    path = export(run, "marian-hf", tmp_path / "hf")
    model = AutoModelForSeq2SeqLM.from_pretrained(path).eval()
    assert type(model).__name__ == {"post_norm": "MarianMTModel", "tiny_run": "PegasusForConditionalGeneration"}[which]
    monkeypatch.setattr("warnings.warn", lambda *_, **__: None)  # it recommends sacremoses, which it does not use here
    tokenizer = AutoTokenizer.from_pretrained(path)
    ours, own = greedy(run), load_tokenizer(run)
    for sentence, expected in zip(SENTENCES, ours, strict=True):
        given = tokenizer(sentence, return_tensors="pt")
        assert given["input_ids"][0].tolist() == [*own.encode(sentence), own.eos_id]
        longest = given["input_ids"].shape[1] - 1 + RunDirectory(run).read_config().search.max_extra_length
        found = model.generate(**given, num_beams=1, do_sample=False, max_new_tokens=longest)[0].tolist()
        assert found[0] == own.bos_id
        assert cut(found[1:], own.eos_id, longest) == expected
    assert tokenizer.decode(ours[0], skip_special_tokens=True) == own.decode(ours[0])


@pytest.mark.parametrize("form", get_args(ExportFormat))
def test_what_is_exported_is_for_all_to_read_that_the_user_lets(
    form: ExportFormat, tiny_run: Path, tmp_path: Path
) -> None:
    path = export(tiny_run, form, tmp_path / "exported", languages=("en", "eo"))
    (tmp_path / "plain").write_bytes(b"")
    wanted = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    files = [file for file in path.rglob("*") if file.is_file()] or [path]
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in files} == {file.name: wanted for file in files}


@pytest.mark.parametrize("which", ["post_norm", "tiny_run"])
def test_what_was_exported_comes_back(which: str, request: pytest.FixtureRequest, tmp_path: Path, cli: Any) -> None:
    run: Path = request.getfixturevalue(which)
    export(run, "marian-hf", tmp_path / "hf")
    ran = cli(
        "import", tmp_path / "hf", "--out", tmp_path / "back", "--source-language", "en", "--target-language", "eo"
    )
    assert (ran.code, ran.stdout) == (0, f"{tmp_path / 'back'}\n")
    assert greedy(tmp_path / "back") == greedy(run)
    assert json.loads((tmp_path / "back" / "languages.json").read_text()) == {"source": "en", "target": "eo"}
    translated = cli("translate", tmp_path / "back", stdin="the dog\n")
    assert translated.code == 0, translated.stderr


def test_a_model_that_transformers_wrote_is_imported(post_norm: Path, tmp_path: Path) -> None:
    """As it saves one itself: tied tensors once, its own configuration, other positions of the special symbols."""
    from transformers import MarianMTModel

    path = export(post_norm, "marian-hf", tmp_path / "hf")
    MarianMTModel.from_pretrained(path).save_pretrained(tmp_path / "theirs")
    for name in ("source.spm", "target.spm", "vocab.json"):
        shutil.copy(path / name, tmp_path / "theirs" / name)
    import_model(tmp_path / "theirs", tmp_path / "run")
    assert greedy(tmp_path / "run") == greedy(post_norm)


def test_what_marian_cannot_be_is_refused(tiny_run: Path, tmp_path: Path, cli: Callable[..., Ran]) -> None:
    run = make_run(tmp_path / "learned", tiny_run / "tokenizer.model", positions="learned")
    with pytest.raises(DataError, match=r"its positions are sinusoids \(model.positions = learned\)"):
        export(run, "marian-hf", tmp_path / "hf")
    assert not (tmp_path / "hf").exists()
    with pytest.raises(UsageError, match="int8 is for ctranslate2 and argos"):
        export(tiny_run, "onnx", tmp_path / "onnx", compute_type="int8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model_type": "bert"}')
    ran = cli("import", tmp_path / "other", "--out", tmp_path / "run")
    assert ran.code == 3
    assert ran.stderr == (
        f"dragoman: {tmp_path / 'other' / 'config.json'}: model_type = bert; marian, pegasus, m2m_100, mbart, bart can "
        f"be imported\n"
    )
    assert "names no model_type" in cli("import", tiny_run, "--out", tmp_path / "run").stderr
    assert cli("export", tiny_run, "--format", "onnx", "--out", tiny_run).code == 2


# ONNX


def onnx_greedy(directory: Path, sentences: Sequence[str]) -> list[list[int]]:
    """A greedy search of all sentences together, as docs/guides/export.md shows it."""
    import onnxruntime
    import sentencepiece

    about = json.loads((directory / "dragoman.json").read_text())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(directory / "tokenizer.model"))
    encoder, decoder = (onnxruntime.InferenceSession(directory / f"{name}.onnx") for name in ("encoder", "decoder"))
    sources = [[*ids, about["end_id"]] for ids in pieces.encode(list(sentences))]
    width = max(map(len, sources))
    ids = np.array([row + [about["padding_id"]] * (width - len(row)) for row in sources], dtype=np.int64)
    mask = np.array([[1] * len(row) + [0] * (width - len(row)) for row in sources], dtype=np.int64)
    memory = encoder.run(None, {"input_ids": ids, "attention_mask": mask})
    inputs = dict(zip([output.name for output in encoder.get_outputs()], memory, strict=True))
    for layer in range(about["decoder_layers"]):
        for part, size in (("key", about["d_k"]), ("value", about["d_v"])):
            inputs[f"past_{part}_{layer}"] = np.zeros((len(sources), about["heads"], 0, size), np.float32)
    names = [output.name.replace("present", "past") for output in decoder.get_outputs()]
    token = np.full(len(sources), about["start_id"], dtype=np.int64)
    rows: list[list[int]] = [[] for _ in sources]
    for _ in range(width + about["max_extra_length"]):
        logits, *past = decoder.run(None, {"input_ids": token, "attention_mask": mask, **inputs})
        inputs.update(zip(names[1:], past, strict=True))
        token = logits.argmax(axis=1)
        for row, found in zip(rows, token.tolist(), strict=True):
            row.append(found)
    limits = [len(source) - 1 + about["max_extra_length"] for source in sources]
    return [cut(row, about["end_id"], limit) for row, limit in zip(rows, limits, strict=True)]


@pytest.mark.parametrize("which", ["tiny", "post", "learned", "untied", "wide", "marian", "bart", "m2m100"])
def test_onnxruntime_finds_the_same_greedy_ids(which: str, tiny_run: Path, post_norm: Path, tmp_path: Path) -> None:
    models: dict[str, dict[str, Any]] = {
        "learned": {"positions": "learned", "norm_order": "pre"},
        "untied": {"tie_embeddings": False, "scale_embeddings": False, "positions": "none"},
        "wide": {"d_k": 4, "d_v": 12, "positions": "index", "attention_scale": "1"},
        "marian": {"activation": "swish", "attention_bias": True, "output_bias": True},
        "bart": {"activation": "gelu", "attention_bias": True, "embedding_norm": True, "tie_embeddings": False},
        "m2m100": {"norm_order": "pre", "attention_bias": True, "positions": "sinusoidal-fairseq"},
    }
    run = {"tiny": tiny_run, "post": post_norm}.get(which) or make_run(
        tmp_path / "run", tiny_run / "tokenizer.model", **models[which]
    )
    path = export(run, "onnx", tmp_path / "onnx")
    assert onnx_greedy(path, SENTENCES) == greedy(run)
    if which in ("tiny", "post"):
        assert len({tuple(ids) for ids in greedy(run)}) > 6  # the source matters


# Argos Translate


def test_an_argos_package_is_one_folder_with_all_in_it(tiny_run: Path, tmp_path: Path, cli: Callable[..., Ran]) -> None:
    refused = cli("export", tiny_run, "--format", "argos", "--out", tmp_path / "no.argosmodel")
    assert (refused.code, refused.stderr.count("--source-language en --target-language de")) == (2, 1)
    out = tmp_path / "en_eo.argosmodel"
    ran = cli(
        "export", tiny_run, "--format", "argos", "--source-language", "en", "--target-language", "eo", "--out", out
    )
    assert ran.code == 0, ran.stderr
    with zipfile.ZipFile(out) as archive:
        names = set(archive.namelist())
        metadata = json.loads(archive.read("translate-en_eo-1_0/metadata.json"))
        model = json.loads(archive.read("translate-en_eo-1_0/model/config.json"))
    assert {name.split("/")[0] for name in names} == {"translate-en_eo-1_0"}
    assert {"sentencepiece.model", "metadata.json", "model/model.bin"} <= {name.partition("/")[2] for name in names}
    assert (metadata["from_code"], metadata["to_code"], metadata["to_name"]) == ("en", "eo", "Esperanto")
    assert model["add_source_eos"] is True


ARGOS = """
import sys
from argostranslate import package, translate
package.install_from_path(sys.argv[1])
for line in sys.stdin:
    print(translate.translate(line.rstrip("\\n"), "en", "eo"))
"""


@pytest.mark.full
def test_argos_translate_installs_the_package_and_translates(tiny_run: Path, tmp_path: Path) -> None:
    """In an environment of its own, made from the package registry; without the network once it is made."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # What it imports, and no more: its splitters of sentences would bring torch and spacy. stanza is imported and not
    # used, as the package brings its own splitter.
    subprocess.run([*install, "--no-deps", "argostranslate==1.11.0"], check=True)
    subprocess.run([*install, "ctranslate2", "sentencepiece", "minisbd", "packaging"], check=True)
    (next(environment.glob("lib/python*/site-packages")) / "stanza.py").write_text("")
    path = export(tiny_run, "argos", tmp_path / "en_eo.argosmodel", languages=("en", "eo"))
    home = {
        "HOME": str(tmp_path / "home"),
        "ARGOS_PACKAGES_DIR": str(tmp_path / "packages"),
        "ARGOS_COMPUTE_TYPE": "float32",  # its own choice depends on the machine
        "PATH": "/usr/bin:/bin",
    }
    text = "\n".join([*SENTENCES, f"{SENTENCES[0]}. {SENTENCES[1].title()}"])
    ran = subprocess.run([python, "-c", ARGOS, path], input=text, env=home, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    import ctranslate2
    import sentencepiece

    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    package = tmp_path / "translate-en_eo-1_0"
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(package / "sentencepiece.model"))
    # With its own settings, and what our splitter of sentences makes of the last line.
    lines = [*([sentence] for sentence in SENTENCES), [f"{SENTENCES[0]}.", SENTENCES[1].title()]]
    found = ctranslate2.Translator(str(package / "model")).translate_batch(
        pieces.encode([part for parts in lines for part in parts], out_type=str),
        beam_size=4,
        length_penalty=0.2,
        replace_unknowns=True,
    )
    tokens = iter(found)
    expected = [pieces.decode([piece for _ in parts for piece in next(tokens).hypotheses[0]]) for parts in lines]
    assert ran.stdout.splitlines() == expected


def test_the_splitter_of_sentences_splits_where_they_end() -> None:
    import onnxruntime

    from dragoman.export.argos_segmenter import segmenter_graph

    session = onnxruntime.InferenceSession(segmenter_graph("en"))
    about = json.loads(session.get_modelmeta().custom_metadata_map["vocab"])["_unit2id"]

    def split(text: str) -> list[str]:
        units = np.array([[about.get(character, about["<UNK>"]) for character in text]])
        (found,) = session.run(None, {"units": units, "features": np.zeros((1, len(text), 1), np.float32)})
        ends: list[int] = [0, *(np.flatnonzero(found.argmax(axis=2)[0] == 2) + 1).tolist(), len(text)]
        return [text[a:b].strip() for a, b in itertools.pairwise(ends) if text[a:b].strip()]

    assert split('He left. "Why?" I asked him. It costs 3.50 e.g. here!') == [
        "He left.",
        '"Why?"',
        "I asked him.",
        "It costs 3.50 e.g. here!",
    ]
    assert split("你好。再见！") == ["你好。", "再见！"]
