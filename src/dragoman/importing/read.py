"""Tells what kind of public model a path holds, and makes a run of it."""

import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

from dragoman.errors import DataError
from dragoman.importing.hub import located
from dragoman.importing.huggingface import WEIGHTS, read_huggingface
from dragoman.importing.imported_model import ImportedModel, require_new, write_run
from dragoman.importing.marian_files import is_marian
from dragoman.importing.model_card import with_card


def import_model(
    source: str | Path, out: str | Path, languages: tuple[str, str] | None = None, revision: str | None = None
) -> Path:
    """Makes a run from a public model: it can translate, serve, explain and be fine-tuned as any other. `source`: its
    path, or its name on the Hugging Face hub; `revision`: of a name, a branch, a tag or a commit."""
    require_new(Path(out))  # before anything is fetched
    found = located(source, revision, out)
    model = read_model(found.path)
    if found.path.is_dir():
        model = with_card(model, found.path, found.name)
    write_run(replace(model, origin={**model.origin, **found.origin}), Path(out), languages)
    return Path(out)


def read_model(path: Path) -> ImportedModel:
    """Reads whatever public model is there."""
    from dragoman.importing.argos import is_argos, read_argos

    if is_argos(path):
        return read_argos(path)
    if (path / "model.bin").is_file():
        from dragoman.importing.ctranslate2 import read_ctranslate2

        return read_ctranslate2(path)
    if (path / "config.json").is_file():
        return read_huggingface(path)
    if is_marian(path):
        from dragoman.importing.marian import read_marian

        return read_marian(path)
    if _is_packed_directory(path):
        raise DataError(f"{path}: a zip of a directory that transformers loads; unpack it and give that directory")
    raise DataError(f"{path}: {_not_a_model(path)}")


def _not_a_model(path: Path) -> str:
    """Why a path cannot be imported, and what can be."""
    checkpoints = [path] if path.is_file() else sorted(path.glob("*.pt"))
    if checkpoints and checkpoints[0].suffix == ".pt":
        return (
            f"{'' if path.is_file() else checkpoints[0].name + ' is '}a checkpoint as OpenNMT-py or fairseq write "
            f"them, which cannot be imported; convert it to CTranslate2 (ct2-opennmt-py-converter, "
            f"ct2-fairseq-converter), put its sentencepiece model beside, and import that directory"
        )
    if path.name in WEIGHTS:
        return "only the weights of a model; give the directory that they are in"
    if _is_tar(path):
        return "a tar archive; unpack it and give the directory of the model"
    return (
        "no config.json in it; give a directory that transformers or CTranslate2 loads a model from, a model of "
        "Marian's (its archive, directory or .npz file), or a package of Argos Translate"
    )


def _is_tar(path: Path) -> bool:
    try:
        return path.is_file() and tarfile.is_tarfile(path)
    except EOFError:  # a compressed file that ends too early
        return False


def _is_packed_directory(path: Path) -> bool:
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = {Path(name).name for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError, ValueError):
        return False
    return "config.json" in names and bool(names & {"model.safetensors", "pytorch_model.bin"})
