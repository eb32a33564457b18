"""A run's log, read while it is written: curves, setbacks, cuts, alerts."""

import fcntl
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.run_directory import RunDirectory
from dragoman.training.log_reader import History, LogFollower, kept_steps, read_history, state_of


def train(step: int, loss: float, **more: Any) -> dict[str, Any]:
    return {"event": "train", "step": step, "loss": loss, "rates": [0.1], **more}


def valid(step: int, nll: float, bleu: float) -> dict[str, Any]:
    return {"event": "valid", "step": step, "nll": nll, "bleu": bleu, "source": "a", "output": "b", "reference": "c"}


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def alerts_of(*events: dict[str, Any]) -> list[tuple[str, int]]:
    return [(alert.kind, alert.step) for alert in History().add(events).alerts]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def test_only_what_is_new_and_whole_is_told(run: RunDirectory) -> None:
    follower = LogFollower(run)
    assert follower.read() is None  # no log yet
    run.metrics_path.write_bytes(lines(train(1, 9.0), train(10, 8.0)) + b'{"event": "tr')
    first = follower.read()
    assert first is not None
    assert [point["step"] for point in first.train] == [1, 10]
    assert "rates" not in first.train[0]
    assert follower.read() is None  # half a line
    with run.metrics_path.open("ab") as file:
        file.write(b'ain", "step": 50, "loss": 7.0}\nnot json\n[1]\n' + lines(valid(50, 6.5, 1.5)))
    second = follower.read()
    assert second is not None
    assert ([p["step"] for p in second.train], [p["bleu"] for p in second.valid]) == ([50], [1.5])
    assert not second.restarted
    assert [point["step"] for point in follower.history.train] == [1, 10, 50]


def test_a_log_that_was_cut_is_told_anew_even_if_it_grew_again(run: RunDirectory) -> None:
    follower = LogFollower(run)
    kept = lines(train(1, 9.0), train(10, 8.0))
    run.metrics_path.write_bytes(kept + lines(train(50, 7.0), valid(50, 6.0, 2.0)))
    follower.read()
    run.metrics_path.write_bytes(kept + lines(train(50, 7.5), train(100, 5.0), train(150, 4.0), train(200, 3.0)))
    again = follower.read()
    assert again is not None
    assert again.restarted
    assert [point["step"] for point in again.train] == [1, 10, 50, 100, 150, 200]
    assert follower.history.train[2]["loss"] == 7.5
    assert follower.history.valid == []


def test_steps_that_are_done_again_after_a_setback_replace_those_before() -> None:
    history = History()
    history.add([train(50, 5.0), train(100, 4.0), train(150, 3.9), valid(150, 3.0, 5.0)])
    setback = {"event": "setback", "step": 50, "reached": 153, "rate_factor": 0.5}
    update = history.add([setback, train(100, 4.2), valid(100, 3.1, 4.0)])
    assert [(point["step"], point["loss"]) for point in history.train] == [(50, 5.0), (100, 4.2)]
    assert [point["step"] for point in history.valid] == [100]
    (alert,) = update.alerts
    assert alert.text == "back from step 153 to step 50, at 0.5 of the rate from there on"


def test_what_the_training_wrote_down_is_an_alert() -> None:
    skipped = {"event": "skipped", "step": 7, "loss": "nan", "gradient_norm": "inf"}
    memory = {"event": "memory", "step": 3, "pass_tokens": 1000}
    assert alerts_of(skipped, memory) == [("memory", 3), ("skipped", 7)]


def test_divergence_needs_three_lines_and_passes_when_the_loss_comes_back() -> None:
    falling = [train(step, 8 - step / 100) for step in range(50, 501, 50)]  # down to 3.0
    up = [train(550, 3.6), train(600, 3.7), train(650, 3.8)]
    assert alerts_of(*falling) == []
    assert alerts_of(*falling, *up[:2]) == []
    assert alerts_of(*falling, *up) == [("divergence", 550)]
    assert alerts_of(*falling, *up, train(700, 3.4)) == []


def test_overfitting_is_a_validation_loss_that_rises_while_the_training_loss_falls() -> None:
    def events(last_loss: float) -> list[dict[str, Any]]:
        losses = [train(100, 5.0), train(200, 4.0), train(300, 3.0), train(400, 2.0), train(500, last_loss)]
        validations = [valid(100, 5.0, 1), valid(200, 4.0, 9), valid(300, 4.2, 10), valid(400, 4.3, 11)]
        return [*losses, *validations, valid(500, 4.5, 12)]

    assert alerts_of(*events(1.0)) == [("overfitting", 300)]
    assert alerts_of(*events(4.2)) == []


def test_a_gap_widens_when_the_validation_loss_falls_behind_at_each_validation() -> None:
    def events(last: float) -> list[dict[str, Any]]:
        losses = [train(step, 5.0 - step / 200) for step in (100, 200, 300, 400, 500)]
        validations = [valid(100, 4.5, 1), valid(200, 4.3, 9), valid(300, 4.2, 10), valid(400, 4.15, 11)]
        return [*losses, *validations, valid(500, last, 12)]

    assert alerts_of(*events(4.13)) == [("gap", 300)]  # although the validation loss still falls
    assert alerts_of(*events(3.8)) == []  # the last came nearer again
    history = History()
    (alert,) = history.add(events(4.13)).alerts
    assert alert.text == (
        "validation loss is 0.63 further above training loss than at step 100, and further at each of the last 3 "
        "validations"
    )


def test_what_a_training_ends_with_is_kept() -> None:
    history = History()
    history.add([train(100, 5.0), {"event": "end", "step": 100, "kind": "average", "average_bleu": 21.0}])
    assert history.ended
    assert history.end is not None
    assert (history.end["kind"], history.end["average_bleu"]) == ("average", 21.0)
    history.add([train(200, 4.0)])  # it goes on
    assert not history.ended


def test_a_plateau_is_five_validations_without_anything_better() -> None:
    best = [valid(100, 3.0, 20.0), valid(200, 2.5, 25.0)]
    stale = [valid(step, 2.5, 24.0) for step in range(300, 800, 100)]
    assert alerts_of(*best, *stale[:4]) == []
    assert alerts_of(*best, *stale) == [("plateau", 300)]
    assert alerts_of(*best, *stale[:4], valid(700, 2.4, 24.0)) == []  # a lower loss is progress too


def test_the_state_of_a_run(tiny_run: Path, tmp_path: Path) -> None:
    finished = RunDirectory(tiny_run)
    history = read_history(finished)
    assert state_of(finished, history) == "finished"
    assert kept_steps(finished) == [30, 60, 90]
    assert [point["step"] for point in history.valid] == [30, 60, 90]
    assert {"loss", "perplexity", "rate", "gradient_norm", "tokens_per_second", "seconds"} <= set(history.train[0])

    copied = RunDirectory(shutil.copytree(tiny_run, tmp_path / "run"))
    copied.metrics_path.write_bytes(b"".join(copied.metrics_path.read_bytes().splitlines(keepends=True)[:-1]))
    assert state_of(copied, read_history(copied)) == "stopped"
    with copied.lock():
        assert copied.is_training()
        assert state_of(copied, read_history(copied)) == "training"
    assert not copied.is_training()
    copied.metrics_path.unlink()
    assert state_of(copied, read_history(copied)) == "waiting"


def test_a_process_that_is_gone_does_not_train_and_its_lock_is_not_touched(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert not run.is_training()
    child = subprocess.Popen(["true"])
    child.wait(60)
    (tmp_path / ".lock").write_text(f"{child.pid}\n")
    with (tmp_path / ".lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as a training that begins does before it writes its number
        assert not run.is_training()
