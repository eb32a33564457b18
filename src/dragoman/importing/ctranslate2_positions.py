"""Which positions a CTranslate2 model has: the paper's, fairseq's, or a table of its own."""

import numpy as np
from numpy.typing import NDArray

from dragoman.config import ModelConfig, Positions
from dragoman.decoding.engines.numpy_weights import Array, position_table
from dragoman.errors import DataError
from dragoman.importing.ctranslate2_variables import SIDES, Variables
from dragoman.importing.huggingface_tensors import alternating, sines_first

COMPUTED = 1024  # rows that are kept of a table that CTranslate2 computes itself
COMPARED, TOLERANCE = 512, 1e-3  # rows of a table that are looked at; half precision is so exact

Order = NDArray[np.int64]


def position_tables(variables: Variables, d_model: int) -> tuple[list[Array], Positions, Order]:
    """The tables of source and target, the kind of positions, and the order of the model's dimensions in which they are
    of that kind. A table that is none of the known sinusoids is a learned one; the known ones are none of the weights.
    """
    names = [f"{side}/position_encodings/encodings" for side in SIDES]
    there = [name in variables for name in names]
    if there[0] != there[1]:
        raise DataError(f"{variables.path}: {names[there[0]]} is missing; models with both tables can be imported")
    tables = [_computed_table(d_model)] * 2
    if there[0]:
        tables = [variables.take(name, variables.shape(name, 2)[0], d_model) for name in names]
    as_they_are = np.arange(d_model)
    known: list[tuple[Positions, Order, Order]] = []
    if d_model % 2 == 0 and d_model > 2:
        known = [
            ("sinusoidal", as_they_are, as_they_are),
            ("sinusoidal", sines_first(d_model), alternating(d_model)),  # Marian's
            ("sinusoidal-fairseq", as_they_are, as_they_are),
        ]
    for kind, seen, order in known:
        config = ModelConfig(d_model=d_model, num_heads=1, positions=kind)
        wanted = position_table(config, COMPARED)[:, seen]
        if all(np.allclose(table[:COMPARED], wanted[: len(table)], rtol=0, atol=TOLERANCE) for table in tables):
            return [], kind, order
    rows = min(map(len, tables))
    return [np.ascontiguousarray(table[:rows]) for table in tables], "learned", as_they_are


def _computed_table(d_model: int) -> Array:
    """The sinusoids that CTranslate2 computes where a model has no table: fairseq's, from one position before."""
    half = d_model // 2
    frequency = np.exp(np.arange(half, dtype=np.float32) * np.float32(-np.log(10_000) / max(1, half - 1)))
    angle = np.arange(1, COMPUTED + 1, dtype=np.float32)[:, None] * frequency
    return np.concatenate((np.sin(angle), np.cos(angle)), axis=1)
