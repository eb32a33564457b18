"""Reads Argos Translate's packages, as files or as Argos Translate and LibreTranslate unpack them.

A package is a zip file of one folder with metadata.json, a sentencepiece model, and the directory `model` that
CTranslate2 reads. The sentence splitter that is in it too is not used: text is split as for all other runs.
"""

import contextlib
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dragoman.config import SearchConfig
from dragoman.data.language_codes import is_code
from dragoman.errors import DataError
from dragoman.files import read_json
from dragoman.importing.ctranslate2 import BINARY, read_ctranslate2
from dragoman.importing.imported_model import ImportedModel
from dragoman.run_directory import LARGE, MOST_RATIO

METADATA, MODEL, SENTENCEPIECE, SUBWORD_NMT = "metadata.json", "model", "sentencepiece.model", "bpe.model"
# All that is taken from a package.
WANTED = (
    METADATA, SENTENCEPIECE, SUBWORD_NMT, f"{MODEL}/{BINARY}", f"{MODEL}/config.json",
    *(f"{MODEL}/{side}_vocabulary{end}" for side in ("shared", "source", "target") for end in (".json", ".txt")),
)  # fmt: skip
SEARCH = SearchConfig(beam=4, alpha=0.2, penalty="length")  # as Argos Translate searches


def is_argos(path: Path) -> bool:
    """Tells whether a path is a package, or one unpacked."""
    if path.is_dir():
        return (path / METADATA).is_file() and (path / MODEL / BINARY).is_file()
    return path.suffix == ".argosmodel"


def read_argos(path: Path) -> ImportedModel:
    """Reads a package; raises if it is none for translating, or if its model cannot be ours."""
    if path.is_dir():
        return _read(path)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / path.name
        directory.mkdir()
        with _reading(path) as archive:
            _extract(archive, path, directory)
        try:
            return _read(directory)
        except DataError as error:  # what is wrong is in the package, wherever it was unpacked to
            raise DataError(str(error).replace(str(directory), str(path))) from None


def _read(directory: Path) -> ImportedModel:
    about = read_json(directory / METADATA)
    if (kind := about.get("type", "translate")) != "translate":
        raise DataError(f"{directory}/{METADATA}: type = {kind}; packages that translate can be imported")
    if not (directory / SENTENCEPIECE).is_file():
        has_other = (directory / SUBWORD_NMT).is_file()
        what = f"its tokenizer is {SUBWORD_NMT} (subword-nmt)" if has_other else "it has no tokenizer"
        raise DataError(f"{directory}: {what}; packages with a {SENTENCEPIECE} can be imported")
    prefix = str(about.get("target_prefix") or "")
    model = read_ctranslate2(directory / MODEL, SEARCH, tokenizer=directory, given=prefix, as_given=True)
    codes = about.get("from_code"), about.get("to_code")
    known = all(isinstance(code, str) and is_code(code) for code in codes)
    kept: dict[str, str] = {
        name: str(about[name])[:60] for name in ("package_version", "argos_version") if name in about
    }
    return replace(
        model,
        languages=(str(codes[0]), str(codes[1])) if known else None,
        origin={**model.origin, "from": directory.name, **kept},
    )


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[zipfile.ZipFile]:
    """Opens the archive; whatever is wrong with it is a DataError that names it."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
        raise DataError(f"{path}: not a package of Argos Translate ({error}); fetch it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); fetch it again") from None


def _extract(archive: zipfile.ZipFile, path: Path, directory: Path) -> None:
    """Writes the files that are wanted, under their own names: whatever else an archive holds is left in it."""
    entries = {info.filename: info for info in archive.infolist()}
    roots = [name.removesuffix(METADATA) for name in entries if name.count("/") <= 1 and name.endswith(f"/{METADATA}")]
    if len(roots) != 1:
        raise DataError(f"{path}: {len(roots)} folders with a {METADATA}; a package of Argos Translate has one")
    found = {name: entries[roots[0] + name] for name in WANTED if roots[0] + name in entries}
    size = sum(info.file_size for info in found.values())
    if size > LARGE and size > MOST_RATIO * path.stat().st_size:
        raise DataError(f"{path}: unpacks to {size:,} bytes, far more than any model; do not trust this package")
    for name, info in found.items():
        (directory / name).parent.mkdir(exist_ok=True)
        with archive.open(info) as packed, (directory / name).open("wb") as file:
            shutil.copyfileobj(packed, file)
