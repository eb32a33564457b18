"""Every experiment runs at its smallest, and its verdict is its rule's."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dragoman.cli.lab import parse_duration
from dragoman.config.recipes import flatten
from dragoman.evaluation.charts import draw
from dragoman.lab import rules
from dragoman.lab.catalogue import NAMES, chosen, describe, load, path_of
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Queue
from dragoman.lab.result import ExperimentResult
from support.lab import kept_result

PUBLISHED = Path(__file__).parents[2] / "docs" / "lab"


@pytest.mark.parametrize(
    ("text", "seconds"), [("3h", 10800), ("90m", 5400), ("1h30m", 5400), ("45s", 45), ("0.5h", 1800)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


# Experiments


def test_every_experiment_has_its_file_and_states_claim_method_and_rule() -> None:
    files = {path.stem.replace("_", "-") for path in path_of("scaling").parent.glob("*.py")} - {"--init--"}
    assert files == set(NAMES)
    for name in NAMES:
        told = describe(name)
        assert min(len(told.title), len(told.claim), len(told.method), len(told.rule)) > 10


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_runs_at_its_smallest(name: str, smoke: LabSettings) -> None:
    experiment = load(name)
    result, path = kept_result(name, smoke.queue.directory, smoke)
    content = json.loads(path.read_text())
    assert (content["experiment"], content["claim"]) == (name, describe(name).claim)
    assert content["arms"]
    assert len(result.to_json()) < 60_000
    # The verdict is the rule's, applied to the measurements that are kept.
    measured = [smoke.queue.find(arm) for arm in experiment.arms(smoke)]
    found = experiment.judge([one for one in measured if one is not None])
    assert [f.verdict for f in found] == [f.verdict for f in result.findings]
    assert result.verdict == rules.combined(found)
    # What is written says that so small a run has none.
    assert {content["verdict"], *(finding["verdict"] for finding in content["findings"])} == {"smoke run"}
    for figure in content["figures"]:
        assert all(math.isfinite(x) for x in figure["x"])
        assert all(len(values) == len(figure["x"]) for values in figure["series"].values())
    for drawn in ExperimentResult.read(path).figures:
        ElementTree.fromstring(draw(drawn))
    assert all(Queue(smoke.queue.directory).find(arm) is not None for arm in experiment.arms(smoke))


@pytest.mark.parametrize("name", NAMES)
def test_the_published_results_are_what_the_rules_make_of_the_published_measurements(name: str) -> None:
    published = ExperimentResult.read(PUBLISHED / "results" / f"{name}.json")
    queue = Queue(PUBLISHED, budget=0.0, say=lambda _: None)  # nothing can be measured now
    again = load(name).run(LabSettings(queue, PUBLISHED / "models"))
    assert json.loads(again.to_json()) | {"seconds": 0} == json.loads(published.to_json()) | {"seconds": 0}
    assert again.seconds == pytest.approx(published.seconds, abs=0.01)


@pytest.mark.parametrize("name", ["norm", "heads", "prune", "beam", "embeddings"])
def test_models_that_were_removed_are_trained_again(name: str, smoke: LabSettings, tmp_path: Path) -> None:
    load(name).run(smoke)
    arms = tmp_path / "arms"
    arms.mkdir()
    shutil.copy(smoke.queue.directory / "arms" / "translation.jsonl", arms)
    again = LabSettings(Queue(tmp_path, say=lambda _: None), tmp_path / "models", None, "smoke")
    load(name).run(again)
    assert list((tmp_path / "models" / "runs").glob("*/model.safetensors"))


def test_scaled_rows_stay_ratios_of_each_other() -> None:
    from dragoman.lab.experiments.table3 import PAPER
    from dragoman.lab.translation import scaled

    values = {row: dict(flatten(scaled(f"table3-{row}", "small"))) for row in PAPER}
    base = values["base"]
    assert (base["model.d_model"], base["model.d_ff"], base["model.d_k"], base["train.steps"]) == (128, 512, 16, 1000)
    assert values["C5"]["model.d_model"] == 2 * base["model.d_model"]
    assert values["C1"]["model.encoder_layers"] * 3 == base["model.encoder_layers"]
    assert values["big"]["train.steps"] == 3 * base["train.steps"]
    for row in ("A1", "A2", "A3", "A4"):  # equal computation
        assert values[row]["model.num_heads"] * values[row]["model.d_k"] == base["model.d_model"]
    assert {values[row]["model.dropout"] for row in ("base", "D1", "D2")} == {0.1, 0.0, 0.2}


def test_a_rule_can_say_no() -> None:
    """The same rule on measurements made up to go either way."""
    from dragoman.lab.experiments import beam

    def arms(four: float, longer: float) -> list[MeasuredArm]:
        measurements = {"bleu 4 0.6": four, "bleu 1 0.6": 20.0, "length 4 0.0": 1.0, "length 4 0.6": longer}
        return [MeasuredArm(Arm("beam", "", {"alphas": [0.0, 0.6]}), measurements, 1.0) for _ in range(3)]

    assert [f.verdict for f in beam.judge(arms(21.0, 1.1))] == ["holds", "holds"]
    assert [f.verdict for f in beam.judge(arms(19.0, 0.9))] == ["does not hold here"] * 2
    assert beam.judge(arms(20.05, 1.1))[0].verdict == "undecided"


def test_the_restricted_attention_is_attention_with_a_band() -> None:
    import torch

    from dragoman.lab.experiments.table1 import restricted

    x = torch.randn(2, 32, 8, dtype=torch.float64)
    near = (torch.arange(32)[:, None] - torch.arange(32)).abs() <= 4
    expected = torch.nn.functional.scaled_dot_product_attention(x, x, x, near)
    torch.testing.assert_close(restricted(x, 8), expected)


# The commands


def test_the_commands(cli: Callable[..., Any], tmp_path: Path) -> None:
    listed = cli("lab", "list", "--out", tmp_path)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(NAMES)
    assert "not run" in listed.stdout
    ran = cli("lab", "run", "beam", "averaging", "--size", "smoke", "--out", tmp_path, "--budget", "0s")
    assert (ran.code, ran.stdout) == (0, "")
    assert "the budget is used up" in ran.stderr
    ran = cli("lab", "run", "beam", "--size", "smoke", "--out", tmp_path)
    assert ran.code == 0, ran.stderr
    assert ran.stdout.startswith("beam: smoke run\n")
    assert "holds" not in ran.stdout
    written = cli("lab", "report", "--out", tmp_path / "smoke")
    assert written.stdout.split() == [str(tmp_path / "smoke" / "report.html"), str(tmp_path / "smoke" / "report.md")]
    assert json.loads(cli("lab", "list", "--out", tmp_path, "--json").stdout)[15]["verdict"] == "smoke run"
    # The seconds that it took are no measure of the hours that a real one takes.
    real = cli("lab", "run", "beam", "--out", tmp_path, "--budget", "0s", "--data", tmp_path)
    assert "3 arms left, 3 of kinds not timed yet\n" in real.stderr


def test_what_is_wrong_is_said(cli: Callable[..., Any], tmp_path: Path) -> None:
    wrong = cli("lab", "run", "scalling")
    assert wrong.code == 2
    assert "no experiment scalling; there are: all, scaling, mask" in wrong.stderr
    wrong = cli("lab", "run", "beam", "--budget", "tomorrow")
    assert (wrong.code, "for example 3h" in wrong.stderr) == (2, True)
    wrong = cli("lab", "run", "beam", "--data", tmp_path / "none", "--out", tmp_path)
    assert (wrong.code, "give --data DIRECTORY" in wrong.stderr) == (2, True)
    wrong = cli("lab", "report", "--out", tmp_path / "empty")
    assert (wrong.code, "nothing measured" in wrong.stderr) == (2, True)
    assert chosen(["all"]) == list(NAMES)
