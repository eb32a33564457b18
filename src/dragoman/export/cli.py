"""`dragoman export` and `import`. Heavy imports inside, as in the command line that this is part of."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman.engines import ComputeType
from dragoman.errors import UsageError

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")]
Languages = Annotated[
    str | None, typer.Option("--languages", metavar="en-de", help="From and to [default: what the run says].")
]


def add_exporting_commands(app: typer.Typer, show: Callable[[str], None]) -> None:
    """The commands, which `show` their results line by line."""

    @app.command()
    def export(
        run: Run,
        to: Annotated[
            Literal["ctranslate2", "argos", "marian-hf", "onnx"], typer.Option("--to", help="For which program.")
        ],
        out: Annotated[Path | None, typer.Option(help="Where to [default: beside the run].")] = None,
        languages: Languages = None,
        compute_type: Annotated[
            ComputeType, typer.Option("--compute-type", help="Numbers, of ctranslate2 and argos.")
        ] = "float32",
    ) -> None:
        """Write a run in the form of another program.

        ctranslate2: a directory for CTranslate2. argos: an .argosmodel for Argos Translate and LibreTranslate.
        marian-hf: a directory for transformers. onnx: an encoder and a decoder for onnxruntime.
        """
        from dragoman.export.writing import export as write

        show(str(write(run, to, out, languages=_pair(languages), compute_type=compute_type)))

    @app.command("import")
    def import_(
        directory: Annotated[Path, typer.Argument(metavar="DIR", help="A Hugging Face Marian directory.")],
        out: Annotated[Path, typer.Option(help="The run's directory.")],
        languages: Languages = None,
    ) -> None:
        """Make a run from a Hugging Face Marian directory."""
        from dragoman.export.writing import import_marian

        show(str(import_marian(directory, out, _pair(languages))))


def _pair(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    source, dash, target = text.partition("-")
    if not dash or not source or not target:
        raise UsageError(f"--languages {text}; write it as en-de")
    return source, target
