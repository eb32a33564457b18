"""The parts of a run that a public model has, and the run that is written of them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from dragoman.config import RunConfig
from dragoman.data.language_codes import write_languages
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines.numpy_weights import Array
from dragoman.errors import UsageError
from dragoman.files import replacing, write_atomically
from dragoman.run_directory import RunDirectory


@dataclass(frozen=True)
class ImportedModel:
    """A public model in our terms."""

    config: RunConfig
    weights: dict[str, Array]  # by our names, a tied matrix once
    tokenizer: Tokenizer
    languages: tuple[str, str] | None = None  # source and target, where the model says them
    origin: dict[str, Any] = field(default_factory=dict)  # where it came from, for the run's record
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
        card = {"kind": "imported", "steps": [], **model.origin}
        write_atomically(run.model_card_path, (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode())
        if known := languages or model.languages:
            write_languages(run, *known)


def require_new(out: Path) -> None:
    """Raises if something is there that would be overwritten."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already; remove it, or give another --out")
