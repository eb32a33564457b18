"""Measures how fast a model trains on this machine: a few steps of the real training loop on the real text, in another
process."""

import subprocess
import sys
from collections.abc import Sequence

from dragoman.config import RunConfig
from dragoman.errors import DragomanError
from dragoman.run_directory import RunDirectory, scratch_of

STEPS = 10  # the log has one line for the first step, which is slow, and one for the steps up to this one
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from dragoman.quickstart.probe import main; main(sys.argv[1])"


def measure(run: RunDirectory, config: RunConfig) -> float:
    """Returns target tokens per second. The run's text must be prepared; the run is not changed."""
    with scratch_of(run) as scratch:
        command = [sys.executable, "-c", _PROGRAM, str(scratch.path), *sys.path]
        process = subprocess.run(command, input=config.to_json(), capture_output=True, encoding="utf-8", check=False)
        logged = [event for event in scratch.events() if event["event"] == "train"]
    speeds = [event["tokens_per_second"] for event in logged if event["step"] == STEPS]
    if process.returncode != 0 or not speeds:
        messages: Sequence[str] = process.stderr.strip().splitlines() or ["no message"]
        raise DragomanError(f"the probe of a few training steps failed: {messages[-1]}")
    return float(speeds[0])


def main(path: str) -> None:
    """Runs the steps in the other process; the configuration comes on stdin."""
    from dragoman.training.loop import Replay, train

    config = RunConfig.from_json(sys.stdin.read(), "the probe's configuration")
    try:
        train(config, RunDirectory(path), "", Replay(STEPS, {}, {}))
    except DragomanError as error:
        sys.exit(str(error))
