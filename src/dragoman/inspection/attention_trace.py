"""Records the attention of every head of a model in one pass over a sentence pair, with or without interventions.

Interventions are an argument of the pass and end with it; nothing is stored in the model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.errors import UsageError
from dragoman.model.probe import Intervention, Probe, Site
from dragoman.model.transformer import Transformer


@dataclass(frozen=True)
class Trace:
    """The record of one teacher-forced pass; if the model is an encoder or a decoder alone, of that part.

    Row t of the decoder's weights belongs to two tokens: fed[t], the decoder's input there, and predicted[t], its
    output. Columns are fed tokens ("decoder") or source tokens ("cross").
    """

    source: tuple[int, ...]  # the tokens of the encoder's rows and columns
    fed: tuple[int, ...]
    predicted: tuple[int, ...]
    log_probabilities: tuple[float, ...]  # of the predicted tokens; 0 of those that were given
    weights: Mapping[Site, Tensor]  # (H, queries, keys) each, on the CPU
    scores: Mapping[Site, Tensor]  # likewise: the softmax's input, before any mask


@torch.no_grad()
def trace(
    model: Transformer,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    interventions: Mapping[Site, Intervention] | None = None,
    given: int = 1,
) -> Trace:
    """Runs one pass without dropout and records its attention.

    No symbol is added to the ids: the source should end with the end symbol; the target should begin with the start
    symbol, which is only fed, and end with the end symbol, which is only predicted. An encoder alone gets an empty
    target, a decoder alone an empty source. given: so many target ids are no choice of the model: the start symbol, and
    in some models the language token after it.
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
    chosen = log_probs.gather(1, target[0, 1:, None]).squeeze(1).tolist() if decodes else []
    return Trace(
        source=tuple(source[0].tolist()),
        fed=tuple(target[0, :-1].tolist()),
        predicted=tuple(target[0, 1:].tolist()),
        log_probabilities=(*[0.0] * len(chosen[: given - 1]), *chosen[given - 1 :]),
        weights={site: weights[0].cpu() for site, weights in probe.weights.items()},
        scores={site: scores[0].cpu() for site, scores in probe.scores.items()},
    )


def _checked(interventions: Mapping[Site, Intervention], model: Transformer) -> Mapping[Site, Intervention]:
    """The interventions, if the model has all the layers and heads that they name; else they would have no effect."""
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
