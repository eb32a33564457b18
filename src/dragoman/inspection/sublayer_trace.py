"""Records what every sub-layer of a model reads, writes and leaves behind, in one pass over a sentence pair.

Attention weights are attention_trace's matter; here are the vectors. The pass is written out sub-layer by sub-layer, so
that the normalisation can also be put where the run does not have it: after the sum (the paper's order, "post") or
before the sub-layer ("pre"). Letters in shape comments are transformer.py's.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.errors import UsageError
from dragoman.model.probe import Probe, Site
from dragoman.model.transformer import Embedding, FeedForward, MultiHeadAttention, SubLayerWrapper, Transformer

NormOrder = Literal["pre", "post"]
Stack = Literal["encoder", "decoder"]
SubLayerName = Literal["self-attention", "cross-attention", "feed-forward"]


@dataclass(frozen=True)
class SubLayer:
    """One sub-layer's vectors, one a token."""

    stack: Stack
    layer: int
    name: SubLayerName
    received: Tensor  # (T, D) what the sub-layer computes from: normalised in pre-norm
    written: Tensor  # (T, D) what it adds to the residual stream
    stream: Tensor  # (T, D) the stream after it: normalised in post-norm
    hidden: Tensor | None  # (T, d_ff) inside a feed-forward layer, after its activation
    weights: Tensor | None  # (H, T, columns) of an attention
    scores: Tensor | None  # likewise: what its softmax is given, before the mask


@dataclass(frozen=True)
class StackTrace:
    """One half of the model: from embeddings to what it hands on."""

    tokens: Tensor  # (T, D) the embeddings, times sqrt(d_model)
    positions: Tensor | None  # (T, D) what is added to them; None: nothing
    embedded: Tensor  # (T, D) what enters the first layer
    sublayers: tuple[SubLayer, ...]
    output: Tensor  # (T, D) normalised once more in pre-norm


@dataclass(frozen=True)
class SubLayerTrace:
    order: NormOrder
    encoder: StackTrace
    decoder: StackTrace
    log_probs: Tensor  # (T, V) of the token after each target position
    next_ids: tuple[int, ...]  # the tokens that follow: what the model is asked to predict

    @property
    def log_probabilities(self) -> list[float]:
        """Of the tokens that follow."""
        chosen = torch.tensor(self.next_ids)[:, None]
        return self.log_probs.gather(1, chosen).squeeze(1).tolist()


@dataclass(frozen=True)
class HeadVectors:
    """How one head computes one row of its attention: equation 1 with its numbers."""

    query: Tensor  # (d_k,)
    keys: Tensor  # (columns, d_k)
    values: Tensor  # (columns, d_v)
    scores: Tensor  # (columns,) query times key, times `scale`; -inf where the mask hides a column
    weights: Tensor  # (columns,)
    context: Tensor  # (d_v,) the values, mixed by the weights
    scale: float


def own_order(model: Transformer) -> NormOrder:
    """Where the run has its normalisation."""
    return "pre" if model.config.norm_order == "pre" else "post"


@torch.no_grad()
def trace_sublayers(
    model: Transformer, source_ids: Sequence[int], target_ids: Sequence[int], order: NormOrder | None = None
) -> SubLayerTrace:
    """Runs one pass without dropout. The ids are attention_trace.trace's: the source with its end symbol, the target
    from the start symbol to the end symbol. order: None: the run's own, which gives the model's own numbers."""
    model.eval()
    device = model.output.weight.device
    source, target = (torch.tensor([list(ids)], device=device) for ids in (source_ids, target_ids))
    wanted = own_order(model) if order is None else order
    walk = _Walk(model, wanted)
    encoder = walk.stack("encoder", model.source_embedding, source, None)
    decoder = walk.stack("decoder", model.target_embedding, target[:, :-1], encoder.output[None].to(device))
    log_probs = model.output(decoder.output[None].to(device))[0].float().log_softmax(dim=-1).cpu()
    return SubLayerTrace(wanted, encoder, decoder, log_probs, tuple(target[0, 1:].tolist()))


class _Walk:
    """A pass through a model's stacks, sub-layer by sub-layer."""

    def __init__(self, model: Transformer, order: NormOrder) -> None:
        self.model = model
        self.order = order

    def stack(self, stack: Stack, embedding: Embedding, ids: Tensor, memory: Tensor | None) -> StackTrace:
        tokens = embedding.tokens(ids) * embedding.scale
        positions = embedding.position_rows(0, ids.shape[1])
        x = embedded = embedding(ids)
        found: list[SubLayer] = []
        blocks, last = (
            (self.model.encoder, self.model.encoder_norm)
            if stack == "encoder"
            else (self.model.decoder, self.model.decoder_norm)
        )
        for layer, block in enumerate(blocks):
            own: MultiHeadAttention = block.self_attention  # type: ignore[assignment]
            site = Site(stack, layer)
            found.append(self._attend(stack, site, block.around_self, own, x, None))  # type: ignore[arg-type]
            if memory is not None:
                cross: MultiHeadAttention = block.cross_attention  # type: ignore[assignment]
                x = found[-1].stream[None].to(x)
                site = Site("cross", layer)
                found.append(self._attend(stack, site, block.around_cross, cross, x, memory))  # type: ignore[arg-type]
            x = found[-1].stream[None].to(x)
            found.append(self._feed(stack, layer, block.around_feed_forward, block.feed_forward, x))  # type: ignore[arg-type]
            x = found[-1].stream[None].to(x)
        rows = None if positions is None else positions.detach().cpu()
        output = last(x) if self.order == "pre" else x  # a post-norm run has nothing to apply here
        return StackTrace(tokens[0].cpu(), rows, embedded[0].cpu(), tuple(found), output[0].cpu())

    def _attend(
        self,
        stack: Stack,
        site: Site,
        around: SubLayerWrapper,
        own: MultiHeadAttention,
        x: Tensor,
        memory: Tensor | None,
    ) -> SubLayer:
        probe = Probe()

        def attend(y: Tensor) -> Tensor:
            if memory is None:
                return own.attend(*own.project(y), site, causal=stack == "decoder", probe=probe)
            key, value = own.split_heads(own.w_k(memory)), own.split_heads(own.w_v(memory))
            return own.attend(own.split_heads(own.w_q(y)), key, value, site, probe=probe)

        received, written, stream = self._around(around, x, attend)
        name: SubLayerName = "self-attention" if memory is None else "cross-attention"
        weights, scores = probe.weights[site][0].cpu(), probe.scores[site][0].cpu()
        return SubLayer(stack, site.layer, name, received, written, stream, None, weights, scores)

    def _feed(self, stack: Stack, layer: int, around: SubLayerWrapper, feed: FeedForward, x: Tensor) -> SubLayer:
        received, written, stream = self._around(around, x, feed)
        inside = feed.activation(F.linear(received.to(x), feed.w_1.weight, feed.w_1.bias)).cpu()
        return SubLayer(stack, layer, "feed-forward", received, written, stream, inside, None, None)

    def _around(
        self, around: SubLayerWrapper, x: Tensor, sublayer: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """AddAndNorm in the wanted order: what the sub-layer received, what it wrote, and the stream after it."""
        norm: nn.Module = around.norm
        received = norm(x) if self.order == "pre" else x
        written = sublayer(received)
        summed = x + written if around.residual else written
        stream = summed if self.order == "pre" else norm(summed)
        return received[0].cpu(), written[0].cpu(), stream[0].cpu()


@torch.no_grad()
def head_vectors(model: Transformer, traced: SubLayerTrace, site: Site, head: int, row: int) -> HeadVectors:
    """One head's query of one row, with all keys and values that it meets."""
    found = _sublayer_of(traced, site)
    own: MultiHeadAttention = _attention_of(model, site)
    if not 0 <= head < own.num_heads:
        raise UsageError(f"head {head}; the run has heads 0 to {own.num_heads - 1} in each layer")
    if not 0 <= row < len(found.received):
        raise UsageError(f"row {row}; {site.kind} attention has rows 0 to {len(found.received) - 1} here")
    device = model.output.weight.device
    looked_at = traced.encoder.output if site.kind == "cross" else found.received
    query = own.split_heads(own.w_q(found.received[row : row + 1].to(device)))[head, 0]
    keys, values = (own.split_heads(project(looked_at.to(device)))[head] for project in (own.w_k, own.w_v))
    scores = keys @ query * own.scale
    if site.kind == "decoder":
        scores = scores.masked_fill(torch.arange(len(keys), device=device) > row, -math.inf)
    weights = scores.softmax(dim=0)
    return HeadVectors(
        query.cpu(), keys.cpu(), values.cpu(), scores.cpu(), weights.cpu(), (weights @ values).cpu(), own.scale
    )


def _sublayer_of(traced: SubLayerTrace, site: Site) -> SubLayer:
    stack = traced.encoder if site.kind == "encoder" else traced.decoder
    name = "cross-attention" if site.kind == "cross" else "self-attention"
    for one in stack.sublayers:
        if (one.layer, one.name) == (site.layer, name):
            return one
    raise UsageError(f"{site.kind} layer {site.layer}; the run has no such layer")


def _attention_of(model: Transformer, site: Site) -> MultiHeadAttention:
    block = (model.encoder if site.kind == "encoder" else model.decoder)[site.layer]
    return block.cross_attention if site.kind == "cross" else block.self_attention  # type: ignore[return-value]
