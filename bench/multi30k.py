"""What the published Transformer-Tiny shape can reach on Multi30k English-German: each ingredient by name and by seed.

    python bench/multi30k.py plain simcut-unk "simcut-unk + ema" --seeds 1 2 3    # trains and scores on val
    python bench/multi30k.py --table                                              # what was measured so far
    python bench/multi30k.py "simcut-unk + ema" --test                            # a choice that is made: the test set
    python bench/multi30k.py plain r-drop simcut-unk --time 10                    # the cost of a step, alternately

A cell is a training by recipes/multi30k-tiny.toml, with one thread, of so many steps, and is scored on val alone (beam
4, three length penalties). Cells are added to bench/multi30k.jsonl as they end; one that is there is not done again,
and one that was stopped goes on. Ingredients that need other models (both-directions-first, diversified,
ensemble-taught) train these first, as cells of their own where they are: the teachers are the cells `--teacher` of the
seeds `--teachers`, in both directions.

`--test` scores every seed of a cell once on test_2016_flickr, with the length penalty that is the best on val, and adds
it to bench/multi30k-test.jsonl: all that was ever measured of this shape on that set.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from cells import Cell, candidate, changes_of, is_measured, keep_cell, measured
from dragoman.config import CorpusConfig
from dragoman.config.recipes import load, parse_set
from dragoman.evaluation import metrics
from dragoman.files import read_json
from dragoman.model.checkpoint import load_model
from dragoman.model.transformer import count_parameters
from dragoman.run_directory import RunDirectory
from dragoman.translation.file import identity_of, translate_file
from dragoman.translation.result import Translation
from dragoman.translation.translator import Translator
from multi30k_runs import lines, trained, translated, written
from shapes import WORK

RESULTS = Path(__file__).with_name("multi30k.jsonl")
TEST_SET = "test_2016_flickr"
BEAM, ALPHAS = 4, (0.6, 1.0, 1.4)

# Settings on top of the recipe. A cell is one of these or of TEXTS, or several with " + ".
CHANGES: dict[str, dict[str, object]] = {
    "plain": {},
    "r-drop": {"train.consistency": "r-drop", "train.consistency_weight": 5.0},
    "r-drop 1": {"train.consistency": "r-drop", "train.consistency_weight": 1.0},
    "simcut-unk": {"train.consistency": "simcut-unk", "train.consistency_weight": 3.0, "train.cutoff": 0.05},
    "simcut-unk 1": {"train.consistency": "simcut-unk", "train.consistency_weight": 1.0, "train.cutoff": 0.05},
    "simcut-unk more": {"train.consistency": "simcut-unk", "train.consistency_weight": 3.0, "train.cutoff": 0.15},
    "ema": {"train.ema": 0.999},
    "ema shorter": {"train.ema": 0.99},
    "bpe-dropout 0.05": {"data.bpe_dropout": 0.05, "data.views": 16},
    "bpe-dropout 0.1": {"data.bpe_dropout": 0.1, "data.views": 16},
    **{f"vocabulary {size // 1000}k": {"model.vocab_size": size} for size in (4000, 6000, 10_000)},
    **{f"dropout {share:g}": {"model.dropout": share} for share in (0.1, 0.2, 0.3, 0.4)},
    **{f"rate {rate:g}": {"train.peak_rate": rate} for rate in (4e-3, 12e-3)},
}
# What changes the text or the weights that a training begins with.
FIRST, DIVERSIFIED, TAUGHT = TEXTS = ("both-directions-first", "diversified", "ensemble-taught")
BACK = "<back>"


def main() -> None:
    known = (*CHANGES, *TEXTS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", type=candidate(known), help=f'of {", ".join(known)}; several by " + "')
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--teacher", type=candidate(CHANGES), default="plain", help="the cell of the teachers")
    parser.add_argument("--teachers", type=int, nargs="+", default=[1, 2], help="their seeds")
    parser.add_argument("--pairs", type=int, help="only so many pairs, to see that it works")
    parser.add_argument("--sentences", type=int, help="only so many of val and of the test set, likewise")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="for every training, likewise")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=WORK / "multi30k-tiny", help="where the runs are kept")
    parser.add_argument("--table", action="store_true", help="only print what was measured")
    parser.add_argument("--test", action="store_true", help="score the cells on the test set, each seed once")
    parser.add_argument("--time", type=int, metavar="ROUNDS", help="only measure what a step of each cell costs")
    given = parser.parse_args()
    if given.time:
        time_steps(given)
        return
    for name in [] if given.table else given.cells:
        if given.test:
            test(given, name)
            continue
        for seed in given.seeds:
            measure(given, name, seed)
    print_table(measured(given.results))
    print_tests(measured(tests_of(given.results)))


def tests_of(results: Path) -> Path:
    """The record of all that was ever measured on the test set."""
    return results.with_name(f"{results.stem}-test.jsonl")


def cell_of(given: argparse.Namespace, name: str, seed: int) -> Cell:
    """What tells a cell from all others."""
    cell: Cell = {"cell": name, "steps": given.steps, "seed": seed}
    if DIVERSIFIED in name or TAUGHT in name:
        cell |= {"teacher": given.teacher, "teachers": given.teachers}
    trial = [given.pairs, given.sentences, *given.set]  # if there is any of these: its figures say nothing
    return cell | {"trial": trial if any(trial) else None}


def measure(given: argparse.Namespace, name: str, seed: int) -> None:
    """Trains a cell and scores it on val, unless that was done."""
    cell = cell_of(given, name, seed)
    if is_measured(given.results, cell):
        return
    run = train_cell(given, name, seed)
    sources, references = (lines("val", language)[: given.sentences] for language in ("en", "de"))
    cell["val"] = {f"{alpha:g}": scores(run, sources, references, alpha) for alpha in ALPHAS}
    directory = RunDirectory(run)
    end = [event for event in directory.events() if event["event"] == "end"][-1]
    cell |= {"parameters": count_parameters(load_model(directory)), "minutes": round(end["seconds"] / 60, 1)}
    cell |= {"weights": read_json(directory.model_card_path)["kind"]}
    keep_cell(given.results, cell)


def scores(run: Path, sources: Sequence[str], references: Sequence[str], alpha: float) -> dict[str, object]:
    """Translates and scores: cased on raw text, and lower-cased and tokenised as the papers on Multi30k have it."""
    outputs = translated(run, sources, beam=BEAM, alpha=alpha)
    found = metrics.evaluate(outputs, [[line] for line in references], "de", confidence=0)
    return {
        "cased": round(found.bleu.value, 2),
        "lower": round(found.lowercase_bleu.value, 2),
        "signatures": [found.bleu.signature, found.lowercase_bleu.signature],
    }


def train_cell(given: argparse.Namespace, name: str, seed: int) -> Path:
    """Trains a cell, and before that what it needs."""
    parts = name.split(" + ")
    corpora = [real(given)]
    if DIVERSIFIED in parts:
        corpora += diversified(given)
    if TAUGHT in parts:
        corpora.append(ensemble_taught(given))
    if FIRST not in parts:
        return train_run(given, name, seed, corpora, given.steps)
    # Half of the steps for both directions, so that the cell costs as much as the others. The direction that is dropped
    # then has a tag, and the one that stays has none: its sources look the same in both halves.
    both = [replace(corpus, back_tag=BACK) for corpus in corpora]
    first = train_run(given, f"{name}, both", seed, both, given.steps // 2)
    return train_run(given, name, seed, corpora, given.steps - given.steps // 2, {"train.begin_with": str(first)})


def train_run(
    given: argparse.Namespace, name: str, seed: int, corpora: Sequence[CorpusConfig], steps: int,
    more: dict[str, object] | None = None, back: bool = False,
) -> Path:  # fmt: skip
    """Trains a run with the settings that the name's parts stand for; takes it as it is where it is finished."""
    changes = changes_of(name.split(",")[0], CHANGES) | {"train.seed": seed} | (more or {})
    changes |= {"train.processes": 1, "train.threads": 1}
    overrides = [*((key, value, "bench") for key, value in changes.items()), *map(parse_set, given.set)]
    directory = f"{name} {'de-en ' if back else ''}{steps} {seed}".replace(" + ", "+").replace(", ", "-")
    valid = text_of(given, "val")
    out = given.out / directory.replace(" ", "-")
    return trained(out, corpora, swapped(valid) if back else valid, steps, overrides)


def text_of(given: argparse.Namespace, name: str) -> CorpusConfig:
    """Real pairs as files, of which a trial takes the first."""
    most = given.pairs if name == "train" else given.sentences
    paths = []
    for language in ("en", "de"):
        path = given.out / "text" / f"{name}.{language}"
        paths.append(str(path) if path.exists() else written(path, lines(name, language)[:most]))
    return CorpusConfig(source=paths[0], target=paths[1])


def real(given: argparse.Namespace) -> CorpusConfig:
    return text_of(given, "train")


def swapped(corpus: CorpusConfig) -> CorpusConfig:
    return replace(corpus, source=corpus.target, target=corpus.source)


def teachers(given: argparse.Namespace, back: bool = False) -> list[Path]:
    """Trains the teachers of one direction. Those that translate forwards are cells too."""
    corpus = swapped(real(given)) if back else real(given)
    return [train_run(given, given.teacher, seed, [corpus], given.steps, back=back) for seed in given.teachers]


def diversified(given: argparse.Namespace) -> list[CorpusConfig]:
    """The training text as each teacher of either direction has it (Nguyen et al. 2020: Data Diversification)."""
    pairs, made = real(given), []
    for run in teachers(given):
        made.append(replace(pairs, target=translation(given, [run], pairs.source)))
    for run in teachers(given, back=True):
        made.append(replace(pairs, source=translation(given, [run], pairs.target)))
    return made


def ensemble_taught(given: argparse.Namespace) -> CorpusConfig:
    """The training text as the teachers together have it (Kim and Rush 2016: Sequence-Level Knowledge Distillation)."""
    pairs = real(given)
    return replace(pairs, target=translation(given, teachers(given), pairs.source))


def translation(given: argparse.Namespace, runs: Sequence[Path], text: str | None) -> str:
    """Translates a file with a run, or with several as an ensemble; goes on where it was stopped."""
    assert text is not None
    out: Path = given.out / "text" / f"{Path(text).name} by {' and '.join(run.name for run in runs)}".replace(" ", "-")
    marker = out.with_name(f"{out.name}.json")
    made_by = {"runs": identity_of(runs, None), "beam": BEAM}
    if not marker.exists() or read_json(marker) != made_by:
        translator = Translator.load(*runs, beam=BEAM)
        identity = [*made_by["runs"], BEAM, translator.engine.name]
        translate_file(translator, Path(text), out, one_line, identity=identity, scores=False, say=tell)
        marker.write_text(json.dumps(made_by), encoding="utf-8")
    return str(out)


def one_line(found: Translation) -> str:
    return " ".join(found.text.split()) + "\n"


def tell(line: str) -> None:
    print(line, file=sys.stderr)


def test(given: argparse.Namespace, name: str) -> None:
    """Scores every seed of a cell on the test set, each once, by the length penalty that is the best on val."""
    seeds = [cell_of(given, name, seed) for seed in given.seeds]
    found = [row for cell in seeds for row in measured(given.results) if cell.items() <= row.items()]
    if len(found) < len(seeds):
        raise SystemExit(f"{name}: measured on val with {len(found)} of {len(seeds)} seeds; measure the others first")
    alpha, record = best_alpha(found), tests_of(given.results)
    sources, references = (lines(TEST_SET, language)[: given.sentences] for language in ("en", "de"))
    for cell in seeds:
        if is_measured(record, cell):
            tell(f"{name}, seed {cell['seed']}: is in {record} already, and is not measured again")
            continue
        scored = scores(train_cell(given, name, cell["seed"]), sources, references, alpha)
        when = datetime.now(UTC).date().isoformat()
        keep_cell(record, {**cell, "set": TEST_SET, "date": when, "beam": BEAM, "alpha": alpha, **scored})


def best_alpha(rows: Sequence[Cell]) -> float:
    """The length penalty with the highest mean over the seeds, lower-cased on val."""
    return max(ALPHAS, key=lambda alpha: statistics.mean(row["val"][f"{alpha:g}"]["lower"] for row in rows))


def kind_of(row: Cell) -> str:
    """All that a cell is but its seed, for a table."""
    trial = ", a trial" if row.get("trial") else ""
    by = f" by {len(row['teachers'])} × {row['teacher']}" if "teachers" in row else ""
    return f"{row['cell']}{by}, {row['steps']:,} steps{trial}"


def spread(values: Sequence[float]) -> str:
    """The mean, and the standard deviation over seeds."""
    return f"{statistics.mean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


def grouped(rows: Sequence[Cell], key: Callable[[Cell], str]) -> list[tuple[str, list[Cell]]]:
    return [(name, list(group)) for name, group in groupby(sorted(rows, key=key), key)]


def print_table(rows: Sequence[Cell]) -> None:
    """A line for each cell over its seeds, the best on val first."""
    print("| cell | seeds | α | val, cased | val, lower-cased and tokenised | parameters | minutes |")
    print("|---" * 7 + "|")

    def of_val(group: Sequence[Cell], way: str) -> list[float]:
        return [row["val"][f"{best_alpha(group):g}"][way] for row in group]

    groups = grouped(rows, kind_of)
    for name, group in sorted(groups, key=lambda item: -statistics.mean(of_val(item[1], "lower"))):
        minutes = statistics.mean(row["minutes"] for row in group)
        print(
            f"| {name} | {', '.join(str(row['seed']) for row in group)} | {best_alpha(group):g} | "
            f"{spread(of_val(group, 'cased'))} | {spread(of_val(group, 'lower'))} | {group[0]['parameters']:,} | "
            f"{minutes:.0f} |"
        )


def print_tests(rows: Sequence[Cell]) -> None:
    """All that was ever measured on the test set, in its order, then the means over seeds."""
    if not rows:
        return
    print(f"\nEverything ever measured on {TEST_SET}:\n")
    print("| date | cell | seed | search | cased | lower-cased and tokenised |")
    print("|---" * 6 + "|")
    for row in rows:
        search = f"beam {row['beam']}, α {row['alpha']:g}"
        lower = "" if row["lower"] is None else f"{row['lower']:.2f}"
        print(f"| {row['date']} | {kind_of(row)} | {row['seed']} | {search} | {row['cased']:.2f} | {lower} |")
    for name, group in grouped(rows, kind_of):
        if len({row["seed"] for row in group}) > 1:
            means = " | ".join(spread([row[way] for row in group]) for way in ("cased", "lower"))
            print(f"| | {name} | mean of {len(group)} | | {means} |")


def time_steps(given: argparse.Namespace, steps: int = 1) -> None:
    """Prints what a step of each cell costs in seconds of CPU time, and against the first: a step of each by
    turns, so that what else the machine does meets all of them."""
    from dragoman.training.distributed import Ranks
    from dragoman.training.loop import Replay, run_steps
    from dragoman.training.recovery import Interruption
    from dragoman.training.setup import begin, use_threads

    trainings = []
    for name in given.cells:
        changes = changes_of(name, CHANGES) | {"train.threads": 1}
        overrides = [*((key, value, "bench") for key, value in changes.items()), *map(parse_set, given.set)]
        config = load("multi30k-tiny", overrides).config
        config = replace(config, data=replace(config.data, train=(real(given),), valid=(text_of(given, "val"),)))
        use_threads(1, Ranks())
        run = RunDirectory(given.out / "timed" / name.replace(" ", "-"))
        trainings.append(begin(config, run, Ranks(), time.monotonic))
    spent: list[list[float]] = [[] for _ in trainings]
    for turn in range(given.time + 1):
        for seconds, training in zip(spent, trainings, strict=True):
            until, began = training.progress.step + steps, time.process_time()
            run_steps(training, Interruption(), Replay(until, {}, {}), time.monotonic)
            if turn:  # the first turn grows buffers
                seconds.append((time.process_time() - began) / steps)
    print("| cell | CPU seconds a step, median | against the first, median of turns (least to most) |\n|---|---|---|")
    for name, seconds in zip(given.cells, spent, strict=True):
        ratios = sorted(own / first for own, first in zip(seconds, spent[0], strict=True))
        least_to_most = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        print(f"| {name} | {statistics.median(seconds):.3f} | {statistics.median(ratios):.2f} ({least_to_most}) |")


if __name__ == "__main__":
    main()
