"""One sentence through one kept state of a run: its translation, and where the decoder looked in the source."""

from dataclasses import dataclass

from torch import Tensor, stack

from dragoman.engines.reference import ReferenceEngine
from dragoman.errors import UsageError
from dragoman.model import Site
from dragoman.trace import trace
from dragoman.translate import Translator


@dataclass(frozen=True)
class Snapshot:
    """Row t of the cross-attention is of target_tokens[t], which it was looking for; both sides end with </s>."""

    text: str
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    log_probability: float
    cross: Tensor  # (layers, H, T, S)


def snapshot(translator: Translator, text: str) -> Snapshot:
    """The translator is one of the reference engine: only that looks inside."""
    engine, tokenizer = translator.engine, translator.tokenizer
    assert isinstance(engine, ReferenceEngine)
    source = tokenizer.encode(text.strip())
    if not 1 <= len(source) <= translator.search.max_source_length:
        raise UsageError(
            f"a sentence of {len(source)} tokens; shown are sentences of 1 to {translator.search.max_source_length}"
        )
    best = engine.translate([source], translator.search)[0][0]
    traced = trace(engine.models[0], [*source, tokenizer.eos_id], [tokenizer.bos_id, *best.ids, tokenizer.eos_id])
    layers = range(len(engine.models[0].decoder))
    return Snapshot(
        text=tokenizer.decode(best.ids).replace("\n", " "),
        source_tokens=tuple(map(tokenizer.piece, traced.source)),
        target_tokens=tuple(map(tokenizer.piece, traced.predicted)),
        log_probability=sum(traced.log_probabilities),
        cross=stack([traced.weights[Site("cross", layer)] for layer in layers]),
    )
