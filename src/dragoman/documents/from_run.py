"""Translates a document with a run: what `dragoman translate-file` and `Run.translate_document` do."""

from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.data.glossary import Glossary, requirements
from dragoman.data.language_codes import languages_of
from dragoman.decoding.engines import ComputeType, EngineName
from dragoman.documents.formats import DocumentFormat, format_of
from dragoman.documents.report import DocumentReport
from dragoman.documents.resumable_file import translate_document
from dragoman.documents.sentence_translator import RunSentenceTranslator
from dragoman.documents.settings import FormatSettings
from dragoman.errors import UsageError
from dragoman.run_directory import RunDirectory
from dragoman.translation.corrections import corrections_for
from dragoman.translation.file import identity_of


def translate_with(
    run: Path,
    document: Path,
    out: Path,
    *,
    document_format: DocumentFormat | None = None,
    report: Path | None = None,
    language: str | None = None,
    to: str | None = None,
    glossary: Path | Glossary | None = None,
    corrections: Path | None = None,
    min_confidence: float | None = None,
    mark: str = "[?] ",
    protect_styles: Sequence[str] = (),
    fuzzy: bool = True,
    engine: EngineName = "auto",
    compute_type: ComputeType | None = None,
    say: Callable[[str], None],
    **search: float,
) -> DocumentReport:
    """Translates a document into another file, and resumes where an earlier call was stopped.

    `document_format` None: by the ending of the document's name. `language` None: the source language of the run's
    data. `min_confidence`: sentences with less are left untranslated, with `mark` before them. `protect_styles`,
    `fuzzy`: as in FormatSettings.
    """
    document_format = format_of(document.name) if document_format is None else document_format
    if not all(name.strip() for name in protect_styles):
        raise UsageError("a style to protect has an empty name; give the name of a style or a font")
    terms = Glossary.load(glossary) if isinstance(glossary, Path) else glossary
    known = languages_of(RunDirectory.open(run))
    if language is None and known is not None:
        language = known[1] if to == known[0] else known[0]
    target = to or (None if known is None else known[1])
    sentence_translator = RunSentenceTranslator.load(
        run,
        engine=engine,
        compute_type=compute_type,
        rules=requirements(terms),
        language=language,
        to=to,
        min_confidence=min_confidence,
        mark="" if document_format == "po" else mark,  # an empty msgstr already says that it was left
        **search,
    )
    if corrections is not None:
        sentence_translator.translator = sentence_translator.translator.with_corrections(
            *corrections_for(run, corrections, to)
        )
    translator = sentence_translator.translator
    identity: list[object] = [*identity_of([run], None), translator.engine.name, terms, translator.tag]
    if corrections is not None:
        identity.append(corrections.stat().st_mtime_ns)
    if min_confidence is not None:
        identity += [min_confidence, mark, translator.calibration]
    settings = FormatSettings(tuple(protect_styles), fuzzy, target)
    return translate_document(
        sentence_translator,
        document,
        out,
        document_format,
        identity=identity,
        report_path=report,
        say=say,
        settings=settings,
    )
