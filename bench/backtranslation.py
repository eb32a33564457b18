"""What back-translation is worth: Multi30k English-German with part of its pairs held back as German text alone.

    python bench/backtranslation.py --pairs 10000 --steps 6000 --out build/bench/backtranslation

Five runs of one recipe and number of steps: the real pairs alone; with the rest back-translated by a German-English
run that was trained on the same real pairs, sources tagged <bt>; the same untagged; the same by sampling, tagged; and
all pairs, real, which is as good as it could get. Scored on test_2016_flickr. A stopped one goes on.
"""

import argparse
from pathlib import Path

from dragoman.config import CorpusConfig
from dragoman.config.recipes import load
from dragoman.training.backtranslate import backtranslate
from multi30k_runs import keep, lines, show, table, trained, translated, written
from shapes import WORK


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000, help="real pairs; the others are German text alone")
    parser.add_argument("--mono", type=int, default=None, help="at most so many lines of German text alone")
    parser.add_argument("--steps", type=int, default=6000, help="of each of the runs")
    parser.add_argument("--ratio", type=float, default=2.0, help="synthetic pairs for each real one")
    parser.add_argument("--only", nargs="*", default=["tagged", "untagged", "sampled", "all real"])
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="for every run")
    parser.add_argument("--out", type=Path, default=WORK / "backtranslation")
    given = parser.parse_args()
    from dragoman.config.recipes import parse_set

    out, changes = given.out, [parse_set(text) for text in given.set]
    english, german = lines("train", "en"), lines("train", "de")
    text = out / "text"

    def corpus(name: str, first: int, last: int | None) -> CorpusConfig:
        return CorpusConfig(
            source=written(text / f"{name}.en", english[first:last]),
            target=written(text / f"{name}.de", german[first:last]),
        )

    real, rest = corpus("real", 0, given.pairs), corpus("rest", given.pairs, None)
    valid = CorpusConfig(
        source=written(text / "val.en", lines("val", "en")), target=written(text / "val.de", lines("val", "de"))
    )
    end = None if given.mono is None else given.pairs + given.mono
    mono = written(text / "mono.de", german[given.pairs : end])

    def run(name: str, *corpora: CorpusConfig) -> Path:
        return trained(out / name.replace(" ", "-"), corpora, valid, given.steps, changes)

    other_way = CorpusConfig(source=real.target, target=real.source)
    valid_back = CorpusConfig(source=valid.target, target=valid.source)
    runs = {"real pairs alone": run("real-pairs-alone", real)}
    reverse = trained(out / "reverse", (other_way,), valid_back, given.steps, changes)
    reports = {}
    for name, options in {"tagged": {}, "untagged": {"tagged": False}, "sampled": {"sample": True}}.items():
        if name in given.only:
            made = backtranslate(
                reverse,
                mono,
                real,
                out / f"made-{name}",
                recipe="multi30k-tiny",
                ratio=given.ratio,
                say=print,
                **options,
            )
            reports[name] = made.to_dict()
            runs[f"with back-translation, {name}"] = run(name, *load(str(made.recipe)).config.data.train)
    if "all real" in given.only:
        runs["all pairs, real"] = run("all-real", real, rest)
    sources, references = lines("test_2016_flickr", "en"), lines("test_2016_flickr", "de")
    outputs = {name: translated(path, sources) for name, path in runs.items()}
    rows = table(outputs, references, "real pairs alone", "de")
    show(f"{given.pairs:,} real pairs, {given.steps:,} steps each, test_2016_flickr", rows)
    keep(out / "result.json", {"options": vars(given) | {"out": str(out)}, "rows": rows, "made": reports})


if __name__ == "__main__":
    main()
