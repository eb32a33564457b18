"""The bookkeeping of benches that are measured over days: nothing twice, and the test set only for what was chosen."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from support.benches import load_beside


@pytest.fixture(scope="module")
def multi30k() -> Any:
    return load_beside("multi30k")


def test_a_cell_has_the_settings_of_its_parts_the_later_ones_first() -> None:
    cells = load_beside("cells")
    known = {"a": {"x": 1, "y": 1}, "b": {"y": 2}}
    assert cells.changes_of("a + b", known) == {"x": 1, "y": 2}
    assert cells.changes_of("b + a", known) == {"x": 1, "y": 1}
    assert cells.candidate(known)("b + a") == "b + a"
    with pytest.raises(argparse.ArgumentTypeError, match="unknown: c; known are a, b"):
        cells.candidate(known)("a + c")


def test_a_cell_that_is_there_is_found_by_what_it_is(tmp_path: Path) -> None:
    cells, results = load_beside("cells"), tmp_path / "results.jsonl"
    assert not cells.is_measured(results, {"cell": "a"})
    cells.keep_cell(results, {"cell": "a", "seed": 1, "bleu": 3.0})
    cells.keep_cell(results, {"cell": "a", "seed": 2, "bleu": 4.0})
    assert cells.is_measured(results, {"cell": "a", "seed": 2})
    assert not cells.is_measured(results, {"cell": "a", "seed": 3})
    assert [row["bleu"] for row in cells.measured(results)] == [3.0, 4.0]


def row(seed: int, lower: dict[str, float]) -> dict[str, Any]:
    val = {alpha: {"cased": value - 1, "lower": value} for alpha, value in lower.items()}
    return {"cell": "plain", "steps": 5, "seed": seed, "trial": None, "val": val, "parameters": 10, "minutes": 1.0}


def test_the_length_penalty_is_the_best_on_val_over_all_seeds(
    multi30k: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(1, {"0.6": 40, "1": 41, "1.4": 45}), row(2, {"0.6": 40, "1": 43, "1.4": 35})]
    assert multi30k.best_alpha(rows) == 1.0
    multi30k.print_table(rows)
    assert "| plain, 5 steps | 1, 2 | 1 | 41.00 ± 1.41 | 42.00 ± 1.41 | 10 | 1 |" in capsys.readouterr().out


def test_each_seed_is_scored_on_the_test_set_once_and_only_when_all_are_measured_on_val(
    multi30k: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, float]] = []

    def scored(run: Path, _sources: Any, _references: Any, alpha: float) -> dict[str, float]:
        asked.append((run.name, alpha))
        return {"cased": 39.0, "lower": 40.0}

    monkeypatch.setattr(multi30k, "scores", scored)
    monkeypatch.setattr(multi30k, "train_cell", lambda _given, name, seed: Path(f"{name}-{seed}"))
    monkeypatch.setattr(multi30k, "lines", lambda _name, _language: ["a"])
    results = tmp_path / "multi30k.jsonl"
    given = argparse.Namespace(steps=5, seeds=[1, 2], results=results, pairs=None, sentences=None, set=[])
    first, second = (row(seed, {"0.6": 1.0, "1": 1.0, "1.4": 1.0}) for seed in (1, 2))
    results.write_text(json.dumps(first) + "\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="measured on val with 1 of 2 seeds"):
        multi30k.test(given, "plain")
    assert not asked
    results.write_text(f"{json.dumps(first)}\n{json.dumps({**second, 'trial': [100]})}\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="1 of 2"):  # a trial is no measurement
        multi30k.test(given, "plain")
    results.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n", encoding="utf-8")
    multi30k.test(given, "plain")
    multi30k.test(given, "plain")
    assert asked == [("plain-1", 0.6), ("plain-2", 0.6)]
    assert "is not measured again" in capsys.readouterr().err


def test_the_record_of_the_test_set_can_be_printed(multi30k: Any, capsys: pytest.CaptureFixture[str]) -> None:
    record = multi30k.measured(multi30k.tests_of(multi30k.RESULTS))
    assert {one["set"] for one in record} == {multi30k.TEST_SET}
    multi30k.print_tests(record)
    shown = capsys.readouterr().out
    assert all(f"| {one['cased']:.2f} |" in shown for one in record)
