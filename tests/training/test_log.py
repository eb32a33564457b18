"""What a training tells: measurements on disk, plain lines where there is no terminal, a bar where there is one."""

import io
import json
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.errors import DragomanError
from dragoman.progress import clock
from dragoman.run_directory import RunDirectory
from dragoman.training.log import RunLog

COLOUR = re.compile(r"\x1b\[[\d;]*3\d[\d;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _without_tensorboard(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """It takes a second to import, and a run is to work without it."""
    if "with_tensorboard" not in request.node.name:
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


def lines(run: RunDirectory) -> list[dict[str, object]]:
    return [json.loads(line) for line in run.metrics_path.read_text(encoding="utf-8").splitlines()]


def test_every_measurement_is_a_line_of_json(run: RunDirectory) -> None:
    with RunLog(run, 0) as log:
        size = log.write("train", 50, loss=1.5, tokens=7)
        assert lines(run) == [{"event": "train", "step": 50, "loss": 1.5, "tokens": 7}]
        assert size == run.metrics_path.stat().st_size
        after = log.write("valid", 100, output="ĝardeno \u2028 x")
        assert after == log.sync() == run.metrics_path.stat().st_size
    text = run.metrics_path.read_text(encoding="utf-8")
    assert "ĝardeno" in text
    assert [json.loads(line)["step"] for line in text.split("\n")[:-1]] == [50, 100]


def test_going_on_cuts_off_what_the_checkpoint_does_not_know(run: RunDirectory) -> None:
    with RunLog(run, 0) as log:
        kept = log.write("train", 1)
        log.write("train", 2)
    with RunLog(run, kept) as log:
        log.write("train", 2, again=True)
    assert lines(run) == [{"event": "train", "step": 1}, {"event": "train", "step": 2, "again": True}]


def test_a_new_run_begins_a_new_log(run: RunDirectory) -> None:
    with RunLog(run, 0) as log:
        log.write("train", 1)
    with RunLog(run, 0):
        pass
    assert run.metrics_path.read_bytes() == b""


def test_a_log_that_was_deleted_is_not_filled_up(run: RunDirectory) -> None:
    with RunLog(run, 1000) as log:
        log.write("train", 7)
    assert lines(run) == [{"event": "train", "step": 7}]


@pytest.fixture
def full_after_100_bytes() -> Iterator[None]:
    """Lets no file of this process grow beyond 100 bytes, as a disk that is nearly full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.usefixtures("full_after_100_bytes")
def test_a_full_disk_is_explained(run: RunDirectory) -> None:
    problem = r"metrics\.jsonl: cannot be written \(File too large\); free some disk"

    def fill(log: RunLog) -> None:
        with log:
            log.write("train", 1)
            log.write("train", 2, output="x" * 100)

    with pytest.raises(DragomanError, match=problem):
        fill(RunLog(run, 0))


def test_without_a_terminal_there_are_plain_lines_on_stderr(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunLog(run, 0) as log:
        log.say("[bold]not markup[/bold] :smile: " + "x" * 200)
        log.show(0.071, "step 50  loss 1.000")
        log.show(1.0, "step 700")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        "[bold]not markup[/bold] :smile: " + "x" * 200 + "\n  7%  step 50  loss 1.000\n100%  step 700\n"
    )


def test_on_a_terminal_there_is_a_bar_without_colour_where_none_is_wanted(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")

    def told() -> str:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        with RunLog(run, 0) as log:
            log.show(0.5, "step 50  loss 1.000")
            log._bar.refresh()  # type: ignore[union-attr]
            log.say("a line above the bar")
        return terminal.getvalue()

    monkeypatch.setenv("NO_COLOR", "1")
    plain = told()
    monkeypatch.delenv("NO_COLOR")
    coloured = told()
    for text in (plain, coloured):
        assert "50%" in text
        assert "step 50  loss 1.000" in text
        assert "a line above the bar" in text
    assert COLOUR.search(coloured)
    assert not COLOUR.search(plain)


def test_numbers_go_to_tensorboard_with_tensorboard(run: RunDirectory) -> None:
    with RunLog(run, 0) as log:
        log.write("train", 1, loss=2.5, output="text")
    assert list((run.path / "tensorboard").glob("events.*"))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0:00"), (9.6, "0:10"), (59.7, "1:00"), (309, "5:09"), (3599.6, "1:00:00"), (3909, "1:05:09")],
)
def test_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown
