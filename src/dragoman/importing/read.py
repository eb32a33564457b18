"""Tells what kind of public model a path holds, and makes a run of it."""

from pathlib import Path

from dragoman.errors import DataError
from dragoman.importing.imported_model import ImportedModel, write_run
from dragoman.importing.marian_files import is_marian


def import_model(source: str | Path, out: str | Path, languages: tuple[str, str] | None = None) -> Path:
    """Makes a run from a public model: it can translate, serve, explain and be fine-tuned as any other."""
    write_run(read_model(Path(source)), Path(out), languages)
    return Path(out)


def read_model(path: Path) -> ImportedModel:
    """Reads whatever public model is there."""
    if not path.exists():
        raise DataError(f"{path}: no such file or directory; give a model's directory or archive")
    from dragoman.importing.argos import is_argos, read_argos

    if is_argos(path):
        return read_argos(path)
    if (path / "model.bin").is_file():
        from dragoman.importing.ctranslate2 import read_ctranslate2

        return read_ctranslate2(path)
    if (path / "config.json").is_file():
        from dragoman.importing.huggingface import read_huggingface

        return read_huggingface(path)
    if is_marian(path):
        from dragoman.importing.marian import read_marian

        return read_marian(path)
    raise DataError(
        f"{path}: no config.json in it; give a directory that transformers loads a "
        f"model from, or a model of Marian's: its archive, directory or .npz file"
    )
