"""A confidence keeps its word on what the fit did not see, and what is less sure than asked for is left."""

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dragoman.data.words import Word, split_words, words_of
from dragoman.errors import DataError
from dragoman.run_directory import RunDirectory
from dragoman.translation.confidence import (
    Calibration,
    Evidence,
    Judged,
    Logistic,
    bins,
    calibrate,
    calibration_error,
    ranking,
    right_words,
    risk_at,
)
from dragoman.translation.lengths import ANY_PAIR, Step, UsualLengths
from dragoman.translation.translator import Translator


def test_the_regression_finds_the_probabilities_that_made_the_labels() -> None:
    draw = random.Random(1)
    rows = [(draw.gauss(0, 1), draw.gauss(5, 3)) for _ in range(4000)]
    truth = [1 / (1 + math.exp(-(0.5 + 1.5 * a - 0.4 * (b - 5)))) for a, b in rows]
    fitted = Logistic.fit(rows, [draw.random() < p for p in truth])
    assert max(abs(fitted(row) - p) for row, p in zip(rows, truth, strict=True)) < 0.06


def test_calibration_error_ranking_and_risk_of_hand_made_judgements() -> None:
    honest = [Judged(0.8, number % 5 > 0) for number in range(100)] + [
        Judged(0.2, number % 5 == 0) for number in range(100)
    ]
    assert calibration_error(honest) == pytest.approx(0, abs=0.11)  # a bin may cut through equal confidences
    boasting = [Judged(0.9, number % 2 == 0) for number in range(100)]
    assert calibration_error(boasting) == pytest.approx(0.4, abs=0.05)
    assert ranking([Judged(0.9, True), Judged(0.1, False), Judged(0.5, True)]) == 1.0
    assert ranking([Judged(0.5, True), Judged(0.5, False)]) == 0.5
    assert risk_at(honest, 0.5) == pytest.approx((0.8, 0.2))
    assert sum(one.count for one in bins(honest)) == 200


def test_a_word_is_right_as_often_as_the_reference_has_it() -> None:
    words = tuple(Word(text, 0, 0, 0, 0) for text in ("le", "chien", "et", "le", "le", "."))
    seen = Evidence(5, "", words, (0.0,))
    assert right_words(seen, ["le chat et le chien.", "non"]) == [True, True, True, True, False, True]
    assert split_words("L'arbre, c'est-à-dire (lui)!") == ["L'arbre", ",", "c'est-à-dire", "(", "lui", ")", "!"]


@pytest.fixture(scope="module")
def calibrated(
    tiny_run: Path, text: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Any]
) -> Path:
    run = Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("calibrated") / "run"))
    ran = cli("calibrate", run, "--source", text[0], "--reference", text[1])
    assert ran.code == 0, ran.stderr
    assert "--min-confidence" in ran.stdout
    return run


@pytest.fixture(scope="module")
def text(tiny_text: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Sentences that the tiny run knows, and sentences that it cannot know."""
    draw = random.Random(3)
    directory = tmp_path_factory.mktemp("held-out")
    pairs = [line.split("\t") for line in (tiny_text / "train.tsv").read_text(encoding="utf-8").splitlines()[:60]]
    pairs += [
        [" ".join("".join(draw.choices("abcdefgh", k=4)) for _ in range(5)), "io tute alia ol tio"] for _ in range(60)
    ]
    for name, column in (("source", 0), ("target", 1)):
        (directory / name).write_text("".join(f"{pair[column]}\n" for pair in pairs), encoding="utf-8")
    return directory / "source", directory / "target"


def test_confidences_part_good_from_bad(
    calibrated: Path, tiny_run: Path, text: tuple[Path, Path], tmp_path: Path, cli: Callable[..., Any]
) -> None:
    ran = cli("translate", tiny_run, "--min-confidence", "0.5", stdin="the dog\n")
    assert ran.code == 2
    assert "is not calibrated; run once: dragoman calibrate" in ran.stderr
    asked = ("calibrate", calibrated, "--source", text[0], "--reference", text[1])
    report = json.loads(cli(*asked, "--drawings", tmp_path, "--json").stdout)
    assert report["sentences"]["ranking"] > 0.8
    assert report["sentences"]["calibration_error"] < report["sentences"]["raw_calibration_error"]
    assert report["words"]["count"] > 300
    risks = [point["risk"] for point in report["risk_coverage"]]
    assert risks[4] < risks[-1]
    for name in ("reliability.svg", "risk-coverage.svg"):
        assert ElementTree.parse(tmp_path / name).getroot().tag.endswith("svg")


def test_what_is_less_sure_than_asked_for_stays_as_it_was(calibrated: Path, cli: Callable[..., Any]) -> None:
    lines = "the dog sees the cat\nhgfe dcba\n\n"
    ran = cli("translate", calibrated, "--json", stdin=lines)
    sure, unsure, empty = (json.loads(line) for line in ran.stdout.splitlines())
    assert sure["confidence"] > unsure["confidence"]
    assert "confidence" not in empty
    said = sure["translations"][0]["text"]
    assert [said[word["start"] : word["end"]] for word in sure["words"]] == [word["text"] for word in sure["words"]]
    assert all(0 < word["confidence"] < 1 for word in sure["words"])
    between = f"{(sure['confidence'] + unsure['confidence']) / 2:.6f}"
    ran = cli("translate", calibrated, "--min-confidence", between, stdin=lines)
    assert ran.stdout.split("\n")[:3] == [said, "[?] hgfe dcba", ""]
    ran = cli("translate", calibrated, "--min-confidence", between, "--mark", "", stdin=lines)
    assert ran.stdout.split("\n")[1] == "hgfe dcba"
    ran = cli("translate", calibrated, "--min-confidence", between, "--json", stdin=lines)
    assert [json.loads(line)["withheld"] for line in ran.stdout.splitlines()] == [False, True, False]


def test_a_document_keeps_its_doubtful_sentences_and_says_which(
    calibrated: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    ran = cli("translate", calibrated, "--json", stdin="the dog sees the cat\nhgfe dcba\n")
    sure, unsure = (json.loads(line) for line in ran.stdout.splitlines())
    between = f"{(sure['confidence'] + unsure['confidence']) / 2:.6f}"
    page, out, report = tmp_path / "page.html", tmp_path / "out.html", tmp_path / "report.json"
    page.write_text("<p>the dog sees the cat</p><p>hgfe <b>dcba</b></p>", encoding="utf-8")
    ran = cli("translate-file", calibrated, page, "--out", out, "--min-confidence", between, "--report", report)
    assert ran.code == 0, ran.stderr
    said = sure["translations"][0]["text"]
    assert out.read_text(encoding="utf-8") == f"<p>{said}</p><p>[?] hgfe <b>dcba</b></p>"
    (listed,) = json.loads(report.read_text(encoding="utf-8"))["sentences_listed"]
    assert listed["how"] == "source"
    assert listed["notes"][0] == f"confidence {unsure['confidence']:.2f}"
    messages = tmp_path / "a.po"
    messages.write_text('msgid "hgfe dcba"\nmsgstr ""\n', encoding="utf-8")
    ran = cli("translate-file", calibrated, messages, "--out", tmp_path / "o.po", "--min-confidence", between)
    assert (tmp_path / "o.po").read_text(encoding="utf-8") == messages.read_text(encoding="utf-8")


def test_both_engines_say_the_same_and_long_lines_have_words_too(calibrated: Path) -> None:
    lines = ["the old dog sees the red house", "the cat finds the tree. " * 12]
    ratings = []
    for engine in ("reference", "ctranslate2"):
        translator = Translator.load(calibrated, engine=engine, max_source_length=40)
        ratings.append(list(translator.translate_stream(lines, rate=True, protect=False, warn=lambda _: None)))
    for one, other in zip(*ratings, strict=True):
        if one.text == other.text:  # the two engines search by different rules
            assert one.confidence == pytest.approx(other.confidence, abs=1e-3)
        for translation in (one, other):
            assert translation.words
            for word in translation.words:
                assert translation.text[word.start : word.end] == word.text


def test_other_weights_have_no_confidence(calibrated: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(calibrated, tmp_path / "run"))
    assert Translator.load(run).calibration is not None
    shutil.copyfile(run / "checkpoints" / "step-00000030" / "model.safetensors", run / "model.safetensors")
    assert Translator.load(run).calibration is None
    (run / "confidence.json").write_text('{"format": 1}', encoding="utf-8")
    with pytest.raises(DataError, match="make it anew with `dragoman calibrate`"):
        Calibration.load(RunDirectory(run))


def test_a_calibration_keeps_how_long_translations_usually_are(calibrated: Path, tmp_path: Path) -> None:
    found = Calibration.load(RunDirectory(calibrated))
    assert found is not None
    assert 1 <= len(found.lengths.steps) <= 2  # of 120 pairs
    assert all(0.2 < step.ratio < 0.9 for step in found.lengths.steps)
    run = Path(shutil.copytree(calibrated, tmp_path / "run"))
    values = json.loads((run / "confidence.json").read_text(encoding="utf-8"))
    del values["lengths"]
    (run / "confidence.json").write_text(json.dumps(values | {"format": 1}), encoding="utf-8")
    old = Calibration.load(RunDirectory(run))
    assert old is not None
    assert (old.lengths, old.sentence) == (ANY_PAIR, found.sentence)


def test_what_is_short_is_less_sure(calibrated: Path) -> None:
    loaded = Translator.load(calibrated)
    steps = UsualLengths(((Step(200, 2.0)),))  # as if every translation were twice as long
    other = Translator(
        loaded.engine, loaded.tokenizer, loaded.search, load_calibration=lambda: loaded.calibration, lengths=steps
    )
    (usual,), (short,) = (list(one.translate_stream(["the dog sees the cat"], rate=True)) for one in (loaded, other))
    assert usual.confidence is not None
    assert (usual.defects, short.defects, short.how, short.notes) == ((), ("short",), "plain", ("short",))
    assert short.text == usual.text
    assert short.confidence == pytest.approx(usual.confidence * len(usual.text) / (2 * len("the dog sees the cat")))
    assert short.is_doubtful(0.0)


def test_the_commands_name_what_is_short(calibrated: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    run = Path(shutil.copytree(calibrated, tmp_path / "run"))
    values = json.loads((run / "confidence.json").read_text(encoding="utf-8"))
    (run / "confidence.json").write_text(json.dumps(values | {"lengths": [[200, 2.0]]}), encoding="utf-8")
    answer = json.loads(cli("translate", run, "--json", stdin="the dog sees the cat\n").stdout)
    assert (answer["faults"], answer["how"]) == (["short"], "plain")
    page, report = tmp_path / "page.html", tmp_path / "report.json"
    page.write_text("<p>the dog sees the cat</p>", encoding="utf-8")
    ran = cli("translate-file", run, page, "--out", tmp_path / "out.html", "--report", report)
    assert ran.code == 0, ran.stderr
    (listed,) = json.loads(report.read_text(encoding="utf-8"))["sentences_listed"]
    assert listed["notes"] == ["short"]


def test_too_little_to_learn_from_is_refused() -> None:
    one = Evidence(2, "la hundo", words_of([], None), (-0.1, -0.2, -0.1))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="at least 50"):
        calibrate([one] * 3, [["la hundo"]] * 3, "x")
    with pytest.raises(DataError, match="choose another --good"):
        calibrate([one] * 60, [["la hundo"]] * 60, "x")
