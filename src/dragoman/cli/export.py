"""`dragoman export`, `import`, `bundle`, `unbundle`, `reproduce`. Heavy imports inside, as in all of main.py."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman.cli.options import (
    AsJson,
    FromLanguage,
    IntoLanguage,
    NewRun,
    RunPath,
    ScoredLanguage,
    SourceLanguage,
    TargetLanguage,
    both_languages,
    out_option,
)
from dragoman.cli.terminal import say, show, this_command
from dragoman.decoding.engines import ComputeType
from dragoman.errors import CheckError


def export(
    run: RunPath,
    form: Annotated[
        Literal["ctranslate2", "argos", "marian-hf", "onnx"],
        typer.Option("--format", help="The format, by the program that reads it."),
    ],
    out: Annotated[Path | None, out_option("Where to write [default: beside the run].")] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    compute_type: Annotated[
        ComputeType, typer.Option("--compute-type", help="The numbers of the weights, for ctranslate2 and argos.")
    ] = "float32",
    as_json: AsJson = False,
) -> None:
    """Write a run in the format of another program.

    ctranslate2: a directory for CTranslate2. argos: an .argosmodel for Argos Translate and LibreTranslate.
    marian-hf: a directory for transformers. onnx: an encoder and a decoder for onnxruntime.
    """
    from dragoman.export.formats import export as write

    languages = both_languages("export", source_language, target_language)
    _show_written(write(run, form, out, languages=languages, compute_type=compute_type), as_json, format=form)


def import_(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Its directory or archive, or its name on the Hugging Face hub."),
    ],
    out: NewRun,
    source_language: FromLanguage = None,
    target_language: IntoLanguage = None,
    revision: Annotated[
        str | None,
        typer.Option("--revision", help="With a name: a branch, a tag or a commit [default: main]."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a run from a public model: OPUS-MT, M2M100, NLLB, an Argos package, a CTranslate2 directory.

    The run translates, serves, explains and can be fine-tuned as any other.
    """
    from dragoman.importing.read import import_model

    languages = both_languages("import", source_language, target_language)
    _show_written(import_model(model, out, languages, revision), as_json)


def bundle(
    run: RunPath,
    out: Annotated[Path, out_option("The file, for example my.dragoman.zip.")],
    title: Annotated[str, typer.Option(help="The title of its card.")] = "",
    author: Annotated[str, typer.Option(help="The author, for its card.")] = "",
    licence: Annotated[str, typer.Option(help="The licence of the weights, for example CC-BY-4.0.")] = "",
    data_licence: Annotated[str, typer.Option(help="The licence of the text it was trained on.")] = "",
    notes: Annotated[str, typer.Option(help="What users should know.")] = "",
    with_text: Annotated[bool, typer.Option("--with-text", help="Pack the training text too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Pack a run and its model card into one file, which every command takes in place of a run."""
    from dragoman.export.bundle import About
    from dragoman.export.bundle import bundle as pack

    _show_written(pack(run, out, About(title, author, licence, data_licence, notes), with_text), as_json)


def unbundle(
    file: Annotated[Path, typer.Argument(metavar="BUNDLE", help="What `bundle` made.")],
    out: NewRun,
    as_json: AsJson = False,
) -> None:
    """Unpack a bundle into a run's directory, with every file checked against its hash."""
    from dragoman.export.formats import require_new
    from dragoman.run_directory import unpack

    require_new(out)
    unpack(file, out)
    _show_written(out, as_json)


def reproduce(
    file: Annotated[Path, typer.Argument(metavar="BUNDLE", help="What `bundle` made.")],
    out: NewRun,
    text: Annotated[
        list[Path] | None, typer.Option(help="A directory to look for the text in; several times for several.")
    ] = None,
    target_language: ScoredLanguage = None,
    as_json: AsJson = False,
) -> None:
    """Train a bundle's run again from its text, and compare: to the bit where that can be, else by BLEU.

    The exit code is 4 where the new run is not as good.
    """
    from dragoman.export.reproduce import reproduce as train_again

    result = train_again(file, out, text or (), language=target_language, again=this_command(), say=say)
    show(json.dumps(result.to_dict(), ensure_ascii=False) if as_json else "\n".join(result.lines()))
    if not result.holds:
        raise CheckError(f"{file} was not reproduced; {out} has what came of it")


def _show_written(path: Path, as_json: bool, **more: str) -> None:
    """Where the result is."""
    show(json.dumps({"path": str(path), **more}, ensure_ascii=False) if as_json else str(path))
