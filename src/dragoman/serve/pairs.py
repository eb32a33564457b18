"""Language pairs and the runs that translate them, from the arguments of the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.language_codes import checked_code, languages_of
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.errors import UsageError
from dragoman.parsing.vocabulary import is_of_trees
from dragoman.run_directory import RunDirectory


@dataclass(frozen=True)
class ServedPair:
    """A source language, a target language, and the directory of a run that translates so."""

    source: str
    target: str
    run: Path

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"


def pair_of(text: str) -> ServedPair:
    """Reads `en-de=runs/my`."""
    languages, equals, run = text.partition("=")
    source, dash, target = languages.partition("-")
    if not equals or not dash or not run:
        raise UsageError(f"serve: --pair {text}; write it as en-de=RUN")
    return ServedPair(checked_code(source), checked_code(target), Path(run))


def parsing_pair(run: Path) -> ServedPair:
    """A parser as a pair, so that it can be watched like the other runs: from words to trees."""
    return ServedPair("words", "trees", run)


def is_parser(run: Path) -> bool:
    """Whether `dragoman parse train` made a run: its vocabulary tells."""
    return is_of_trees(Tokenizer.load(RunDirectory.open(run).tokenizer_path))


def target_for(pair: ServedPair) -> str | None:
    """The target language to name to a run of several; None: the run has only one."""
    return pair.target if load_tokenizer(RunDirectory.open(pair.run).path).languages else None


def pairs_to_serve(
    runs: Sequence[Path], named: Sequence[str], source_language: str | None, target_language: str | None
) -> list[ServedPair]:
    """The pairs of a command line: runs whose languages are known or given for all of them, and `--pair` arguments. Of
    several runs for one language pair the first translates, and the others can be compared with it."""
    if (source_language is None) != (target_language is None):
        raise UsageError("serve: --source-language and --target-language go together; give both")
    if source_language is not None and not runs:
        raise UsageError("serve: --source-language is for a RUN, and none is given; --pair en-de=RUN says it itself")
    if not runs and not named:
        raise UsageError(_how_to_get_one(Path("runs")))
    pairs = [pair_of(text) for text in named]
    for run in runs:
        if source_language is not None and target_language is not None:
            pairs.append(ServedPair(checked_code(source_language), checked_code(target_language), run))
        else:
            found = languages_of(RunDirectory.open(run))
            if found is None:
                raise UsageError(
                    f"serve: {run} does not say its languages; name them: dragoman serve --pair en-de={run}"
                )
            pairs.append(ServedPair(*found, run))
    for pair in pairs:
        if pairs.count(pair) > 1:
            raise UsageError(f"serve: {pair.run} is given twice for {pair.name}; once is enough")
        if pair.source == pair.target:
            raise UsageError(f"serve: {pair.run} from {pair.source} to {pair.target}; give two languages")
    return pairs


def _how_to_get_one(directory: Path) -> str:
    found = sorted(path.parent for path in directory.glob("*/config.json"))
    if found:
        return f"serve: which run? dragoman serve {found[0]}" + (
            f" (there are also {', '.join(map(str, found[1:4]))})" if found[1:] else ""
        )
    return (
        "serve: no model at hand; make one in ten minutes with `dragoman demo`, then `dragoman serve runs/demo`, "
        "or your own with `dragoman train --pairs my.tsv --out runs/my`"
    )
