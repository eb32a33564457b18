"""A model of several languages is fine-tuned in the two that it is asked for, and goes on knowing them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.data.tokenizer import load_tokenizer
from dragoman.importing.read import import_model
from dragoman.run_directory import RunDirectory
from dragoman.training.finetune_languages import load_for_tagged
from support.commands import Ran
from support.model_directories import m2m100_directory, marian_directory
from support.public_models import lines


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    plain = (" ".join(line.split()) for line in lines(60, seed=8))
    path.write_text("".join(f"{line}\t{line}\n" for line in plain if line), encoding="utf-8")
    return path


def test_the_tag_is_the_model_s_own(tmp_path: Path, pairs: Path, cli: Callable[..., Ran]) -> None:
    run = import_model(marian_directory(tmp_path / "opus-mt-en-mul", tags=[">>deu<<", ">>fra<<"]), tmp_path / "run")
    command = ["finetune", run, "--pairs", pairs, "--steps", "1", "--out", tmp_path / "tuned"]
    unsaid = cli(*command)
    assert (unsaid.code, unsaid.stderr.count("\n")) == (2, 1)
    assert "translates into de, fr; say which: --target-language de" in unsaid.stderr
    ran = cli(*command, "--target-language", "de")  # the model calls it deu
    assert ran.code == 0, ran.stderr
    learned = (tmp_path / "tuned" / "finetune" / "new.source").read_text(encoding="utf-8").splitlines()
    assert {line.split()[0] for line in learned} == {">>deu<<"}


def test_language_tokens_are_those_that_were_asked_for(tmp_path: Path, pairs: Path, cli: Callable[..., Ran]) -> None:
    run = import_model(m2m100_directory(tmp_path / "m2m100"), tmp_path / "run")
    general = load_for_tagged(RunDirectory(run), ("en", "de"))  # which translates text for the old domain
    assert general.tokenizer.chosen_languages == ("en", "de")
    tuned = tmp_path / "tuned"
    ran = cli(
        "finetune", run, "--pairs", pairs, "--steps", "2", "--out", tuned,
        "--source-language", "en", "--target-language", "de",
    )  # fmt: skip
    assert ran.code == 0, ran.stderr
    assert json.loads((tuned / "languages.json").read_text()) == {"source": "en", "target": "de"}
    assert load_tokenizer(tuned).chosen_languages == ("en", "de")
    again = cli("verify", tuned)
    assert again.code == 0, again.stderr
    assert "steps 1 to 2 trained again" in again.stdout  # of ids that begin with the same tokens
    assert cli("translate", tuned, stdin="river\n").code == 0


def test_a_run_of_two_languages_says_them_afterwards(tmp_path: Path, pairs: Path, cli: Callable[..., Ran]) -> None:
    run = import_model(marian_directory(tmp_path / "opus-mt-en-fr", source_lang="en", target_lang="fr"), tmp_path / "r")
    ran = cli("finetune", run, "--pairs", pairs, "--steps", "1", "--out", tmp_path / "tuned")
    assert ran.code == 0, ran.stderr
    assert json.loads((tmp_path / "tuned" / "languages.json").read_text()) == {"source": "en", "target": "fr"}
