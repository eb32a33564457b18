"""Attention asked for and returned: what every head of the model looks at in one sentence pair.

Interventions come in as an argument and leave with the pass; nothing is stashed on a module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.errors import UsageError
from dragoman.model.transformer import Intervention, Probe, Site, Transformer


@dataclass(frozen=True)
class Trace:
    """One teacher-forced pass; of half a model, what that half has.

    Row t of the decoder's weights belongs to two tokens: to fed[t], at which it looks around, and to predicted[t],
    which it looks for. Columns are fed tokens ("decoder") or source tokens ("cross").
    """

    source: tuple[int, ...]  # labels the rows and columns of the encoder
    fed: tuple[int, ...]
    predicted: tuple[int, ...]
    log_probabilities: tuple[float, ...]  # of the predicted tokens
    weights: Mapping[Site, Tensor]  # (H, queries, keys) each, on the CPU
    scores: Mapping[Site, Tensor]  # likewise: what the softmax was given, before any mask


@torch.no_grad()
def trace(
    model: Transformer,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    interventions: Mapping[Site, Intervention] | None = None,
) -> Trace:
    """Ids are taken to the letter: a source as the model was trained has its end symbol last, a target its start
    symbol first (it is only fed) and its end symbol last (it is only predicted). Dropout is off in this pass.

    An encoder alone is given no target, a decoder alone no source.
    """
    encodes, decodes = model.config.encoder_layers > 0, model.config.decoder_layers > 0
    if len(source_ids) < encodes or len(target_ids) < 2 * decodes:
        raise UsageError(
            f"{len(source_ids)} source and {len(target_ids)} target ids; a trace of this model needs at least "
            f"{1 * encodes} and {2 * decodes}: tokens with an end symbol, and a start symbol with something to predict"
        )
    probe = Probe(_checked(interventions or {}, model))
    device = model.output.weight.device
    source, target = (torch.tensor([list(ids)], device=device, dtype=torch.long) for ids in (source_ids, target_ids))
    was_training = model.training
    model.eval()
    try:
        logits = model(source, target[:, :-1], probe=probe)  # (1, T, V)
    finally:
        model.train(was_training)
    log_probs = logits[0].float().log_softmax(dim=-1)
    return Trace(
        source=tuple(source[0].tolist()),
        fed=tuple(target[0, :-1].tolist()),
        predicted=tuple(target[0, 1:].tolist()),
        log_probabilities=tuple(log_probs.gather(1, target[0, 1:, None]).squeeze(1).tolist()) if decodes else (),
        weights={site: weights[0].cpu() for site, weights in probe.weights.items()},
        scores={site: scores[0].cpu() for site, scores in probe.scores.items()},
    )


def _checked(interventions: Mapping[Site, Intervention], model: Transformer) -> Mapping[Site, Intervention]:
    """An intervention on something that the model does not have would pass without effect, or without a clear word."""
    encoder, decoder = model.config.encoder_layers, model.config.decoder_layers
    layers = {"encoder": encoder, "decoder": decoder, "cross": decoder if encoder else 0}
    num_heads = model.config.num_heads
    for (kind, layer), intervention in interventions.items():
        if not 0 <= layer < layers.get(kind, 0):
            allowed = ", ".join(f"{name} 0 to {count - 1}" for name, count in layers.items() if count)
            raise UsageError(f"intervention on {kind} layer {layer}; the model has {allowed}")
        for head in (*intervention.heads_off, *(override.head for override in intervention.overrides)):
            if not 0 <= head < num_heads:
                raise UsageError(
                    f"intervention on head {head} of {kind} layer {layer}; the model has heads 0 to {num_heads - 1}"
                )
    return interventions
