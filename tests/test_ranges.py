"""Every number that a command takes has its range, and what is outside of it is one line that says so."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dragoman.cli import app

NO_NUMBERS = ["nan", "inf", "-inf", "1e308", "-1e308", str(10**30), str(-(10**30)), "", "x", "1.5.2", "0x10"]
ELSEWHERE = {"serve", "quickstart"}  # whose settings check themselves


def options_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, below in getattr(command, "commands", {}).items():
        if not path and name in ELSEWHERE:
            continue
        yield from options_of(below, (*path, name))
    for option in getattr(command, "params", ()):
        if option.type_descriptor.annotation in (int, float):
            yield f"{' '.join(path)} {option.opts[0]}", option


NUMBERS = dict(options_of(typer.main.get_command(app)))


def test_the_commands_take_numbers() -> None:
    assert {"translate --beam", "compare --samples", "lm generate --top-p", "calibrate --good"} <= NUMBERS.keys()
    assert len(NUMBERS) > 50


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_has_its_range(name: str) -> None:
    option = NUMBERS[name]
    for text in [*NO_NUMBERS, "-1"]:
        with pytest.raises(typer.BadParameter) as refused:
            option.process_value(typer.Context(typer.main.get_command(app)), text)
        assert "\n" not in str(refused.value)


CALLS = {
    "translate RUN --n-best 1000000": "'--n-best'",
    "translate RUN --alpha nan": "nan is not in the range; allowed: from 0 to 100",
    "translate RUN --min-confidence nan": "nan is not in the range; allowed: from 0 to 1",
    "translate RUN --sample --top-p 0": "0 is not in the range; allowed: above 0 and up to 1",
    "translate RUN --sample --temperature inf": "inf is not in the range",
    "translate RUN --sample --seed -1": "'--seed'",
    "finetune RUN --pairs x --out y --old nan": "nan is not in the range",
    "backtranslate RUN --mono x --pairs x --out y --drop 1": "1 is not in the range; allowed: from 0 to 0.99",
    "lm generate RUN --top-p nan": "nan is not in the range",
    "quantize RUN --source x --reference x --limit -0.1": "-0.1 is not in the range",
    "demo --minutes -1": "-1 is not in the range; allowed: above 0 and up to 1e+06",
    "stress RUN --least typos=nan": "--least typos=nan",
    "lab run scaling --budget nan": "--budget nan",
}


@pytest.mark.parametrize("command", CALLS)
def test_a_number_outside_of_its_range_is_one_line(command: str, tiny_run: Path, cli: Callable[..., Any]) -> None:
    ran = cli(*command.replace("RUN", str(tiny_run)).split(), stdin="dog\n")
    assert (ran.code, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert CALLS[command] in line
