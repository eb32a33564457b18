"""`dragoman translate-file`. Heavy imports inside, as in the command line that this is part of."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman.cli.options import (
    Alpha,
    AsJson,
    Beam,
    CorrectionsFile,
    EngineChoice,
    GlossaryFile,
    Into,
    MarkBefore,
    MinConfidence,
    Numbers,
    Run,
)
from dragoman.cli.terminal import say, show

FormatName = Literal["auto", "text", "markdown", "html", "docx", "odt", "srt", "vtt", "po", "json"]


def translate_file(
    run: Run,
    document: Annotated[Path, typer.Argument(metavar="IN", help="The document.")],
    out: Annotated[
        Path, typer.Option("--out", help="Where to write the translation; if stopped, the same command goes on.")
    ],
    report: Annotated[
        Path | None, typer.Option(help="JSON: every sentence that did not go the plain way, and why.")
    ] = None,
    format_: Annotated[
        FormatName, typer.Option("--format", help="What the document is; auto: as its name ends.")
    ] = "auto",
    language: Annotated[
        str | None, typer.Option(help="Code of the document's language [default: what the run's data say].")
    ] = None,
    to: Into = None,
    glossary: GlossaryFile = None,
    corrections: CorrectionsFile = None,
    min_confidence: MinConfidence = None,
    mark: MarkBefore = "[?] ",
    protect_style: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Leave text of this style or font (HTML, Markdown: class or tag); several times."
        ),
    ] = None,
    fuzzy: Annotated[
        bool, typer.Option(help="PO: mark what is filled in as fuzzy, for a person to look at; programs skip it.")
    ] = True,
    beam: Beam = None,
    alpha: Alpha = None,
    engine: EngineChoice = "auto",
    compute_type: Numbers = None,
    as_json: AsJson = False,
) -> None:
    """Translate a document: txt, Markdown, HTML, DOCX, ODT, SRT, VTT, PO, JSON.

    Tags, placeholders, numbers, URLs and e-mail addresses are the same in the translation. Where a sentence
    cannot be kept whole it is translated in another way, or left, and listed in the report.
    """
    from dragoman.documents.from_run import translate_with

    given = {name: value for name, value in {"beam": beam, "alpha": alpha}.items() if value is not None}
    done = translate_with(
        run,
        document,
        out,
        kind=None if format_ == "auto" else format_,
        report=report,
        language=language,
        to=to,
        glossary=glossary,
        corrections=corrections,
        min_confidence=min_confidence,
        mark=mark,
        protect_styles=protect_style or (),
        fuzzy=fuzzy,
        engine=engine,
        compute_type=compute_type,
        say=say,
        **given,
    )
    if as_json:
        show(json.dumps(done.to_dict()))
    else:
        hint = "" if not done.listed or report is not None else "; --report FILE says which"
        say(f"{out}: {done.line()}{hint}")
