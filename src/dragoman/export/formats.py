"""Exports a run in the format of another program, complete or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copy, copytree
from typing import Literal

from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.decoding.engines import ComputeType
from dragoman.decoding.engines.ct2_cache import digest_of
from dragoman.decoding.engines.ct2_convert import convert
from dragoman.errors import UsageError
from dragoman.files import replacing
from dragoman.run_directory import TOKENIZER, RunDirectory, require_task

ExportFormat = Literal["ctranslate2", "argos", "marian-hf", "onnx"]

README = """\
# How text is read here

This model was trained with inline case: its tokens are lower-case words and the marks ⇧, ⇪ and ⇩, which sentencepiece
alone does not know. Text goes in and out through Dragoman's tokenizer:

    tokenizer = dragoman.Tokenizer.load("tokenizer.model")
    ids = tokenizer.encode("Two dogs.")
    text = tokenizer.decode(ids)
    tokens = [tokenizer.piece(token) for token in ids]  # for programs that take tokens by name

A model that sentencepiece alone can serve is trained with `--set data.casing=plain`.
"""

POSITIONS = 1024  # the longest sequence that the exported model takes


def export(
    run: str | Path,
    to: ExportFormat,
    out: str | Path | None = None,
    *,
    languages: tuple[str, str] | None = None,
    compute_type: ComputeType = "float32",
) -> Path:
    """Writes a run in the format of another program; returns the path.

    `languages` (source, target) is needed for `argos` alone, if the run does not name its own; `compute_type` is for
    `ctranslate2` and `argos`, which CTranslate2 reads.
    """
    directory = RunDirectory.open(run)
    require_task(directory, "translate")
    tokenizer = load_tokenizer(directory.path)
    if compute_type != "float32" and to not in ("ctranslate2", "argos"):
        raise UsageError(f"export: {compute_type} is for ctranslate2 and argos; {to} is float32, so leave it out")
    match to:
        case "argos":
            from dragoman.export.argos import package_languages, write_argos

            source, target = package_languages(directory, tokenizer, languages)
            default = directory.path.with_name(f"{directory.path.name}-{source}_{target}.argosmodel")
            path = default if out is None else Path(out)
            require_new(path)
            converted = _converted(directory, tokenizer, compute_type)
            with replacing(path) as temporary:
                write_argos(directory, converted, (source, target), temporary)
        case "ctranslate2":
            with _directory(directory, to, out) as (temporary, path):
                copytree(_converted(directory, tokenizer, compute_type), temporary)
                copy(directory.tokenizer_path, temporary / TOKENIZER)
                _write_readme(tokenizer, temporary)
        case "marian-hf":
            from dragoman.export.marian import write_marian

            with _directory(directory, to, out) as (temporary, path):
                temporary.mkdir()
                write_marian(directory, tokenizer, temporary)
        case "onnx":
            from dragoman.export.onnx import write_onnx

            with _directory(directory, to, out) as (temporary, path):
                temporary.mkdir()
                write_onnx(directory, tokenizer, temporary)
                _write_readme(tokenizer, temporary)
        case _:
            raise UsageError(f"export: format {to!r}; allowed: ctranslate2, argos, marian-hf, onnx")
    return path


def _write_readme(tokenizer: Tokenizer, directory: Path) -> None:
    """Says how text is read, where sentencepiece alone cannot read it."""
    if tokenizer.case_marks:
        (directory / "README.md").write_text(README, encoding="utf-8")


@contextmanager
def _directory(run: RunDirectory, to: str, out: str | Path | None) -> Iterator[tuple[Path, Path]]:
    """A temporary name for a directory, and the name that the directory gets when it is complete."""
    path = Path(out) if out is not None else run.path.with_name(f"{run.path.name}-{to}")
    require_new(path)
    with replacing(path) as temporary:
        yield temporary, path


def require_new(path: Path) -> None:
    """Raises if something is there that would be overwritten."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} is there already; remove it, or give another --out")


def _converted(run: RunDirectory, tokenizer: Tokenizer, compute_type: ComputeType) -> Path:
    """The directory of the run's model as CTranslate2 reads it, converted now if it is not there."""
    return convert(run, tokenizer, compute_type, digest_of(run, tokenizer), POSITIONS).path
