"""A run is examined: its log, its settings, its vocabulary and its directory."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import RunConfig, TrainConfig
from dragoman.diagnosis import run_checks as of_run
from dragoman.diagnosis.causes import ranked
from support.good_corpus import GOOD


def log(
    bleus: list[float], losses: list[float], nlls: list[float] | None = None, epoch: int = 5
) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"event": "train", "step": 50 * i, "loss": loss, "epoch": epoch} for i, loss in enumerate(losses, start=1)
    ]
    nlls = nlls or [3.0] * len(bleus)
    events += [
        {"event": "valid", "step": 100 * i, "bleu": b, "nll": nll}
        for i, (b, nll) in enumerate(zip(bleus, nlls, strict=True), start=1)
    ]
    return events


STEADY = [7.0, 5.5, 4.5, 4.0, 3.7, 3.5, 3.4, 3.35, 3.3]


FLAT = [10.0, 20.0, 25.0, 27.0, 27.5, 27.4]


@pytest.mark.parametrize(
    ("name", "events"),
    [
        (None, log(FLAT, STEADY)),
        ("too few steps", log([2.0, 6.0, 11.0, 15.0, 19.0, 23.0], STEADY)),
        ("too few steps", log([2.0, 6.0, 6.1], STEADY, epoch=0)),
        ("too few steps", log([2.9, 0.1, 1.8, 2.0, 1.8], STEADY, [4.2, 3.9, 3.5, 3.3, 3.2])),  # BLEU tells nothing yet
        (None, log([2.9, 0.1, 1.8, 2.0, 1.8], STEADY, [4.2, 3.9, 3.21, 3.2, 3.2])),
        ("rate too high", log([1.0, 3.0, 0.1, 0.1], [7.0, 5.0, 4.5, 6.9, 7.2, 7.1])),
        ("rate too high", log([0.1, 0.1, 0.1], [7.0, 6.9, 6.8, 6.8, 6.7, 6.7, 6.7, 6.7])),
        ("rate too high", [*log(FLAT, STEADY), *({"event": "skipped", "step": i} for i in range(4))]),
        ("learned by heart", log(FLAT, STEADY, [3.0, 2.6, 2.5, 2.6, 2.8, 3.0])),
    ],
)
def test_a_training_that_went_wrong_is_told_by_its_log(name: str | None, events: list[dict[str, Any]]) -> None:
    causes = of_run.examine_log(events, RunConfig(), "runs/my")
    assert [cause.name for cause in causes[:1]] == ([] if name is None else [name])


@pytest.mark.parametrize(("pairs", "best", "found"), [(1_275, 3.0, True), (1_275, 27.0, False), (30_000, 3.0, False)])
def test_a_bad_translator_of_few_pairs(pairs: int, best: float, found: bool) -> None:
    cause = of_run.too_little_text(pairs, log([1.0, best, 2.0], STEADY), RunConfig())
    assert (cause is not None) == found
    assert of_run.too_little_text(pairs, [], RunConfig()) is None


@pytest.mark.parametrize(
    ("seen", "best", "found"), [(0.3, 3.0, True), (0.3, 20.0, False), (5.0, 3.0, False), (0.0, 0.1, True)]
)
def test_too_little_training_for_so_much_text(seen: float, best: float, found: bool) -> None:
    events = [*log([1.0, best], STEADY), {"event": "end", "step": 200, "seconds": 120.0}]
    cause = of_run.too_little_training(seen, events, RunConfig(), "dragoman quickstart my.tsv --out runs/my")
    assert (cause is not None) == found
    if cause is not None and seen:
        assert "each pair was seen 0.3 times" in cause.finding
        assert cause.remedy.startswith("dragoman quickstart my.tsv --out runs/my --minutes 21 ")
        others = [of_run.rate_too_high(log([0.1], [7.0] * 9), RunConfig()), cause]
        assert ranked(others)[0] is cause  # whatever the outputs and the losses look like
    assert of_run.too_little_training(0.3, [], RunConfig()) is None


def test_a_run_that_hardly_saw_its_text_is_told_so_first(tiny_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")
    metrics = run / "metrics.jsonl"
    events = [json.loads(line) for line in metrics.read_text().splitlines()]
    for event in events:
        event |= {"tokens": 5} if event["event"] == "train" else {}
        event |= {"bleu": 1.0} if event["event"] == "valid" else {}
    metrics.write_text("".join(json.dumps(event) + "\n" for event in events))
    names = [cause.name for cause in of_run.examine_run(run)]
    assert names[0] == "too little training"
    assert "too few steps" not in names


def test_averaging_that_was_never_tried(tiny_run: Path, tmp_path: Path) -> None:
    from dragoman.run_directory import RunDirectory

    run = RunDirectory(shutil.copytree(tiny_run, tmp_path / "run"))
    config, events = run.read_config(), run.events()
    assert of_run.averaging(run, events, config, "r") is None
    unfinished = [event for event in events if event["event"] != "end"]
    card = json.loads(run.model_card_path.read_text()) | {"kind": "best"}
    run.model_card_path.write_text(json.dumps(card))
    assert of_run.averaging(run, events, config, "r") is None  # tried, and the best was better
    cause = of_run.averaging(run, unfinished, config, "r")
    assert cause is not None
    assert cause.remedy == "dragoman average r --last 3"
    one = dataclasses.replace(config, train=TrainConfig(average_checkpoints=1))
    assert of_run.averaging(run, events, one, "r") is not None


def test_a_vocabulary_that_does_not_suit(tmp_path: Path) -> None:
    from dragoman.config import CorpusConfig, DataConfig, ModelConfig
    from dragoman.data.dataset import prepare
    from dragoman.run_directory import RunDirectory

    path = tmp_path / "good.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in GOOD), encoding="utf-8")
    data = DataConfig(train=(CorpusConfig(pairs=str(path)),), hold_out=50)

    def of_size(size: int) -> list[str]:
        prepared = prepare(data, size, 1, tmp_path / str(size), lambda _: None)
        config = RunConfig(model=ModelConfig(vocab_size=prepared.tokenizer.vocab_size))
        found = (
            of_run.vocabulary_too_large(prepared.train, config, "r"),
            of_run.vocabulary_too_small(RunDirectory(tmp_path / str(size)), GOOD, config, "r"),
        )
        return [cause.name for cause in found if cause is not None]

    assert of_size(1000) == []
    assert of_size(340) == ["vocabulary too small"]
    many = [
        (f"{s} {i * 7919 % 99991} x{i * 104729 % 999983}y", f"{t} z{i * 1299709 % 9999991}q")
        for i, (s, t) in enumerate(GOOD)
    ]
    path.write_text("".join(f"{s}\t{t}\n" for s, t in many), encoding="utf-8")
    assert of_size(8000) == ["vocabulary too large"]


def test_a_run_is_examined_from_its_directory(tiny_run: Path, cli: Callable[..., Any], tmp_path: Path) -> None:
    """The tiny run was stopped early and has seen sixteen words: whatever is found, each cause is whole."""
    run = shutil.copytree(tiny_run, tmp_path / "run")
    ran = cli("doctor", run, "--json")
    causes = json.loads(ran.stdout)["causes"]
    assert ran.code == (4 if causes else 0)
    assert all(cause["evidence"] and cause["remedy"] and 0 < cause["weight"] <= 1 for cause in causes)
    assert [cause["weight"] for cause in causes] == sorted((cause["weight"] for cause in causes), reverse=True)
    assert cli("doctor", run, "--test", "x.tsv").code == 2
