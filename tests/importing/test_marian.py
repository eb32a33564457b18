"""A model as Marian wrote it becomes the run that Hugging Face's conversion of it becomes."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from dragoman.decoding.engines.torch_engine import ReferenceEngine
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.importing.read import import_model, read_model
from dragoman.translation.translator import Translator
from support.commands import Ran
from support.marian_archives import NAME, SETTINGS, archive_of, converted, random_arrays, save_npz, write_marian
from support.public_models import lines

TEXT = lines(1000, seed=1)
CASES: dict[str, dict[str, Any]] = {
    "tied": {},
    "many targets": {"tags": [">>deu<<", ">>fra<<"]},
    "relu": {"transformer_ffn_activation": "relu"},
    "two vocabularies": {"two_vocabularies": True, "tied_embeddings_all": False, "tied_embeddings": True},
    "nothing tied": {"two_vocabularies": True, "tied_embeddings_all": False},
    "output apart": {"tied_embeddings_all": False, "tied_embeddings_src": True},
}


def found_by(translator: Translator, texts: list[str]) -> list[list[int]]:
    sources = translator.tokenizer.encode_batch(texts)
    best: list[list[Hypothesis]] = translator.engine.translate(sources, translator.search)
    return [list(hypotheses[0].ids) for hypotheses in best]


@pytest.mark.parametrize("case", CASES)
def test_an_archive_is_the_run_that_its_conversion_is(case: str, tmp_path: Path) -> None:
    directory = tmp_path / "en-de"
    settings = write_marian(directory, **CASES[case])
    archive = archive_of(directory, directory / "opus-2020-02-26.zip")
    out = import_model(archive, tmp_path / "ours")
    expected = import_model(converted(directory, tmp_path / "hf", settings), tmp_path / "theirs")
    ours, theirs = load_file(out / "model.safetensors"), load_file(expected / "model.safetensors")
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        assert np.array_equal(ours[name], array), name
    one, other = (json.loads((run / "config.json").read_text()) for run in (out, expected))
    assert (one["model"].pop("alignment_layer"), other["model"].pop("alignment_layer")) == (2, 0)
    assert one == other
    assert (out / "tokenizer.model").read_bytes() == (expected / "tokenizer.model").read_bytes()
    assert json.loads((out / "languages.json").read_text()) == {"source": "en", "target": "de"}
    to = "fra" if case == "many targets" else None
    for engine in ("reference", "ctranslate2"):
        first, second = (Translator.load(run, engine=engine, to=to) for run in (out, expected))
        assert first.tokenizer.encode_batch(TEXT) == second.tokenizer.encode_batch(TEXT)
        assert first.tokenizer.encode_target_batch(TEXT) == second.tokenizer.encode_target_batch(TEXT)
        assert found_by(first, TEXT[:12]) == found_by(second, TEXT[:12])


MORE_CASES = {name: changes for name, changes in CASES.items() if name != "many targets"} | {
    "pre-norm": {
        "transformer_preprocess": "n", "transformer_postprocess": "da", "transformer_postprocess_top": "n"
    },
    "embeddings normalised": {"transformer_postprocess_emb": "nd"},
    "vocabularies of two sizes": {
        "two_vocabularies": True, "more": 37, "tied_embeddings_all": False, "tied_embeddings": True
    },
}  # fmt: skip


@pytest.mark.parametrize("case", MORE_CASES)
def test_its_probabilities_are_those_of_ctranslate2_s_own_conversion(case: str, tmp_path: Path) -> None:
    directory = tmp_path / "model"
    write_marian(directory, **MORE_CASES[case])
    vocabularies = sorted(map(str, directory.glob("*vocab.yml")))
    ctranslate2.converters.MarianConverter(str(directory / NAME), vocabularies).convert(str(tmp_path / "ct2"))
    theirs = ctranslate2.Translator(str(tmp_path / "ct2"))
    run = Translator.load(import_model(directory, tmp_path / "run"), engine="reference")
    assert isinstance(run.engine, ReferenceEngine)
    model, tokenizer = run.engine.models[0], run.tokenizer
    for source, target in zip(TEXT[:40], TEXT[40:80], strict=True):
        ids, fed = tokenizer.encode(source), tokenizer.encode_target(target)
        scored = theirs.score_batch(
            [list(map(tokenizer.source_piece, ids))], [list(map(tokenizer.piece, fed))], max_input_length=0
        )
        with torch.inference_mode():
            logits = model(torch.tensor([[*ids, tokenizer.eos_id]]), torch.tensor([[*tokenizer.start_ids, *fed]]))
        # The token that is added is not in their vocabulary.
        found = logits[0, :, :-1].log_softmax(dim=-1).gather(1, torch.tensor([[*fed, tokenizer.eos_id]]).T)[:, 0]
        assert found.tolist() == pytest.approx(scored[0].log_probs, abs=1e-3)


def test_layers_that_are_one_in_the_file_are_as_many_in_the_run(tmp_path: Path) -> None:
    write_marian(tmp_path / "model")
    settings: dict[str, Any] = SETTINGS | {"transformer-tied-layers": [1, 2, 1], "dec-depth": 3}
    arrays = random_arrays(SETTINGS, [50, 50], seed=9)
    path = tmp_path / "model" / NAME
    size = len(np.load(path)["Wemb"])
    save_npz(path, random_arrays(SETTINGS, [size, size], seed=9), settings)
    model = read_model(tmp_path / "model")
    assert model.config.model.decoder_layers == 3
    first, second, third = (model.weights[f"decoder.{layer}.cross_attention.w_k.weight"] for layer in range(3))
    assert np.array_equal(first, third)
    assert not np.array_equal(first, second)
    assert arrays.keys() <= set(np.load(path).files)


def test_a_model_in_half_precision_and_older_names_is_read(tmp_path: Path) -> None:
    settings = write_marian(tmp_path / "model", tied_embeddings_all=False, tied_embeddings_src=True)
    path = tmp_path / "model" / NAME
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if "special" not in name}
    expected = read_model(tmp_path / "model").weights
    arrays["decoder_ff_logit_out_W"] = np.asfortranarray(arrays.pop("decoder_ff_logit_out_Wt")).T
    save_npz(path, {name: array.astype(np.float16) for name, array in arrays.items()}, settings)
    found = read_model(tmp_path / "model").weights
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, atol=2e-3)


def test_a_head_that_was_trained_to_align_is_the_alignment(tmp_path: Path) -> None:
    from dragoman.decoding.alignment import AlignmentHeads
    from dragoman.inspection.explain import Explainer

    write_marian(tmp_path / "model")
    run = import_model(tmp_path / "model", tmp_path / "run", ("en", "de"))
    explainer = Explainer.load(run)
    assert explainer.alignment_heads == AlignmentHeads(((1, 0),), 0, None)
    explained = explainer.explain("river snow")
    assert len(explained.alignment) == len(explained.target_words)

    def layer(name: str, beside: str | None = None, **changes: Any) -> int:
        directory = tmp_path / name
        write_marian(directory, **changes)
        (directory / NAME).rename(directory / name)
        (directory / "decoder.yml").unlink()
        if beside is not None:
            (directory / f"{name}.yml").write_text(beside)
        return read_model(directory).config.model.alignment_layer

    assert layer("model.npz") == 0
    assert layer("m.transformer.model1.npz") == 0
    assert layer("a.transformer-big-align.model1.npz", transformer_guided_alignment_layer="1") == 1
    assert layer("b.npz", "guided-alignment: corpus.align\ntrain-sets:\n  - a\n") == 2
    assert layer("c.transformer-align.model1.npz", "guided-alignment: none\n") == 0


def test_the_files_are_found_by_decoder_yml_or_by_their_names(tmp_path: Path) -> None:
    directory = tmp_path / "deu-eng"
    write_marian(directory)
    by_name = read_model(directory / NAME)
    (directory / "decoder.yml").write_text(
        (directory / "decoder.yml").read_text().replace("  - opus", "  - /home/someone/work/opus")
    )
    assert read_model(directory).tokenizer.digest == by_name.tokenizer.digest
    (directory / "decoder.yml").unlink()
    (directory / "README.md").write_text("* source language(s): fra\n* target language(s): deu eng\n")
    model = read_model(directory)
    assert (model.tokenizer.digest, model.languages) == (by_name.tokenizer.digest, None)
    assert by_name.languages == ("deu", "eng")
    (directory / "README.md").write_text("* source language(s): fra\n* target language(s): eng\n")
    assert read_model(directory).languages == ("fra", "eng")


def test_vocabularies_with_a_piece_a_line(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    write_marian(directory, **CASES["two vocabularies"])
    expected = read_model(directory).tokenizer.encode_batch(TEXT[:50])
    import yaml

    for name in ("opus.src.vocab", "opus.trg.vocab"):
        ids = yaml.safe_load((directory / f"{name}.yml").read_text(encoding="utf-8"))
        (directory / name).write_text("".join(f"{piece}\n" for piece in sorted(ids, key=lambda key: int(ids[key]))))
        (directory / f"{name}.yml").unlink()
    (directory / "decoder.yml").unlink()
    assert read_model(directory).tokenizer.encode_batch(TEXT[:50]) == expected


def test_an_import_needs_no_torch(tmp_path: Path) -> None:
    write_marian(tmp_path / "model")
    program = (
        "import sys; sys.modules['torch'] = None; sys.modules['yaml'] = None\n"
        "from dragoman.importing.read import import_model; import_model(sys.argv[1], sys.argv[2])"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "model", tmp_path / "run"], check=True, timeout=120)
    assert (tmp_path / "run" / "model.safetensors").is_file()


def test_the_command_takes_an_archive(tmp_path: Path, cli: Callable[..., Ran]) -> None:
    write_marian(tmp_path / "model")
    archive, out = archive_of(tmp_path / "model", tmp_path / "opus-2020-02-26.zip"), tmp_path / "run"
    ran = cli("import", archive, "--out", out, "--source-language", "en", "--target-language", "de")
    assert (ran.code, ran.stdout, ran.stderr) == (0, f"{out}\n", "")
    card = json.loads((out / "model.json").read_text())
    assert (card["from"], card["weights"]) == ("opus-2020-02-26.zip", NAME)
    (tmp_path / "source").write_text("river snow\nold harbour\n")
    ran = cli("translate", out, "--input", tmp_path / "source")
    assert (ran.code, ran.stdout.count("\n")) == (0, 2), ran.stderr
