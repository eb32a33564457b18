"""Options that several commands have: one name, one meaning, one line of help, one range."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.config import CorpusConfig, recipes
from dragoman.config.ranges import MOST_BEAM, MOST_SEED
from dragoman.data.corpus import corpus_from
from dragoman.decoding.engines import ComputeType, EngineName
from dragoman.errors import UsageError


def in_range(least: float, most: float = 1e9, *, above: bool = False) -> Callable[[str], float]:
    """A parser of numbers in a range; `above`: the least of them is not in it. No number is neither in nor out of one,
    and infinity is in none."""
    allowed = f"{'above' if above else 'from'} {least:g} {'and up ' if above else ''}to {most:g}"

    def parse(text: str | float) -> float:
        try:
            value = float(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not a number; allowed: {allowed}") from None
        if not math.isfinite(value) or not least <= value <= most or (above and value == least):
            raise typer.BadParameter(f"{text} is not in the range; allowed: {allowed}")
        return value

    return parse


def whole(least: int, most: int) -> Callable[[str], int]:
    """A parser of whole numbers in a range."""
    allowed = f"whole numbers from {least:,} to {most:,}"

    def parse(text: str | int) -> int:
        try:
            value = int(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not a whole number; allowed: {allowed}") from None
        if not least <= value <= most:
            raise typer.BadParameter(f"{text} is not in the range; allowed: {allowed}")
        return value

    return parse


RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")]
RunPaths = Annotated[list[Path], typer.Argument(metavar="RUN", help="Run directory; several make an ensemble.")]
Recipe = Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML file or a known name.")]
Input = Annotated[Path | None, typer.Option("--input", "-i", help="Text, one sentence a line [default: stdin].")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but what went wrong.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also the version, the time, and where a failure was.")]
Checkpoint = Annotated[str | None, typer.Option("--checkpoint", help="A kept checkpoint, for example step-00001000.")]
SamplingSeed = Annotated[
    int, typer.Option("--seed", parser=whole(0, MOST_SEED), help="Seed of what is drawn at random.")
]


def out_option(text: str) -> Any:
    """The option that says where the result goes, by the name that it has in every command."""
    return typer.Option("--out", "-o", help=text)


def n_best_option(most: int, text: str) -> Any:
    """The option that says how many results are wanted, by the name that it has in every command."""
    return typer.Option("--n-best", "-n", parser=whole(1, most), help=text)


LinesOut = Annotated[Path | None, out_option("Where to write [default: stdout].")]
NewRun = Annotated[Path, out_option("The new run's directory.")]
RunOut = Annotated[Path | None, out_option("The run's directory [default: runs/ and the recipe's name].")]

OldShare = Annotated[
    float,
    typer.Option("--old", parser=in_range(0), help="Pairs of the old training mixed in for each new pair; 0: none."),
]

# Languages, by their codes: those that a new run is to say of itself, and those of a run that is there.
FromLanguage = Annotated[
    str | None, typer.Option("--source-language", metavar="CODE", help="The language of the sources, for example en,")
]
IntoLanguage = Annotated[
    str | None, typer.Option("--target-language", metavar="CODE", help="and of their translations; the run keeps both.")
]
SourceLanguage = Annotated[
    str | None,
    typer.Option(
        "--source-language",
        metavar="CODE",
        help="The language of the sources, for example en [default: as the run says].",
    ),
]
TargetLanguage = Annotated[
    str | None,
    typer.Option(
        "--target-language",
        metavar="CODE",
        help="The language to translate into, for example de: needed where a run has several.",
    ),
]
ScoredLanguage = Annotated[
    str | None,
    typer.Option(
        "--target-language",
        metavar="CODE",
        help="The target language, for example de: for a run of several, and for how scores cut text into words.",
    ),
]

# Of translating.
Protect = Annotated[
    bool, typer.Option("--protect/--no-protect", help="See that numbers, addresses and the like come through.")
]
WholeLines = Annotated[bool, typer.Option("--whole-lines", help="Do not cut lines into sentences.")]
GlossaryFile = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        help="Terms to use, as TSV: source, tab, target; forms with | between; no target: not translated. "
        "Or as CSV or TBX.",
    ),
]
CorrectionsFile = Annotated[
    Path | None,
    typer.Option(
        "--corrections",
        help="What `serve --corrections` kept, or a translation memory (.tmx): a sentence that is there gets its "
        "translation; similar ones are reported.",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="KIND",
        help="What to copy as it is: placeholders, urls, emails or numbers; several times for several.",
    ),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        "--min-confidence",
        parser=in_range(0, 1),
        help="Leave the source, marked, where the translation is less sure than this.",
    ),
]
MarkBefore = Annotated[
    str, typer.Option("--mark", help="With --min-confidence: what to put before a source that is left.")
]

# Of measuring.
ReferenceFiles = Annotated[
    list[Path], typer.Option("--reference", help="Reference translations; several times for several of them.")
]


@dataclass(frozen=True)
class SearchOptions:
    """How the best translation is looked for; None: as the run says."""

    beam: Annotated[int | None, typer.Option(parser=whole(1, MOST_BEAM), help="Beam size; 1 is greedy.")] = None
    alpha: Annotated[float | None, typer.Option(parser=in_range(0, 100), help="Length penalty.")] = None

    def given(self) -> dict[str, float]:
        """What was said, by the names of SearchConfig."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class SamplingOptions:
    """How tokens are drawn at random."""

    temperature: Annotated[
        float | None, typer.Option(parser=in_range(0.01, 100), help="With sampling: below 1 is safer, above 1 wilder.")
    ] = None
    top_k: Annotated[
        int | None,
        typer.Option(parser=whole(0, 10**9), help="With sampling: among the k most probable tokens; 0: all."),
    ] = None
    top_p: Annotated[
        float | None,
        typer.Option(parser=in_range(0, 1, above=True), help="With sampling: among the most probable up to p in all."),
    ] = None

    def given(self) -> dict[str, float]:
        """What was said, by the names of SearchConfig."""
        return {name: value for name, value in vars(self).items() if value is not None}


EngineOption = Annotated[
    EngineName,
    typer.Option(
        "--engine",
        help="auto: ctranslate2, which is fast, where it can do what is asked; else the reference, in torch.",
    ),
]
Numbers = Annotated[
    ComputeType | None,
    typer.Option(
        "--compute-type", help="The numbers ctranslate2 computes with [default: what `quantize` kept, else float32]."
    ),
]


@dataclass(frozen=True)
class EngineOptions:
    """What computes the translations."""

    engine: EngineOption = "auto"
    compute_type: Numbers = None


Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any value of the configuration: --set model.d_ff=512; several times for several.",
    ),
]


@dataclass(frozen=True)
class TrainingOptions:
    """What every training can be told."""

    steps: Annotated[int | None, typer.Option(parser=whole(1, 10**12), help="Stop after this many steps.")] = None
    minutes: Annotated[
        float | None, typer.Option(parser=in_range(0, 1e6, above=True), help="Stop after this many minutes.")
    ] = None
    seed: Annotated[int | None, typer.Option(parser=whole(0, MOST_SEED), help="The same seed gives the same bits.")] = (
        None
    )
    changes: Overrides = None

    def overrides(self, **others: Any) -> list[tuple[str, Any, str]]:
        """What --set says, then the other options and `others`, by full name with two underscores."""
        values = {"train.steps": self.steps, "train.minutes": self.minutes, "train.seed": self.seed}
        values |= {name.replace("__", "."): value for name, value in others.items()}
        given = [(key, value, "command line") for key, value in values.items() if value is not None]
        return [*changed(self.changes), *given]


def changed(changes: Sequence[str] | None) -> list[tuple[str, Any, str]]:
    """What --set says."""
    return [recipes.parse_set(text) for text in changes or ()]


@dataclass(frozen=True)
class TextOptions:
    """Sentence pairs, in one file or two, and others to validate with."""

    pairs: Annotated[Path | None, typer.Option(help="Sentence pairs, tab-separated: source, target (.gz too).")] = None
    source: Annotated[Path | None, typer.Option(help="Or two files: source sentences, one a line,")] = None
    target: Annotated[Path | None, typer.Option(help="and their translations, line by line.")] = None
    valid_pairs: Annotated[
        Path | None, typer.Option(help="Pairs to validate with [default: some of the others are held out].")
    ] = None
    valid_source: Annotated[Path | None, typer.Option(help="Or two files: the source sentences,")] = None
    valid_target: Annotated[Path | None, typer.Option(help="and their translations.")] = None

    def train_corpus(self, command: str) -> CorpusConfig | None:
        """None: none was given."""
        return corpus_from(command, "--", self.pairs, self.source, self.target)

    def valid_corpus(self, command: str) -> CorpusConfig | None:
        """None: none was given."""
        return corpus_from(command, "--valid-", self.valid_pairs, self.valid_source, self.valid_target)


def both_languages(command: str, source: str | None, target: str | None) -> tuple[str, str] | None:
    """The codes of two languages, which are given together or not at all."""
    if (source is None) != (target is None):
        raise UsageError(f"{command}: --source-language and --target-language go together; give both")
    if source is None or target is None:
        return None
    from dragoman.data.language_codes import checked_code

    return checked_code(source), checked_code(target)


def language_asked_for(run: Path, target_language: str | None) -> str | None:
    """What a run is asked to translate into: --target-language, of a run of several; None of a run of one, which must
    then be into that language, where it says which."""
    if target_language is None:
        return None
    from dragoman.data.language_codes import languages_of, same_language
    from dragoman.data.tokenizer import load_tokenizer
    from dragoman.run_directory import RunDirectory

    directory = RunDirectory.open(run)
    if load_tokenizer(directory.path).languages:
        return target_language
    known = languages_of(directory)
    if known is not None and not same_language(known[1], target_language):
        raise UsageError(
            f"{run} translates into {known[1]}, not {target_language}; leave --target-language out, or give {known[1]}"
        )
    return None
