"""`dragoman translate-file`. Heavy imports inside, as in the command line that this is part of."""

import json
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from dragoman.cli.options import (
    AsJson,
    CorrectionsFile,
    EngineOptions,
    GlossaryFile,
    MarkBefore,
    MinConfidence,
    RunPath,
    SearchOptions,
    SourceLanguage,
    TargetLanguage,
    language_asked_for,
    out_option,
)
from dragoman.cli.terminal import say, show
from dragoman.documents.format_names import DocumentFormat

FormatName = Literal["auto", DocumentFormat]


def translate_file(
    run: RunPath,
    document: Annotated[Path, typer.Argument(metavar="IN", help="The document.")],
    out: Annotated[Path, out_option("Where to write the translation; if stopped, the same command goes on.")],
    search: SearchOptions,
    engine: EngineOptions,
    report: Annotated[
        Path | None,
        typer.Option(help="Write a JSON report here: each sentence that needed more than plain translation, and why."),
    ] = None,
    format_: Annotated[
        FormatName,
        typer.Option(
            "--format",
            metavar="NAME",
            help=f"The document's format: auto (by the end of its name), {', '.join(get_args(DocumentFormat))}.",
        ),
    ] = "auto",
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    glossary: GlossaryFile = None,
    corrections: CorrectionsFile = None,
    min_confidence: MinConfidence = None,
    mark: MarkBefore = "[?] ",
    protect_style: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Leave text of this style or font as it is (HTML, Markdown: class or tag); several times for several.",
        ),
    ] = None,
    fuzzy: Annotated[bool, typer.Option(help="PO, XLIFF: mark what is filled in for a person to look at.")] = True,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="CSV, TSV: translate this column, by its name or number; several times for several."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Translate a document and keep its formatting; --format lists the kinds.

    Tags, placeholders, numbers, URLs and e-mail addresses are the same in the translation. Where a sentence
    cannot be kept whole it is translated in another way, or left, and listed in the report.
    """
    from dragoman.documents.from_run import translate_with

    done = translate_with(
        run,
        document,
        out,
        document_format=None if format_ == "auto" else format_,
        report=report,
        language=source_language,
        to=language_asked_for(run, target_language),
        target_language=target_language,
        glossary=glossary,
        corrections=corrections,
        min_confidence=min_confidence,
        mark=mark,
        protect_styles=protect_style or (),
        fuzzy=fuzzy,
        columns=column or (),
        say=say,
        engine=engine.engine,
        compute_type=engine.compute_type,
        **search.given(),
    )
    if as_json:
        show(json.dumps(done.to_dict()))
    else:
        hint = "" if not done.listed or report is not None else f"; --report FILE lists {done.listed:,} to look at"
        say(f"{out}: {done.line()}{hint}")
