"""Converts a run's weights to CTranslate2's format, through CTranslate2's own model specification. Imports no torch.

The result is kept in the run as ctranslate2/<number type>-<digest of what it was made from>: other weights are
converted again. A model that CTranslate2 has no place for is refused. What it does otherwise than the paper is written
out for it:

positions    its own sinusoids are not the paper's, so our table goes with the weights. Beyond the table's end it
             refuses to compute; who asks for a longer one gets it, except of learned positions, which have an end.
d_k, d_v     it knows one size of a head: the smaller of the two is filled up with zeros, which change no product.
1/sqrt(d_k)  the true scale is stored beside the weights, so the zeros do not change it either.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import rmtree
from typing import Any

from dragoman.config import ModelConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines import CannotServeError, ComputeType, require_vocabulary_of
from dragoman.decoding.engines.ct2_cache import VOCABULARY_MAP, Converted, converted_path, find_converted
from dragoman.decoding.engines.ct2_specification import SpecificationBuilder
from dragoman.decoding.engines.numpy_weights import Weights
from dragoman.errors import DragomanError
from dragoman.files import locked, replacing
from dragoman.run_directory import RunDirectory

LEAST_POSITIONS = 512


def refusal(config: ModelConfig) -> str | None:
    """Why CTranslate2 cannot compute such a model; None: it can."""
    if config.architecture != "transformer":
        return f"it is no Transformer (model.architecture = {config.architecture})"
    if config.task != "translate":
        return f"it is half of one (encoder_layers = {config.encoder_layers}, decoder_layers = {config.decoder_layers})"
    if config.norm != "layer":
        return f"it has no {config.norm} normalisation (model.norm)"
    if not config.residual:
        return "it always has residual connections (model.residual = false)"
    return None


def convert(
    run: RunDirectory, tokenizer: Tokenizer, compute_type: ComputeType, digest: str, positions: int
) -> Converted:
    """The run's converted model with room for so many positions: the existing one if it has them, or a new one."""
    config = run.read_config().model
    if reason := refusal(config):
        raise CannotServeError(f"{run.path}: ctranslate2 cannot compute this model: {reason}")
    require_vocabulary_of(config, tokenizer)
    path = converted_path(run, compute_type, digest)

    def found() -> Converted | None:
        kept = find_converted(path)
        return kept if kept is not None and (kept.positions >= positions or config.positions == "learned") else None

    if kept := found():
        return kept
    if not os.access(run.path, os.W_OK):
        raise CannotServeError(f"{run.path}: cannot be written, and ctranslate2 keeps its own form of the model there")
    with locked(run.path):  # another process may be converting, and have done it when it is our turn
        return found() or _convert(run, config, tokenizer, compute_type, digest, positions)


def _convert(
    run: RunDirectory,
    config: ModelConfig,
    tokenizer: Tokenizer,
    compute_type: ComputeType,
    digest: str,
    positions: int,
) -> Converted:
    path, rows = converted_path(run, compute_type, digest), config.max_positions
    if config.positions != "learned":  # powers of two, so that a longer sentence does not convert again each time
        rows = max(LEAST_POSITIONS, 1 << (positions - 1).bit_length())
    weights = Weights(run.model_path, config)
    vocabulary_map = path / VOCABULARY_MAP
    kept_map = vocabulary_map.read_bytes() if vocabulary_map.is_file() else None
    try:
        with _specifications() as specs, replacing(path) as directory:
            directory.mkdir()
            if kept_map is not None:
                (directory / VOCABULARY_MAP).write_bytes(kept_map)
            spec = SpecificationBuilder(specs, config, weights, rows).build(tokenizer)
            # Also where nothing is quantised: it stores equal arrays, which tied weights are, once.
            spec.optimize(quantization=None if compute_type == "float32" else compute_type)
            spec.save(str(directory))
    except DragomanError:
        # Where there are no locks, another process may have converted the same weights and been quicker.
        found = find_converted(path)
        if found is None or found.positions < rows:
            raise
    for other in run.converted_path.iterdir():  # models of weights that are no longer the run's
        if other.is_dir() and not other.name.endswith(digest) and not other.name.startswith("."):
            rmtree(other, ignore_errors=True)
    return Converted(path, rows)


@contextmanager
def _specifications() -> Iterator[Any]:
    """CTranslate2's module `specs`, without torch: it would import torch, for seconds, only to accept its tensors.

    While torch is hidden, the module is loaded as if torch were not installed. So it is unloaded afterwards, and
    whoever else in this process imports it gets it whole.
    """
    import ctranslate2

    if "torch" in sys.modules or "ctranslate2.specs" in sys.modules:
        yield ctranslate2.specs
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        specs = ctranslate2.specs
    finally:
        del sys.modules["torch"]
    try:
        yield specs
    finally:
        for name in [name for name in sys.modules if f"{name}.".startswith("ctranslate2.specs.")]:
            del sys.modules[name]
        vars(ctranslate2).pop("specs", None)
