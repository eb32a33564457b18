"""The model sizes that are compared, and the text that all contestants train on."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from dragoman.config import CorpusConfig, DataConfig, ModelConfig
from dragoman.data.dataset import Prepared, prepare

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "bench"  # what can be made again: prepared text, logs of the contestants
DATA = Path(os.environ.get("BENCH_DATA", ROOT.parent / "shared" / "data" / "multi30k"))
VOCABULARY = 8000


@dataclass(frozen=True)
class Shape:
    """A size, and how the contestants are run at it."""

    layers: int
    d_model: int
    d_ff: int
    heads: int
    dropout: float
    batch_tokens: int  # of a step, on each side

    def model_config(self, vocab_size: int) -> ModelConfig:
        """Ours: post-norm, as the paper's and as the peers are by default."""
        return ModelConfig(
            vocab_size=vocab_size,
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            d_model=self.d_model,
            d_ff=self.d_ff,
            num_heads=self.heads,
            dropout=self.dropout,
        )


SHAPES = {
    "tiny": Shape(layers=4, d_model=128, d_ff=256, heads=4, dropout=0.3, batch_tokens=4096),
    "base": Shape(layers=6, d_model=512, d_ff=2048, heads=8, dropout=0.1, batch_tokens=2048),
}


def multi30k() -> Prepared:
    """English-German, one shared vocabulary."""

    def corpus(name: str) -> tuple[CorpusConfig, ...]:
        return (CorpusConfig(source=str(DATA / f"{name}.en.gz"), target=str(DATA / f"{name}.de.gz")),)

    config = DataConfig(train=corpus("train"), valid=corpus("val"))
    return prepare(config, VOCABULARY, 1, WORK / "multi30k", lambda line: print(line, file=sys.stderr))
