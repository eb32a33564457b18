"""Which settings serve how much text: a table of cells, each so many pairs, so many minutes, some settings, its BLEU.

    .venv/bin/python bench/quickstart.py "as planned" "dropout 0.5" "Adam + rate 0.004" --pairs 2000 --minutes 10
    .venv/bin/python bench/quickstart.py "as planned" --pairs 2000 30000 --minutes 10 --seeds 1 2 3
    .venv/bin/python bench/quickstart.py --table                          # what was measured so far

The text is the demo's (Tatoeba English-French) with its 1,000 test sentences, or --data DIR with train.tsv, test.source
and test.reference.0 as a quickstart leaves them in its run's text/. Every cell is added to bench/quickstart.jsonl as
it ends: cells are independent, so the table can be filled over nights, and a cell that is there is not done again.
All use the plan that `dragoman quickstart` would make, with the candidate's changes on top.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parents[1]
SIZING = ROOT / "src" / "dragoman" / "quickstart" / "sizing.py"
RESULTS = ROOT / "bench" / "quickstart.jsonl"

# What is varied, by name: settings on top of the plan. A candidate is one of these, or several joined by " + ".
CHANGES: dict[str, dict[str, object]] = {
    "as planned": {},
    "Adam": {"train.optimizer": "adam"},
    "Muon": {"train.optimizer": "muon"},
    **{f"rate {rate:g}": {"train.peak_rate": rate} for rate in (1e-3, 2e-3, 3e-3, 4e-3, 6e-3, 8e-3, 12e-3, 16e-3)},
    **{f"dropout {share:g}": {"model.dropout": share} for share in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)},
    **{f"vocabulary {size}": {"model.vocab_size": size} for size in (500, 1000, 2000, 4000, 8000, 12_000)},
    **{
        f"steps of {tokens} tokens": {"train.batch_tokens": tokens, "train.micro_batch_tokens": tokens // 4}
        for tokens in (250, 500, 1000, 2000, 4000)
    },
    "BPE dropout": {"data.views": 8, "data.bpe_dropout": 0.1},
    "augmented": {
        "data.views": 8,
        "data.upper_case": 0.05,
        "data.title_case": 0.02,
        "data.short_phrases": 0.05,
        "data.typos": 0.05,
    },
    "augmented more": {
        "data.views": 8,
        "data.upper_case": 0.2,
        "data.title_case": 0.02,
        "data.short_phrases": 0.05,
        "data.typos": 0.15,
    },
    **{
        f"d_model {width}": {"model.d_model": width, "model.d_ff": 4 * width, "model.num_heads": width // 32}
        for width in (64, 128, 192, 256)
    },
    **{
        f"{encoder} and {decoder} layers": {"model.encoder_layers": encoder, "model.decoder_layers": decoder}
        for encoder, decoder in ((2, 2), (3, 2), (4, 2), (4, 4), (6, 3))
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[2_000, 30_000, 300_000])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("candidates", nargs="*", type=candidate, help=f'of {", ".join(CHANGES)}; several by " + "')
    parser.add_argument("--data", type=Path, help="a directory with train.tsv and a test set")
    parser.add_argument("--threads", type=int, default=0, help="0: one process a core, as quickstart does")
    parser.add_argument("--keep", type=Path, help="keep the runs in this directory")
    parser.add_argument("--table", action="store_true", help="only print what was measured")
    given = parser.parse_args()
    if not given.table:
        data = given.data or demo_data()
        for pairs in given.pairs:
            for name in given.candidates:
                for seed in given.seeds:
                    measure(data, pairs, given.minutes, name, seed, given.threads, given.keep)
    print_table()


def candidate(name: str) -> str:
    """A name as given, of which every part is known."""
    if unknown := set(name.split(" + ")) - set(CHANGES):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known are {', '.join(CHANGES)}")
    return name


def demo_data() -> Path:
    from dragoman.quickstart.tatoeba import prepare_demo
    from dragoman.run_directory import default_cache

    return prepare_demo(default_cache()).directory


def measured() -> list[dict[str, object]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def measure(data: Path, pairs: int, minutes: float, name: str, seed: int, threads: int, keep: Path | None) -> None:
    text = (data / "train.tsv").read_bytes()
    cell = {"data": data.name, "pairs": pairs, "minutes": minutes, "settings": name, "seed": seed, "threads": threads}
    cell["text"] = hashlib.sha256(text).hexdigest()[:12]  # two directories may have one name
    cell["sizing"] = hashlib.sha256(SIZING.read_bytes()).hexdigest()[:12]  # another plan is another cell
    if any(cell.items() <= found.items() for found in measured()):
        return
    lines = text.decode().splitlines()
    if len(lines) < pairs:
        print(f"{data}: {len(lines):,} pairs, so none of {pairs:,} can be measured", file=sys.stderr)
        return
    lines.sort(key=lambda line: hashlib.sha256(f"{seed} {line}".encode()).digest())  # a sample, the same everywhere
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) if keep is None else keep / " ".join(map(str, cell.values())).replace(" ", "-")
        directory.mkdir(parents=True, exist_ok=True)
        sample, run = directory / "sample.tsv", directory / "run"
        sample.write_text("".join(f"{line}\n" for line in lines[:pairs]), encoding="utf-8")
        changes = {key: value for part in name.split(" + ") for key, value in CHANGES[part].items()}
        if threads:
            changes |= {"train.processes": 1, "train.threads": threads}
        command = [sys.executable, "-m", "dragoman", "quickstart", str(sample), "--out", str(run), "--json"]
        command += ["--minutes", str(minutes), "--seed", str(seed)]
        command += [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ, check=False)
        if done.returncode != 0:
            print(f"{name} at {pairs:,} pairs failed", file=sys.stderr)
            return
        found = json.loads(done.stdout)
        scores = evaluate(run, data)
    cell |= {
        "bleu": scores["bleu"]["value"],
        "chrf": scores["chrf"]["value"],
        "signature": scores["bleu"]["signature"],
        "steps": found["actual"]["steps"],
        "estimated_steps": found["plan"]["steps"],
        "epochs": found["plan"]["epochs"],
        "size": found["plan"]["size"],
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(cell) + "\n")


def evaluate(run: Path, data: Path) -> dict[str, dict[str, object]]:
    """On the test set of the whole text, which is larger than the sample's own."""
    source = next(path for name in ("test.source", "test.en") if (path := data / name).exists())
    references = sorted(path for path in data.glob("test.*.*") if path.suffix[1:].isdigit())
    command = [sys.executable, "-m", "dragoman", "evaluate", str(run), "--source", str(source), "--json"]
    command += [part for reference in references for part in ("--reference", str(reference))]
    scores: dict[str, dict[str, object]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return scores


def print_table() -> None:
    cells: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for cell in measured():
        names = ("data", "text", "sizing", "pairs", "minutes", "threads", "settings")
        cells.setdefault(tuple(cell[name] for name in names), []).append(cell)
    print("| text | sizing.py | pairs | minutes | threads | settings | BLEU | chrF2 | seeds | steps (estimated) |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (data, _, plan, pairs, minutes, threads, settings), found in sorted(
        cells.items(), key=lambda item: str(item[0][:6])
    ):
        bleu, chrf = (mean(float(str(cell[key])) for cell in found) for key in ("bleu", "chrf"))
        steps = f"{found[0]['steps']:,} ({found[0]['estimated_steps']:,})"
        shown = threads or "a process a core"
        scores = f"{bleu:.2f} | {chrf:.2f} | {len(found)} | {steps}"
        print(f"| {data} | {plan} | {pairs:,} | {minutes:g} | {shown} | {settings} | {scores} |")


if __name__ == "__main__":
    main()
