"""Options that several commands have: one name, one meaning, one line of help."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman import config as configuration
from dragoman.engines import ComputeType, EngineName

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directory; several make an ensemble.")]
Beam = Annotated[int | None, typer.Option("--beam", help="Beam size; 1 is greedy.")]
Alpha = Annotated[float | None, typer.Option("--alpha", help="Length penalty.")]
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
        "--min-confidence", min=0.0, max=1.0, help="Leave the source, marked, in place of what is less sure than this."
    ),
]
MarkBefore = Annotated[str, typer.Option("--mark", help="For --min-confidence: put before a source that is left.")]

AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]
References = Annotated[
    list[Path], typer.Option("--reference", help="Reference translations; several times for several of them.")
]
Language = Annotated[str | None, typer.Option("--language", help="Code of the target language, for its tokenisation.")]

Into = Annotated[str | None, typer.Option("--to", help="The language to translate into, of a run of several.")]

# Of every training.
Out = Annotated[Path | None, typer.Option(help="The run's directory [default: runs/ and the recipe's name].")]
Steps = Annotated[int | None, typer.Option(help="Stop after so many steps.")]
Minutes = Annotated[float | None, typer.Option(help="Stop after so many minutes.")]
Seed = Annotated[int | None, typer.Option(help="The same seed gives the same bits.")]
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
