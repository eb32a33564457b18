"""Both directions in one model, by tags, against a model for each: Multi30k English-German and German-English.

    python bench/multilingual.py --steps 8000 --out build/bench/multilingual

Three runs of one recipe: each direction alone, and both in one model of the same size, for twice the steps (as it has
twice the pairs to learn) and, with --same-steps, for the same number too. Scored on test_2016_flickr. A stopped one
goes on.
"""

import argparse
from pathlib import Path

from dragoman.config import CorpusConfig, language_tag
from dragoman.config.recipes import parse_set
from multi30k_runs import keep, lines, show, table, trained, translated, written
from shapes import WORK


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=None, help="only the first so many training pairs")
    parser.add_argument("--steps", type=int, default=8000, help="of a run of one direction")
    parser.add_argument("--same-steps", action="store_true", help="also both directions in no more steps than one")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="for every run")
    parser.add_argument("--out", type=Path, default=WORK / "multilingual")
    given = parser.parse_args()
    out, changes = given.out, [parse_set(text) for text in given.set]
    files = {
        (name, language): written(out / "text" / f"{name}.{language}", lines(name, language)[: given.pairs])
        for name in ("train", "val")
        for language in ("en", "de")
    }

    def corpus(name: str, source: str, target: str, both: bool = False) -> CorpusConfig:
        tags = (language_tag(target), language_tag(source)) if both else (None, None)
        return CorpusConfig(source=files[name, source], target=files[name, target], tag=tags[0], back_tag=tags[1])

    def run(name: str, source: str, target: str, steps: int, both: bool = False) -> Path:
        return trained(
            out / name, [corpus("train", source, target, both)], corpus("val", source, target, both), steps, changes
        )

    alone = {("en", "de"): run("en-de", "en", "de", given.steps), ("de", "en"): run("de-en", "de", "en", given.steps)}
    joint = {"both in one model, twice the steps": run("both", "en", "de", 2 * given.steps, both=True)}
    if given.same_steps:
        joint["both in one model, the same steps"] = run("both-same-steps", "en", "de", given.steps, both=True)
    result = {}
    for (source, target), run_alone in alone.items():
        sources, references = lines("test_2016_flickr", source), lines("test_2016_flickr", target)
        outputs = {"one direction": translated(run_alone, sources)}
        outputs |= {name: translated(path, sources, to=target) for name, path in joint.items()}
        result[f"{source}-{target}"] = rows = table(outputs, references, "one direction", target)
        show(f"{source}-{target}, test_2016_flickr", rows)
    keep(out / "result.json", {"options": vars(given) | {"out": str(out)}, "rows": result})


if __name__ == "__main__":
    main()
