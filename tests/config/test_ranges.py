"""Every number that a command or a configuration takes has its range, and what is outside of it is one line."""

import dataclasses
import json
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dragoman import config
from dragoman.cli.main import command_line
from dragoman.config import ranges
from dragoman.errors import ConfigError

NO_NUMBERS = ["nan", "inf", "-inf", "1e308", "-1e308", str(10**30), str(-(10**30)), "", "x", "1.5.2", "0x10"]
ELSEWHERE = {"serve"}  # whose settings check themselves


def options_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, below in getattr(command, "commands", {}).items():
        if not path and name in ELSEWHERE:
            continue
        yield from options_of(below, (*path, name))
    for option in getattr(command, "params", ()):
        if option.type_descriptor.annotation in (int, float):
            yield f"{' '.join(path)} {option.opts[0]}", option


NUMBERS = dict(options_of(typer.main.get_command(command_line())))


def test_the_commands_take_numbers() -> None:
    assert {"translate --beam", "compare --samples", "lm generate --top-p", "calibrate --good"} <= NUMBERS.keys()
    assert len(NUMBERS) > 50


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_has_its_range(name: str) -> None:
    option = NUMBERS[name]
    for text in [*NO_NUMBERS, "-1"]:
        with pytest.raises(typer.BadParameter) as refused:
            option.process_value(typer.Context(typer.main.get_command(command_line())), text)
        assert "\n" not in str(refused.value)


CALLS = {
    "train --pairs x --out y --steps 0": "0 is not in the range; allowed: whole numbers from 1 to 1,000,000,000,000",
    "train --pairs x --out y --minutes nan": "nan is not in the range; allowed: above 0",
    "translate RUN --beam 0": "'--beam': 0 is not in the range; allowed: whole numbers from 1 to 256",
    "translate RUN --beam 2.5": "'2.5' is not a whole number",
    "translate RUN --n-best 1000000": "1000000 is not in the range",
    "translate RUN --alpha -1": "-1 is not in the range; allowed: from 0 to 100",
    "translate RUN --alpha nan": "nan is not in the range; allowed: from 0 to 100",
    "translate RUN --min-confidence nan": "nan is not in the range; allowed: from 0 to 1",
    "translate RUN --sample --top-p 0": "0 is not in the range; allowed: above 0 and up to 1",
    "translate RUN --sample --temperature inf": "inf is not in the range",
    "translate RUN --sample --seed -1": "-1 is not in the range",
    "translate RUN --sample --top-p 2": "2 is not in the range; allowed: above 0 and up to 1",
    "finetune RUN --pairs x --out y --old nan": "nan is not in the range",
    "backtranslate RUN --mono x --pairs x --out y --drop 1": "1 is not in the range; allowed: from 0 to 0.99",
    "lm generate RUN --top-p nan": "nan is not in the range",
    "quantize RUN --source x --reference x --limit -0.1": "-0.1 is not in the range",
    "demo --minutes -1": "-1 is not in the range; allowed: above 0 and up to 1e+06",
    "quickstart x --seed -1": "'--seed'",
    "quickstart x --seed 9223372036854775808": "'--seed'",
    "quickstart x --minutes inf": "inf is not in the range; allowed: from 0.1 to 1e+06",
    "stress RUN --least typos=nan": "--least typos=nan",
    "lab run scaling --budget nan": "--budget nan",
}


@pytest.mark.parametrize("command", CALLS)
def test_a_number_outside_of_its_range_is_one_line(command: str, tiny_run: Path, cli: Callable[..., Any]) -> None:
    ran = cli(*command.replace("RUN", str(tiny_run)).split(), stdin="dog\n")
    assert (ran.code, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert CALLS[command] in line


SECTIONS = {
    "model": (config.ModelConfig, ranges.MODEL),
    "corpus": (config.CorpusConfig, ranges.CORPUS),
    "data": (config.DataConfig, ranges.DATA),
    "train": (config.TrainConfig, ranges.TRAIN),
    "search": (config.SearchConfig, ranges.SEARCH),
}
FIELDS = [(section, field) for section, (kind, _) in SECTIONS.items() for field in dataclasses.fields(kind)]
NUMBER_KEYS = {
    f"{section}.{field.name}": kinds
    for section, field in FIELDS
    if (kinds := {int, float} & {field.type, *typing.get_args(field.type)})
}


def test_every_number_of_a_configuration_has_a_range_and_its_default_is_in_it() -> None:
    assert {f"{section}.{name}" for section, (_, table) in SECTIONS.items() for name in table} == NUMBER_KEYS.keys()
    for section, field in FIELDS:
        if f"{section}.{field.name}" in NUMBER_KEYS and field.default is not None:
            default: Any = field.default
            assert default in SECTIONS[section][1][field.name]


@pytest.mark.parametrize("key", NUMBER_KEYS)
def test_a_number_of_a_configuration_outside_of_its_range_is_refused(key: str) -> None:
    section, name = key.split(".")
    wrong: list[float] = [-1, 2**63, -(10**30), 10**30]
    wrong += [float("nan"), float("inf"), float("-inf"), 1e308] if float in NUMBER_KEYS[key] else []
    for value in wrong:
        allowed = SECTIONS[section][1][name]
        found = {section: {name: value}} if section != "corpus" else {"data": {"train": [{"pairs": "x", name: value}]}}
        with pytest.raises(ConfigError) as refused:
            config.RunConfig.from_json(json.dumps(found), "config.json")
        assert str(refused.value).endswith(f"; must be {allowed}")
        assert "\n" not in str(refused.value)


REFUSED = {
    "train.threads=1000000": "train.threads = 1000000; must be at least 0 and at most 4,096",
    "train.threads=4000": "train.threads = 4000; must be at most 8 here, 4 for each of 2 cores",
    "train.processes=300": "train.processes = 300; must be at most 8 here, 4 for each of 2 cores",
    "train.seed=-1": "train.seed = -1; must be at least 0 and at most 9,223,372,036,854,775,807",
    "train.seed=9223372036854775808": "train.seed = 9223372036854775808; must be at least 0",
    "train.answer_seconds=1e300": "train.answer_seconds = 1e+300; must be above 0",
}


@pytest.mark.parametrize("command", ["train --steps 1 --pairs", "quickstart --minutes 0.1"])
@pytest.mark.parametrize("change", REFUSED)
def test_a_training_that_is_refused_leaves_nothing_behind(
    change: str, command: str, tiny_text: Path, tiny_settings: list[str], tmp_path: Path, cli: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    changes = [*tiny_settings, "--set", change]
    ran = cli(*command.split(), tiny_text / "train.tsv", "--out", tmp_path / "runs" / "run", *changes)
    assert ran.code == 3, ran.stderr
    assert REFUSED[change] in ran.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "room", "fits"),
    [
        ([], 33_000 * 16, False),  # weights, gradients and two moments, of four bytes each
        ([], 40_000 * 16, True),
        (["train.processes=2"], 40_000 * 16, False),
        (["train.optimizer=muon"], 33_000 * 16, True),  # which has one moment
        (["train.learn=top", "train.learn_layers=1"], 33_000 * 16, True),  # and what is frozen has none
    ],
)
def test_a_model_that_this_machine_has_no_memory_for_is_refused_before_anything_is_made(
    changes: list[str], room: int, fits: bool, tiny_text: Path, tiny_settings: list[str], tmp_path: Path,
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("dragoman.training.setup.memory", lambda: room)
    settings = [part for change in changes for part in ("--set", change)]
    ran = cli("train", "--pairs", tiny_text / "train.tsv", "--out", tmp_path / "a" / "run", "--steps", "1",
              *tiny_settings, *settings)  # fmt: skip
    if fits:
        assert ran.code == 0, ran.stderr
    else:
        (line,) = ran.stderr.splitlines()
        assert (ran.code, "a model of 33,9" in line, "make model.d_model" in line) == (3, True, True)
        assert list(tmp_path.iterdir()) == []


def test_a_configuration_is_shown_as_it_is_trained_or_not_at_all(cli: Callable[..., Any]) -> None:
    """The recipe gives widths of heads, too: that does not make seven of them fit."""
    for command in ("config show base", "train base --out out"):
        ran = cli(*command.split(), "--set", "model.num_heads=7")
        assert (ran.code, ran.stdout) == (3, "")
        assert "model.num_heads = 7; must be a divisor of d_model (512)" in ran.stderr
