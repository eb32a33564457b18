"""Two runs: their settings, their scores and their sentences; the command and its report."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.dataset import validation_pairs
from dragoman.errors import DataError
from dragoman.evaluation import metrics
from dragoman.evaluation.compare import TestSet, compare_runs, differences, names_of, shared_validation_set
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator


@pytest.fixture(scope="module")
def weaker(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run as it was after 30 steps."""
    run = Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("weaker") / "weaker"))
    shutil.copy(run / "checkpoints" / "step-00000030" / "model.safetensors", run / "model.safetensors")
    return run


def test_settings_that_differ_are_named(tiny_run: Path) -> None:
    config = RunDirectory(tiny_run).read_config()
    other = replace(config, model=replace(config.model, d_ff=128), train=replace(config.train, minutes=3.0))
    assert differences(config, config) == ()
    assert [(one.key, one.a, one.b) for one in differences(config, other)] == [
        ("model.d_ff", 64, 128),
        ("train.minutes", None, 3.0),
    ]


def test_the_scores_are_those_of_evaluate_and_sentences_are_sorted(tiny_run: Path, weaker: Path) -> None:
    runs = RunDirectory(tiny_run), RunDirectory(weaker)
    test = shared_validation_set(*runs, most=12)
    assert test.name == "12 of 20 shared validation pairs"
    translators = Translator.load(tiny_run), Translator.load(weaker)
    told: list[tuple[int, int]] = []
    report = compare_runs(runs, translators, test, samples=200, told=lambda *counts: told.append(counts))
    said = [translator.translate(test.sources) for translator in translators]
    assert report.scores == metrics.compare(said[0], said[1], test.references, samples=200)
    assert report.scores.bleu.a != report.scores.bleu.b
    assert told == [(12, 24), (24, 24)]
    order = [one.chrf_b - one.chrf_a for one in report.sentences]
    assert order == sorted(order, reverse=True)
    assert order[0] != order[-1]
    by_source = {one.source: one for one in report.sentences}
    for index, source in enumerate(test.sources):
        one = by_source[source]
        assert (one.a, one.b, one.references) == (said[0][index], said[1][index], tuple(test.references[index]))
        assert one.chrf_a == metrics.sentence_chrf([one.a], [test.references[index]])[0]


def test_whoever_is_told_may_stop_it(tiny_run: Path) -> None:
    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    run, translator = RunDirectory(tiny_run), Translator.load(tiny_run)
    with pytest.raises(KeyboardInterrupt):
        compare_runs((run, run), (translator, translator), TestSet("x", ["the dog"], [["la hundo"]]), told=stop)


def test_only_pairs_that_both_were_validated_with_are_shared(tiny_run: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(tiny_run, tmp_path / "other"))
    (kept,) = other.glob("data/*/valid/text.json")
    pairs = validation_pairs(tiny_run, 100)
    kept.write_text(json.dumps([["something", "else"], *pairs[3:5]]))
    runs = RunDirectory(tiny_run), RunDirectory(other)
    assert shared_validation_set(*runs, most=10).sources == [source for source, _ in pairs[3:5]]
    kept.write_text("[]")
    with pytest.raises(DataError, match="share no validation pair; give a test set"):
        shared_validation_set(*runs, most=10)


def test_names_tell_runs_apart(tmp_path: Path) -> None:
    assert names_of(RunDirectory(tmp_path / "a"), RunDirectory(tmp_path / "b")) == ("a", "b")
    same = RunDirectory(tmp_path / "x" / "a"), RunDirectory(tmp_path / "y" / "a")
    assert names_of(*same) == tuple(str(run.path) for run in same)


def test_the_command(cli: Callable[..., Any], tiny_run: Path, weaker: Path, tiny_text: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    files = ["--source", tiny_text / "valid.source", "--reference", tiny_text / "valid.target"]
    ran = cli("compare", tiny_run, weaker, *files, "--samples", "100", "--out", out)
    assert ran.code == 0, ran.stderr
    report = json.loads(out.read_text())
    assert (report["kind"], report["a"], report["b"], report["test_set"]) == (
        "comparison", "tiny", "weaker", "valid.source",
    )  # fmt: skip
    assert len(report["sentences"]) == 20
    assert f"BLEU: A {report['scores']['bleu']['a']:.2f}" in ran.stdout
    assert "paired bootstrap, 100 resamples of 20 sentences" in ran.stdout
    alone = cli("compare", tiny_run, weaker, "--source", tiny_text / "valid.source")
    assert (alone.code, alone.stdout) == (2, "")
    assert "--source and --reference go together" in alone.stderr
    uneven = tmp_path / "uneven"
    uneven.write_text("la\n")
    ran = cli("compare", tiny_run, weaker, "--source", tiny_text / "valid.source", "--reference", uneven)
    assert (ran.code, "20 lines" in ran.stderr) == (3, True)
