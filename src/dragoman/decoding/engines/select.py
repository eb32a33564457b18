"""Chooses and loads the engine. `auto`: CTranslate2 where it can, else the reference; torch is imported only then."""

import importlib.util
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.config import SearchConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import CannotServeError, ComputeType, Engine, EngineName
from dragoman.errors import UsageError, require_torch
from dragoman.run_directory import RunDirectory

if TYPE_CHECKING:
    from dragoman.decoding.engines.torch_engine import ReferenceEngine


def load_engine(
    runs: Sequence[RunDirectory],
    tokenizer: Tokenizer,
    search: SearchConfig,
    checkpoint: str | None = None,
    engine: EngineName = "auto",
    compute_type: ComputeType | None = None,
    vocabulary_map: bool | None = None,
) -> Engine:
    """Loads an engine for these runs. A named engine or compute type is loaded, or a CannotServeError says why not."""
    for name, value, kind in (("engine", engine, EngineName), ("compute type", compute_type, ComputeType)):
        if value is not None and value not in typing.get_args(kind):
            raise UsageError(f"{name} {value}; allowed: {', '.join(typing.get_args(kind))}")
    if engine == "reference" and compute_type is not None:
        raise UsageError(f"compute type {compute_type}: the reference engine has float32 only; use ctranslate2 for it")
    if engine != "reference":
        try:
            return _load_ctranslate2(runs, tokenizer, search, checkpoint, compute_type, vocabulary_map)
        except CannotServeError:
            if engine == "ctranslate2" or compute_type is not None:
                raise
    return load_reference(runs, tokenizer, checkpoint)


def load_reference(
    runs: Sequence[RunDirectory], tokenizer: Tokenizer, checkpoint: str | None = None
) -> "ReferenceEngine":
    """Loads the reference engine: one run, or several as an ensemble."""
    require_torch("the reference engine (required words, sampling, ensembles, checkpoints)")
    from dragoman.decoding.engines.torch_engine import ReferenceEngine
    from dragoman.model.checkpoint import load_model

    return ReferenceEngine([load_model(run, checkpoint) for run in runs], tokenizer, on_all_cores=True)


def _load_ctranslate2(
    runs: Sequence[RunDirectory],
    tokenizer: Tokenizer,
    search: SearchConfig,
    checkpoint: str | None,
    compute_type: ComputeType | None,
    vocabulary_map: bool | None,
) -> Engine:
    if importlib.util.find_spec("ctranslate2") is None:
        raise CannotServeError("ctranslate2 is not installed; pip install ctranslate2, or use the reference engine")
    if len(runs) > 1:
        raise CannotServeError(f"ctranslate2 translates with one run, not {len(runs)}; use the reference engine")
    if checkpoint is not None:
        raise CannotServeError(
            f"ctranslate2 translates with a run's model.safetensors only, not {checkpoint}; use the reference engine"
        )
    from dragoman.decoding.engines.ctranslate2 import CTranslate2Engine

    return CTranslate2Engine(runs[0], tokenizer, search, compute_type, vocabulary_map)
