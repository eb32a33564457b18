"""Several processes, one training: the same curve as one process, and every share in the right hands."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from dragoman.config import RunConfig
from dragoman.config.recipes import load, parse_set
from dragoman.model.checkpoint import save_weights, weights_of
from dragoman.run_directory import RunDirectory
from dragoman.training.distributed import LostRankError, Ranks, in_words, launch, processes_for, threads_for
from dragoman.training.loop import train_as_rank
from dragoman.training.optimizer import orthogonal
from support.lexicon import lexicon_pairs


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranks") / "pairs.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in lexicon_pairs(600, seed=3)), encoding="utf-8")
    return path


def settings(processes: int, steps: int) -> list[str]:
    values = {
        "model.vocab_size": 300, "model.encoder_layers": 1, "model.decoder_layers": 1, "model.d_model": 32,
        "model.d_ff": 64, "model.num_heads": 4, "model.dropout": 0.1, "data.hold_out": 30, "train.batch_tokens": 400,
        "train.micro_batch_tokens": 100, "train.peak_rate": 1e-3, "train.warmup_steps": 10, "train.valid_steps": 10,
        "train.schedule": "paper", "train.threads": 1, "train.processes": processes, "train.steps": steps,
        "train.optimizer": "adam",
    }  # fmt: skip
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


def logged(run: Path, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["event"] == event]


@pytest.fixture(scope="module")
def one_and_two(pairs: Path, tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Any]) -> tuple[Path, Path]:
    base = tmp_path_factory.mktemp("runs")
    for processes in (1, 2):
        ran = cli("train", "--pairs", pairs, "--out", base / str(processes), *settings(processes, 30))
        assert ran.code == 0, ran.stderr
    return base / "1", base / "2"


def test_two_ranks_learn_as_one_does(one_and_two: tuple[Path, Path]) -> None:
    one, two = one_and_two
    for event, names in (("train", ("loss", "perplexity", "gradient_norm", "rate", "tokens", "epoch")),
                         ("valid", ("nll", "bleu"))):  # fmt: skip
        curves = [[[line[name] for name in names] for line in logged(run, event)] for run in (one, two)]
        assert len(curves[0]) == len(curves[1]) > 2
        for mine, theirs in zip(*curves, strict=True):
            assert mine == pytest.approx(theirs, rel=2e-4)
    weights = [load_file(run / "checkpoints/step-00000030/model.safetensors") for run in (one, two)]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(tensor, weights[1][name], rtol=1e-3, atol=1e-4)


def test_two_ranks_learn_as_one_does_with_muon(pairs: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    for processes in (1, 2):
        ran = cli(
            "train", "--pairs", pairs, "--out", tmp_path / str(processes), *settings(processes, 10),
            "--set", "train.optimizer=muon",
        )  # fmt: skip
        assert ran.code == 0, ran.stderr
    one, two = (load_file(tmp_path / name / "checkpoints/step-00000010/model.safetensors") for name in ("1", "2"))
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, two[name], rtol=1e-3, atol=1e-4)


def divide_the_steps(kept: Path) -> None:
    """What the ranks of a test run: their own share of the work, and what all of them are given."""
    torch.manual_seed(1)
    stacks = [torch.randn(5, 8, 8), torch.randn(1, 8, 24), torch.randn(2, 24, 8)]
    own: list[int] = []

    def counted(rows: torch.Tensor) -> torch.Tensor:
        own.append(len(rows))
        return orthogonal(rows)

    found = list(Ranks(10.0).divide_rows(counted, stacks))
    equal = [torch.equal(torch.stack(list(rows)), orthogonal(stack)) for rows, stack in zip(found, stacks, strict=True)]
    (kept / os.environ["RANK"]).write_text(json.dumps([own, equal]), encoding="utf-8")


def test_ranks_divide_muon_s_work_and_all_get_the_same_bits_as_one(tmp_path: Path) -> None:
    launch(2, divide_the_steps, tmp_path)
    found = [json.loads((tmp_path / str(rank)).read_text(encoding="utf-8")) for rank in range(2)]
    assert found == [[[3, 1, 1], [True] * 3], [[2, 1], [True] * 3]]


def test_a_divided_model_learns_as_a_whole_one_does(
    pairs: Path, one_and_two: tuple[Path, Path], tmp_path: Path, cli: Callable[..., Any]
) -> None:
    """FSDP2 over two processes: a part of the way, and the rest from its checkpoint."""
    for steps in (20, 30):
        ran = cli(
            "train", "--pairs", pairs, "--out", tmp_path / "run", *settings(2, steps), "--set", "train.shard=true"
        )
        assert ran.code == 0, ran.stderr
    for event, name in (("train", "loss"), ("train", "gradient_norm"), ("valid", "nll")):
        curves = [[line[name] for line in logged(run, event)] for run in (tmp_path / "run", one_and_two[0])]
        assert curves[0] == pytest.approx(curves[1], rel=2e-4)
    weights = [
        load_file(run / "checkpoints/step-00000030/model.safetensors") for run in (tmp_path / "run", one_and_two[0])
    ]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(tensor, weights[1][name], rtol=1e-3, atol=1e-4)
    translated = [
        cli("translate", run, stdin="the old dog sees\n").stdout for run in (tmp_path / "run", one_and_two[0])
    ]
    assert translated[0] == translated[1]


def clock_of(rank: int) -> Callable[[], float]:
    """Every look at it takes a while, on each rank another one; and no rank's clock began where another's did."""
    looks = iter(range(10**9))
    return lambda: 1000.0 * rank + 0.1 * (1 + rank) * next(looks)


def train_and_keep_each_rank_s_weights(config: RunConfig, run: RunDirectory, kept: Path) -> None:
    """What the ranks of a test run; by the clock, as each has its own."""
    rank = int(os.environ["RANK"])
    save_weights(kept / f"{rank}.safetensors", weights_of(train_as_rank(config, run, "", None, clock_of(rank))))


def test_ranks_with_different_clocks_end_with_the_same_weights(pairs: Path, tmp_path: Path) -> None:
    """The rate follows from the time, and the end does: by anyone's own clock, neither is the other's."""
    run = RunDirectory(tmp_path / "run")
    for minutes in (0.05, 0.1):  # it stops in between, and goes on
        by_the_clock = [f"train.minutes={minutes}", "train.schedule=linear", "train.answer_seconds=10"]
        changes = [parse_set(text) for text in (*settings(2, 1000)[1::2], *by_the_clock)]
        config = load(None, [*changes, ("data.train", [{"pairs": str(pairs)}], "test")]).config
        launch(2, train_and_keep_each_rank_s_weights, config, run, tmp_path)
    first, second = (load_file(tmp_path / f"{rank}.safetensors") for rank in range(2))
    assert len(logged(tmp_path / "run", "valid")) > 3
    assert first.keys() == second.keys()
    assert [name for name, tensor in first.items() if not torch.equal(tensor, second[name])] == []
    # The weights that are compared are those of the last step, and that is where the first rank's clock ended it.
    last = load_file(run.checkpoints()[-1] / "model.safetensors")
    assert all(torch.equal(tensor, first[name]) for name, tensor in last.items())
    assert logged(tmp_path / "run", "end")[-1]["seconds"] == pytest.approx(6.0, abs=1.0)


@pytest.mark.parametrize("shard", ["false", pytest.param("true", marks=pytest.mark.full)], ids=["replicas", "divided"])
def test_verify_passes_on_a_run_of_two_processes_in_minutes(
    shard: str, pairs: Path, tmp_path: Path, cli: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    by_the_clock = ["--minutes", "0.05", "--set", "train.schedule=linear", "--set", f"train.shard={shard}"]
    ran = cli("train", "--pairs", pairs, "--out", tmp_path / "run", *settings(2, 100_000), *by_the_clock)
    assert ran.code == 0, ran.stderr
    assert ", 0.05 minutes, 2 processes of 1 thread each" in capfd.readouterr().err
    ran = cli("verify", tmp_path / "run")
    assert ran.code == 0, ran.stderr
    assert "weights, optimiser and losses are the same to the bit" in ran.stdout


def test_a_run_goes_on_with_another_number_of_ranks(
    pairs: Path, one_and_two: tuple[Path, Path], tmp_path: Path, cli: Callable[..., Any]
) -> None:
    for processes, steps in ((2, 10), (1, 20), (2, 30)):
        assert cli("train", "--pairs", pairs, "--out", tmp_path / "run", *settings(processes, steps)).code == 0
    losses = [[line["loss"] for line in logged(run, "train")] for run in (tmp_path / "run", one_and_two[0])]
    assert losses[0] == pytest.approx(losses[1], rel=2e-4)


def test_a_fault_in_the_data_is_one_line_from_one_rank(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from support.commands import run_in_process

    bad = tmp_path / "bad.tsv"
    bad.write_text("no tab here\n", encoding="utf-8")
    ran = run_in_process(["train", "--pairs", bad, "--out", tmp_path / "run", *settings(2, 10)])
    said = [line for line in (ran.stderr + capfd.readouterr().err).splitlines() if line.strip()]
    assert ran.code == 3
    assert len([line for line in said if line.startswith("dragoman: ")]) == 1
    assert not any("Traceback" in line for line in said)


def test_the_share_of_each_rank() -> None:
    ranks = Ranks()
    assert ranks.share([1, 2, 3]) == [1, 2, 3]
    assert list(ranks.share_evenly("abc")) == [(0, "a", 1.0), (1, "b", 1.0), (2, "c", 1.0)]
    ranks.size = 3
    shares: list[int] = []
    even: list[list[tuple[int, int, float]]] = []
    for ranks.rank in range(3):
        shares += ranks.share(list(range(10)))
        even.append(list(ranks.share_evenly(range(10))))
    assert sorted(shares) == list(range(10))
    assert {len(share) for share in even} == {4}
    assert sorted(item for share in even for _, item, weight in share if weight) == list(range(10))
    assert all(number == item for share in even for number, item, weight in share if weight)


def three_ranks(store: Any) -> Ranks:
    """Rank 0 of three, at its fifth meeting when it next meets the others."""
    return Ranks(answer_seconds=7, starting_seconds=7, settling_seconds=0.3, size=3, store=store, meetings=4)


GLOO = "[/pytorch/third_party/gloo/gloo/transport/tcp/"
TIMED_OUT = [
    f"{GLOO}unbound_buffer.cc:81] Timed out waiting 7000ms for recv operation to complete",
    f"{GLOO}unbound_buffer.cc:119] Timed out waiting 7000ms for send operation to complete",
    f"{GLOO}pair.cc:520] Application timeout caused pair closure",
    "Operation timed out!",
]
CLOSED = [
    f"{GLOO}pair.cc:553] Connection closed by peer [127.0.0.1]:4711",
    f"{GLOO}pair.cc:534] Read error [127.0.0.1]:4711: Connection reset by peer",
    f"{GLOO}pair.cc:281] writev [127.0.0.1]:4711: Broken pipe",
    "Gloo connectFullMesh failed with [127.0.0.1]:4711 SO_ERROR: Connection refused",
]


@pytest.mark.parametrize("message", [*TIMED_OUT, *CLOSED])
def test_whatever_gloo_says_the_error_names_the_rank(message: str) -> None:
    """All but rank 2 came; rank 1 has noticed something, too."""
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]
    store.set("arrived/1", "5 0.0")
    store.set("arrived/2", "4 0.0")
    store.set("gives up/1", "ended")
    ranks = three_ranks(store)
    what = "did not answer within 7 s" if message in TIMED_OUT else "ended"
    expected = f"^step 3: rank 2 of 3 {what}; the same command goes on"
    with pytest.raises(LostRankError, match=expected), ranks.together("step 3"):
        raise RuntimeError(message)


@pytest.mark.parametrize(
    ("others", "who"),
    [
        ({"arrived/1": "5 0.0"}, "2"),  # it never came, and rank 1 is still waiting for it
        ({"arrived/1": "5 0.0", "arrived/2": "5 1.0", "gives up/1": "ended"}, "2"),  # it came, and says nothing more
        ({"arrived/1": "5 0.0", "arrived/2": "5 9e9", "gives up/1": "ended", "gives up/2": "ended"}, "2"),  # too late
        ({"arrived/1": "5 0.0", "arrived/2": "5 1.0"}, "1, 2"),
    ],
)
def test_who_hangs(others: dict[str, str], who: str) -> None:
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]
    for key, value in others.items():
        store.set(key, value)
    ranks = three_ranks(store)
    expected = f"^step 3: rank {who} of 3 did not answer within 7 s"
    with pytest.raises(LostRankError, match=expected) as lost, ranks.together("step 3"):
        raise RuntimeError(TIMED_OUT[0])
    assert lost.value.hung
    assert lost.value.noticed_first
    with pytest.raises(LostRankError, match=expected) as lost, ranks.together("later"):
        raise RuntimeError(CLOSED[0])  # whoever comes after says the same
    assert not lost.value.noticed_first


def test_a_store_that_went_with_the_first_rank_and_an_error_of_the_computation() -> None:
    class Gone:
        def set(self, key: str, _: str) -> None:
            if key.startswith("gives"):
                raise torch.distributed.DistNetworkError("failed to recv, got 0 bytes")

        def set_timeout(self, _: object) -> None:
            pass

    ranks = three_ranks(Gone())
    with pytest.raises(LostRankError, match="rank 0 of 3 ended"), ranks.together("step 3"):
        raise torch.distributed.DistNetworkError("failed to recv, got 0 bytes")
    with pytest.raises(RuntimeError, match="mat1"), ranks.together("step 3"):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_processes_are_as_many_as_cores_and_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert processes_for(0, micro_batches=4, threads=0) == 4
    assert processes_for(0, micro_batches=40, threads=0) == 8
    assert processes_for(3, micro_batches=1, threads=0) == 3


def test_threads_that_take_all_cores_leave_room_for_one_process(
    pairs: Path, tmp_path: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    asked = ["--set", "train.processes=0", "--set", "train.threads=2", "--set", "train.valid_sentences=1"]
    before = torch.get_num_threads()
    try:
        ran = cli("train", "--pairs", pairs, "--out", tmp_path / "run", *settings(1, 1), *asked)
    finally:
        torch.set_num_threads(before)
    assert ran.code == 0, ran.stderr
    assert ", 1 steps, 2 threads\n" in ran.stderr  # one process is in no need of a launcher, and writes here


def test_processes_and_threads_fit_the_cores_and_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    for threads, processes in ((1, 8), (3, 2), (8, 1), (20, 1)):
        assert processes_for(0, micro_batches=40, threads=threads) == processes
        assert threads_for(threads, processes) == threads
    assert (threads_for(0, 3), threads_for(0, 20)) == (2, 1)
    assert in_words(1, 1, chosen=False) == "1 thread"
    assert in_words(2, 4, chosen=False) == "2 processes of 4 threads each"
    assert in_words(8, 1, chosen=True) == (
        "8 processes of 1 thread each (train.processes = 0 takes 8 cores; --set train.processes=1 takes one process)"
    )
    assert in_words(4, 4, chosen=False) == "4 processes of 4 threads each (more than 8 cores: they wait for each other)"
