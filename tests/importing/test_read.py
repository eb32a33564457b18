"""A directory that transformers wrote becomes a run: it searches as generate() does, and every command takes it."""

import json
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DataError
from dragoman.importing.read import import_model
from dragoman.translation.translator import Translator
from support.commands import Ran
from support.model_directories import m2m100_directory, marian_directory, mbart_directory
from support.public_models import lines

TEXT = lines(24, seed=7)


@pytest.fixture
def marian(tmp_path: Path) -> Path:
    return marian_directory(tmp_path / "opus-mt-en-fr", source_lang="en", target_lang="fr")


@pytest.fixture
def m2m100(tmp_path: Path) -> Path:
    return m2m100_directory(tmp_path / "m2m100")


def generated(directory: Path, beam: int, longest: list[int], **settings: Any) -> list[list[int]]:
    """What generate() finds of each line alone, without special symbols."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    with warnings.catch_warnings(action="ignore"):  # it recommends packages that it does not use here
        tokenizer = AutoTokenizer.from_pretrained(directory, src_lang="en", tgt_lang="fr")
    model = AutoModelForSeq2SeqLM.from_pretrained(directory).eval()
    if "m2m100" in directory.name:
        settings["forced_bos_token_id"] = tokenizer.get_lang_id("fr")
    found = []
    for line, most in zip(TEXT, longest, strict=True):
        given = tokenizer(line, return_tensors="pt")
        ids = model.generate(**given, num_beams=beam, max_new_tokens=most, early_stopping=False, **settings)[0].tolist()
        ids = ids[2 if settings else 1 :]
        found.append(ids[: ids.index(model.config.eos_token_id)] if model.config.eos_token_id in ids else ids)
    return found


@pytest.mark.parametrize("family", ["marian", "m2m100"])
def test_the_run_finds_what_generate_finds(family: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    directory: Path = request.getfixturevalue(family)
    out = import_model(directory, tmp_path / "run", ("en", "fr"))
    for beam in (1, 4):
        for engine in ("reference", "ctranslate2"):
            to = "fr" if family == "m2m100" else None
            translator = Translator.load(out, engine=engine, beam=beam, alpha=0.0, to=to)
            sources = translator.tokenizer.encode_batch(TEXT)
            found = [list(best[0].ids) for best in translator.engine.translate(sources, translator.search)]
            prefix = len(translator.tokenizer.start_ids) - 1
            limits = [len(source) + translator.search.max_extra_length + prefix for source in sources]
            expected = generated(directory, beam, limits)
            if beam == 1:
                assert found == expected
                continue
            # Random models hardly end, and what is cut at the limit is ranked otherwise: our search counts the end
            # symbol that it lacks. CTranslate2 moreover stops as soon as `beam` hypotheses have ended.
            same = sum(ours == theirs for ours, theirs in zip(found, expected, strict=True))
            assert same >= (len(TEXT) - 2 if engine == "reference" else len(TEXT) // 2)


@pytest.mark.parametrize("shape", ["two vocabularies", "many targets", "mbart-50"])
def test_other_shapes_are_searched_greedily_as_generate_does(shape: str, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForSeq2SeqLM

    directory, (source, target) = tmp_path / "theirs", (None, None) if shape == "two vocabularies" else ("en", "de")
    match shape:
        case "two vocabularies":
            marian_directory(directory, separate=True)
        case "many targets":
            marian_directory(directory, tags=[">>deu<<", ">>fra<<"])
        case _:
            mbart_directory(directory)
    out = import_model(directory, tmp_path / "run")
    model = AutoModelForSeq2SeqLM.from_pretrained(directory).eval()
    assert Translator.load(out, to=target, source=source).tokenizer.start_ids[0] == model.config.decoder_start_token_id
    for engine in ("reference", "ctranslate2"):
        translator = Translator.load(out, engine=engine, beam=1, max_extra_length=8, to=target, source=source)
        given = [f"{translator.tag} {line}".strip() for line in TEXT[:5]]
        sources, (_, *first) = translator.tokenizer.encode_batch(given), translator.tokenizer.start_ids
        for ids, found in zip(sources, translator.engine.translate(sources, translator.search), strict=True):
            ours, eos_id = [*first, *found[0].ids], translator.tokenizer.eos_id
            expected = model.generate(
                torch.tensor([[*ids, eos_id]]), num_beams=1, max_new_tokens=len(ours) + 1,
                forced_bos_token_id=first[0] if first else None,
            )[0].tolist()[1:]  # fmt: skip
            assert expected[: len(ours)] == ours
            was_cut = len(found[0].ids) == len(ids) + translator.search.max_extra_length
            assert was_cut or expected[len(ours) :] == [eos_id]


def test_every_command_takes_an_imported_run(marian: Path, tmp_path: Path, cli: Callable[..., Ran]) -> None:
    out, pairs = tmp_path / "run", tmp_path / "pairs.tsv"
    ran = cli("import", marian, "--out", out)
    assert (ran.code, ran.stdout) == (0, f"{out}\n"), ran.stderr
    assert json.loads((out / "languages.json").read_text()) == {"source": "en", "target": "fr"}
    pairs.write_text("".join(f"{line.strip()}\t{line.strip()}\n" for line in lines(150, seed=8) if line.strip()))
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("river snow\nold harbour\n")
    target.write_text("rivière neige\nvieux port\n")
    (tmp_path / "page.html").write_text("<p>old <b>harbour</b></p>\n")
    for command in (
        ("translate", out, "--input", source, "--out", tmp_path / "translated"),
        ("translate-file", out, tmp_path / "page.html", "--out", tmp_path / "translated.html"),
        ("score", out, "--pairs", pairs),
        ("quantize", out, "--source", source, "--reference", target, "--rounds", "1"),
        ("doctor", out),
        ("finetune", out, "--pairs", pairs, "--steps", "2", "--out", tmp_path / "tuned"),
        ("verify", tmp_path / "tuned"),
        ("evaluate", out, "--source", source, "--reference", target),
        ("inspect", out, "river snow"),
        ("export", out, "--format", "ctranslate2", "--out", tmp_path / "ct2"),
        ("export", out, "--format", "onnx", "--out", tmp_path / "onnx"),
        ("bundle", out, "--out", tmp_path / "bundle.zip"),
        ("translate", tmp_path / "bundle.zip", "--input", source),
    ):
        ran = cli(*command)
        assert ran.code == 0, (command, ran.stderr)
    back = cli("export", out, "--format", "marian-hf", "--out", tmp_path / "hf")
    assert back.code == 0, back.stderr
    again = import_model(tmp_path / "hf", tmp_path / "again")
    one, other = (Translator.load(run, engine="reference") for run in (out, again))
    given = list(zip(TEXT[:8], TEXT[8:16], strict=True))
    for ours, theirs in zip(one.score(given), other.score(given), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)


@pytest.mark.parametrize(
    ("family", "said"), [("tags", "at every command"), ("tokens", "at every command"), ("tokens", "once")]
)
def test_every_command_takes_a_run_of_several_languages(
    family: str, said: str, tmp_path: Path, cli: Callable[..., Ran]
) -> None:
    """The languages are said to the command, or to the import once and for all."""
    directory = (
        marian_directory(tmp_path / "opus-mt-en-mul", tags=[">>deu<<", ">>fra<<"])
        if family == "tags"
        else m2m100_directory(tmp_path / "m2m100")
    )
    run, languages = tmp_path / "run", ["--source-language", "en", "--target-language", "de"]
    asked = [] if said == "once" else languages
    ran = cli("import", directory, "--out", run, *(languages if said == "once" else []))
    assert ran.code == 0, ran.stderr
    source, target, pairs = (tmp_path / name for name in ("source", "target", "pairs.tsv"))
    source.write_text("river snow\nold harbour\n" * 30)
    target.write_text("river snow\nold harbour\n" * 30)
    pairs.write_text("river snow\tFluss Schnee\n")
    test = ["--source", source, "--reference", target]
    for command in (
        ("translate", run, "--input", source),
        ("evaluate", run, *test),
        ("compare", run, run, *test, "--samples", "100"),
        ("score", run, "--pairs", pairs),
        ("inspect", run, "river snow"),
        ("quantize", run, *test, "--rounds", "1", "--limit", "100"),
        ("calibrate", run, *test, "--good", "0.01"),
    ):
        ran = cli(*command, *asked)
        done = ran.code == 0 or (command[0] == "calibrate" and "translations reach chrF" in ran.stderr)
        assert done, (command, ran.stderr)
    if said == "once":
        other = cli("translate", run, "--target-language", "fr", stdin="river\n")
        assert other.code == 0, other.stderr
    else:
        unsaid = cli("inspect", run, "river snow")
        assert (unsaid.code, unsaid.stderr.count("\n")) == (2, 1)
        assert "say which: --target-language " in unsaid.stderr


def test_an_imported_run_is_verified_by_the_hashes_of_its_files(
    marian: Path, tmp_path: Path, cli: Callable[..., Ran]
) -> None:
    run = import_model(marian, tmp_path / "run")
    ran = cli("verify", run)
    assert (ran.code, ran.stdout.split(maxsplit=1)[1]) == (
        0,
        "model.safetensors and tokenizer.model are as they were imported\n",
    )
    weights = bytearray((run / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (run / "model.safetensors").write_bytes(weights)
    ran = cli("verify", run)
    assert ran.code == 4
    assert "model.safetensors: not what was imported; import the model again" in ran.stderr


def test_what_is_no_model_is_said_in_a_line(tmp_path: Path, cli: Callable[..., Ran]) -> None:
    ran = cli("import", tmp_path / "nothing", "--out", tmp_path / "run")
    assert ran.code == 3
    assert ran.stderr.count("\n") == 1
    (tmp_path / "empty").mkdir()
    ran = cli("import", tmp_path / "empty", "--out", tmp_path / "run")
    assert (ran.code, ran.stderr.count("\n")) == (3, 1)
    assert "no config.json" in ran.stderr


def test_files_that_lead_to_a_model_say_which_way(marian: Path, tmp_path: Path) -> None:
    checkpoints = tmp_path / "fairseq"
    checkpoints.mkdir()
    (checkpoints / "averaged.pt").write_bytes(b"never read")
    packed = tmp_path / "model.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(marian, "model")
    for path, message in (
        (checkpoints, "averaged.pt is a checkpoint as OpenNMT-py or fairseq write them, which cannot be imported"),
        (checkpoints / "averaged.pt", "averaged.pt: a checkpoint as OpenNMT-py or fairseq write them, which cannot be"),
        (packed, "model.tar.gz: a tar archive; unpack it and give the directory of the model"),
        (marian / "model.safetensors", "only the weights of a model; give the directory that they are in"),
    ):
        with pytest.raises(DataError) as refused:
            import_model(path, tmp_path / "run")
        assert message in str(refused.value)
    assert not (tmp_path / "run").exists()
