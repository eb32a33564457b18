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
from dragoman.lab.catalogue import NAMES, chosen, conclude, describe, load, path_of, run
from dragoman.lab.queue import Arm, LabSettings, MeasuredArm, Queue
from dragoman.lab.result import ExperimentResult, counted, headline_of
from dragoman.lab.translation import chosen as choose
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


# Those that train the most translators, also at their smallest.
SLOW = ("rnn", "norm-order", "warmup")
SMOKE_NAMES = [pytest.param(name, marks=pytest.mark.full) if name in SLOW else name for name in NAMES]


@pytest.mark.parametrize("name", SMOKE_NAMES)
def test_an_experiment_runs_at_its_smallest(name: str, smoke: LabSettings) -> None:
    experiment = load(name)
    result, path = kept_result(name, smoke.queue.directory, smoke)
    content = json.loads(path.read_text())
    assert (content["experiment"], content["claim"]) == (name, describe(name).claim)
    assert content["arms"]
    assert content["arms_measured"] == content["arms_planned"]
    assert len(result.to_json()) < 90_000
    # The verdicts are the rule's, applied to the measurements that are kept.
    measured = [smoke.queue.find(arm) for arm in experiment.arms(smoke)]
    found = rules.after_holm(experiment.judge([one for one in measured if one is not None]))
    assert [f.verdict for f in found] == [f.verdict for f in result.findings]
    assert result.headline == headline_of(found)
    # What is written says that so small a run has none.
    assert {finding["verdict"] for finding in content["findings"]} == {"smoke run"}
    assert content["headline"].startswith("A smoke run")
    for figure in content["figures"]:
        assert all(math.isfinite(x) for x in figure["x"])
        assert all(len(values) == len(figure["x"]) for values in figure["series"].values())
    for drawn in ExperimentResult.read(path).figures:
        ElementTree.fromstring(draw(drawn))
    assert all(Queue(smoke.queue.directory).find(arm) is not None for arm in experiment.arms(smoke))


@pytest.mark.parametrize("name", SMOKE_NAMES)
def test_one_seed_decides_nothing(name: str, smoke: LabSettings) -> None:
    """The smoke run has one seed of everything: what is decided there is exact, and has no p."""
    run(name, smoke)
    for finding in conclude(name, smoke).findings:
        counts_seeds = finding.p is not None and finding.unit not in ("exponent", "times", "correlation")
        assert not (counts_seeds and finding.verdict in ("holds", "does not hold here")), finding


@pytest.mark.parametrize("name", NAMES)
def test_without_measurements_nothing_is_claimed(name: str, tmp_path: Path) -> None:
    result = conclude(name, LabSettings(Queue(tmp_path), tmp_path))
    assert result.findings or name in ("mask", "table2")
    assert {finding.verdict for finding in result.findings} <= {"not measured yet", "undecided", "not testable here"}
    assert (result.arms_measured, result.arms, result.figures) == (0, [], [])


@pytest.mark.parametrize("name", NAMES)
def test_the_published_results_are_what_the_rules_make_of_the_published_measurements(name: str) -> None:
    published = ExperimentResult.read(PUBLISHED / "results" / f"{name}.json")
    again = conclude(name, LabSettings(Queue(PUBLISHED), PUBLISHED / "models"))
    assert json.loads(again.to_json()) | {"seconds": 0} == json.loads(published.to_json()) | {"seconds": 0}
    assert again.seconds == pytest.approx(published.seconds, abs=0.01)


@pytest.mark.parametrize("name", ["norm", "heads", "prune", "beam", "embeddings"])
def test_models_that_were_removed_are_trained_again(name: str, smoke: LabSettings, tmp_path: Path) -> None:
    run(name, smoke)
    arms = tmp_path / "arms"
    arms.mkdir()
    shutil.copy(smoke.queue.directory / "arms" / "translation.jsonl", arms)
    again = LabSettings(Queue(tmp_path, say=lambda _: None), tmp_path / "models", None, "smoke")
    run(name, again)
    assert list((tmp_path / "models" / "runs").glob("*/model.safetensors"))


def test_a_queue_that_was_stopped_goes_on_and_shows_what_is_there(smoke: LabSettings, tmp_path: Path) -> None:
    """Half of an experiment is measured, then the rest; a choice by trials is made when they are all there."""
    settings = LabSettings(Queue(tmp_path, say=lambda _: None), smoke.work, None, "smoke")
    planned = load("batch-size").arms(settings)
    first = [arm for arm in planned if arm.name.startswith("trial: four times")][:1]
    settings.queue.measure_all(first, lambda arm: load("batch-size").measure(arm, settings))
    half = conclude("batch-size", settings)
    assert (half.arms_measured, half.arms_planned) == (1, len({arm.key for arm in planned}))
    assert {finding.verdict for finding in half.findings} == {"not measured yet"}
    whole = run("batch-size", LabSettings(Queue(tmp_path, say=lambda _: None), smoke.work, None, "smoke"))
    assert whole.arms_measured == whole.arms_planned
    assert "not measured yet" not in {finding.verdict for finding in whole.findings}


def test_a_rate_is_chosen_by_the_validation_loss_once_all_trials_are_there(tmp_path: Path) -> None:
    settings = LabSettings(Queue(tmp_path, say=lambda _: None), tmp_path)
    trials = {rate: Arm("translator", "", {"rate": rate}) for rate in (1, 2, 3)}
    losses = {1: 3.0, 2: 2.9, 3: 2.5}
    for rate in (3, 1):
        settings.queue.measure_all([trials[rate]], lambda arm: {"nll": losses[arm.configuration["rate"]]})
        assert choose(settings, trials) == 2  # the one in the middle, for the plan
    settings.queue.measure_all([trials[2]], lambda arm: {"nll": losses[arm.configuration["rate"]]})
    assert choose(settings, trials) == 3


def test_the_readme_counts_the_findings_as_the_results_do() -> None:
    results = [ExperimentResult.read(PUBLISHED / "results" / f"{name}.json") for name in NAMES]
    findings = [finding for result in results for finding in result.findings]
    said = f"of {len(findings)} findings {counted(findings)}"
    assert said in (PUBLISHED.parents[1] / "README.md").read_text(encoding="utf-8"), said


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
        return [
            MeasuredArm(
                Arm("beam", "", {"alphas": [0.0, 1.5]}),
                {"bleu 4 0.6": four + off, "bleu 1 0.6": 20.0, "length 4 0.0": 1.0, "length 4 1.5": longer + off},
                1.0,
            )
            for off in (0.0, 0.01, -0.01)
        ]

    assert [f.verdict for f in beam.judge(arms(21.0, 1.1))][:2] == ["holds", "holds"]
    assert [f.verdict for f in beam.judge(arms(19.0, 0.9))][:2] == ["does not hold here"] * 2
    assert [f.verdict for f in beam.judge(arms(20.05, 1.1))][:1] == ["does not hold here"]  # not by 0.1, surely


def test_equal_rates_and_one_search_for_what_is_compared() -> None:
    """Every system of `rnn` has the same trials; no comparison of the paper's family mixes searches."""
    from dragoman.lab.experiments import rnn

    arms = rnn.arms(LabSettings(Queue(Path("nowhere")), Path("nowhere")))
    grids: dict[str, set[tuple[Any, ...]]] = {system: set() for system in rnn.SYSTEMS}
    for arm in arms:
        if arm.name.startswith("trial: "):
            values = arm.configuration
            system = max((name for name in rnn.SYSTEMS if f": {name}, " in arm.name), key=len)
            dropout = values["model"].get("dropout", 0.1)
            grids[system].add((values["pairs"], values["train"]["peak_rate"], dropout))
    assert {len(grid) for grid in grids.values()} == {12}  # six each, on two amounts of text
    assert len({frozenset(grid) for grid in grids.values()}) == 1
    assert {arm.configuration["search"] for arm in arms if arm.kind == "translator"} == {
        "reference engine, beam 4, alpha 0.6"
    }


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
    assert [line.split()[0] for line in listed.stdout.splitlines()[::2]] == list(NAMES)
    assert "not run" in listed.stdout
    ran = cli("lab", "run", "beam", "averaging", "--size", "smoke", "--out", tmp_path, "--budget", "0s")
    assert ran.code == 0
    assert "beam: A smoke run" in ran.stdout
    assert "the budget is used up" in ran.stderr
    ran = cli("lab", "run", "beam", "--size", "smoke", "--out", tmp_path)
    assert ran.code == 0, ran.stderr
    assert ran.stdout.startswith("beam: A smoke run, which has no verdict.\n")
    assert "holds" not in ran.stdout
    written = cli("lab", "report", "--out", tmp_path / "smoke")
    assert written.stdout.split() == [str(tmp_path / "smoke" / "report.html"), str(tmp_path / "smoke" / "report.md")]
    listed = json.loads(cli("lab", "list", "--out", tmp_path, "--json").stdout)
    assert {one["experiment"]: one["found"] for one in listed}["beam"] == "smoke run"
    # The seconds that it took are no measure of the hours that a real one takes.
    real = cli("lab", "run", "beam", "--out", tmp_path, "--budget", "0s", "--data", tmp_path)
    assert "5 arms left, 5 of kinds not timed yet\n" in real.stderr


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
