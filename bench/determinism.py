"""What it would cost to ask the libraries for the same bits: training speed with their settings for it, by turns.

    .venv-bench/bin/python bench/determinism.py

Our bits hold without them (docs/guides/reliability.md); this says what they would take where they do not.
"""

import argparse
import os
from contextlib import ExitStack

from rounds import Worker, ratios
from shapes import WORK
from training import HERE, OURS, WARM_UP

SETTINGS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "as it is": ({}, ()),
    "MKL_CBWR=AVX2,STRICT": ({"MKL_CBWR": "AVX2,STRICT"}, ()),
    "MKL_CBWR=COMPATIBLE": ({"MKL_CBWR": "COMPATIBLE"}, ()),
    "use_deterministic_algorithms": ({}, ("--deterministic",)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10, help="training steps of each in a round")
    parser.add_argument("--shape", default="tiny")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    with ExitStack() as stack:
        workers = []
        for name, (variables, flags) in SETTINGS.items():
            environment = os.environ | {"OMP_NUM_THREADS": str(given.threads)} | variables
            arguments = [str(HERE / "worker.py"), OURS, given.shape, "--threads", str(given.threads)]
            log = WORK / "logs" / f"determinism-{len(workers)}.log"
            arguments += ["--keep-freed-memory", *flags]
            workers.append(stack.enter_context(Worker(name, arguments, environment, log)))
            workers[-1].ask(first=0, count=WARM_UP)
        speeds: dict[str, list[float]] = {name: [] for name in SETTINGS}
        for number in range(given.rounds):
            for worker in workers if number % 2 else workers[::-1]:
                took = worker.ask(first=number * given.steps, count=given.steps)
                speeds[worker.name].append(took["tokens"] / took["seconds"])
    plain = speeds["as it is"]
    print("| setting | speed against none: median (lowest to highest) |\n|---|---|")
    for name, found in speeds.items():
        print(f"| {name} | {ratios(found, plain)} |")


if __name__ == "__main__":
    main()
