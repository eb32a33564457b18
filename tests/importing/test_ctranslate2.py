"""What CTranslate2 computes with a model, the imported run computes too: by its engine, and by the reference engine."""

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

from dragoman.config import ModelConfig, SearchConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines.numpy_weights import position_table
from dragoman.decoding.engines.select import load_reference
from dragoman.errors import DataError
from dragoman.export.formats import export
from dragoman.files import read_json
from dragoman.importing.ctranslate2_file import read_file
from dragoman.importing.read import import_model
from dragoman.model.checkpoint import save_weights, weights_of
from dragoman.model.sequence_model import make_model
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator
from support.ctranslate2_models import (
    D_MODEL,
    SPECIAL,
    marian_of_transformers,
    marian_positions,
    numbers,
    opennmt,
    opennmt_positions,
    specification,
    write_older,
    written,
)
from support.public_models import learned, lines, pieces_of

TEXT = lines(16, seed=7)
LONGEST = 100


def with_tokenizer(spec: Any, directory: Path, pieces: Path, quantization: str | None = None) -> Path:
    """A directory of CTranslate2 with the sentencepiece model beside the model."""
    written(spec, directory, quantization)
    shutil.copy(pieces, directory / "sentencepiece.model")
    return directory


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pieces") / "sentencepiece.model"
    learned(path, 300, 4, model_type="unigram")
    return path


def vocabulary(pieces: Path, special: list[str] = SPECIAL) -> list[str]:
    model = SentencePieceProcessor(model_file=str(pieces))
    return [*special, *(piece for piece in pieces_of(model) if piece not in special)]


def cut(directory: Path) -> list[list[str]]:
    model = SentencePieceProcessor(model_file=str(directory / "sentencepiece.model"))
    tokens: list[list[str]] = model.encode(TEXT, out_type=str)
    return tokens


def theirs(directory: Path, sources: list[list[str]], compute_type: str = "default") -> list[tuple[list[str], float]]:
    """What CTranslate2 makes of the model itself: tokens with the end symbol, if it came, and the log-probability. One
    at a time, as integers are rounded otherwise in another batch."""
    translator = ctranslate2.Translator(str(directory), compute_type=compute_type)
    made = []
    for source in sources:
        (found,) = translator.translate_batch(
            [source], beam_size=1, min_decoding_length=0, max_decoding_length=LONGEST, return_scores=True,
            return_end_token=True,
        )  # fmt: skip
        made.append((found.hypotheses[0], found.scores[0] * len(found.hypotheses[0])))
    return made


def ours(run: Path) -> list[tuple[list[str], float]]:
    """The same of the run, by the engine that it chooses."""
    translator = Translator.load(run, beam=1, alpha=0.0)
    assert translator.engine.name.startswith("ctranslate2")
    made = []
    for ids in translator.tokenizer.encode_batch(TEXT):
        search = translator.search.__class__(beam=1, alpha=0.0, max_extra_length=LONGEST - len(ids))
        best = translator.engine.translate([ids], search)[0][0]
        tokens = [translator.tokenizer.piece(token) for token in best.ids]
        made.append(([*tokens, "</s>"] if best.finished else tokens, best.log_probability))
    return made


def searched(translator: Translator) -> list[tuple[int, ...]]:
    """The ids that the run's own engine finds."""
    sources = translator.tokenizer.encode_batch(TEXT)
    return [best[0].ids for best in translator.engine.translate(sources, translator.search)]


def scored(run: Path, directory: Path, sources: list[list[str]]) -> tuple[list[float], list[float]]:
    """Log-probabilities of translations by the reference engine, and by CTranslate2 with the model itself."""
    translator = Translator.load(run)
    tokenizer = translator.tokenizer
    ids = tokenizer.encode_batch(TEXT)
    targets = [tokenizer.encode_target(line) for line in reversed(TEXT)]
    reference = load_reference([RunDirectory(run)], tokenizer)
    mine = [sum(tokens) for tokens in reference.score(ids, targets)]
    named = [[tokenizer.piece(token) for token in target] for target in targets]
    found = ctranslate2.Translator(str(directory), compute_type="float32").score_batch(sources, named)
    return mine, [sum(result.log_probs) for result in found]


@pytest.mark.parametrize("quantization", [None, "int8", "int16", "float16", "int8_float16"])
def test_a_run_translates_as_the_model_itself(quantization: str | None, tmp_path: Path) -> None:
    directory = opennmt(tmp_path / "model", quantization)
    shutil.move(tmp_path / "sentencepiece.model", directory)
    run = import_model(directory, tmp_path / "run")
    numbers_of = "float32" if quantization in (None, "float16") else quantization.partition("_")[0]
    # Most processors do not compute with int16: there its integers are weights of float32.
    computes = numbers_of in ctranslate2.get_supported_compute_types("cpu")
    expected = theirs(directory, cut(directory), numbers_of if computes else "float32")
    found = ours(run)
    assert [tokens for tokens, _ in found] == [tokens for tokens, _ in expected]
    ended = [(mine[1], other[1]) for mine, other in zip(found, expected, strict=True) if mine[0][-1] == "</s>"]
    assert ended
    assert [mine for mine, _ in ended] == pytest.approx([other for _, other in ended], rel=1e-5)
    assert Translator.load(run).engine.name == f"ctranslate2 {numbers_of}"


@pytest.mark.parametrize("quantization", ["int8", "int16"])
def test_integers_that_are_made_anew_are_the_same(quantization: str, tmp_path: Path) -> None:
    directory = opennmt(tmp_path / "model", quantization)
    shutil.move(tmp_path / "sentencepiece.model", directory)
    run = import_model(directory, tmp_path / "run")
    shutil.rmtree(run / "ctranslate2")
    Translator.load(run).engine.translate([[5, 6, 7]], SearchConfig())
    (made,) = (run / "ctranslate2").glob(f"{quantization}-*/model.bin")
    new, old = read_file(made), read_file(directory / "model.bin")
    integers = [name for name in old.variables if name.endswith("/weight")]
    assert len(integers) == 25
    for name in integers:
        np.testing.assert_array_equal(new.variables[name], old.variables[name])
        np.testing.assert_allclose(new.scales[name], old.scales[name], rtol=3e-7)


SHAPES: dict[str, dict[str, Any]] = {
    "OpenNMT-py": {"pre_norm": True},
    "post-norm": {"pre_norm": False},
    "swish": {"activation": 2},
    "gelu and a norm of embeddings": {"activation": 3, "layernorm_embedding": True},
}
TABLES: dict[str, Callable[[], Any]] = {
    "alternating": opennmt_positions,
    "sines first": marian_positions,
    "computed": lambda: None,
    "of its own": lambda: numbers(400, D_MODEL, seed=99),
}


def check_scores(spec: Any, directory: Path, pieces: Path) -> Path:
    with_tokenizer(spec, directory, pieces)
    run = import_model(directory, directory.with_name("run"))
    np.testing.assert_allclose(*scored(run, directory, cut(directory)), rtol=1e-4)
    return run


@pytest.mark.parametrize("shape", SHAPES)
def test_the_reference_engine_scores_as_ctranslate2(shape: str, pieces: Path, tmp_path: Path) -> None:
    tokens = vocabulary(pieces)
    settings = SHAPES[shape] | {"activation": ctranslate2.specs.Activation(SHAPES[shape].get("activation", 0))}
    check_scores(specification(tokens, tokens, opennmt_positions(), **settings), tmp_path / "model", pieces)


@pytest.mark.parametrize(("table", "positions"), list(zip(TABLES, ["sinusoidal"] * 2 + ["learned"] * 2, strict=True)))
def test_positions_are_the_papers_or_a_table(table: str, positions: str, pieces: Path, tmp_path: Path) -> None:
    tokens = vocabulary(pieces)
    run = check_scores(specification(tokens, tokens, TABLES[table]()), tmp_path / "model", pieces)
    assert RunDirectory(run).read_config().model.positions == positions


@pytest.mark.parametrize("shared", [(), ("source", "target"), ("target", "output"), ("source", "target", "output")])
def test_matrices_that_are_one_stay_one(shared: tuple[str, ...], pieces: Path, tmp_path: Path) -> None:
    tokens = vocabulary(pieces)
    spec = specification(tokens, tokens, opennmt_positions())
    places = {
        "source": spec.encoder.embeddings[0], "target": spec.decoder.embeddings, "output": spec.decoder.projection
    }  # fmt: skip
    for name in shared:
        places[name].weight = places["target"].weight
    model = RunDirectory(check_scores(spec, tmp_path / "model", pieces)).read_config().model
    assert model.ties_source_target == ("source" in shared)
    assert model.ties_target_output == ("output" in shared)


def test_other_scales_are_computed_alike(pieces: Path, tmp_path: Path) -> None:
    tokens = vocabulary(pieces)
    spec = specification(tokens, tokens, opennmt_positions())
    for layer in spec.decoder.layer:
        layer.self_attention.queries_scale = 0.25
    for stack, scale in ((spec.encoder, float(np.sqrt(D_MODEL))), (spec.decoder, True)):
        stack.scale_embeddings = scale
    check_scores(spec, tmp_path / "model", pieces)


def test_heads_of_other_sizes_come_back(tiny_run: Path, tmp_path: Path) -> None:
    """They are written filled up with zeros, and with the scale of their true size."""
    run = RunDirectory(shutil.copytree(tiny_run, tmp_path / "other", ignore=shutil.ignore_patterns("ctranslate2")))
    config = run.read_config()
    config = replace(config, model=replace(config.model, d_k=4, d_v=24))
    run.write_config(config)
    save_weights(run.model_path, weights_of(make_model(config.model)))
    back = import_model(export(run.path, "ctranslate2", tmp_path / "exported"), tmp_path / "run")
    assert RunDirectory(back).read_config().model.d_k == 24
    pairs = [("the dog sees a cat", "la hundo vidas katon"), ("a", "la la")]
    scores = [[sum(tokens) for tokens in Translator.load(path).score(pairs)] for path in (run.path, back)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_a_decoder_that_begins_with_zeros_has_a_token_for_it(tied: bool, pieces: Path, tmp_path: Path) -> None:
    tokens = vocabulary(pieces, ["</s>", "<unk>"])
    spec = specification(tokens, tokens, marian_positions(), pre_norm=False)
    spec.decoder.start_from_zero_embedding = True
    if tied:
        spec.encoder.embeddings[0].weight = spec.decoder.projection.weight = spec.decoder.embeddings.weight
    spec.config.decoder_start_token, spec.config.add_source_eos = "</s>", True
    run = check_scores(spec, tmp_path / "model", pieces)
    tokenizer = Tokenizer.load(run / "tokenizer.model")
    assert tokenizer.piece(tokenizer.bos_id) == "<pad>"
    assert tokenizer.vocab_size == len(tokens) + 1
    assert tokenizer.source_vocab_size == len(tokens) + tied
    expected = theirs(tmp_path / "model", cut(tmp_path / "model"))
    assert [found for found, _ in ours(run)] == [found for found, _ in expected]


@pytest.mark.parametrize(("version", "revision"), [(3, 3), (4, 4), (5, 5)])
def test_models_of_older_versions_are_read(version: int, revision: int, pieces: Path, tmp_path: Path) -> None:
    tokens = vocabulary(pieces)
    spec = specification(tokens[:-10], tokens, opennmt_positions())
    directory = with_tokenizer(spec, tmp_path / "model", pieces, "int8")
    more = {"num_heads": np.int8(4), "pre_norm": np.int8(1), "activation": np.int8(0)} if revision < 5 else {}
    end = {"with_source_eos": np.int8(1), "eos_token": np.frombuffer(b"</s>", np.int8)} if version == 5 else {}
    write_older(spec, directory, version, revision, {name: np.array(value) for name, value in (more | end).items()})
    run = import_model(directory, tmp_path / "run")
    assert Tokenizer.load(run / "tokenizer.model").ends_source == (version == 5)
    assert [found for found, _ in ours(run)] == [found for found, _ in theirs(directory, cut(directory), "int8")]


def test_a_converted_directory_of_transformers_is_the_run_of_that_directory(tmp_path: Path) -> None:
    from ctranslate2.converters import TransformersConverter

    marian = marian_of_transformers(tmp_path / "opus-mt")
    files = ["source.spm", "target.spm"]
    TransformersConverter(str(marian), copy_files=files).convert(str(tmp_path / "converted"))
    direct, run = import_model(marian, tmp_path / "direct"), import_model(tmp_path / "converted", tmp_path / "run")
    found, expected = (Translator.load(path, beam=1, alpha=0.0) for path in (run, direct))
    assert found.tokenizer.encode_batch(TEXT) == expected.tokenizer.encode_batch(TEXT)
    assert searched(found) == searched(expected)
    # Padding, which is no token of Marian's, has a share of their probabilities and none of CTranslate2's.
    sources = [[*(found.tokenizer.source_piece(token) for token in ids), "</s>"]
               for ids in found.tokenizer.encode_batch(TEXT)]  # fmt: skip
    np.testing.assert_allclose(*scored(run, tmp_path / "converted", sources), rtol=1e-4)


@pytest.mark.parametrize("family", ["m2m100", "nllb"])
def test_languages_are_found_among_the_tokens(family: str, pieces: Path, tmp_path: Path) -> None:
    """transformers' tokenizers put the source's language and its end symbol there, and so does the run."""
    model = SentencePieceProcessor(model_file=str(pieces))
    names = [piece for piece in pieces_of(model) if not piece.startswith("<")]
    codes = {"m2m100": ["__en__", "__fr__", "madeupword0"], "nllb": ["eng_Latn", "fra_Latn", "<mask>"]}[family]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *names, *codes]
    table = position_table(ModelConfig(d_model=D_MODEL, num_heads=4, positions="sinusoidal-fairseq"), 400)
    spec = specification(tokens, tokens, table)
    spec.config.decoder_start_token = "</s>"
    directory = written(spec, tmp_path / "model")
    shutil.copy(pieces, directory / "sentencepiece.bpe.model")
    run = import_model(directory, tmp_path / "run", ("en", "fr"))
    assert RunDirectory(run).read_config().model.positions == "sinusoidal-fairseq"
    translator = Translator.load(run, beam=1, alpha=0.0, to="fr")
    assert translator.tokenizer.languages == sorted(code.strip("_") for code in codes[:2])
    cut: list[list[str]] = model.encode(TEXT, out_type=str)
    found = ctranslate2.Translator(str(directory)).translate_batch(
        [[codes[0], *line, "</s>"] for line in cut],
        [[codes[1]]] * len(TEXT),
        beam_size=1,
        max_decoding_length=11,
        min_decoding_length=0,
    )
    expected = [result.hypotheses[0][1:] for result in found]
    assert [[translator.tokenizer.piece(token) for token in ids[:10]] for ids in searched(translator)] == expected


def test_what_we_export_comes_back_as_it_was(tiny_run: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    run = import_model(export(tiny_run, "ctranslate2", tmp_path / "exported"), tmp_path / "run")
    assert (run / "tokenizer.model").read_bytes() == (tiny_run / "tokenizer.model").read_bytes()
    found, expected = load_file(run / "model.safetensors"), load_file(tiny_run / "model.safetensors")
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    mine, before = RunDirectory(run).read_config().model, RunDirectory(tiny_run).read_config().model
    assert mine == before.__class__(**{**vars(before), "dropout": mine.dropout, "d_k": mine.d_k, "d_v": mine.d_v})


def test_nothing_of_it_needs_torch(tmp_path: Path) -> None:
    directory = opennmt(tmp_path / "model")
    shutil.move(tmp_path / "sentencepiece.model", directory)
    program = (
        "import sys; from dragoman.importing.read import import_model; from dragoman.translation.translator import "
        "Translator; Translator.load(import_model(*sys.argv[1:])).translate(['house']); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, directory, tmp_path / "run"], check=True, timeout=120)


def changed(directory: Path, **settings: Any) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(read_json(path) | settings))


def without(name: str) -> Callable[[Path], None]:
    return lambda directory: (directory / name).unlink()


def truncated(directory: Path) -> None:
    path = directory / "model.bin"
    path.write_bytes(path.read_bytes()[:-1000])


def patched(at: int, form: str, value: int) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        content = bytearray((directory / "model.bin").read_bytes())
        struct.pack_into(form, content, at, value)
        (directory / "model.bin").write_bytes(content)

    return change


def of_another_model(directory: Path) -> None:
    from dragoman.data.tokenizer import train_model

    (directory / "sentencepiece.model").write_bytes(train_model(["zzz qqq yyy"] * 9, 12, model_type="bpe"))


def shorter(directory: Path) -> None:
    path = directory / "target_vocabulary.json"
    path.write_text(json.dumps(json.loads(path.read_text())[:-1]))


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no tokenizer": (without("sentencepiece.model"), "no sentencepiece model is beside the model"),
    "another tokenizer": (of_another_model, "tokens are pieces of this sentencepiece model, so it is of another one"),
    "no vocabulary": (without("target_vocabulary.json"), "neither shared_vocabulary.json nor target_vocabulary.json"),
    "a short vocabulary": (shorter, "target tokens, and a target vocabulary of"),
    "truncated": (truncated, "not a whole model of CTranslate2 .*were to come"),
    "a newer format": (patched(0, "<I", 7), "binary version 7; 3 to 6 can be read"),
    "a newer revision": (patched(22, "<I", 9), "revision 9 of TransformerSpec; 3 to 7"),
    "no such number": (patched(26, "<I", 2**31), "not a whole model of CTranslate2"),
    "BART": (lambda path: changed(path, add_source_bos=True), "add_source_bos = true as in BART"),
    "no start": (lambda path: changed(path, decoder_start_token=None), "decoder_start_token = None, which is not in"),
    "another norm": (lambda path: changed(path, layer_norm_epsilon=1e-6), "layer_norm_epsilon = 1e-06; models with"),
    "a vocabulary of numbers": (
        lambda path: (path / "target_vocabulary.json").write_text("[1, 2]"),
        "not a list of tokens",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_directory_that_cannot_be_imported_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    directory = opennmt(tmp_path / "model")
    shutil.move(tmp_path / "sentencepiece.model", directory)
    change, message = REFUSED[case]
    change(directory)
    with pytest.raises(DataError, match=message) as refused:
        import_model(directory, tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_models_of_another_kind_are_refused(pieces: Path, tmp_path: Path) -> None:
    tokens = vocabulary(pieces)
    spec = specification(tokens, tokens, opennmt_positions())
    for stack in (spec.encoder, spec.decoder):
        stack.activation = np.dtype("int8").type(1)
    directory = with_tokenizer(spec, tmp_path / "model", pieces)
    with pytest.raises(DataError, match="activation = gelu by tanh; models with relu, swish, gelu can be imported"):
        import_model(directory, tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("decoder/layer_0/self_attention/relative_position_keys", r"relative_position_keys \(relative positions\)"),
        ("encoder/layer_1/ffn/linear_0_noact/weight", r"linear_0_noact/weight \(gated feed-forward layers\)"),
        ("decoder/alibi", "decoder/alibi = 1; models without it"),
        ("decoder/final_logit_softcapping", "decoder/final_logit_softcapping = 1; models without it"),
    ],
)
def test_what_our_model_has_no_place_for_is_named(name: str, message: str, pieces: Path, tmp_path: Path) -> None:
    tokens = vocabulary(pieces)
    spec = specification(tokens, tokens, opennmt_positions())
    directory = with_tokenizer(spec, tmp_path / "model", pieces)
    array = np.float32(1) if name.count("/") == 1 else numbers(3, D_MODEL, seed=1)
    write_older(spec, directory, 5, 7, {name: np.asarray(array)})
    with pytest.raises(DataError, match=message):
        import_model(directory, tmp_path / "run")


def test_a_model_of_speech_is_refused(tmp_path: Path) -> None:
    directory = opennmt(tmp_path / "model")
    content = (directory / "model.bin").read_bytes().replace(b"TransformerSpec\0", b"WhisperBigSpec2\0", 1)
    (directory / "model.bin").write_bytes(content)
    with pytest.raises(
        DataError, match="a model of WhisperBigSpec2; translators \\(TransformerSpec\\) can be imported"
    ):
        import_model(directory, tmp_path / "run")
