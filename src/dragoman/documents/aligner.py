"""Aligns the words of sentences and their translations, for the places of tags. Without torch where a run already knows
which of its heads align: they are chosen once for its weights, which takes torch.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dragoman.config import ModelConfig
from dragoman.data.words import words_of
from dragoman.decoding.alignment import Alignment, AlignmentHeads, remember_heads, remembered_heads
from dragoman.decoding.engines.ctranslate2 import CTranslate2Engine
from dragoman.errors import has_torch
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator

if TYPE_CHECKING:
    from dragoman.inspection.explain import Explainer


class Aligner(Protocol):
    """What gives the alignment of a sentence with its translation, which is given as tokens."""

    def align(self, text: str, translation: Sequence[str], /) -> Alignment: ...


def aligner_of(translator: Translator, run: Path) -> Aligner | None:
    """An aligner with the weights of the translator; None: the model gives no alignment, or there is no torch to choose
    its heads with."""
    engine = translator.engine
    if not isinstance(engine, CTranslate2Engine) or translator.tag:
        return explainer_of(translator, run)
    heads = remembered_heads(engine.run, engine.digest)
    if heads is not None and _is_computed(engine.run.read_config().model):
        return NumpyAligner(translator, engine.run, heads)
    explainer = explainer_of(translator, run)
    if explainer is not None:
        remember_heads(engine.run, engine.digest, explainer.alignment_heads)
    return explainer


def _is_computed(config: ModelConfig) -> bool:
    from dragoman.decoding.engines.numpy_attention import can_compute

    return can_compute(config)


class NumpyAligner:
    """Aligns as the explainer does, to the rounding of float32."""

    def __init__(self, translator: Translator, run: RunDirectory, heads: AlignmentHeads) -> None:
        from dragoman.decoding.engines.numpy_attention import NumpyAttention

        self.tokenizer = translator.tokenizer
        self.heads = heads
        self._attention = NumpyAttention(run.model_path, run.read_config().model)
        self._ids = {self.tokenizer.piece(index): index for index in range(self.tokenizer.vocab_size)}

    def align(self, text: str, translation: Sequence[str], /) -> Alignment:
        tokenizer, heads = self.tokenizer, self.heads
        source = tokenizer.encode(text.strip())
        ids = [self._ids[token] for token in translation]
        fed = [*tokenizer.start_ids, *ids]
        layers = self._attention.weights(tokenizer.encoder_ids(source), fed, 1 + max(layer for layer, _ in heads.heads))
        first = len(tokenizer.start_ids) - 1 + heads.shift  # the row of the first token
        rows = sum(layers[layer][head] for layer, head in heads.heads)[first:] / len(heads.heads)
        sources, targets = words_of(source, tokenizer, "source"), words_of(ids, tokenizer)
        weights = tuple(
            tuple(
                float(rows[t.first_token : t.last_token + 1, s.first_token : s.last_token + 1].sum(axis=1).mean())
                for s in sources
            )
            for t in targets
        )
        return Alignment(sources, targets, weights)


def explainer_of(translator: Translator, run: Path) -> "Explainer | None":
    """An explainer that shares the weights of the translator; None: the model gives no alignment, or torch is not there
    to ask it."""
    if not has_torch():
        return None
    from dragoman.data.dataset import validation_pairs
    from dragoman.inspection.alignment import CALIBRATION_SENTENCES
    from dragoman.inspection.explain import Explainer
    from dragoman.model.transformer import Transformer

    reference = translator.reference
    if len(reference.models) != 1 or not isinstance(reference.models[0], Transformer):
        return None
    return Explainer(reference, translator.search, validation_pairs(run, CALIBRATION_SENTENCES), translator.tag)
