"""What makes a model robust: casing, digits and changes of the training text, each by the stress suite and by BLEU.

    python bench/robustness.py plain inline "inline + upper" --steps 3500 --out build/bench/robustness
    python bench/robustness.py --table                                    # what was measured so far

Every cell is a training of the demo's recipe on the demo's text, of so many steps on one core: a step holds as many
target tokens whatever the settings, so cells cost the same. It is scored on the demo's validation sentences (its test
sentences stay unseen until the end), twice: the model alone, whole lines without protection, and as `translate` has
it; by BLEU and by the stress suite. Cells are added to bench/robustness.jsonl as they end; one that is there is not
done again.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from cells import candidate, changes_of, is_measured, keep_cell, measured
from dragoman.config import TEXT_CHANGES
from dragoman.quickstart.tatoeba import DemoData, prepare_demo
from dragoman.run_directory import default_cache

RESULTS = Path(__file__).with_name("robustness.jsonl")
ALONE = ("--whole-lines", "--no-protect")

OFF: dict[str, object] = {"data.casing": "plain", "data.split_digits": "false", "data.views": 1}
OFF |= {f"data.{change}": 0 for change in TEXT_CHANGES}

# What is varied, by name: settings on top of recipes/demo.toml without what makes it robust. A candidate is one of
# these, or several with " + ".
CHANGES: dict[str, dict[str, object]] = {
    "plain": {},
    "inline": {"data.casing": "inline", "data.split_digits": "true"},
    "inline casing alone": {"data.casing": "inline"},
    "digits": {"data.split_digits": "true"},
    "upper": {"data.upper_case": 0.07},
    "title": {"data.title_case": 0.05},
    "lower": {"data.lower_case": 0.05},
    "no end": {"data.no_end_punctuation": 0.2},
    "no end less": {"data.no_end_punctuation": 0.08},
    "typos": {"data.typos": 0.05},
    "typos more": {"data.typos": 0.15},
    "noise": {"data.inline_noise": 0.1},
    "noise less": {"data.inline_noise": 0.05},
    "joined": {"data.joined": 0.05},
    "phrases": {"data.short_phrases": 0.05},
    "tags": {"data.inline_tags": 0.02},
    **{f"α {alpha:g}": {"search.alpha": alpha} for alpha in (0.6, 1.4)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "candidates", nargs="*", type=candidate(CHANGES), help=f'of {", ".join(CHANGES)}; several by " + "'
    )
    parser.add_argument("--steps", type=int, default=3500)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--sentences", type=int, default=1000, help="that the stress suite takes")
    parser.add_argument("--out", type=Path, default=Path("build/bench/robustness"), help="where the runs are kept")
    parser.add_argument("--table", action="store_true", help="only print what was measured")
    given = parser.parse_args()
    if not given.table:
        text = prepare_demo(default_cache())
        for seed in given.seeds:
            for name in given.candidates:
                measure(text, name, given.steps, seed, given.sentences, given.out)
    print_table()


def measure(text: DemoData, name: str, steps: int, seed: int, sentences: int, out: Path) -> None:
    cell: dict[str, Any] = {"settings": name, "steps": steps, "seed": seed}
    if is_measured(RESULTS, cell):
        return
    changes: dict[str, object] = {"train.processes": 1, "train.threads": 1, "train.valid_steps": 500}
    changes |= OFF | changes_of(name, CHANGES)
    run = out / f"{name} {steps} {seed}".replace(" + ", "+").replace(" ", "-")
    minutes = 10_000  # out of reach, so that the steps end it
    dragoman(
        "train", "demo", "--pairs", text.train, "--valid-pairs", text.valid, "--source-language", "en",
        "--target-language", "fr", "--steps", steps, "--minutes", minutes, "--seed", seed, "--out", run,
        *(part for key, value in changes.items() for part in ("--set", f"{key}={value}")),
    )  # fmt: skip
    references = [part for path in text.valid_references for part in ("--reference", path)]
    source = ("--source", text.valid_source, *references, "--target-language", "fr")
    for kind, options in (("alone", ALONE), ("translate", ())):
        scores = dragoman("evaluate", run, *source, *options, "--json")
        tested = ("--pairs", text.valid, "--sentences", sentences, *options, "--json")
        stress = dragoman("stress", run, *tested, fine=(0, 4))
        cell[kind] = {"bleu": scores["bleu"]["value"], "stress": {row["name"]: row["value"] for row in stress["tests"]}}
        cell["signature"] = scores["bleu"]["signature"]
    keep_cell(RESULTS, cell)


def dragoman(*arguments: object, fine: tuple[int, ...] = (0,)) -> Any:
    """Runs a command; returns what it prints as JSON, if anything."""
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ, check=False)
    if done.returncode not in fine:
        raise SystemExit(f"{' '.join(command)}: ended with {done.returncode}")
    return json.loads(done.stdout) if "--json" in arguments else None


def print_table() -> None:
    """A table for the model alone and one for `translate`: one column a cell, one line a row of the stress suite."""
    cells = measured(RESULTS)
    names = list(dict.fromkeys(name for cell in cells for name in cell["alone"]["stress"]))
    for kind in ("alone", "translate"):
        heads = (f"{cell['settings']}, {cell['steps']:,} steps, seed {cell['seed']}" for cell in cells)
        print(f"| {kind} |", " | ".join(heads), "|")
        print("|---" * (1 + len(cells)) + "|")
        print("| BLEU |", " | ".join(f"{cell[kind]['bleu']:.2f}" for cell in cells), "|")
        for name in names:
            values = (cell[kind]["stress"].get(name) for cell in cells)
            print(f"| {name} |", " | ".join("" if value is None else f"{value:.2f}" for value in values), "|")
        print()


if __name__ == "__main__":
    main()
