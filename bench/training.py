"""Training speed, side by side: real target tokens a second on Multi30k, and the share of the machine's sgemm rate.

Two turns: first every peer with its own allocator settings, then with ours. Ours runs in both, and every ratio is
taken within a round. One contestant is active at a time; the others wait on a pipe.
"""

import os
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import report
from contestants.batches import Step, cycle, plan
from dragoman.config import ModelConfig
from dragoman.data.dataset import Prepared
from flops import training_flops
from rounds import BenchError, Spread, Worker, ratios
from shapes import SHAPES, WORK, multi30k

HERE = Path(__file__).parent
OURS = "dragoman"
TWO = "dragoman, 2 processes"
PEERS = ("Hugging Face Marian", "OpenNMT-py", "torch.nn.Transformer", "fairseq")
ALWAYS = ("Hugging Face Marian", "OpenNMT-py")  # without these there is no result
WARM_UP = 2  # steps before the first round


def start(name: str, shape: str, threads: int, keeps_memory: bool) -> Worker:
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    arguments = [str(HERE / "worker.py"), name, shape, "--threads", str(threads)]
    if name == TWO:
        each = str(max(1, threads // 2))
        environment["OMP_NUM_THREADS"] = arguments[-1] = each
        arguments = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *arguments]
    if keeps_memory:
        arguments.append("--keep-freed-memory")
    log = WORK / "logs" / f"{name.replace(' ', '-').replace(',', '')}-{shape}{'-kept' if keeps_memory else ''}.log"
    return Worker(name, arguments, environment, log)


def flops_of(steps: Sequence[Step], text: Prepared, config: ModelConfig) -> int:
    """What the pairs of these steps need, padding not counted."""
    return sum(
        training_flops(config, 1, int(text.train.source_lengths[row]) + 1, int(text.train.target_lengths[row]) + 1)
        for step in steps
        for rows in step
        for row in rows
    )


def race(shape: str, threads: int, seconds: float, num_rounds: int, keeps_memory: bool) -> dict[str, Any]:
    """One turn. Every contestant trains on the same steps of every round."""
    with ExitStack() as stack:
        workers, missing = [], {}
        for name in ("sgemm", OURS, TWO, *PEERS):
            ours = name in (OURS, TWO)
            try:
                workers.append(stack.enter_context(start(name, shape, threads, keeps_memory or ours)))
                workers[-1].ask(first=0, count=WARM_UP)
            except BenchError as error:
                if name in ALWAYS or ours:
                    raise
                missing[name] = str(error)
        # As many steps a round as the slowest does in the time that was asked for.
        paces = [worker.ask(first=WARM_UP, count=1)["seconds"] for worker in workers if worker.name != "sgemm"]
        count = max(1, round(seconds / max(paces)))
        results: dict[str, list[dict[str, float]]] = {worker.name: [] for worker in workers}
        steps = []
        for number in range(num_rounds):
            first = WARM_UP + 1 + number * count
            steps.append((first, count))
            # The order turns, so that none always comes after the same one.
            for worker in workers[number % len(workers) :] + workers[: number % len(workers)]:
                time.sleep(0.2)
                results[worker.name].append(worker.ask(first=first, count=count))
    return {"steps": steps, "results": results, "missing": missing}


def run(shape_name: str, threads: int, seconds: float, num_rounds: int) -> None:
    about = report.machine() | {"command": report.command(), "threads": threads}
    shape, text = SHAPES[shape_name], multi30k()
    config = shape.model_config(text.tokenizer.vocab_size)
    plans = plan(text, shape.batch_tokens)
    turns = {kept: race(shape_name, threads, seconds, num_rounds, kept) for kept in (False, True)}
    for turn in turns.values():
        turn["flops"] = [flops_of(list(cycle(plans, *steps)), text, config) for steps in turn["steps"]]
    section = f"training-{shape_name}"
    report.write_raw(section, {"about": about, "own": turns[False], "ours": turns[True]})
    report.write_section(report.PAGE, section, page(shape_name, about, turns))


def speeds(turn: dict[str, Any], name: str) -> list[float]:
    return [found["tokens"] / found["seconds"] for found in turn["results"][name]]


def page(shape_name: str, about: dict[str, Any], turns: dict[bool, dict[str, Any]]) -> str:
    shape, rows = SHAPES[shape_name], []
    for name in (OURS, TWO, *PEERS):
        if any(name not in turn["results"] for turn in turns.values()):
            reason = turns[False]["missing"].get(name) or turns[True]["missing"].get(name)
            rows.append([name, f"did not run: {reason}", "", "", "", "", ""])
            continue
        cells = [name]
        for kept in (False, True):
            found = speeds(turns[kept], name)
            cells.append(f"{Spread.of(found)}")
            cells.append("1" if name == OURS else f"{ratios(speeds(turns[kept], OURS), found)}")
        turn = turns[True]
        rates = [flops / r["seconds"] for flops, r in zip(turn["flops"], turn["results"][name], strict=True)]
        sgemm = speeds(turn, "sgemm")
        share = statistics.median(rate / machine for rate, machine in zip(rates, sgemm, strict=True))
        peak = max(r["peak_megabytes"] for r in turns[False]["results"][name])
        rows.append([*cells, f"{100 * share:.0f} %", f"{peak:,.0f}"])
    head = ["training", "tokens/s", "ours is times as fast", "tokens/s, our allocator setting"]
    head += ["ours is times as fast, same allocator setting", "of sgemm", "peak MB"]
    sgemm = Spread.of([rate / 1e9 for rate in speeds(turns[True], "sgemm")])
    return "\n".join([
        f"## Training, {shape_name}",
        "",
        report.heading(about),
        f"{shape.layers} + {shape.layers} layers, d {shape.d_model}, ff {shape.d_ff}, {shape.heads} heads, dropout "
        f"{shape.dropout}; Multi30k English-German, shared vocabulary of 8,000, fp32, {about['threads']} threads, "
        f"{shape.batch_tokens:,} tokens a step on each side, the same batches for all; tokens are real target tokens. "
        f"All have fused Adam. sgemm (torch.mm, 2048³, {about['threads']} threads) in the same rounds: {sgemm} "
        "GFLOP/s. Operations are counted by bench/flops.py from real tokens.",
        "",
        report.table(head, rows),
        *(against_the_best(turns[kept], kept) for kept in (False, True)),
    ])  # fmt: skip


def against_the_best(turn: dict[str, Any], kept: bool) -> str:
    found = {name: ratios(speeds(turn, OURS), speeds(turn, name)) for name in PEERS if name in turn["results"]}
    best = min(found, key=lambda name: found[name].median)
    two = ratios(speeds(turn, TWO), speeds(turn, best))
    setting = "with our allocator setting" if kept else "as it is"
    return f"Against the best peer {setting}, {best}: {found[best]} times in one process, {two} times in two.  "
