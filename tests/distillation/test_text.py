"""What is taught and what measures: from the teacher's own text, from files, or from sources alone."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import CorpusConfig, DataConfig
from dragoman.data.text_changes import changed
from dragoman.distillation.text import NOISE, TextToTeach, prepare_text
from dragoman.errors import DataError
from dragoman.progress import discard
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator
from support.commands import Ran
from support.lexicon import lexicon_pairs


def about(run: Path, out: Path, asked: TextToTeach, **load: Any) -> dict[str, Any]:
    teachers = [RunDirectory(run)]
    return prepare_text(teachers, Translator.load(run, **load), RunDirectory(out), asked, discard).about


def sources_of(out: Path) -> list[tuple[str, str]]:
    lines = (out / "teaching" / "sources.tsv").read_text(encoding="utf-8").splitlines()
    return [(line.split("\t")[0], line.split("\t")[1]) for line in lines]


def test_noise_goes_into_the_sources_and_the_reference_stays_one(teacher: Path, tmp_path: Path) -> None:
    plain = about(teacher, tmp_path / "plain", TextToTeach())
    noisy = about(teacher, tmp_path / "noisy", TextToTeach(noise=0.5))
    assert plain["noise"] == {}
    pairs = list(zip(sources_of(tmp_path / "plain"), sources_of(tmp_path / "noisy"), strict=True))
    assert len(pairs) == 200
    different = [(before, after) for before, after in pairs if before != after]
    assert sum(noisy["noise"].values()) == len(different)
    assert 70 <= len(different) <= 130
    assert set(noisy["noise"]) <= set(NOISE)
    for before, after in different:
        if after[0].isupper():
            assert after == changed("upper_case", before, {}, None, ())  # type: ignore[arg-type]
        else:
            assert after[1] == before[1]  # of a misspelt sentence, the translation of what was meant


def test_more_text_comes_after_what_has_a_reference(teacher: Path, more_text: Path, tmp_path: Path) -> None:
    found = about(teacher, tmp_path / "out", TextToTeach(text=(more_text,)))
    lines = sources_of(tmp_path / "out")
    assert [bool(reference) for _, reference in lines] == [True] * 200 + [False] * found["without_reference"]
    assert found["dropped"]["text: empty"] == 1
    assert found["dropped"]["text: duplicate"] == 1
    assert found["caveats"] == []


def test_pairs_that_are_given_take_the_place_of_the_teachers(teacher: Path, tmp_path: Path) -> None:
    paths = {}
    for name, pairs in (("new", lexicon_pairs(80, seed=31)), ("valid", lexicon_pairs(60, seed=32))):
        paths[name] = tmp_path / f"{name}.tsv"
        paths[name].write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    new, valid = (CorpusConfig(pairs=str(paths[name])) for name in ("new", "valid"))
    found = about(teacher, tmp_path / "out", TextToTeach(pairs=new, valid=valid))
    given, measured = dict(lexicon_pairs(80, seed=31)), dict(lexicon_pairs(60, seed=32))
    assert set(sources_of(tmp_path / "out")) <= set(given.items())
    tested = (tmp_path / "out" / "teaching" / "test.source").read_text(encoding="utf-8").splitlines()
    assert set(tested) <= set(measured)
    assert found["held_out"]["test"] == len(tested)


@pytest.fixture(scope="module")
def imported(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with weights, tokenizer and configuration alone, as an import leaves it."""
    out = tmp_path_factory.mktemp("imported") / "run"
    out.mkdir()
    for name in ("model.safetensors", "model.json", "tokenizer.model"):
        shutil.copy(tiny_run / name, out / name)
    RunDirectory(out).write_config(replace(RunDirectory(tiny_run).read_config(), data=DataConfig()))
    return out


def test_sources_alone_are_measured_by_agreement(imported: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.en"
    text.write_text("".join(f"{source}\n" for source, _ in lexicon_pairs(500, seed=41)), encoding="utf-8")
    found = about(imported, tmp_path / "out", TextToTeach(text=(text,)))
    assert found["agreement"]
    assert found["caveats"] == ["there are no references: BLEU and chrF are agreement with the teacher, not quality"]
    assert (found["with_reference"], found["without_reference"]) == (0, 450)
    assert found["held_out"] == {"valid": 25, "test": 25}
    with pytest.raises(DataError, match="0 sentences to measure with"):
        about(imported, tmp_path / "none", TextToTeach())


def test_a_teacher_of_several_languages_teaches_the_one_that_is_asked_for(
    tiny_text: Path, tiny_settings: list[str], tmp_path: Path, cli: Callable[..., Ran]
) -> None:
    data = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv", "--both-directions"]
    languages = ["--source-language", "en", "--target-language", "eo"]
    run = tmp_path / "both"
    ran = cli("train", *data, *languages, "--out", run, "--steps", "2", *tiny_settings)
    assert ran.code == 0, ran.stderr
    about(run, tmp_path / "out", TextToTeach(), to="eo")
    known = {tuple(line.split("\t")) for line in (tiny_text / "train.tsv").read_text(encoding="utf-8").splitlines()}
    assert set(sources_of(tmp_path / "out")) == known
    unsaid = cli("distill", run, "--out", tmp_path / "student")
    assert unsaid.code == 2
    assert "translates into en, eo; say which: --target-language" in unsaid.stderr
    assert json.loads((tmp_path / "out" / "teaching" / "about.json").read_text())["languages"] is None
