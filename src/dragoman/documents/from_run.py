"""A document translated with a run: what `dragoman translate-file` and `Run.translate_document` do."""

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
    kind: DocumentFormat | None = None,
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
    """`kind` None: as the document's name ends; `language` None: as the run's data say. `protect_styles`, `fuzzy`: as
    FormatSettings has them."""
    kind = format_of(document.name) if kind is None else kind
    if not all(name.strip() for name in protect_styles):
        raise UsageError("a style to protect without a name; give the name of a style or a font")
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
        mark="" if kind == "po" else mark,  # there an empty msgstr says that it was left
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
        sentence_translator, document, out, kind, identity=identity, report_path=report, say=say, settings=settings
    )
