"""Writes an Argos Translate package: a zip of one folder with the model as CTranslate2 reads it.

metadata.json          the languages, and which version of Argos Translate reads it
model/                 the model in CTranslate2's form
sentencepiece.model    the run's tokenizer
minisbd/xx.onnx        where sentences end (argos_segmenter.py)
"""

import json
import zipfile
from pathlib import Path

from dragoman.data.language_codes import checked_code, language_name, languages_of
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError, UsageError
from dragoman.export.argos_segmenter import segmenter_graph
from dragoman.run_directory import RunDirectory


def package_languages(run: RunDirectory, tokenizer: Tokenizer, languages: tuple[str, str] | None) -> tuple[str, str]:
    """The codes of source and target: those given, or else the run's own."""
    if tokenizer.is_imported:
        raise DataError(
            f"export: {run.path} has the tokenizer of an imported model; an Argos package has one sentencepiece model: "
            f"use --format ctranslate2"
        )
    if tokenizer.case_marks:
        raise DataError(
            f"export: {run.path} was trained with data.casing = inline; Argos Translate reads text with sentencepiece "
            f"alone and would show the marks: train with --set data.casing=plain, or use --format ctranslate2"
        )
    if len(tokenizer.languages) > 1:
        known = ", ".join(tokenizer.languages)
        raise UsageError(f"export: {run.path} translates into {known}; an Argos package has one direction")
    found = languages_of(run) if languages is None else languages
    if found is None:
        raise UsageError(
            f"export: {run.path} does not say its languages; name them: --source-language en --target-language de"
        )
    return checked_code(found[0]), checked_code(found[1])


def write_argos(run: RunDirectory, converted: Path, languages: tuple[str, str], path: Path) -> None:
    """Write the package of a run whose model was converted for CTranslate2 before."""
    source, target = languages
    folder = f"translate-{source}_{target}-1_0"
    metadata = {
        "package_version": "1.0",
        "argos_version": "1.9.0",
        "from_code": source,
        "from_name": language_name(source),
        "to_code": target,
        "to_name": language_name(target),
        "type": "translate",
    }
    title = f"{language_name(source)} to {language_name(target)}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{folder}/metadata.json", json.dumps(metadata, indent=2, ensure_ascii=False) + "\n")
        archive.writestr(f"{folder}/README.md", f"# {title}\n\nTrained and exported with Dragoman.\n")
        archive.write(run.tokenizer_path, f"{folder}/sentencepiece.model")
        archive.writestr(f"{folder}/minisbd/{source}.onnx", segmenter_graph(source))
        for file in sorted(converted.iterdir()):
            archive.write(file, f"{folder}/model/{file.name}")
