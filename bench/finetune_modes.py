"""What to let learn when a public model is fine-tuned on a CPU: all of it, its top layers, or low-rank additions.

    python bench/finetune_modes.py RUN --data build/bench/catalogues/messages --minutes 3 --seeds 1 2 3
    python bench/finetune_modes.py RUN --table                            # what was measured so far

Every cell is a `dragoman finetune` of its own, for as many minutes: some thousand pairs of the new domain, mixed with
the run's own translations of the demo's English sentences. It is scored on the new domain's test sentences and on the
demo's, with its real references. Each cell is added to a file beside the runs as it ends, and one that is there is not
done again.
"""

import argparse
import itertools
import json
import resource
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import sacrebleu

from dragoman.data.corpus import read_lines
from dragoman.quickstart.tatoeba import prepare_demo
from dragoman.run_directory import default_cache
from dragoman.translation.translator import Translator

# What learns, and the rate: the second one is what finetune takes by itself, the last one is for small models.
MODES = {
    "all": (2e-5, 5e-5, 1e-4, 4e-4),
    "top": (5e-5, 1e-4, 2e-4, 8e-4),
    "low-rank": (2.5e-4, 5e-4, 1e-3, 4e-3),
}


def test_sets(data: Path) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Sources and references of both domains."""
    demo = prepare_demo(default_cache())
    return {
        "new": (list(read_lines(data / "test.source")), [list(read_lines(data / "test.reference.0"))]),
        "old": (list(read_lines(demo.test_source)), [list(read_lines(path)) for path in demo.test_references]),
    }


def scores(run: Path, data: Path) -> dict[str, float]:
    translator = Translator.load(run)
    return {
        domain: sacrebleu.corpus_bleu(translator.translate(sources, whole=True, protect=False), references).score
        for domain, (sources, references) in test_sets(data).items()
    }


def prepare_text(data: Path, pairs: int, out: Path) -> tuple[Path, Path]:
    """The new pairs to learn from, and general sentences in the source language."""
    new, general = out / f"new-{pairs}.tsv", out / "general.txt"
    if not new.exists():
        new.write_text("".join(f"{line}\n" for line in itertools.islice(read_lines(data / "train.tsv"), pairs)))
    if not general.exists():
        demo = prepare_demo(default_cache())
        general.write_text("".join(f"{line.split(chr(9))[0]}\n" for line in read_lines(demo.train)))
    return new, general


def cell(run: Path, given: argparse.Namespace, learn: str, rate: float, seed: int) -> dict[str, Any]:
    out = given.out / f"{learn}-{rate:g}-{seed}"
    new, general = prepare_text(given.data, given.pairs, given.out)
    command = [
        sys.executable, "-m", "dragoman", "finetune", run, "--pairs", new, "--general", general, "--learn", learn,
        "--minutes", given.minutes, "--seed", seed, "--set", f"train.peak_rate={rate}", "--out", out, "--json",
    ]  # fmt: skip
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
    logged = [json.loads(line) for line in read_lines(out / "metrics.jsonl")]
    steps = [line for line in logged if line.get("event") == "train"]
    return {
        "learn": learn,
        "rate": rate,
        "seed": seed,
        "minutes": given.minutes,
        "pairs": given.pairs,
        "steps": steps[-1]["step"],
        "gigabytes": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20, 2),  # the largest so far
        **scores(out, given.data),
    }


def table(path: Path) -> None:
    cells = [json.loads(line) for line in read_lines(path)]
    print("| learns | rate | seeds | steps | new domain | old domain |\n|---|---|---|---|---|---|")
    for (learn, rate), group in itertools.groupby(
        sorted(cells, key=lambda one: (one["learn"], one["rate"])), key=lambda one: (one["learn"], one["rate"])
    ):
        found = list(group)
        spread = [
            f"{mean(one[domain] for one in found):.2f} ({min(one[domain] for one in found):.2f} to "
            f"{max(one[domain] for one in found):.2f})"
            for domain in ("new", "old")
        ]
        steps = f"{mean(one['steps'] for one in found):,.0f}"
        print(f"| {learn} | {rate:g} | {len(found)} | {steps} | {spread[0]} | {spread[1]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, default=Path("build/bench/catalogues/messages"))
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument(
        "--rates", type=int, nargs="+", default=[1, 2, 3, 4], help="which of the four; 2: the usual one"
    )
    parser.add_argument("--out", type=Path, default=Path("build/bench/finetune-modes"))
    parser.add_argument("--table", action="store_true", help="only print what was measured")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    results = given.out / "cells.jsonl"
    if not given.table:
        done = [json.loads(line) for line in read_lines(results)] if results.exists() else []
        for seed in given.seeds:
            for learn in given.modes:
                for rate in (MODES[learn][number - 1] for number in given.rates):
                    if any((one["learn"], one["rate"], one["seed"]) == (learn, rate, seed) for one in done):
                        continue
                    found = cell(given.run, given, learn, rate, seed)
                    with results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(found) + "\n")
                    print(found, flush=True)
        print("before:", scores(given.run, given.data))
    table(results)


if __name__ == "__main__":
    main()
