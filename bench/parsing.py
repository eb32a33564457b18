"""Section 6.3, measured: the learning curve, the LSTM of equal size, silver trees, and what the constraint buys.

    python bench/parsing.py --trees ../shared/data/gum --steps 2000 3500 6000 --out runs/bench-parsing

trains on 1,000, 3,000 and 10,000 trees, then the LSTM on the last; with --text FILE (raw English, a sentence a line, or
pairs with the English first) an ensemble of two parsers makes silver trees of it, and a third is trained on both. Every
run is scored on the dev trees with and without the constraint, beside the right-branching baseline. Started again, it
goes on where it was stopped; results.json is written after every run, and --only leaves the others to other processes.
Anything after `--` goes to every training.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any


def dragoman(*arguments: object, stdout: Path | None = None) -> str:
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    print("dragoman", *arguments, file=sys.stderr, flush=True)
    if stdout is not None:
        with stdout.open("w", encoding="utf-8") as file:
            subprocess.run(command, check=True, stdout=file)
        return ""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def equal_width(run: Path) -> int:
    """The d_model at which the LSTM has about as many parameters as the run's Transformer."""
    import torch

    from dragoman.config import ModelConfig
    from dragoman.model.sequence_model import make_model
    from dragoman.model.transformer import count_parameters
    from dragoman.run_directory import RunDirectory

    config = RunDirectory.open(run).read_config().model

    def size(config: ModelConfig) -> int:
        with torch.device("meta"):  # shapes without numbers
            return count_parameters(make_model(config))

    # The configuration asks for a multiple of num_heads, though an LSTM has none.
    widths = range(2 * config.num_heads, 4 * config.d_model, 2 * config.num_heads)
    wanted = size(config)
    return min(widths, key=lambda width: abs(size(replace(config, architecture="lstm", d_model=width)) - wanted))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--trees", type=Path, required=True, help="directory with train.mrg.gz and dev.mrg.gz")
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--recipe", default="parsing-small")
    options.add_argument("--sizes", type=int, nargs="*", default=[1000, 3000, 10000])
    options.add_argument("--steps", type=int, nargs="+", required=True, help="for each size; all else as the last")
    options.add_argument("--only", nargs="*", help="trees-SIZE, lstm, second-seed, with-silver [default: all]")
    options.add_argument("--text", type=Path, help="raw English for silver trees")
    options.add_argument("--text-lines", type=int, default=30_000)
    options.add_argument("--beam", type=int, default=4)
    options.add_argument("more", nargs="*", help="after --: flags of every training")
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    results_path = given.out / "results.json"
    train_trees, dev_trees = given.trees / "train.mrg.gz", given.trees / "dev.mrg.gz"

    def results() -> dict[str, Any]:  # read anew each time: another process may have measured some
        return json.loads(results_path.read_text()) if results_path.exists() else {}

    def measure(name: str, steps: int, *flags: object) -> Path:
        run = given.out / name
        if name in results() or (given.only is not None and name not in given.only):
            return run
        began = time.monotonic()
        dragoman(
            *("parse", "train", given.recipe, "--trees", train_trees, "--valid-trees", dev_trees, "--out", run),
            *("--steps", steps, *given.more, *flags),
        )
        minutes = (time.monotonic() - began) / 60
        scores = json.loads(
            dragoman("parse", "evaluate", run, "--trees", dev_trees, "--compare", "--beam", given.beam, "--json")
        )
        kept = ("f1", "f1_of_all", "recall", "precision", "complete", "tagging", "sentences", "errors", "skipped")
        figures = {system: {key: round(score[key], 2) for key in kept} for system, score in scores.items()}
        found = {"steps": steps, "minutes": round(minutes, 1), "flags": list(map(str, flags)), **figures}
        results_path.write_text(json.dumps(results() | {name: found}, indent=1) + "\n")
        print(name, json.dumps(figures), file=sys.stderr, flush=True)
        return run

    for size, steps in zip(given.sizes, given.steps, strict=True):
        full = measure(f"trees-{size}", steps, "--sentences", size)
    whole = ("--sentences", size)
    if given.only is None or "lstm" in given.only:
        width = f"model.d_model={equal_width(full)}"
        measure("lstm", steps, *whole, "--set", "model.architecture=lstm", "--set", width)
    if given.text is not None:
        second = measure("second-seed", steps, *whole, "--set", "train.seed=2")
        silver, text = given.out / "silver.mrg", given.out / "silver.txt"
        if not silver.exists() and (given.only is None or "with-silver" in given.only):
            with given.text.open(encoding="utf-8") as lines:
                sentences = [
                    line.split("\t")[0].strip() for _, line in zip(range(given.text_lines), lines, strict=False)
                ]
            text.write_text("".join(f"{s}\n" for s in dict.fromkeys(sentences) if s), encoding="utf-8")
            partial = silver.with_suffix(".partial")
            # Members of an ensemble share the vocabulary: both saw the same trees.
            dragoman("parse", "run", full, second, "--raw", "--beam", 2, "--input", text, stdout=partial)
            partial.replace(silver)
        measure("with-silver", steps, *whole, "--silver", silver)
    print(json.dumps(results(), indent=1))


if __name__ == "__main__":
    main()
