"""`dragoman export`, `import`, `bundle`, `unbundle`, `reproduce`. Heavy imports inside, as in all of main.py."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman.cli.options import AsJson, Language, Run
from dragoman.cli.terminal import say, show, this_command
from dragoman.decoding.engines import ComputeType
from dragoman.errors import DragomanError, UsageError

Languages = Annotated[
    str | None, typer.Option("--languages", metavar="en-de", help="From and to [default: what the run says].")
]


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
    from dragoman.export.formats import export as write

    show(str(write(run, to, out, languages=_languages(languages), compute_type=compute_type)))


def import_(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A Hugging Face Marian directory.")],
    out: Annotated[Path, typer.Option(help="The run's directory.")],
    languages: Languages = None,
) -> None:
    """Make a run from a Hugging Face Marian directory."""
    from dragoman.export.formats import import_marian

    show(str(import_marian(directory, out, _languages(languages))))


def bundle(
    run: Run,
    out: Annotated[Path, typer.Option(help="The file, for example my.dragoman.zip.")],
    title: Annotated[str, typer.Option(help="For its card.")] = "",
    author: Annotated[str, typer.Option(help="For its card.")] = "",
    licence: Annotated[str, typer.Option(help="Of the weights, for example CC-BY-4.0.")] = "",
    data_licence: Annotated[str, typer.Option(help="Of the text it was trained on.")] = "",
    notes: Annotated[str, typer.Option(help="What users should know.")] = "",
    with_text: Annotated[bool, typer.Option("--with-text", help="Pack the training text too.")] = False,
) -> None:
    """Pack a run and its model card into one file, which every command takes in place of a run."""
    from dragoman.export.bundle import About
    from dragoman.export.bundle import bundle as pack

    show(str(pack(run, out, About(title, author, licence, data_licence, notes), with_text)))


def unbundle(
    file: Annotated[Path, typer.Argument(metavar="BUNDLE", help="What `bundle` made.")],
    out: Annotated[Path, typer.Option(help="The run's directory.")],
) -> None:
    """Unpack a bundle into a run's directory, every file held against its hash."""
    from dragoman.export.formats import require_new
    from dragoman.run_directory import unpack

    require_new(out)
    unpack(file, out)
    show(str(out))


def reproduce(
    file: Annotated[Path, typer.Argument(metavar="BUNDLE", help="What `bundle` made.")],
    out: Annotated[Path, typer.Option(help="The directory of the new run.")],
    text: Annotated[
        list[Path] | None, typer.Option(help="A directory to look for the text in; several times for several.")
    ] = None,
    language: Language = None,
    as_json: AsJson = False,
) -> None:
    """Train a bundle's run again from its text, and compare: to the bit where that can be, else by BLEU."""
    from dragoman.export.reproduce import reproduce as train_again

    result = train_again(file, out, text or (), language=language, again=this_command(), say=say)
    show(json.dumps(result.to_dict(), ensure_ascii=False) if as_json else "\n".join(result.lines()))
    if not result.holds:
        raise DragomanError(f"{file} was not reproduced; {out} has what came of it")


def _languages(text: str | None) -> tuple[str, str] | None:
    return None if text is None else language_pair(text, "--languages")


def language_pair(text: str, option: str) -> tuple[str, str]:
    """`en-de` as two codes."""
    source, dash, target = text.partition("-")
    if not dash or not source or not target:
        raise UsageError(f"{option} {text}; write it as en-de")
    return source, target
