"""Language pairs and the runs that translate them, from the arguments of the command line."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.language_codes import checked_code, is_code, languages_of
from dragoman.data.language_names import codes_of
from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.errors import UsageError
from dragoman.parsing.vocabulary import is_of_trees
from dragoman.run_directory import CONFIG, RunDirectory


@dataclass(frozen=True)
class ServedPair:
    """A source language, a target language, and the directory of a run that translates so."""

    source: str
    target: str
    run: Path

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"


@dataclass(frozen=True)
class PivotPair:
    """Two served pairs in a row, for languages that no run translates between: into the pivot, and on from there."""

    first: ServedPair
    second: ServedPair

    @property
    def source(self) -> str:
        return self.first.source

    @property
    def target(self) -> str:
        return self.second.target

    @property
    def pivot(self) -> str:
        """The language in the middle."""
        return self.first.target

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"


Way = ServedPair | PivotPair  # from one language into another


def pair_of(text: str) -> ServedPair:
    """Reads `en-de=runs/my`."""
    languages, equals, run = text.partition("=")
    source, target = _two_languages(languages)
    if not equals or not run or not source or not target:
        raise UsageError(f"serve: --pair {text}; write it as en-de=RUN, or en-*=RUN for all of its languages")
    return ServedPair(checked_code(source), checked_code(target), Path(run))


def _two_languages(text: str) -> tuple[str, str]:
    """The two of `en-de`, and of `en-zh-hans`: a second part that is longer than a language's code is a script's."""
    source, _, target = text.partition("-")
    first, dash, rest = target.partition("-")
    if dash and (len(first) == 4 or first.lower() == "br"):
        return f"{source}-{first}", rest
    return source, target


def pairs_of_pattern(text: str) -> list[ServedPair]:
    """Reads `en-*=runs/many`, `*-en=` or `*-*=`: every pair of a run of several languages that is like this."""
    languages, _, run = text.partition("=")
    source, target = _two_languages(languages)
    if not run or not source or not target:
        raise UsageError(f"serve: --pair {text}; write it as en-*=RUN")
    path = Path(run)
    tokenizer = load_tokenizer(RunDirectory.open(path).path)
    if not tokenizer.languages:
        raise UsageError(f"serve: --pair {text}: {run} has one target language; name both, as en-de={run}")
    if source == "*" and not tokenizer.source_languages:
        known = languages_of(RunDirectory.open(path))
        if known is None:
            raise UsageError(f"serve: --pair {text}: {run} does not say from which languages; name one, as en-*={run}")
        found = pairs_of_run(path, known)
    else:
        sources = list(codes_of(tokenizer.source_languages)) if source == "*" else [checked_code(source)]
        found = _products(sources, list(codes_of(tokenizer.languages)), path)
    wanted = [pair for pair in found if target in ("*", pair.target)]
    if not wanted:
        raise UsageError(
            f"serve: --pair {text}: {run} does not translate into {target}; it does into "
            f"{', '.join(codes_of(tokenizer.languages))}"
        )
    return wanted


def pairs_of_run(run: Path, known: tuple[str, str] | None) -> list[ServedPair]:
    """All pairs of a run; `known`: the two languages of its data. Of one that is asked for a language with a tag only
    they tell from which it translates: from the source into all others, and back where the source has a tag, too."""
    tokenizer = load_tokenizer(RunDirectory.open(run).path)
    targets = list(codes_of(tokenizer.languages))
    if sources := list(codes_of(tokenizer.source_languages)):
        return _products(sources, targets, run)
    if known is None:
        wanted = "en-*" if targets else "en-de"
        raise UsageError(f"serve: {run} does not say its languages; name them: dragoman serve --pair {wanted}={run}")
    if not targets:
        return [ServedPair(*known, run)]
    # The pair of the data first: it is what the page opens with.
    source, first = known
    others = [code for code in dict.fromkeys((first, *targets)) if code != source and code in targets]
    back = [ServedPair(target, source, run) for target in others] if source in targets else []
    return _products([source], others, run) + back


def _products(sources: Sequence[str], targets: Sequence[str], run: Path) -> list[ServedPair]:
    served = [code for code in targets if is_code(code)]
    return [
        ServedPair(source, target, run)
        for source in sources
        if is_code(source)
        for target in served
        if source != target
    ]


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
    pairs = [pair_of(text) for text in named if "*" not in text.partition("=")[0]]
    for run in runs:
        if source_language is not None and target_language is not None:
            pairs.append(ServedPair(checked_code(source_language), checked_code(target_language), run))
        else:
            pairs += pairs_of_run(run, languages_of(RunDirectory.open(run)))
    # After those that are named: a run of these two languages alone is there for a reason.
    for text in named:
        if "*" in text.partition("=")[0]:
            there = {pair.name for pair in pairs}
            pairs += [pair for pair in pairs_of_pattern(text) if pair.name not in there]
    counts = Counter(pairs)
    for pair in pairs:
        if counts[pair] > 1:
            raise UsageError(f"serve: {pair.run} is given twice for {pair.name}; once is enough")
        if pair.source == pair.target:
            raise UsageError(f"serve: {pair.run} from {pair.source} to {pair.target}; give two languages")
    return pairs


def _how_to_get_one(directory: Path) -> str:
    found = sorted(path.parent for path in directory.glob(f"*/{CONFIG}"))
    if found:
        return f"serve: which run? dragoman serve {found[0]}" + (
            f" (there are also {', '.join(map(str, found[1:4]))})" if found[1:] else ""
        )
    return (
        "serve: no model at hand; make one in ten minutes with `dragoman demo`, then `dragoman serve runs/demo`, "
        "or your own with `dragoman train --pairs my.tsv --out runs/my`"
    )
