"""The parts of a run that a public model has, and the run that is written of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from dragoman.config import RunConfig
from dragoman.data.language_codes import write_languages
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import ComputeType
from dragoman.decoding.engines.ct2_cache import converted_path, digest_of
from dragoman.decoding.engines.numpy_weights import Array
from dragoman.errors import UsageError
from dragoman.files import replacing, sha256, write_atomically
from dragoman.run_directory import RunDirectory


@dataclass(frozen=True)
class ImportedModel:
    """A public model in our terms."""

    config: RunConfig
    weights: dict[str, Array]  # by our names, a tied matrix once
    tokenizer: Tokenizer
    languages: tuple[str, str] | None = None  # source and target, where the model says them
    origin: dict[str, Any] = field(default_factory=dict)  # where it came from, for the run's record
    compute_type: ComputeType = "float32"  # that it had, and is to translate with
    converted: Mapping[str, bytes] = field(default_factory=dict)  # the files of the model as CTranslate2 reads it
    documents: dict[str, bytes] = field(default_factory=dict)  # files that go along as they are: its card, its licence


def write_run(model: ImportedModel, out: Path, languages: tuple[str, str] | None = None) -> None:
    """Writes the run, complete or not at all. `languages`: source and target, if the user names them."""
    require_new(out)
    with replacing(out) as temporary:
        temporary.mkdir()
        run = RunDirectory(temporary)
        run.write_config(model.config)
        run.tokenizer_path.write_bytes(model.tokenizer.model_bytes)
        save_file(model.weights, run.model_path)
        for name, content in model.documents.items():
            (temporary / name).write_bytes(content)
        hashes = {path.name: sha256(path) for path in (run.model_path, run.tokenizer_path)}
        card = {"kind": "imported", "steps": [], **model.origin, "files": hashes}
        write_atomically(run.model_card_path, (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode())
        if known := languages or model.languages:
            write_languages(run, *known)
        _write_converted(model, run)


def _write_converted(model: ImportedModel, run: RunDirectory) -> None:
    """Writes a model that CTranslate2 reads to where a run keeps those that it converts, and its number type."""
    digest = digest_of(run, model.tokenizer)
    if model.compute_type != "float32":
        choice = {"compute_type": model.compute_type, "digest": digest}
        write_atomically(run.engine_path, (json.dumps(choice, indent=2) + "\n").encode())
    for name, content in model.converted.items():
        write_atomically(converted_path(run, model.compute_type, digest) / name, content)


def require_new(out: Path) -> None:
    """Raises if something is there that would be overwritten."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already; remove it, or give another --out")
