"""Translates a document with a run: what `dragoman translate-file` and `Run.translate_document` do."""

from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.data.glossary import Glossary, requirements
from dragoman.data.language_codes import languages_of
from dragoman.decoding.engines import ComputeType, EngineName
from dragoman.documents.format_names import BILINGUAL, DocumentFormat, format_of
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
    target_language: str | None = None,
    glossary: Path | Glossary | None = None,
    corrections: Path | None = None,
    min_confidence: float | None = None,
    mark: str = "[?] ",
    protect_styles: Sequence[str] = (),
    fuzzy: bool = True,
    columns: Sequence[str] = (),
    engine: EngineName = "auto",
    compute_type: ComputeType | None = None,
    say: Callable[[str], None],
    **search: float,
) -> DocumentReport:
    """Translates a document into another file, and resumes where an earlier call was stopped.

    `document_format` None: by the ending of the document's name. `language` None: the source language of the run's
    data. `to`: what a run of several languages is asked for; `target_language`: what the run translates into, where its
    data may not say it. `min_confidence`: sentences with less are left untranslated, with `mark` before them.
    `protect_styles`, `fuzzy`, `columns`: as in FormatSettings.
    """
    document_format = format_of(document.name) if document_format is None else document_format
    if not all(name.strip() for name in protect_styles):
        raise UsageError("a style to protect has an empty name; give the name of a style or a font")
    if columns and document_format not in ("csv", "tsv"):
        raise UsageError(f"--column {columns[0]}: only CSV and TSV have columns, and this is {document_format}")
    source_language, target_language = _languages(run, language, to or target_language)
    both = (source_language, target_language) if source_language and target_language else None
    terms = Glossary.load(glossary, both) if isinstance(glossary, Path) else glossary
    sentence_translator = RunSentenceTranslator.load(
        run,
        engine=engine,
        compute_type=compute_type,
        rules=requirements(terms),
        language=source_language,
        to=to,
        min_confidence=min_confidence,
        mark="" if document_format in BILINGUAL else mark,  # what is empty already says that it was left
        **search,
    )
    if corrections is not None:
        sentence_translator.translator = sentence_translator.translator.with_corrections(
            *corrections_for(run, corrections, to)
        )
    identity = _identity(run, sentence_translator, terms, corrections, mark)
    return translate_document(
        sentence_translator,
        document,
        out,
        document_format,
        identity=identity,
        report_path=report,
        say=say,
        settings=FormatSettings(tuple(protect_styles), tuple(columns), fuzzy, target_language),
    )


def _languages(run: Path, source: str | None, target: str | None) -> tuple[str | None, str | None]:
    """The source and the target language: as given, else as the run's data name them."""
    known = languages_of(RunDirectory.open(run))
    if known is None:
        return source, target
    return source or (known[1] if target == known[0] else known[0]), target or known[1]


def _identity(
    run: Path,
    sentence_translator: RunSentenceTranslator,
    glossary: Glossary | None,
    corrections: Path | None,
    mark: str,
) -> list[object]:
    """What the translations depend on beside the document: where it changes, a stopped translation begins again."""
    translator = sentence_translator.translator
    identity: list[object] = [*identity_of([run], None), translator.engine.name, glossary, translator.tag]
    if corrections is not None:
        identity.append(corrections.stat().st_mtime_ns)
    if sentence_translator.min_confidence is not None:
        identity += [sentence_translator.min_confidence, mark, translator.calibration]
    return identity
