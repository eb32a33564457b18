"""The demo on a few synthetic pairs, without the network: fetch, train, score, translate, say what to do next."""

import json
import random
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dragoman.quickstart.demo
import dragoman.training.loop
from dragoman.config.recipes import LayeredConfig, load
from dragoman.errors import DragomanError
from dragoman.quickstart.corpora import CORPORA, DemoCorpus, DemoName
from dragoman.quickstart.demo import SENTENCES, run_demo
from dragoman.quickstart.tatoeba import DemoData, Summary
from dragoman.run_directory import RunDirectory

SMALL = {
    "model.vocab_size": 320,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "train.steps": 4,
    "train.threads": 1,
    "train.valid_sentences": 2,
    "search.max_extra_length": 5,
}


@pytest.fixture
def data(tiny_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoData:
    """What `prepare_demo` would have left in the cache; the recipe made small."""
    directory = tmp_path / "cache"
    directory.mkdir()
    for name in ("train", "valid"):
        (directory / f"{name}.tsv").write_bytes((tiny_text / f"{name}.tsv").read_bytes())
    (directory / "valid.en").write_bytes((tiny_text / "valid.source").read_bytes())
    (directory / "test.en").write_text("the dog\nred house\n", encoding="utf-8")
    for target in ("fr", "es"):
        (directory / f"valid.{target}.1").write_bytes((tiny_text / "valid.target").read_bytes())
        (directory / f"test.{target}.1").write_text("la hundo\nruĝa domo\n", encoding="utf-8")
        (directory / f"test.{target}.2").write_text("hundo\n\n", encoding="utf-8")
    found = DemoData(CORPORA["en-fr"], directory, Summary(240, 222, 222, 1, 200, 20, 20, 2, 3, 5.0, 2.0))

    def small(recipe: str, overrides: Sequence[tuple[str, Any, str]]) -> LayeredConfig:
        return load(recipe, [*overrides, *((key, value, "test") for key, value in SMALL.items())])

    monkeypatch.setattr(dragoman.quickstart.demo, "prepare_demo", lambda _cache, corpus: replace(found, corpus=corpus))
    monkeypatch.setattr(dragoman.quickstart.demo, "load", small)
    return found


@pytest.mark.parametrize(
    ("name", "given", "languages", "sentence"),
    [
        ("en-fr", (), "English-French", "I would like to speak French without thinking."),
        ("en-es", ("en-es",), "English-Spanish", "I would like to speak Spanish without thinking."),
    ],
)
@pytest.mark.filterwarnings("default::UserWarning")  # a model of ten steps loses what must stay, and says so
def test_the_demo(
    name: DemoName,
    given: tuple[str, ...],
    languages: str,
    sentence: str,
    data: DemoData,
    tmp_path: Path,
    cli: Callable[..., Any],
) -> None:
    out = tmp_path / "my runs"
    first = cli("demo", *given, "--out", out)
    assert first.code == 0, first.stderr
    assert first.stderr.startswith(f"fetching {languages} sentence pairs of the Tatoeba project (once)\n")
    assert "200 pairs to train on" in first.stderr
    assert "20 to validate, 2 to test" in first.stderr
    shown = first.stdout.splitlines()
    assert shown[0] == "On 2 held-out sentences, one or more references each:"
    assert shown[1].startswith("  BLEU (cased, raw text): ")
    assert "nrefs:var" in shown[1]
    assert shown[2].startswith("  chrF2: ")
    for everyday in (*SENTENCES[:-1], sentence):
        assert shown[shown.index(f"  {everyday}") + 1].startswith("    ")
    assert f"  dragoman translate '{out}' --n-best 4" in shown
    assert f"Sentences: Tatoeba, CC BY 2.0 FR, see {data.attribution}" in shown
    assert f"Verified, as `dragoman verify '{out}'` does: files, chain, weights, replay." in shown
    assert shown[-1].startswith(f"  dragoman serve --pair {name}='{out}'")  # the page comes last
    assert shown[-1].endswith("# the page, at http://localhost:5000")
    assert "not calibrated: 20 sentences" in first.stderr

    again = cli("demo", *given, "--out", out)
    assert again.code == 0
    assert "is finished (4 steps)" in again.stderr
    assert again.stdout == first.stdout


@pytest.fixture
def trained(data: DemoData, tiny_run: Path, tiny_text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that knows its words in place of a training, and sentences that it cannot know to validate with."""
    draw = random.Random(3)
    known = [line.split("\t") for line in (tiny_text / "train.tsv").read_text(encoding="utf-8").splitlines()[:60]]
    unknown = [[" ".join("".join(draw.choices("abcdefgh", k=4)) for _ in range(5)), "io alia"] for _ in range(60)]
    for name, column in (("valid.en", 0), ("valid.fr.1", 1)):
        text = "".join(f"{pair[column]}\n" for pair in [*known, *unknown])
        (data.directory / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(
        dragoman.training.loop,
        "train",
        lambda _config, run, _again: shutil.copytree(tiny_run, run.path, dirs_exist_ok=True),
    )
    monkeypatch.setattr(dragoman.quickstart.demo, "SENTENCES", ("the dog sees the cat",))
    monkeypatch.setattr(dragoman.quickstart.demo, "BEYOND", ("hgfe dcba",))


@pytest.mark.usefixtures("trained")
def test_what_it_cannot_translate_is_doubted(tmp_path: Path, cli: Callable[..., Any]) -> None:
    ran = cli("demo", "--out", tmp_path / "run")
    assert "not calibrated" not in ran.stderr
    known, beyond = (int(sure) for sure in re.findall(r"\((\d+)% sure\)", ran.stdout))
    assert known > 50 > beyond
    (shown,) = (
        json.loads(line) for line in cli("translate", tmp_path / "run", "--json", stdin="hgfe\n").stdout.split("\n")[:1]
    )
    assert shown["confidence"] < 0.5


@pytest.mark.usefixtures("trained")
def test_a_demo_that_does_not_verify_fails(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]
) -> None:
    def train_and_tamper(_config: object, run: RunDirectory, _again: str) -> None:
        shutil.copytree(tiny_run, run.path, dirs_exist_ok=True)
        shutil.copy(run.checkpoints()[0] / "model.safetensors", run.model_path)

    monkeypatch.setattr(dragoman.training.loop, "train", train_and_tamper)
    ran = cli("demo", "--out", tmp_path / "run")
    assert (ran.code, "Everyday sentences" in ran.stdout, "Verified" in ran.stdout) == (4, True, False)
    assert re.search(r"model\.safetensors: not the \w+ of step", ran.stderr.splitlines()[-1])


def test_the_command_that_goes_on_is_the_one_that_was_given(
    data: DemoData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data
    told: list[str] = []

    def train(_config: object, _run: object, again: str) -> None:
        told.append(again)
        raise KeyboardInterrupt

    monkeypatch.setattr(dragoman.training.loop, "train", train)

    names: tuple[DemoName, ...] = ("en-fr", "en-uk")
    for name, minutes in zip(names, (None, 0.5), strict=True):
        with pytest.raises(KeyboardInterrupt):
            run_demo(name, tmp_path / "my runs", minutes, print)
    out = f"--out '{tmp_path / 'my runs'}'"
    assert told == [f"dragoman demo {out}", f"dragoman demo en-uk {out} --minutes 0.5"]


@pytest.mark.parametrize(
    ("given", "directory"), [((), "runs/demo"), (("en-fr",), "runs/demo"), (("en-uk",), "runs/demo-en-uk")]
)
def test_each_demo_has_a_directory_of_its_own(
    given: tuple[str, ...], directory: str, data: DemoData, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]
) -> None:
    assert data
    directories = []

    def record(_config: object, run: RunDirectory, _again: str) -> None:
        directories.append(run.path)
        raise DragomanError("that was all")

    monkeypatch.setattr(dragoman.training.loop, "train", record)
    assert cli("demo", *given).code == 1
    assert directories == [Path(directory)]


def test_an_unknown_demo_is_one_line(cli: Callable[..., Any]) -> None:
    ran = cli("demo", "en-de")
    assert (ran.code, ran.stdout) == (2, "")
    [line] = ran.stderr.splitlines()
    assert "'en-de' is not one of 'en-fr', 'en-es', 'en-uk'" in line


def test_minutes_reach_the_training(data: DemoData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data
    configs = []

    def record(config: Any, *_: object) -> None:
        configs.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr(dragoman.training.loop, "train", record)
    for minutes in (None, 3.0):
        with pytest.raises(KeyboardInterrupt):
            run_demo("en-fr", tmp_path / "run", minutes, print)
    assert [config.train.minutes for config in configs] == [load("demo").config.train.minutes, 3.0]
    assert [corpus.pairs for corpus in configs[0].data.valid] == [str(data.valid)]


def test_no_network_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]) -> None:
    def unreachable(_cache: Path, _corpus: DemoCorpus) -> DemoData:
        raise DragomanError("the sentence pairs cannot be fetched (no network)")

    monkeypatch.setattr(dragoman.quickstart.demo, "prepare_demo", unreachable)
    ran = cli("demo", "--out", tmp_path / "run")
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.splitlines()[1:] == ["dragoman: the sentence pairs cannot be fetched (no network)"]
    assert not (tmp_path / "run").exists()
