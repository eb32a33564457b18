"""Options that several commands have: one name, one meaning, one line of help."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.engines import ComputeType, EngineName

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
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="KIND", help="Copied through as they are: placeholders, urls, emails or numbers."),
]

AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]
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
