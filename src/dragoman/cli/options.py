"""Options that several commands have: one name, one meaning, one line of help, one range."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman import config as configuration
from dragoman.config_ranges import MOST_BEAM, MOST_SEED
from dragoman.decoding.engines import ComputeType, EngineName


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

    parse.__name__ = "number"  # what the help calls it
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

    parse.__name__ = "integer"  # what the help calls it
    return parse


Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directory; several make an ensemble.")]
Protect = Annotated[
    bool, typer.Option("--protect/--no-protect", help="See that numbers, addresses and the like come through.")
]
WholeLines = Annotated[bool, typer.Option("--whole-lines", help="Do not cut lines into sentences.")]
Beam = Annotated[int | None, typer.Option("--beam", parser=whole(1, MOST_BEAM), help="Beam size; 1 is greedy.")]
Alpha = Annotated[float | None, typer.Option("--alpha", parser=in_range(0, 100), help="Length penalty.")]
Checkpoint = Annotated[str | None, typer.Option("--checkpoint", help="A kept checkpoint, for example step-00001000.")]
EngineChoice = Annotated[
    EngineName, typer.Option("--engine", help="auto: ctranslate2, which is quick, where it can; else the reference.")
]
Numbers = Annotated[
    ComputeType | None,
    typer.Option("--compute-type", help="Numbers of ctranslate2 [default: what `quantize` kept, else float32]."),
]
GlossaryFile = Annotated[
    Path | None,
    typer.Option("--glossary", help="TSV of terms to use: source, tab, target (forms by |; none: not translated)."),
]
CorrectionsFile = Annotated[
    Path | None,
    typer.Option("--corrections", help="Corrections that `serve --corrections` kept: used first."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="KIND", help="Copied through as they are: placeholders, urls, emails or numbers."),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        "--min-confidence",
        parser=in_range(0, 1),
        help="Leave the source, marked, in place of what is less sure than this.",
    ),
]
MarkBefore = Annotated[str, typer.Option("--mark", help="For --min-confidence: put before a source that is left.")]

AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]
References = Annotated[
    list[Path], typer.Option("--reference", help="Reference translations; several times for several of them.")
]
Language = Annotated[str | None, typer.Option("--language", help="Code of the target language, for its tokenisation.")]

Into = Annotated[str | None, typer.Option("--to", help="The language to translate into, of a run of several.")]

# Of drawing at random.
Temperature = Annotated[
    float | None, typer.Option(parser=in_range(0.01, 100), help="With sampling: below 1 is safer, above 1 wilder.")
]
TopK = Annotated[
    int | None, typer.Option(parser=whole(0, 10**9), help="With sampling: among the k most probable tokens; 0: all.")
]
TopP = Annotated[
    float | None,
    typer.Option(parser=in_range(0, 1, above=True), help="With sampling: among the most probable up to p in all."),
]

# Of every training.
Out = Annotated[Path | None, typer.Option(help="The run's directory [default: runs/ and the recipe's name].")]
Steps = Annotated[int | None, typer.Option(parser=whole(1, 10**12), help="Stop after so many steps.")]
Minutes = Annotated[float | None, typer.Option(parser=in_range(0, 1e6, above=True), help="Stop after so many minutes.")]
Seed = Annotated[int | None, typer.Option(parser=whole(0, MOST_SEED), help="The same seed gives the same bits.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any value: --set model.d_ff=512.")
]


def overrides_from(
    changes: Sequence[str] | None, steps: int | None, minutes: float | None, seed: int | None, **others: Any
) -> list[tuple[str, Any, str]]:
    """What --set says, then the options of every training and `others`, by full name with two underscores."""
    options = {"train.steps": steps, "train.minutes": minutes, "train.seed": seed}
    options |= {name.replace("__", "."): value for name, value in others.items()}
    given = [(key, value, "command line") for key, value in options.items() if value is not None]
    return [*map(configuration.parse_set, changes or ()), *given]
