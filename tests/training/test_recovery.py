"""A run survives what happens to it: docs/guides/reliability.md has the promise that each test here holds."""

import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import dragoman.training.loop as training_module
from dragoman.config import ModelConfig, Optimizer, RunConfig, TrainConfig
from dragoman.errors import DragomanError
from dragoman.model.checkpoint import TrainingProgress, optimizer_state_of, save_checkpoint, weights_of
from dragoman.model.sequence_model import make_model
from dragoman.run_directory import RunDirectory
from dragoman.training.consistency import loss_of
from dragoman.training.loop import seed_of
from dragoman.training.optimizer import make_optimizer
from dragoman.training.schedule import rate_at
from dragoman.training.setup import go_back
from support.chaos import command, state, write_pairs
from support.commands import started
from support.signalling import program_that_signals

STEPS = 20
SECONDS = 120.0  # for a program that takes a tenth of that on an idle machine


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reliability") / "pairs.tsv"
    write_pairs(path)
    return path


@pytest.fixture(scope="module")
def whole(pairs: Path, tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Any]) -> Path:
    """A run to which nothing happened."""
    out = tmp_path_factory.mktemp("whole") / "run"
    ran = cli(*arguments(pairs, out))
    assert ran.code == 0, ran.stderr
    return out


def arguments(pairs: Path, out: Path, steps: int = STEPS, processes: int = 1, **changes: float | str) -> list[str]:
    more = [part for key, value in changes.items() for part in ("--set", f"{key.replace('__', '.')}={value}")]
    return [*command(pairs, out, steps, processes)[3:], *more]


def run_process(arguments: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, **options)


def events(out: Path, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["event"] == kind]


def test_killed_again_and_again_it_ends_with_the_same_bits() -> None:
    """A few kills here; `make test-full` has fifty, with one process and with two."""
    done = subprocess.run([sys.executable, "tests/support/chaos.py", "--kills", "3"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "weights, optimiser and log are the same" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize(("processes", "kills"), [(1, 50), (2, 10)])
def test_fifty_kills(processes: int, kills: int) -> None:
    chaos = [
        sys.executable,
        "tests/support/chaos.py",
        "--kills",
        str(kills),
        "--processes",
        str(processes),
        "--seed",
        "7",
    ]
    done = subprocess.run(chaos, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kills while a checkpoint was written" in done.stdout


def test_an_interruption_between_two_lines_of_the_log_leaves_no_trace(
    pairs: Path, whole: Path, tmp_path: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps_done = 0

    def loss_and_then_ctrl_c(*given: Any) -> tuple[Tensor, Tensor]:
        nonlocal steps_done
        steps_done += 1
        if steps_done == 16:
            os.kill(os.getpid(), signal.SIGINT)
        return loss_of(*given)

    monkeypatch.setattr(training_module, "loss_of", loss_and_then_ctrl_c)
    assert cli(*arguments(pairs, tmp_path / "run")).code == 130
    monkeypatch.undo()
    stopped = json.loads((RunDirectory(tmp_path / "run").checkpoints()[-1] / "progress.json").read_bytes())
    assert stopped["step"] % 5 != 0
    assert stopped["pending_tokens"] > 0
    assert cli(*arguments(pairs, tmp_path / "run")).code == 0
    assert state(tmp_path / "run") == state(whole)


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(
    pairs: Path, whole: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    out = tmp_path / "run"
    assert cli(*arguments(pairs, out, steps=15)).code == 0
    last = RunDirectory(out).checkpoints()[-1]
    content = bytearray((last / "optimizer.safetensors").read_bytes())
    content[-3] ^= 1  # one bit of one number: a header would be noticed by anyone
    (last / "optimizer.safetensors").write_bytes(content)
    ran = cli(*arguments(pairs, out))
    assert ran.code == 0
    assert f"{last}: damaged (optimizer.safetensors is not what was written)" in ran.stderr
    assert "going on from step 10" in ran.stderr
    ends = [{**state(run), "log": [line for line in state(run)["log"] if line["event"] != "end"]}  # type: ignore[attr-defined]
            for run in (out, whole)]  # fmt: skip
    assert ends[0] == ends[1]


def test_no_whole_checkpoint_at_all_is_said(pairs: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    out = tmp_path / "run"
    assert cli(*arguments(pairs, out, steps=10)).code == 0
    for checkpoint in RunDirectory(out).checkpoints():
        (checkpoint / "manifest.json").write_text("{}")
    ran = cli(*arguments(pairs, out, steps=15))
    assert ran.code == 3
    assert "no checkpoint is whole; remove it to start from the beginning" in ran.stderr.splitlines()[-1]


def test_checkpoints_without_a_configuration_are_not_taken_for_another_run_s(
    pairs: Path, whole: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / "config.json").unlink()
    ran = cli(*arguments(pairs, tmp_path / "run", steps=30))
    assert ran.code == 3
    assert "has checkpoints but no config.json" in ran.stderr


def test_a_full_disk_stops_the_run_and_keeps_the_last_good_checkpoint(pairs: Path, whole: Path, tmp_path: Path) -> None:
    """A limit on the size of files is a disk that is full for all that is larger."""
    out = tmp_path / "run"
    assert run_process(arguments(pairs, out, steps=10)).returncode == 0
    before = state(out)
    size = (RunDirectory(out).checkpoints()[-1] / "optimizer.safetensors").stat().st_size

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    # Nor could the coverage of this process be written, where that is measured: it would be the last to complain.
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    full = run_process(arguments(pairs, out), preexec_fn=limit, env=unmeasured)
    assert full.returncode == 1
    assert "cannot be written" in full.stderr.splitlines()[-1]
    assert "Traceback" not in full.stderr
    assert {key: value for key, value in state(out).items() if key in ("step", "model", "optimizer")} == {
        key: value for key, value in before.items() if key in ("step", "model", "optimizer")
    }
    assert run_process(arguments(pairs, out)).returncode == 0
    assert state(out)["model"] == state(whole)["model"]


def test_the_second_training_in_a_directory_is_refused_and_the_lock_dies_with_its_holder(
    pairs: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    out = tmp_path / "run"
    forever = ["-m", "dragoman", *arguments(pairs, out, steps=100_000)]
    with started(forever, SECONDS, stderr=subprocess.DEVNULL) as first:
        while not RunDirectory(out).checkpoints():
            assert first.poll() is None  # which it is after so many seconds
            time.sleep(0.05)
        refused = cli(*arguments(pairs, out, steps=100_000))
        assert refused.code == 1
        assert refused.stderr == (
            f"dragoman: {out}: process {first.pid} is training in it; wait for it, or give another --out\n"
        )
        first.kill()
        first.wait(SECONDS)
    reached = int(RunDirectory(out).checkpoints()[-1].name[5:])
    assert cli(*arguments(pairs, out, steps=reached)).code == 0


def test_a_step_that_is_not_finite_never_reaches_the_weights(
    pairs: Path, tmp_path: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def sometimes_infinite(*given: Any) -> tuple[Tensor, Tensor]:
        nonlocal calls
        calls += 1
        loss, nll = loss_of(*given)
        return (loss * math.inf if calls in (12, 20) else loss), nll

    monkeypatch.setattr(training_module, "loss_of", sometimes_infinite)
    ran = cli(*arguments(pairs, tmp_path / "run"))
    assert ran.code == 0, ran.stderr
    assert ran.stderr.count("not finite; skipped") == 2
    assert len(events(tmp_path / "run", "skipped")) == 2
    assert not events(tmp_path / "run", "setback")
    weights = load_file(tmp_path / "run" / "checkpoints" / f"step-{STEPS:08d}" / "model.safetensors")
    assert all(tensor.isfinite().all() for tensor in weights.values())
    recorded = [json.loads(line) for line in (tmp_path / "run" / "skipped.jsonl").read_text().splitlines()]
    known = dict(line.split("\t") for line in pairs.read_text().splitlines())
    assert all(known[pair["source"]] == pair["target"] for step in recorded for pair in step["pairs"])
    assert sum(len(step["pairs"]) for step in recorded) > 10


def test_several_in_a_row_and_the_run_goes_back_with_a_lower_rate(
    pairs: Path, tmp_path: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Infinite at every rate above a bound, as a run that diverges is; below it, the run comes through."""
    out = tmp_path / "run"
    rates: list[float] = []

    def noted(*given: Any) -> float:
        rates.append(rate_at(*given))
        return rates[-1]

    def infinite_later(*given: Any) -> tuple[Tensor, Tensor]:
        loss, nll = loss_of(*given)
        setbacks = len(events(out, "setback")) if (out / "metrics.jsonl").exists() else 0
        step_past_8 = len(rates) > 8
        return (loss * math.nan if step_past_8 and setbacks < 2 else loss), nll

    monkeypatch.setattr(training_module, "rate_at", noted)
    monkeypatch.setattr(training_module, "loss_of", infinite_later)
    ran = cli(*arguments(pairs, out))
    assert ran.code == 0, ran.stderr
    assert [event["rate_factor"] for event in events(out, "setback")] == [0.5, 0.25]
    assert [event["step"] for event in events(out, "setback")] == [5, 5]
    assert events(out, "train")[-1]["rate"] == pytest.approx(rates[-1] / 4)
    monkeypatch.undo()
    assert cli("verify", out).code == 0  # the lowered rate is part of what is done again


def test_a_run_that_diverges_at_every_rate_stops_with_one_line(
    pairs: Path, tmp_path: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def infinite(*given: Any) -> tuple[Tensor, Tensor]:
        loss, nll = loss_of(*given)
        return loss * math.nan, nll

    monkeypatch.setattr(training_module, "loss_of", infinite)
    monkeypatch.setattr(training_module, "try_largest_batch", lambda _: 0.0)
    ran = cli(*arguments(pairs, tmp_path / "run"))
    assert ran.code == 1
    assert "lower train.peak_rate in a new --out" in ran.stderr.splitlines()[-1]


def test_out_of_memory_splits_the_batch_and_changes_nothing_else(
    pairs: Path, tmp_path: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dropout, as other passes draw other numbers, the curve is the one that a larger memory gives."""
    plain, split = tmp_path / "plain", tmp_path / "split"
    assert cli(*arguments(pairs, plain, model__dropout=0.0)).code == 0

    def little_memory(states: Tensor, *given: Any) -> tuple[Tensor, Tensor]:
        if states.shape[0] > 70:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory")
        return loss_of(states, *given)

    monkeypatch.setattr(training_module, "loss_of", little_memory)
    ran = cli(*arguments(pairs, split, model__dropout=0.0))
    assert ran.code == 0, ran.stderr
    assert "step 1: out of memory; from now on in passes of at most" in ran.stderr
    assert events(split, "memory")
    losses = [[event["loss"] for event in events(run, "train")] for run in (plain, split)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    monkeypatch.undo()
    assert cli("verify", split).code == 0  # with memory enough: what was split is split again


def test_a_pair_that_no_memory_holds_is_one_line(
    pairs: Path, tmp_path: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: Any) -> tuple[Tensor, Tensor]:
        raise MemoryError

    monkeypatch.setattr(training_module, "loss_of", no_memory)
    ran = cli(*arguments(pairs, tmp_path / "run"))
    assert ran.code == 1
    assert "lower data.max_length" in ran.stderr.splitlines()[-1]


def test_an_error_that_is_not_about_memory_is_not_swallowed(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]
) -> None:
    def broken(*_: Any) -> tuple[Tensor, Tensor]:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(training_module, "loss_of", broken)
    ran = cli(*arguments(pairs, tmp_path / "run"))
    assert ran.code == 1
    assert "mat1 and mat2" in ran.stderr.splitlines()[-1]


# Verify.


def test_verify_finds_a_good_run_good(whole: Path, cli: Callable[..., Any]) -> None:
    ran = cli("verify", whole)
    assert ran.code == 0, ran.stderr
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["files", "chain", "weights", "replay"]
    assert "weights, optimiser and losses are the same to the bit" in ran.stdout


@pytest.mark.parametrize("valid_steps", [5, 100_000], ids=["ends near a validation", "ends far from any"])
def test_a_run_by_the_clock_can_be_done_again(
    valid_steps: int, pairs: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    """The rate follows the time used up; the log has what it was, the last checkpoint what is not yet logged."""
    out = tmp_path / "run"
    by_the_clock = ("--minutes", "0.04", "--set", "train.schedule=linear", "--set", f"train.valid_steps={valid_steps}")
    assert cli(*arguments(pairs, out, steps=100_000), *by_the_clock).code == 0
    ran = cli("verify", out)
    assert ran.code == 0, ran.stderr
    assert "the same to the bit" in ran.stdout


def test_a_run_by_the_clock_that_skipped_a_step_can_be_done_again(
    pairs: Path, tmp_path: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rates of the steps before it stay theirs. Which step it is follows from its random numbers, each time."""

    def infinite_at_step_8(*given: Any) -> tuple[Tensor, Tensor]:
        loss, nll = loss_of(*given)
        return (loss * math.inf if torch.initial_seed() == seed_of(1, 7, 0) else loss), nll

    monkeypatch.setattr(training_module, "loss_of", infinite_at_step_8)
    out = tmp_path / "run"
    by_the_clock = ("--minutes", "0.03", "--set", "train.schedule=linear", "--set", "train.valid_steps=100000")
    assert cli(*arguments(pairs, out, steps=100_000), *by_the_clock).code == 0
    assert [event["step"] for event in events(out, "skipped")] == [8]
    ran = cli("verify", out)
    assert ran.code == 0, ran.stderr


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.filterwarnings("ignore:.*which is a no-op")  # of numbers, on a device that has none
def test_a_setback_leaves_the_optimiser_s_state_where_the_parameters_are(optimizer: Optimizer, tmp_path: Path) -> None:
    shape = ModelConfig(20, 1, 1, d_model=8, d_ff=16, num_heads=2, tie_embeddings=False)  # meta would untie them
    config, run = RunConfig(model=shape, train=TrainConfig(optimizer=optimizer)), RunDirectory(tmp_path)
    model = make_model(shape)
    trained = make_optimizer(model, config.train)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    trained.step()
    save_checkpoint(run, weights_of(model), optimizer_state_of(model, trained), TrainingProgress(step=1), keep=2)
    model.to("meta")
    assert go_back(config, model, trained, run.checkpoints()[-1]).step == 1
    for parameter in model.parameters():
        assert trained.state[parameter]
        assert {value.device for value in trained.state[parameter].values()} == {torch.device("meta")}
    assert go_back(config, model, trained, None).step == 0
    assert not trained.state
    assert {parameter.device for parameter in model.parameters()} == {torch.device("meta")}


def last_bit(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def other_hash(content: bytes) -> bytes:
    line = b'"event": "checkpoint", "step": 10, "model": "'
    return content.replace(line, line + b"0")


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("checkpoints/step-00000020/model.safetensors", last_bit, "is not what was written"),
        ("metrics.jsonl", other_hash, "the chain breaks at step 10"),
        ("metrics.jsonl", lambda content: content.replace(b'"loss": ', b'"loss": 1'), "the log says"),
        ("model.safetensors", last_bit, "as model.json says"),
        ("tokenizer.model", lambda content: content + b"\0", "not the tokenizer"),
    ],
)
def test_verify_names_what_was_changed(
    whole: Path, tmp_path: Path, cli: Callable[..., Any], file: str, change: Callable[[bytes], bytes], said: str
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    path = tmp_path / "run" / file
    path.write_bytes(change(path.read_bytes()))
    ran = cli("verify", tmp_path / "run")
    assert ran.code == 4
    assert said in ran.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "said"),
    [("step-00000099", "the log has no such checkpoint"), ("", "not the checkpoint that the log has for this step")],
)
def test_verify_names_a_checkpoint_that_was_put_there(
    whole: Path, tmp_path: Path, cli: Callable[..., Any], name: str, said: str
) -> None:
    """A whole one, in the place of another (the last), or beside those that there are."""
    shutil.copytree(whole, tmp_path / "run")
    first, *_, last = sorted((tmp_path / "run" / "checkpoints").glob("step-*"))
    if not name:
        shutil.rmtree(last)
    shutil.copytree(first, last.with_name(name or last.name))
    ran = cli("verify", tmp_path / "run")
    assert ran.code == 4, ran.stdout
    assert said in ran.stderr.splitlines()[-1]


# Under torchrun.


def torchrun(
    pairs: Path, out: Path, *more: str, program: Sequence[str] = ("-m", "dragoman"), **changes: Any
) -> AbstractContextManager[subprocess.Popen[str]]:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d",
                "--rdzv-endpoint", "localhost:0", *more, *program]  # fmt: skip
    return started([*launcher, *arguments(pairs, out, **changes)], SECONDS)


A_RANK_IS_KILLED_ONCE = program_that_signals(
    "dragoman.training.loop.loss_of",
    12,
    "SIGKILL",
    condition='(os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]) == ("1", "0")',
)


SHORT_OF_MEMORY_ONCE = """
import os
import dragoman.training.loop as train
from dragoman.cli import main
compute, calls = train.loss_of, []
def short_once(*given):
    calls.append(1)
    if (os.environ["RANK"], len(calls)) == ("1", 18):  # the largest batch, then one a step
        raise MemoryError
    return compute(*given)
train.loss_of = short_once
main.main()
"""


def test_torchrun_restarts_a_group_that_lost_a_rank(pairs: Path, tmp_path: Path) -> None:
    whole, killed, program = tmp_path / "whole", tmp_path / "killed", tmp_path / "killed.py"
    with torchrun(pairs, whole, steps=20) as launcher:
        said = launcher.communicate(timeout=SECONDS)[1]
    assert launcher.returncode == 0, said
    program.write_text(A_RANK_IS_KILLED_ONCE, encoding="utf-8")
    with torchrun(pairs, killed, "--max-restarts", "3", program=[str(program)], steps=20) as launcher:
        said = launcher.communicate(timeout=SECONDS)[1]
    assert launcher.returncode == 0, said
    assert said.count("parameters") == 2, said  # it was started twice
    assert "going on from step" in said
    assert state(killed) == state(whole)


# By itself, at a place that all ranks come to: nothing depends on how fast anyone is.
A_RANK_HANGS = """
import os, pkgutil, signal, sys
from pathlib import Path
from dragoman.cli import main as cli
rank, place, times = {hangs!r}
owner, _, name = place.rpartition(".")
owner = pkgutil.resolve_name("dragoman." + owner)
original, calls = getattr(owner, name), []
def hangs(*given, **named):
    calls.append(1)
    if os.environ["RANK"] == rank and len(calls) == times:
        Path({pid!r}).write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
    return original(*given, **named)
setattr(owner, name, hangs)
if __name__ == "__main__":
    cli.main()
"""

DIVIDED = {"train__shard": "true", "train__optimizer": "adam"}


@pytest.mark.parametrize(
    ("rank", "place", "times", "more"),
    [
        pytest.param("1", "training.distributed.Ranks.sum", 3, {}, id="in a step"),
        pytest.param("0", "training.distributed.Ranks.sum", 3, {}, id="the first rank"),
        pytest.param("1", "training.saving.validate", 1, {"train__valid_steps": 2}, id="in validation"),
        *(
            pytest.param("1", place, 3, DIVIDED, id=f"divided: {place}", marks=pytest.mark.full)
            for place in (
                "training.loop.loss_of",
                "training.gradients.ShardedGradients.norm",
                "training.saving.weights_of",
            )
        ),
    ],
)
def test_a_rank_that_hangs_is_named(
    pairs: Path, tmp_path: Path, rank: str, place: str, times: int, more: dict[str, float | str]
) -> None:
    program, pid = tmp_path / "hangs.py", tmp_path / "pid"
    program.write_text(A_RANK_HANGS.format(hangs=(rank, place, times), pid=str(pid)), encoding="utf-8")
    asked: dict[str, Any] = {"steps": 100_000, "train__answer_seconds": 3, **more}
    with torchrun(pairs, tmp_path / "run", program=[str(program)], **asked) as launcher:
        assert launcher.stderr
        said = ""
        for line in launcher.stderr:  # which ends when the launcher does
            said += line
            if f"rank {rank} of 2 did not answer within 3 s" in line:
                break
        else:
            pytest.fail(said)
        os.kill(int(pid.read_text()), signal.SIGKILL)  # or torchrun waits half a minute for it
        launcher.communicate(timeout=SECONDS)
    assert launcher.returncode != 0


def test_a_split_on_any_rank_is_in_the_log_and_is_done_again(
    pairs: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    """Memory is short once, on the second rank, between the two checkpoints that verify compares."""
    program = tmp_path / "short.py"
    program.write_text(SHORT_OF_MEMORY_ONCE, encoding="utf-8")
    with torchrun(pairs, tmp_path / "run", program=[str(program)], steps=20) as launcher:
        said = launcher.communicate(timeout=SECONDS)[1]
    assert launcher.returncode == 0, said
    assert said.count("out of memory; from now on in passes of at most") == 1, said
    [split] = events(tmp_path / "run", "memory")
    assert split["step"] == 16
    ran = cli("verify", tmp_path / "run")
    assert ran.code == 0, ran.stderr
    assert "steps 16 to 20 trained again: weights, optimiser and losses are the same to the bit" in ran.stdout


def test_the_largest_batch_is_the_one_with_the_longest_pairs() -> None:
    import numpy as np

    from dragoman.training.recovery import largest_batch, passes, smaller_passes

    class Lengths:
        source_lengths = np.array([3, 9, 4, 30, 2])
        target_lengths = np.array([3, 20, 4, 10, 2])

    data: Any = Lengths()
    assert sorted(largest_batch(data, 62)) == [1, 3]
    assert [part.tolist() for part in passes(data, np.array([0, 2, 4]), 10)] == [[0, 2], [4]]
    assert smaller_passes(data, [np.array([1, 3])], 0) == 31
    with pytest.raises(DragomanError, match="one pair of 31 tokens"):
        smaller_passes(data, [np.array([1, 3])], 31)
