"""Sinusoids in one and in two dimensions against learned positions, and none, on scikit-learn's digits.

    python bench/vision.py --out runs/bench-vision

trains each kind with several seeds and prints the accuracy on the held-out fifth: median, lowest and highest.
Anything after `--` goes to every training.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

KINDS = ("sinusoidal", "sinusoidal-2d", "learned", "none")


def dragoman(*arguments: object) -> str:
    print("dragoman", *arguments, file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("more", nargs="*", help="after --: flags of every training")
    given = options.parse_args()
    print(f"{'positions':<15} median  lowest highest   held-out fifth, {given.seeds} seeds")
    for kind in KINDS:
        found = []
        for seed in range(1, given.seeds + 1):
            run = given.out / f"{kind}-{seed}"
            dragoman("vit", "train", "--positions", kind, "--seed", seed, "--out", run, *given.more)
            found.append(100 * json.loads(dragoman("vit", "evaluate", run, "--json"))["accuracy"])
        print(f"{kind:<15} {statistics.median(found):6.2f}  {min(found):6.2f}  {max(found):6.2f}", flush=True)


if __name__ == "__main__":
    main()
