"""One training contestant in a process of its own: it trains when it is told to, and says what that took.

Commands come as lines of JSON on stdin, answers go as lines of JSON to stdout; what a library prints goes to stderr.
Started by torch.distributed.run, the first process talks, and passes on to the others what it was told.
"""

import argparse
import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

CONTESTANTS = {
    "dragoman": "ours",
    "dragoman, 2 processes": "two_processes",
    "Hugging Face Marian": "marian",
    "OpenNMT-py": "opennmt",
    "torch.nn.Transformer": "torch_nn",
    "fairseq": "fairseq_loop",
    "sgemm": "sgemm",
}


def lines_for_all(leads: bool, several: bool) -> Iterator[dict[str, Any]]:
    """The lines of stdin, to every process; the end of stdin is the end of all of them."""
    import torch.distributed as dist

    while True:
        line = [sys.stdin.readline() if leads else ""]
        if several:
            dist.broadcast_object_list(line, src=0)
        if not line[0]:
            return
        yield json.loads(line[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("contestant", choices=CONTESTANTS)
    parser.add_argument("shape")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep-freed-memory", action="store_true")
    parser.add_argument("--deterministic", action="store_true", help="torch.use_deterministic_algorithms")
    given = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    import torch
    import torch.distributed as dist

    from contestants.batches import cycle, plan
    from dragoman.processes import keep_freed_memory
    from dragoman.training.distributed import Ranks
    from shapes import SHAPES, multi30k

    if given.keep_freed_memory:
        keep_freed_memory()
    torch.use_deterministic_algorithms(given.deterministic)
    torch.set_num_threads(given.threads)
    several = "WORLD_SIZE" in os.environ
    if several:
        Ranks()  # joins the others
    leads = not several or dist.get_rank() == 0

    def over_all(value: float) -> float:
        total = torch.tensor(value, dtype=torch.float64)
        if several:
            dist.all_reduce(total)
        return float(total)

    def answer(**values: float) -> None:
        if leads:
            answers.write(json.dumps(values) + "\n")
            answers.flush()

    text, shape = multi30k(), SHAPES[given.shape]
    contestant = importlib.import_module(f"contestants.{CONTESTANTS[given.contestant]}").Contestant(shape, text)
    steps = plan(text, shape.batch_tokens)
    answer(steps=len(steps))
    for command in lines_for_all(leads, several):
        began, cpu_began = time.perf_counter(), time.process_time()
        tokens = contestant.train(cycle(steps, command["first"], command["count"]))
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        answer(tokens=tokens, seconds=seconds, cpu_seconds=over_all(cpu_seconds), peak_megabytes=over_all(peak))
    if several:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
