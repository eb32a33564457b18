"""A run as one object: what the commands do, and what it says to what it cannot be given."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dragoman
from dragoman import CorpusConfig, DragomanError, Run
from dragoman.errors import UsageError
from dragoman.progress import relaying_stderr, to_stderr
from support.lexicon import lexicon_pairs

SMALL = {
    "model.vocab_size": 400,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 2,
    "train.batch_tokens": 800,
    "train.micro_batch_tokens": 400,
    "train.threads": 1,
    "train.valid_steps": 2,
}


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Run:
    return Run(shutil.copytree(tiny_run, tmp_path / "run"))


def test_a_marian_model_becomes_a_run(run: Run, tmp_path: Path) -> None:
    imported = Run.import_model(run.export("marian-hf", tmp_path / "hf"), tmp_path / "imported", ("en", "eo"))
    assert imported.path == tmp_path / "imported"
    lines = ["the dog sees the cat", "the old river"]
    assert imported.translate(lines, beam=1) == run.translate(lines, beam=1)


WRONG: list[tuple[str, Callable[[Any], object], str]] = [
    ("translate None", lambda run: run.translate(None), "None was given; give a string, a list of strings"),
    ("translate a number", lambda run: run.translate(7), r"7 \(int\) was given; give a string"),
    ("translate bytes", lambda run: run.translate(b"dog"), r"b'dog' \(bytes\) was given"),
    ("translate None in a list", lambda run: run.translate(["dog", None]), "line 2 is None; every line is a string"),
    ("candidates of a string", lambda run: run.candidates("dog"), "'dog' is one string; give a list of lines"),
    ("no candidates", lambda run: run.candidates(["dog"], 0), "n_best 0; give a whole number from 1 to 256"),
    ("many candidates", lambda run: run.candidates(["dog"], 10**6), "n_best 1000000; give a whole number from 1"),
    ("score a string", lambda run: run.score("dog"), r"'dog' \(str\) was given; give pairs of a source and a"),
    ("score single words", lambda run: run.score(["dog"]), r"pair 1 is 'dog' \(str\); give a source and"),
    ("score None", lambda run: run.score([("dog", None)]), r"pair 1 is \('dog', None\)"),
    ("evaluate None", lambda run: run.evaluate(["dog"], None), "None was given"),
    ("calibrate None", lambda run: run.calibrate(None, ["dog"]), "None was given"),
    ("quantize None", lambda run: run.quantize(None, ["dog"]), "None was given"),
    ("a document of None", lambda run: run.translate_document(None, "out"), "None was given for the document"),
    ("a document to nowhere", lambda run: run.translate_document("in.txt", ""), r"'' \(str\) was given for the file"),
    (
        "a style of a number",
        lambda run: run.translate_document("a.txt", "b", protect_styles=[3]),
        "3 .int. was given for",
    ),
    (
        "a style of one string",
        lambda run: run.translate_document("a.txt", "b", protect_styles="Code"),
        "give a list of",
    ),
    ("a style of no name", lambda run: run.translate_document("a.txt", "b", protect_styles=[" "]), "has an empty name"),
    ("no such confidence", lambda run: run.translate_document("a.txt", "b", min_confidence=float("nan")), "nan; give"),
    ("finetune on None", lambda run: run.finetune(None, "out"), "None was given for a file of pairs"),
    ("a bundle of no name", lambda run: run.bundle(None), "None was given for the file to write"),
    ("good of nan", lambda run: run.calibrate(["dog"], ["hundo"], good=float("nan")), "good nan; give a number from 0"),
    ("no such limit", lambda run: run.quantize(["dog"], ["hundo"], limit=float("nan")), "limit nan; give a number"),
    ("import None", lambda _: Run.import_model(None, "out"), "None was given for the model"),  # type: ignore[arg-type]
    ("train on None", lambda _: Run.train(None, "out"), "None was given for a file of pairs"),  # type: ignore[arg-type]
    ("train into None", lambda _: Run.train("a", None), "None was given for the new run"),  # type: ignore[arg-type]
    ("say a word", lambda _: Run.train("a", "out", say="loud"), r"say is 'loud' \(str\)"),  # type: ignore[arg-type]
    ("quickstart of None", lambda _: Run.quickstart(None, "out"), "None was given"),  # type: ignore[arg-type]
    ("quickstart of nothing", lambda _: Run.quickstart([], "out"), "no file of pairs"),
    ("quickstart for ever", lambda _: Run.quickstart("a", "out", minutes=float("nan")), "minutes nan; give a number"),
    ("a run of None", lambda _: Run(None), "None was given for the run's directory"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_it_cannot_be_given_is_said(call: Callable[[Any], object], message: str, tiny_run: Path) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        call(Run(tiny_run))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "search", "message"),
    [
        ("dog", {"beam": 2.5}, "search.beam must be a whole number, found 2.5"),
        ("dog", {"beam": "2"}, 'search.beam must be a whole number, found "2"'),
        ("dog", {"alpha": None}, "search.alpha must be a number, found null"),
        ("dog", {"stop": "later"}, 'search.stop = "later"; allowed: '),
        ("dog", {"beam": 0}, "search.beam = 0; must be at least 1"),
        ("dog \ud800", {}, "character 5 of 'dog .*is a lone surrogate .U.D800.*; decode the input as UTF-8"),
    ],
)
def test_what_cannot_be_searched_with_is_one_line(
    text: str, search: dict[str, Any], message: str, tiny_run: Path
) -> None:
    with pytest.raises(DragomanError, match=message) as raised:
        Run(tiny_run).translate(text, **search)
    assert "\n" not in str(raised.value)


def test_numbers_of_numpy_are_numbers(tiny_run: Path) -> None:
    run = Run(tiny_run)
    numbers: dict[str, Any] = {"beam": np.int64(2), "alpha": np.float64(1)}
    assert run.translate("the dog", **numbers) == run.translate("the dog", beam=2, alpha=1)


def test_one_sentence_and_several(run: Run, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("the dog\nthe cat\n", encoding="utf-8")
    both = run.translate(["the dog", "the cat"])
    assert both == [run.translate("the dog"), run.translate("the cat")]
    assert both == run.translate(("the dog", "the cat")) == run.translate(tmp_path / "lines")


def test_a_document_is_translated_as_by_the_command(run: Run, tmp_path: Path, cli: Callable[..., Any]) -> None:
    (tmp_path / "page.md").write_text("# the dog\n\nthe **old** cat sees {0}\n", encoding="utf-8")
    said: list[str] = []
    report = run.translate_document(tmp_path / "page.md", tmp_path / "ours.md", say=said.append, beam=2)
    ran = cli("translate-file", run.path, tmp_path / "page.md", "--out", tmp_path / "theirs.md", "--beam", "2")
    assert ran.code == 0, ran.stderr
    assert (tmp_path / "ours.md").read_bytes() == (tmp_path / "theirs.md").read_bytes()
    assert report.line() in ran.stderr
    assert "{0}" in (tmp_path / "ours.md").read_text(encoding="utf-8")


def test_calibration_gives_its_translations_a_confidence(run: Run, tiny_text: Path) -> None:
    sources, references = tiny_text / "train.source", tiny_text / "train.target"
    assert run.candidates(["the dog"])[0].confidence is None
    report = run.calibrate(sources, references)
    assert len(report.sentences.judged) == 200
    assert 0 <= next(run.translator().translate_stream(["the dog"], rate=True)).confidence <= 1  # type: ignore[operator]
    with pytest.raises(DragomanError, match="1 sentences to calibrate with, but references for 200"):
        run.calibrate(["dog"], references)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_training_tells_whom_it_is_asked_to(
    processes: int, tiny_text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    settings = {**SMALL, "train.processes": processes}
    pairs = CorpusConfig(source=str(tiny_text / "train.source"), target=str(tiny_text / "train.target"))
    trained = Run.train(pairs, tmp_path / "told", steps=2, settings=settings, say=said.append)
    assert any("parameters" in line for line in said)
    assert any(line.startswith("finished after 2 steps") for line in said)
    assert trained.metrics[-1]["event"] == "end"
    Run.train(pairs, tmp_path / "silent", steps=2, settings=settings, say=None)
    assert Run(tmp_path / "silent").metrics[-1]["event"] == "end"
    assert capfd.readouterr() == ("", "")


def test_what_fails_in_another_process_is_an_error_here(tmp_path: Path) -> None:
    settings = {**SMALL, "train.processes": 2}
    with pytest.raises(DragomanError, match=r"nowhere\.tsv: .*") as raised:
        Run.train(tmp_path / "nowhere.tsv", tmp_path / "out", steps=2, settings=settings, say=None)
    assert raised.value.exit_code == 3


def test_fine_tuning_is_silent_where_it_is_asked_to(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pairs = "".join(f"{source}\t{target}\n" for source, target in lexicon_pairs(100, seed=9))
    (tmp_path / "new.tsv").write_text(pairs, encoding="utf-8")
    tuned = run.finetune(tmp_path / "new.tsv", tmp_path / "tuned", say=None, overrides=[("train.steps", 1, "here")])
    assert tuned.new.sentences > 0
    assert capfd.readouterr() == ("", "")


def test_a_quickstart_makes_a_run(tmp_path: Path, tiny_text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is handed on; the way itself has tests of its own."""
    given: list[Any] = []

    def quickstart(*arguments: Any) -> str:
        given.extend(arguments)
        arguments[-1]("a line")
        return "the outcome"

    monkeypatch.setattr("dragoman.quickstart.pipeline.quickstart", quickstart)
    said: list[str] = []
    pairs, out = tiny_text / "train.tsv", tmp_path / "out"
    with pytest.raises(DragomanError, match="out: no such run directory"):  # as nothing was made
        Run.quickstart(str(pairs), out, minutes=2, languages=("en", "eo"), settings={"model.d_ff": 8}, say=said.append)
    assert given[:-1] == [[pairs], out, 2, ("en", "eo"), 1, [("model.d_ff", 8, "Run.quickstart")], "the same call"]
    assert said == ["a line"]


def test_what_processes_write_is_told_line_by_line(capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    with relaying_stderr(said.append) as relay:
        relay.say("directly")
        print("from Python", file=sys.stderr)
        subprocess.run([sys.executable, "-c", "import os; os.write(2, b'from a process')"], check=True)
    assert said == ["directly", "from Python", "from a process"]
    with relaying_stderr(to_stderr):
        os.write(2, b"as ever\n")
    assert capfd.readouterr().err == "as ever\n"


def test_a_listener_that_fails_is_heard_of_at_the_end() -> None:
    def fails(line: str) -> None:
        raise ValueError(line)

    with pytest.raises(ValueError, match="first"), relaying_stderr(fails):
        print("first\n" * 100_000, file=sys.stderr)  # nobody takes the rest, and nothing waits for that


def test_the_package_says_its_version() -> None:
    assert dragoman.__version__ == metadata.version("dragoman")
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = dragoman.no_such_name
