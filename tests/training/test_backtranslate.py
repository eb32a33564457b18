"""Several languages in one model by tags, and pairs made by back-translation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.config import CorpusConfig, DataConfig
from dragoman.config.recipes import load
from dragoman.data.dataset import prepare
from dragoman.data.tokenizer import load_tokenizer
from dragoman.diagnosis.stress import LEAST
from dragoman.errors import ConfigError, UsageError
from dragoman.training.backtranslate import backtranslate, fault, sift
from dragoman.translation.translator import Translator
from support.commands import Ran
from support.lexicon import lexicon_pairs


@pytest.fixture(scope="module")
def both_ways(
    tiny_text: Path, tiny_settings: list[str], tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Ran]
) -> Path:
    """English to Esperanto and back in one model."""
    out = tmp_path_factory.mktemp("both") / "run"
    data = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv", "--both-directions"]
    languages = ["--source-language", "en", "--target-language", "eo"]
    ran = cli(
        "train", *data, *languages, "--out", out, "--steps", "160", "--set", "train.valid_steps=80", *tiny_settings
    )
    assert ran.code == 0, ran.stderr
    return out


def test_a_tag_is_one_piece_and_says_the_language(
    both_ways: Path, tiny_text: Path, tmp_path: Path, cli: Callable[..., Ran]
) -> None:
    tokenizer = load_tokenizer(both_ways)
    ids = tokenizer.encode(">>eo<< the dog")
    assert tokenizer.piece(ids[0]) == "▁>>eo<<"
    assert ids[1:] == tokenizer.encode("the dog")
    there, back = (Translator.load(both_ways, to=language) for language in ("eo", "en"))
    known = [line.split("\t") for line in (tiny_text / "train.tsv").read_text(encoding="utf-8").splitlines()[:20]]
    words: dict[str, set[str]] = {"en": set(), "eo": set()}
    for source, target in known:
        words["en"].update(source.split())
        words["eo"].update(target.split())

    def share(text: list[str], language: str) -> float:
        found = [word for line in text for word in line.split()]
        return sum(word in words[language] for word in found) / len(found)

    assert share(there.translate([source for source, _ in known]), "eo") > 0.9
    assert share(back.translate([target for _, target in known]), "en") > 0.9
    ran = cli("translate", both_ways, "--target-language", "eo", stdin="the old dog\n")
    assert (ran.code, ran.stdout) == (0, f"{there.translate(['the old dog'])[0]}\n")
    (page := tmp_path / "page.txt").write_text("the old dog\n", encoding="utf-8")
    assert cli("translate-file", both_ways, page, "--out", tmp_path / "out.txt", "--target-language", "eo").code == 0
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == ran.stdout
    unsaid = cli("translate", both_ways, stdin="the dog\n")
    assert (unsaid.code, unsaid.stderr) == (
        2,
        f"dragoman: {both_ways} translates into en, eo; say which: --target-language en\n",
    )
    with pytest.raises(UsageError, match="translates into en, eo, not fr"):
        Translator.load(both_ways, to="fr")
    with pytest.raises(UsageError, match="an Argos package has one direction"):
        dragoman.Run(both_ways).export("argos", languages=("en", "eo"))


def test_a_run_of_several_languages_is_told_which_one_it_learns(
    both_ways: Path, tiny_text: Path, tmp_path: Path, cli: Callable[..., Ran]
) -> None:
    command = ["finetune", both_ways, "--pairs", tiny_text / "train.tsv", "--out", tmp_path / "run", "--steps", "1"]
    unsaid = cli(*command, "--valid-pairs", tiny_text / "valid.tsv")
    assert unsaid.code == 2
    assert "translates into en, eo; say which: --target-language en" in unsaid.stderr
    ran = cli(*command, "--valid-pairs", tiny_text / "valid.tsv", "--target-language", "eo")
    assert ran.code == 0, ran.stderr
    learned = (tmp_path / "run" / "finetune" / "new.source").read_text(encoding="utf-8").splitlines()
    assert all(line.startswith(">>eo<< ") for line in learned)
    assert Translator.load(tmp_path / "run", to="en").tag == ">>en<<"  # it still knows both


def test_held_out_pairs_are_held_out_in_both_directions(tiny_text: Path, tmp_path: Path) -> None:
    corpus = CorpusConfig(pairs=str(tiny_text / "train.tsv"), tag=">>eo<<", back_tag=">>en<<")
    prepared = prepare(DataConfig(train=(corpus,)), 400, 1, tmp_path, lambda _: None)
    assert len(prepared.valid_pairs) == 40  # a tenth of the lines, twice
    learned = {prepared.tokenizer.decode(prepared.train.source(i)) for i in range(len(prepared.train))}
    assert len(prepared.train) == 360
    assert learned.isdisjoint(source for source, _ in prepared.valid_pairs)
    sides = {source.split(" ", 1)[1] for source, _ in prepared.valid_pairs} | {t for _, t in prepared.valid_pairs}
    assert sides.isdisjoint(source.split(" ", 1)[1] for source in learned)


def test_languages_that_stand_the_other_way_round_are_right_where_tags_say_so(tiny_text: Path, tmp_path: Path) -> None:
    swapped = tmp_path / "swapped.tsv"
    lines = [line.split("\t") for line in (tiny_text / "train.tsv").read_text(encoding="utf-8").splitlines()]
    swapped.write_text("".join(f"{target}\t{source}\n" for source, target in lines[:100]), encoding="utf-8")
    there = CorpusConfig(pairs=str(tiny_text / "train.tsv"), tag=">>eo<<")
    back = CorpusConfig(pairs=str(swapped), tag=">>en<<")
    valid = (CorpusConfig(pairs=str(tiny_text / "valid.tsv"), tag=">>eo<<"),)
    prepared = prepare(DataConfig(train=(there, back), valid=valid), 400, 1, tmp_path / "run", lambda _: None)
    assert len(prepared.train) == 300


def test_stress_is_of_one_language_and_changes_no_tag(both_ways: Path, cli: Callable[..., Ran]) -> None:
    everything = [part for name in LEAST for part in ("--least", f"{name}=0")]
    ran = cli("stress", both_ways, "--target-language", "eo", "--engine", "reference", "--json", *everything)
    assert ran.code == 0, ran.stderr
    assert ">>" not in ran.stdout
    assert {test["name"] for test in json.loads(ran.stdout)["tests"]} == set(LEAST)
    assert "say which: --target-language" in cli("stress", both_ways).stderr


@pytest.mark.parametrize("tag", ["", "a  b", "▁x", "a\tb"])
def test_a_tag_that_cannot_be_one_is_refused(tag: str) -> None:
    with pytest.raises(ConfigError, match="words with a space between them"):
        CorpusConfig(pairs="x.tsv", tag=tag)


def test_back_translation_makes_sifts_and_mixes(
    both_ways: Path, tiny_text: Path, tmp_path: Path, cli: Callable[..., Ran], tiny_settings: list[str]
) -> None:
    mono = tmp_path / "mono.txt"
    targets = [target for _, target in lexicon_pairs(60, seed=21)]
    mono.write_text("".join(f"{target}\n" for target in [*targets, targets[0], ""]), encoding="utf-8")
    out = tmp_path / "bt"
    arguments = ["--mono", mono, "--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
    arguments += ["--target-language", "en"]
    ran = cli("backtranslate", both_ways, *arguments, "--out", out, "--ratio", "0.2", "--json")
    assert ran.code == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert report["lines"] == 62
    assert report["dropped"]["empty"] >= 1
    assert report["kept"] + sum(report["dropped"].values()) == 62
    assert report["ratio"] == pytest.approx(0.2)
    more = cli("backtranslate", both_ways, *arguments, "--out", out, "--ratio", "0.1", "--json")
    assert "raw.tsv: translated before" in more.stderr  # another share of it is not another translation
    assert json.loads(more.stdout)["ratio"] == pytest.approx(0.1)
    drawn = cli("backtranslate", both_ways, *arguments, "--out", out, "--sample")
    assert (drawn.code, "translated before" in drawn.stderr) == (0, False)
    assert cli("backtranslate", both_ways, *arguments, "--out", out, "--ratio", "0.2").code == 0
    synthetic = [line.split("\t") for line in (out / "synthetic.tsv").read_text(encoding="utf-8").splitlines()]
    assert {target for _, target in synthetic} <= set(targets)
    config = load(str(out / "recipe.toml")).config
    real, made = config.data.train
    assert (real.tag, made.tag) == (None, "<bt>")
    assert made.weight == pytest.approx(0.2 * 200 / report["kept"])
    trained = cli("train", out / "recipe.toml", "--out", tmp_path / "run", "--steps", "2", *tiny_settings)
    assert trained.code == 0, trained.stderr
    tokenizer = load_tokenizer(tmp_path / "run")
    assert tokenizer.piece(tokenizer.encode("<bt> the dog")[0]) == "▁<bt>"
    assert dragoman.Translator.load(tmp_path / "run").tag == ""  # nobody asks for synthetic text


@pytest.mark.parametrize(
    ("source", "target", "wrong"),
    [
        ("the dog sees", "la hundo vidas", None),
        ("", "la hundo", "empty"),
        ("La Hundo", "la hundo", "copy"),
        ("the", "la hundo vidas la katon en la domo", "length ratio"),
        ("the dog dog dog dog dog dog", "la hundo vidas katon sub arbo", "repetition"),
        ("go to go to go to go to go to go to", "la hundo vidas katon sub arbo", "repetition"),
        ("that that had had it", "tio tio havis havis ĝin", None),
    ],
)
def test_what_is_no_translation_is_named(source: str, target: str, wrong: str | None) -> None:
    assert fault(source, target) == wrong


def test_the_least_probable_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "raw.tsv").write_text("".join(f"source {i}\ttarget {i}\t{-i}\n" for i in range(10)))
    assert sift(tmp_path / "raw.tsv", tmp_path / "out.tsv", 0.2) == (10, 8, {"improbable": 2})
    assert "source 9" not in (tmp_path / "out.tsv").read_text()


def test_bad_shares_are_refused_before_any_work(tmp_path: Path) -> None:
    bads: list[dict[str, Any]] = [{"drop": 1.0}, {"ratio": 0.0}]
    for bad in bads:
        with pytest.raises(UsageError):
            backtranslate("none", "none", "none.tsv", tmp_path / "out", **bad)
    assert not (tmp_path / "out").exists()
