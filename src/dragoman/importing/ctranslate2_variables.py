"""The variables of a CTranslate2 model, each of which must find its place in ours."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dragoman.decoding.engines.numpy_weights import Array
from dragoman.errors import DataError
from dragoman.importing.ctranslate2_file import CTranslate2File

SIDES = ("encoder", "decoder")
OLDEST_REVISION, NEWEST_REVISION = 3, 7  # of the specification
# Settings with which the model is ours, and what they are called otherwise.
NEUTRAL = {"multi_query_attention": 0.0, "alibi": 0.0, "sliding_window": 0.0, "scale_outputs": 1.0}
# Settings that change no translation: which attention is shown as alignment, and details of what is not there.
UNUSED = ("alignment_layer", "alignment_heads", "embeddings_merge", "alibi_use_positive_positions", "scale_alibi")
# What variables that found no place belong to.
FOREIGN = {
    "relative": "relative positions", "rotary": "rotary positions", "_noact": "gated feed-forward layers",
    "embeddings_1": "source features", "_norm/": "further normalisation", "kv": "shared keys and values",
}  # fmt: skip


class Variables:
    """The variables of a file, each of which must find its place."""

    def __init__(self, file: CTranslate2File, path: Path) -> None:
        self.file, self.path = file, path
        self._taken: set[str] = set()
        if file.specification != "TransformerSpec":
            raise DataError(
                f"{path}: a model of {file.specification[:60]}; translators (TransformerSpec) can be imported"
            )
        if not OLDEST_REVISION <= file.revision <= NEWEST_REVISION:
            raise DataError(
                f"{path}: revision {file.revision} of TransformerSpec; {OLDEST_REVISION} to {NEWEST_REVISION} can be "
                f"imported: convert the model again with another version of CTranslate2"
            )

    def __contains__(self, name: str) -> bool:
        return name in self.file.variables

    def __iter__(self) -> Iterator[str]:
        return iter(self.file.variables)

    def shape(self, name: str, rank: int) -> tuple[int, ...]:
        """The shape of a variable that must have so many dimensions."""
        found = self.file.variables[name].shape if name in self else None
        if found is None or len(found) != rank or 0 in found:
            raise DataError(f"{self.path}: {name} {self._described(name)}; {rank} dimensions are needed")
        return found

    def take(self, name: str, *shape: int) -> Array:
        """A variable in float32, of this shape."""
        if name not in self or self.file.variables[name].shape != shape:
            raise DataError(
                f"{self.path}: {name} {self._described(name)} where {shape} is needed; only Transformers with layer "
                f"norm and with keys and values for each head can be imported"
            )
        self._taken.add(name)
        array = self.file.floats(name)
        if not np.isfinite(array).all():
            raise DataError(f"{self.path}: {name} has numbers that are not finite; fetch the model again")
        return array

    def bias(self, name: str, size: int) -> Array:
        """A bias, or zeros where there is none."""
        return self.take(name, size) if name in self else np.zeros(size, np.float32)

    def setting(self, name: str, default: float) -> float:
        """A number without dimensions. Before revision 5, both sides had one under its last name."""
        known = next((known for known in (name, name.rpartition("/")[2]) if known in self), None)
        if known is None:
            return default
        self.shape(known, 0)
        self._taken.add(known)
        return float(self.file.variables[known])

    def both(self, name: str, default: float) -> float:
        """A setting that encoder and decoder must share."""
        encoder, decoder = (self.setting(f"{side}/{name}", default) for side in SIDES)
        if encoder != decoder:
            raise DataError(
                f"{self.path}: encoder/{name} = {encoder:g} and decoder/{name} = {decoder:g}; only models in which "
                f"they are the same can be imported"
            )
        return encoder

    def check_all_taken(self) -> None:
        """Raises for the first variable that our model has no place for."""
        in_no_layer = {f"{side}/{name}" for side in SIDES for name in UNUSED} | set(UNUSED)
        for name in self:
            if name in self._taken or name in in_no_layer or ("/" not in name and not self.file.variables[name].ndim):
                continue
            neutral = NEUTRAL.get(name.rpartition("/")[2])
            if neutral is not None and self.setting(name, neutral) == neutral:
                continue
            if name.rpartition("/")[2] in ("unk_token", "bos_token", "eos_token"):
                continue
            what = next((f" ({what})" for part, what in FOREIGN.items() if part in name), "")
            raise DataError(f"{self.path}: {name}{what} {self._described(name)}; models without it can be imported")

    def _described(self, name: str) -> str:
        if name not in self:
            return "is missing"
        array = self.file.variables[name]
        return f"has shape {array.shape}" if array.ndim else f"= {float(array):g}"
