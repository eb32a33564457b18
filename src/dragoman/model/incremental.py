"""Decoding: one target position at a time, for every beam of a batch. An engineering matter, not in the paper.

It computes what transformer.py's decoder computes, to rounding, and tests hold the two equal. But a step is so little
work that asking torch for an operation costs as much as most operations do. So the weights and the encoded source are
arranged once a batch, results are added where they belong by the product that makes them, and nothing on the way is an
nn.Module. Nothing is learned here: no gradients, no dropout.

Letters in shape comments are transformer.py's: B sentences, K beams, R = B K rows, S source positions, H heads, D
d_model.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.probe import Intervention, Probe, Site

# Of numbers in a softmax: over fewer, torch takes them one by one, up to eight times as long as 16 together.
SMALLEST_SOFTMAX = 16
# Of multiplications in a matrix product: torch does smaller ones in a plain loop, which takes nearly three times as
# long as multiplying and adding element by element.
SMALLEST_PRODUCT = 400

Normalise = Callable[[Tensor], Tensor]


class Attention(Protocol):
    """What is asked of transformer.py's MultiHeadAttention."""

    num_heads: int
    scale: float
    w_q: nn.Linear
    w_k: nn.Linear
    w_v: nn.Linear
    w_o: nn.Linear


class Wrapper(Protocol):
    """What is asked of AddAndNorm, and of its variants."""

    @property
    def norm(self) -> nn.Module: ...
    @property
    def pre_norm(self) -> bool: ...
    @property
    def residual(self) -> bool: ...


class Inner(Protocol):
    """What is asked of FeedForward."""

    @property
    def activation(self) -> Callable[[Tensor], Tensor]: ...

    w_1: nn.Linear
    w_2: nn.Linear


class Layer(Protocol):
    """What is asked of DecoderLayer."""

    @property
    def self_attention(self) -> Attention: ...
    @property
    def cross_attention(self) -> Attention | None: ...
    @property
    def feed_forward(self) -> Inner: ...
    @property
    def around_self(self) -> Wrapper: ...
    @property
    def around_cross(self) -> Wrapper | None: ...
    @property
    def around_feed_forward(self) -> Wrapper: ...


class CrossWeights(NamedTuple):
    """What a step needs of one layer's cross-attention."""

    norm: Normalise
    query: Tensor  # (D, H d_k), scaled
    query_bias: Tensor | None
    out: Tensor  # (H d_v, D)
    out_bias: Tensor | None


class LayerWeights(NamedTuple):
    """A decoder layer's, as a step wants them: each matrix to be multiplied with from the right."""

    heads: int
    pre_norm: bool
    residual: bool
    norm_self: Normalise
    query_key_value: Tensor  # (D, 3 H d): queries scaled; keys and values of one width d, the narrower filled up
    query_key_value_bias: Tensor | None
    out_self: Tensor  # (H d, D)
    out_self_bias: Tensor | None
    cross: CrossWeights | None  # None: there is no encoder
    norm_feed_forward: Normalise
    activation: Callable[[Tensor], Tensor]
    w_1: Tensor
    b_1: Tensor
    w_2: Tensor
    b_2: Tensor


@dataclass
class EncodedSource:
    """The encoder's output as the decoder reads it: keys (layers, B, H, S, d_k) and values (layers, B, H, S, d_v)."""

    keys: Tensor
    values: Tensor
    bias: Tensor | None  # (B, 1, 1, S): 0 at tokens, -inf at padding

    @classmethod
    def of(cls, keys_values: Sequence[tuple[Tensor, Tensor]], mask: Tensor | None) -> "EncodedSource":
        """Keys and values (B, H, S, d) of each layer; mask (B, S): True at tokens. At least as many positions as a
        softmax takes together, those that are filled up being masked."""
        keys, values = (torch.stack(parts) for parts in zip(*keys_values, strict=True))
        room = SMALLEST_SOFTMAX - keys.shape[3]
        if room > 0:
            mask = keys.new_ones(keys.shape[1], keys.shape[3], dtype=torch.bool) if mask is None else mask
            keys, values = F.pad(keys, (0, 0, 0, room)), F.pad(values, (0, 0, 0, room))
            mask = F.pad(mask, (0, room))
        bias = None if mask is None else keys.new_zeros(mask.shape).masked_fill_(~mask, -math.inf)[:, None, None]
        return cls(keys, values, bias)

    def __post_init__(self) -> None:
        # As the products of a step take them: keys (B H, d_k, S) and values (B H, S, d_v) of each layer.
        self.of_layers = [
            (keys.flatten(0, 1).mT, values.flatten(0, 1))
            for keys, values in zip(self.keys.unbind(0), self.values.unbind(0), strict=True)
        ]

    def select(self, sentences: Tensor) -> "EncodedSource":
        bias = None if self.bias is None else self.bias.index_select(0, sentences)
        return EncodedSource(self.keys.index_select(1, sentences), self.values.index_select(1, sentences), bias)


class Past:
    """Keys and values of what was decoded so far, of all layers together: (layers, 2, R, H, capacity, d).

    Together, so that the rows of all layers are reordered by one copy. The capacity grows in blocks, so that most
    positions are written without copying what is there.
    """

    BLOCK = 8

    def __init__(self, length: int = 0, kept: Tensor | None = None) -> None:
        self.length = length  # positions complete in all layers
        self.kept = kept
        self.of_layers = () if kept is None else kept.unbind(0)

    def make_room(self, layers: int, rows: int, heads: int, width: int, like: Tensor) -> None:
        """For one more position."""
        if self.kept is not None and self.length < self.kept.shape[4]:
            return
        grown = like.new_empty(layers, 2, rows, heads, self.length + self.BLOCK, width)
        if self.kept is not None:
            grown[:, :, :, :, : self.length] = self.kept
        self.kept, self.of_layers = grown, grown.unbind(0)

    def append(self, layer: int, keys_values: Tensor) -> tuple[Tensor, Tensor]:
        """Write a layer's next position, (2, R, H, d); all of its keys and values so far, (R, H, positions, d) each."""
        of_layer = self.of_layers[layer]
        of_layer.select(3, self.length).copy_(keys_values)
        keys, values = of_layer.narrow(3, 0, self.length + 1).unbind(0)
        return keys, values

    def select(self, rows: Tensor) -> "Past":
        if self.kept is None:
            return Past(self.length)
        parts, before = self.kept.flatten(0, 1), self.kept.shape[2]
        everywhere = (torch.arange(parts.shape[0], device=rows.device)[:, None] * before + rows).flatten()
        chosen = parts.flatten(0, 1).index_select(0, everywhere)
        return Past(self.length, chosen.view(*self.kept.shape[:2], rows.shape[0], *self.kept.shape[3:]))


@dataclass
class DecodingState:
    """What decoding keeps between positions: self-attention's past a beam, cross-attention's source a sentence."""

    num_sentences: int  # B
    weights: Sequence[LayerWeights]
    source: EncodedSource | None  # None: there is no encoder
    past: Past

    def select(self, sentences: Tensor, beams: Tensor) -> Self:
        """Keep these sentences (B',), and of each these beams (B', K') in this order."""
        rows_before = self.num_sentences if self.past.kept is None else self.past.kept.shape[2]
        past = self.past.select((sentences[:, None] * (rows_before // self.num_sentences) + beams).flatten())
        source = self.source
        # Sentences only ever leave, so all of them means: as they were.
        if source is not None and sentences.shape[0] < self.num_sentences:
            source = source.select(sentences)
        return replace(self, num_sentences=sentences.shape[0], source=source, past=past)


def advance(x: Tensor, beams: int, state: DecodingState) -> Tensor:
    """One more position through all decoder layers, for (R, D), which it may change; `state` grows by it."""
    past, (first, *_) = state.past, state.weights
    width = first.query_key_value.shape[1] // (3 * first.heads)
    past.make_room(len(state.weights), x.shape[0], first.heads, width, x)
    # A softmax's numbers, those of this position and before in front; beyond them there is nothing to attend to.
    scores = x.new_full((x.shape[0], first.heads, max(past.length + 1, SMALLEST_SOFTMAX)), -math.inf)
    for layer, weights in enumerate(state.weights):
        y = weights.norm_self(x) if weights.pre_norm else x
        context = _look_back(y, layer, weights, past, scores)
        x = _wrapped(x, context, weights.out_self, weights, weights.norm_self, weights.out_self_bias)
        if state.source is not None and weights.cross is not None:
            cross = weights.cross
            y = cross.norm(x) if weights.pre_norm else x
            query = torch.mm(y, cross.query)
            if cross.query_bias is not None:
                query.add_(cross.query_bias)
            context = _look_across(query, beams, weights.heads, layer, state.source)
            x = _wrapped(x, context, cross.out, weights, cross.norm, cross.out_bias)
        y = weights.norm_feed_forward(x) if weights.pre_norm else x
        hidden = weights.activation(torch.mm(y, weights.w_1).add_(weights.b_1))
        x = _wrapped(x, hidden, weights.w_2, weights, weights.norm_feed_forward, weights.b_2)
    past.length += 1
    return x


def _look_back(y: Tensor, layer: int, weights: LayerWeights, past: Past, scores: Tensor) -> Tensor:
    """Self-attention of each row to all of its own past: (R, H d). Uses `scores` for what it computes."""
    rows, heads, positions = y.shape[0], weights.heads, past.length + 1
    projected = torch.mm(y, weights.query_key_value)
    if weights.query_key_value_bias is not None:
        projected.add_(weights.query_key_value_bias)
    projected = projected.view(rows, 3, heads, -1)
    keys, values = past.append(layer, projected.narrow(1, 1, 2).transpose(0, 1))
    width = projected.shape[3]
    if positions < SMALLEST_SOFTMAX or positions * width < SMALLEST_PRODUCT:
        query = projected.select(1, 0).unsqueeze(2)  # (R, H, 1, d)
        torch.sum(query * keys, 3, out=scores.narrow(2, 0, positions))
        attended = scores.softmax(2).narrow(2, 0, positions)
        context = (attended.unsqueeze(3) * values).sum(2)
    else:
        query = projected.select(1, 0).reshape(rows * heads, 1, width)
        attended = torch.bmm(query, keys.flatten(0, 1).mT).softmax(2)
        context = torch.bmm(attended, values.flatten(0, 1))
    return context.view(rows, heads * width)


def _look_across(query: Tensor, beams: int, heads: int, layer: int, source: EncodedSource) -> Tensor:
    """Cross-attention: (R, H d_v). A sentence's beams are so many queries to one source, which is thus kept once."""
    keys, values = source.of_layers[layer]
    num_sentences = query.shape[0] // beams
    by_heads = query.view(num_sentences, beams, heads, -1).transpose(1, 2)
    scores = torch.bmm(by_heads.reshape(num_sentences * heads, beams, -1), keys)
    if source.bias is not None:
        scores.view(num_sentences, heads, beams, -1).add_(source.bias)
    context = torch.bmm(scores.softmax(2), values).view(num_sentences, heads, beams, -1)
    return context.transpose(1, 2).reshape(query.shape[0], -1)


def _wrapped(
    x: Tensor, inner: Tensor, matrix: Tensor, weights: LayerWeights, norm: Normalise, bias: Tensor | None = None
) -> Tensor:
    """The end of a sub-layer: its last product, and AddAndNorm around it. May change x."""
    out = x.addmm_(inner, matrix) if weights.residual else torch.mm(inner, matrix)
    if bias is not None:
        out.add_(bias)
    return out if weights.pre_norm else norm(out)


def layer_weights(layer: Layer, number: int, probe: Probe | None) -> LayerWeights:
    """A decoder layer's weights, arranged for one position at a time. Of interventions, heads that are off are off
    here."""
    changes = {} if probe is None else probe.interventions
    own_off = changes.get(Site("decoder", number), Intervention()).heads_off
    cross_off = changes.get(Site("cross", number), Intervention()).heads_off
    own, cross, inner = layer.self_attention, layer.cross_attention, layer.feed_forward
    heads, width = own.num_heads, max(own.w_q.out_features, own.w_v.out_features) // own.num_heads
    joint = (own.w_q.weight * own.scale, own.w_k.weight, own.w_v.weight)
    joint_bias = None
    if own.w_q.bias is not None:
        biases = (own.w_q.bias * own.scale, own.w_k.bias, own.w_v.bias)
        joint_bias = torch.cat([filled_up(bias[:, None], heads, width) for bias in biases]).squeeze(1)
    across = None
    if cross is not None and layer.around_cross is not None:
        queries = (cross.w_q.weight * cross.scale).t()
        out = without_heads(cross.w_o.weight.t(), heads, cross_off)
        query_bias = None if cross.w_q.bias is None else cross.w_q.bias * cross.scale
        across = CrossWeights(normalise(layer.around_cross.norm), queries, query_bias, out, cross.w_o.bias)
    return LayerWeights(
        heads=heads,
        pre_norm=layer.around_self.pre_norm,
        residual=layer.around_self.residual,
        norm_self=normalise(layer.around_self.norm),
        query_key_value=torch.cat([filled_up(weight, heads, width) for weight in joint]).t(),
        query_key_value_bias=joint_bias,
        out_self=without_heads(filled_up(own.w_o.weight.t(), heads, width), heads, own_off),
        out_self_bias=own.w_o.bias,
        cross=across,
        norm_feed_forward=normalise(layer.around_feed_forward.norm),
        activation=inner.activation,
        w_1=inner.w_1.weight.t(),
        b_1=inner.w_1.bias,
        w_2=inner.w_2.weight.t(),
        b_2=inner.w_2.bias,
    )


def filled_up(weight: Tensor, heads: int, width: int) -> Tensor:
    """(H d, D) to (H width, D), with zeros at the end of each head."""
    missing = width - weight.shape[0] // heads
    return F.pad(weight.reshape(heads, -1, weight.shape[1]), (0, 0, 0, missing)).flatten(0, 1) if missing else weight


def without_heads(matrix: Tensor, heads: int, off: Sequence[int]) -> Tensor:
    """(H d, D), the matrix after attention, with nothing in it for some heads: they contribute nothing."""
    if not off:
        return matrix
    on = matrix.new_ones(heads)
    on[list(off)] = 0
    return matrix * on.repeat_interleave(matrix.shape[0] // heads)[:, None]


def normalise(norm: nn.Module) -> Normalise:
    """What the module does, without the way through it."""
    if not isinstance(norm, nn.LayerNorm):
        return norm
    shape, weight, bias, epsilon = list(norm.normalized_shape), norm.weight, norm.bias, norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)
