"""A training that is asked to stop, by a signal or by a reader who leaves, stops within seconds and has saved."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.run_directory import RunDirectory, step_of
from support.chaos import command, write_pairs
from support.commands import started
from support.signalling import program_that_signals

LONG = 100_000  # steps: none of these trainings is to come to its end
SECONDS = 60.0  # for what takes two to five on an idle machine, and took ten minutes


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stopping") / "pairs.tsv"
    write_pairs(path)
    return path


def training(pairs: Path, out: Path, steps: int = LONG, processes: int = 1) -> list[str]:
    return [*command(pairs, out, steps, processes)[1:], "--set", f"train.valid_steps={LONG}"]


def read_until(text: str, process: subprocess.Popen[str]) -> None:
    assert process.stderr
    said = []
    for line in process.stderr:
        said.append(line)
        if text in line:
            return
    pytest.fail("".join(said))


def goes_on(pairs: Path, out: Path, cli: Callable[..., Any]) -> None:
    """What was saved is whole, and whoever held the run has left it."""
    [checkpoint] = RunDirectory(out).checkpoints()
    ran = cli(*training(pairs, out, steps=step_of(checkpoint) + 1)[2:])
    assert ran.code == 0, ran.stderr
    assert f"going on from step {step_of(checkpoint)}" in ran.stderr


@pytest.mark.parametrize("processes", [1, 2])
def test_a_reader_who_leaves_stops_a_training(
    processes: int, pairs: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    with started(training(pairs, tmp_path / "run", processes=processes), 2 * SECONDS) as process:
        read_until("step 10 ", process)
        assert process.stderr
        process.stderr.close()
        assert process.wait(SECONDS) == 130
    goes_on(pairs, tmp_path / "run", cli)


def test_a_reader_who_leaves_before_the_first_step(pairs: Path, tmp_path: Path) -> None:
    with started(training(pairs, tmp_path / "run", processes=2), 2 * SECONDS) as process:
        read_until("reading and cleaning", process)
        assert process.stderr
        process.stderr.close()
        assert process.wait(SECONDS) == 130
    assert RunDirectory(tmp_path / "run").checkpoints() == []


def test_a_reader_who_leaves_stops_a_quickstart(pairs: Path, tmp_path: Path) -> None:
    with started(
        ["-m", "dragoman", "quickstart", str(pairs), "--out", str(tmp_path / "run"), "--minutes", "5"], 2 * SECONDS
    ) as process:
        assert process.stderr
        assert process.stderr.readline()
        process.stderr.close()
        assert process.wait(SECONDS) == 130


def test_a_training_without_a_stderr_says_nothing_and_goes_on(pairs: Path, tmp_path: Path) -> None:
    silent = 'exec "$0" "$@" 2>&-'
    arguments = [sys.executable, *training(pairs, tmp_path / "run", steps=2)]
    done = subprocess.run(["sh", "-c", silent, *arguments], stdout=subprocess.PIPE, check=False, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (0, b"")


def test_two_signals_in_the_same_moment_are_one_request(pairs: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    """As `timeout` sends them. The second comes when the first was heard, in the middle of a step."""
    program = tmp_path / "twice.py"
    program.write_text(TWO_SIGNALS, encoding="utf-8")
    with started([str(program), *training(pairs, tmp_path / "run")[2:]], 2 * SECONDS) as process:
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 130, said
        assert "everything saved" in said
    goes_on(pairs, tmp_path / "run", cli)


TWO_SIGNALS = program_that_signals("dragoman.training.loop.loss_of", 12, "SIGTERM", "SIGTERM")

# Of the first rank, which then tarries: the others hear of it while they wait for the first.
THE_LAUNCHER_IS_STOPPED = """
import os, signal, time
import dragoman.{module} as module
from dragoman.cli import main as cli
original = module.{name}
def stopped(*given):
    if os.environ["RANK"] == "0":
        os.kill(os.getppid(), signal.{signal})
        time.sleep(2)
    return original(*given)
module.{name} = stopped
if __name__ == "__main__":
    cli.main()
"""


@pytest.mark.parametrize(
    ("module", "name", "number", "finished"),
    [
        pytest.param("training.setup", "prepare", "SIGINT", False, id="Ctrl-C while text is prepared"),
        pytest.param("training.loop", "finish", "SIGTERM", True, id="at the very end"),
    ],
)
def test_whenever_the_launcher_alone_is_asked_all_stop(
    module: str, name: str, number: str, finished: bool, pairs: Path, tmp_path: Path
) -> None:
    program = tmp_path / "stopped.py"
    program.write_text(THE_LAUNCHER_IS_STOPPED.format(module=module, name=name, signal=number), encoding="utf-8")
    with started([str(program), *training(pairs, tmp_path / "run", steps=12, processes=2)[2:]], 2 * SECONDS) as process:
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 130, said
        assert ("finished after 12 steps" in said) == finished, said
        assert "Traceback" not in said
        assert not [line for line in said.splitlines() if "torch/" in line], said


def test_the_launcher_leaves_the_signals_as_they_were(pairs: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    ran = cli(*training(pairs, tmp_path / "run", steps=2, processes=2)[2:])
    assert ran.code == 0, ran.stderr
    assert [signal.getsignal(number) for number in numbers] == before
