"""The Transformer of "Attention Is All You Need", whole, in one file.

Letters in shape comments: B sentences, S source positions, T target positions, K beams, H heads, D d_model,
V vocabulary. Every mask is boolean and True means "may attend".

    attention             3.2.1, equation 1, figure 2 left
    MultiHeadAttention    3.2.2, figure 2 right
    FeedForward           3.3, equation 2
    Embedding             3.4 and 3.5: shared weights, scaling, positions
    Patches               in place of words: Dosovitskiy et al. 2021
    AddAndNorm            3.1 and 5.4: residual connection, dropout and normalisation around each sub-layer
    EncoderLayer, DecoderLayer, Transformer    3.1, figure 1

Either half stands alone too: the decoder without an encoder to look at continues text, as GPT does; the encoder without
a decoder restores hidden tokens or classifies, as BERT and ViT do. A configuration of 0 layers leaves a half out.

Three ways through it give the same numbers, and tests hold them equal: torch's fused attention (training), the
explicit one (when weights are asked for or changed: `Probe`), and one position at a time with a cache (incremental.py).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import AttentionScale, ModelConfig, Norm, NormOrder, Positions
from dragoman.errors import ConfigError, DataError
from dragoman.model.dropout import Dropout
from dragoman.model.incremental import (
    CrossWeights,
    DecodingState,
    EncoderMemory,
    LayerWeights,
    Past,
    advance,
    filled_up,
    normalise,
    without_heads,
)

Kind = Literal["encoder", "decoder", "cross"]


class Site(NamedTuple):
    """One attention sub-layer of the model."""

    kind: Kind
    layer: int


class Override(NamedTuple):
    """The attention weights that one head is made to use in place of its own."""

    head: int
    query: int | None  # the row, counted in positions of the sequence; None: every row
    weights: Tensor  # (keys,); where decoding has fewer keys so far, the first of them


@dataclass(frozen=True)
class Intervention:
    """What one attention sub-layer is made to do otherwise."""

    heads_off: tuple[int, ...] = ()  # these heads contribute nothing
    overrides: tuple[Override, ...] = ()
    drop_mask: bool = False  # padding and the future become visible


@dataclass
class Probe:
    """Passed to a forward pass by those who look inside: what to change, and where the weights are put."""

    interventions: Mapping[Site, Intervention] = field(default_factory=dict)
    weights: dict[Site, Tensor] = field(default_factory=dict)  # (B, H, queries, keys), filled by the pass
    scores: dict[Site, Tensor] = field(default_factory=dict)  # likewise: what the softmax is given, before any mask


def attention(
    query: Tensor,  # (B, H, T, d_k)
    key: Tensor,  # (B, H, S, d_k)
    value: Tensor,  # (B, H, S, d_v)
    scale: float,
    mask: Tensor | None,  # broadcasts to (B, H, T, S); None: all may be attended to
    intervention: Intervention,
) -> tuple[Tensor, Tensor, Tensor]:
    """Equation 1, step by step, with the weights and the scores before the mask: softmax(Q K^T scale) V."""
    # One dimension for sentences and heads, which is what a product of many small matrices takes without asking.
    rows = query.shape[:2]
    query, key, value = query.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1)
    scores = torch.bmm(query * scale, key.mT).view(*rows, query.shape[1], key.shape[1])  # (B, H, T, S)
    mask = None if intervention.drop_mask else mask
    weights = (scores if mask is None else scores.masked_fill(~mask, -math.inf)).softmax(dim=-1)
    if intervention.overrides:
        weights = weights.clone()
    for override in intervention.overrides:
        queries = slice(None) if override.query is None else slice(override.query, override.query + 1)
        weights[:, override.head, queries] = override.weights[: weights.shape[3]].to(weights)
    context = torch.bmm(weights.flatten(0, 1), value).view(*rows, query.shape[1], value.shape[2])  # (B, H, T, d_v)
    if intervention.heads_off:
        context = context.clone()
        context[:, list(intervention.heads_off)] = 0
    return context, weights, scores


def causal_mask(size: int, device: torch.device) -> Tensor:
    """(T, T): position t may attend to positions up to t (3.2.3)."""
    return torch.ones(size, size, dtype=torch.bool, device=device).tril()


class MultiHeadAttention(nn.Module):
    """3.2.2: h heads, each with its own projections of queries and keys to d_k and of values to d_v; no biases."""

    def __init__(self, d_model: int, num_heads: int, d_k: int, d_v: int, scale: AttentionScale) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scale = {"1/sqrt(d_k)": d_k**-0.5, "1/d_k": 1 / d_k, "1": 1.0}[scale]
        self.w_q = nn.Linear(d_model, num_heads * d_k, bias=False)
        self.w_k = nn.Linear(d_model, num_heads * d_k, bias=False)
        self.w_v = nn.Linear(d_model, num_heads * d_v, bias=False)
        self.w_o = nn.Linear(num_heads * d_v, d_model, bias=False)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of self-attention, by three products: the heads' parts of each lie together."""
        return self.split_heads(self.w_q(x)), self.split_heads(self.w_k(x)), self.split_heads(self.w_v(x))

    def split_heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.num_heads, -1).transpose(-3, -2)  # (..., T, H d) -> (..., H, T, d)

    def attend(
        self,
        query: Tensor,  # (B, H, T, d_k)
        key: Tensor,  # (B, H, S, d_k)
        value: Tensor,  # (B, H, S, d_v)
        site: Site,
        mask: Tensor | None = None,
        causal: bool = False,
        probe: Probe | None = None,
    ) -> Tensor:
        """Attention of all heads, concatenated and projected: (B, T, D)."""
        if probe is not None:
            if causal:
                mask = causal_mask(query.shape[2], query.device)
            intervention = probe.interventions.get(site, Intervention())
            context, weights, scores = attention(query, key, value, self.scale, mask, intervention)
            probe.weights[site], probe.scores[site] = weights, scores
        else:
            context = F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal, scale=self.scale)
        return self.w_o(context.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class FeedForward(nn.Module):
    """Equation 2: max(0, x W1 + b1) W2 + b2."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        # torch's product with a bias first copies the bias to every row, which takes longer than to add it afterwards.
        hidden = F.linear(x, self.w_1.weight).add_(self.w_1.bias)
        return F.linear(F.relu(hidden, inplace=True), self.w_2.weight).add_(self.w_2.bias)


class BatchNorm(nn.Module):
    """Normalisation of each feature over the batch's positions, to compare with layer normalisation."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.flatten(0, -2)).view(x.shape)  # type: ignore[no-any-return]


def make_norm(norm: Norm, d_model: int) -> nn.Module:
    if norm == "layer":
        return nn.LayerNorm(d_model)
    if norm == "batch":
        return BatchNorm(d_model)
    raise ConfigError(f"model.norm = {norm!r}; allowed: layer, batch")


class AddAndNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) (3.1, 5.4); pre-norm is x + Dropout(Sublayer(LayerNorm(x)))."""

    def __init__(self, d_model: int, dropout: float, norm: Norm, norm_order: NormOrder, residual: bool) -> None:
        super().__init__()
        self.norm = make_norm(norm, d_model)
        self.dropout = Dropout(dropout)
        self.norm_order = norm_order
        self.residual = residual

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        out = sublayer(self.norm(x) if self.norm_order == "pre" else x)
        out = self.dropout(out, onto=x if self.residual else None)
        return self.norm(out) if self.norm_order == "post" else out  # type: ignore[no-any-return]


def sinusoids(length: int, d_model: int) -> Tensor:
    """3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) the cosine: interleaved. (length, D)"""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position / 10_000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # (length, D/2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


def grid_sinusoids(rows: int, columns: int, d_model: int) -> Tensor:
    """The same in two dimensions: half of the features say the row, half the column. (rows columns, D)"""
    down, across = sinusoids(rows, d_model // 2), sinusoids(columns, d_model // 2)
    return torch.cat((down.repeat_interleave(columns, dim=0), across.repeat(rows, 1)), dim=1)


class Patches(nn.Module):
    """A square picture, row by row, as a sequence of patches and the end symbol.

    A pixel is a token: after the four special symbols, ids rise with brightness.
    """

    FIRST_LEVEL = 4

    def __init__(self, vocab_size: int, d_model: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.brightest = vocab_size - 1 - self.FIRST_LEVEL
        self.project = nn.Linear(side * side, d_model, bias=False)
        self.end = nn.Parameter(torch.empty(1, d_model))

    def forward(self, ids: Tensor) -> Tensor:
        """Ids (B, pixels + 1) to vectors (B, patches + 1, D)."""
        count, width = ids.shape[0], math.isqrt(ids.shape[1] - 1)
        if width * width != ids.shape[1] - 1 or width % self.side:
            raise DataError(
                f"a picture of {ids.shape[1] - 1} pixels; it must be a square whose side is a multiple of {self.side}"
            )
        light = (ids[:, :-1] - self.FIRST_LEVEL) / self.brightest  # (B, pixels), from 0 to 1
        across = width // self.side
        cut = light.view(count, across, self.side, across, self.side).transpose(2, 3)
        patches = self.project(cut.reshape(count, across * across, -1))  # (B, patches, D)
        return torch.cat((patches, self.end.expand(count, 1, -1)), dim=1)


class Embedding(nn.Module):
    """3.4 and 3.5: token embedding times sqrt(d_model), plus position, then dropout."""

    sinusoids: Tensor

    def __init__(
        self,
        tokens: nn.Embedding | Patches,
        d_model: int,
        scaled: bool,
        positions: Positions,
        max_positions: int,
        norm: nn.Module,
        dropout: float,
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.tokens = tokens
        self.norm = norm
        self.scale = math.sqrt(self.d_model) if scaled else 1.0
        self.kind = positions
        self.dropout = Dropout(dropout)
        if positions == "learned":
            self.positions = nn.Parameter(torch.empty(max_positions, self.d_model))
        elif positions == "sinusoidal":
            self.register_buffer("sinusoids", sinusoids(512, self.d_model), persistent=False)

    def position_rows(self, first: int, count: int) -> Tensor | None:
        """The rows that are added at positions first ... first + count - 1: (count, D)."""
        if self.kind == "sinusoidal":
            if first + count > self.sinusoids.shape[0]:
                longer = sinusoids(2 * (first + count), self.d_model)
                self.sinusoids = longer.to(self.sinusoids)
            return self.sinusoids[first : first + count]
        if self.kind == "learned":
            if first + count > self.positions.shape[0]:
                raise DataError(
                    f"a sequence of {first + count} tokens; the model has {self.positions.shape[0]} learned positions; "
                    f"split the text or train with a larger model.max_positions"
                )
            return self.positions[first : first + count]
        if self.kind == "index":
            # One number in place of a vector: the position itself, on a scale that keeps it near the embeddings' size.
            rows = torch.arange(first, first + count).to(next(self.tokens.parameters()))
            return (rows / 100)[:, None].expand(count, self.d_model)
        if self.kind == "sinusoidal-2d":
            side = math.isqrt(count - 1)  # the last position, the end symbol's, is not on the grid
            grid = grid_sinusoids(side, side, self.d_model)
            return F.pad(grid, (0, 0, 0, 1)).to(next(self.tokens.parameters()))
        if self.kind == "none":
            return None
        raise ConfigError(f"model.positions = {self.kind!r}; allowed: sinusoidal, sinusoidal-2d, learned, index, none")

    def forward(self, ids: Tensor, first: int = 0) -> Tensor:
        x = self.tokens(ids)
        if self.scale != 1.0:
            x = x * self.scale
        rows = self.position_rows(first, x.shape[-2])
        return self.dropout(self.norm(x if rows is None else x + rows))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """Figure 1, left: self-attention, then feed-forward."""

    def __init__(self, self_attention: MultiHeadAttention, feed_forward: FeedForward, around: Sequence[AddAndNorm]):
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.around_self, self.around_feed_forward = around

    def forward(self, x: Tensor, mask: Tensor | None, layer: int, probe: Probe | None) -> Tensor:
        site = Site("encoder", layer)
        attend = self.self_attention.attend
        x = self.around_self(x, lambda y: attend(*self.self_attention.project(y), site, mask, probe=probe))
        return self.around_feed_forward(x, self.feed_forward)  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    """Figure 1, right: masked self-attention, attention over the encoder's output (if any), then feed-forward."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention | None,
        feed_forward: FeedForward,
        around: Sequence[AddAndNorm],
    ):
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.around_self = around[0]
        self.around_cross = None if cross_attention is None else around[1]
        self.around_feed_forward = around[-1]

    def forward(
        self,
        x: Tensor,  # (B, T, D)
        memory: "Memory",
        memory_mask: Tensor | None,
        layer: int,
        probe: Probe | None,
    ) -> Tensor:
        def look_back(y: Tensor) -> Tensor:
            own = self.self_attention
            return own.attend(*own.project(y), Site("decoder", layer), causal=True, probe=probe)

        def look_across(y: Tensor) -> Tensor:
            cross = self.cross_attention
            assert cross is not None
            assert memory is not None
            query = cross.split_heads(cross.w_q(y))
            return cross.attend(query, *memory, Site("cross", layer), memory_mask, probe=probe)

        x = self.around_self(x, look_back)
        if self.around_cross is not None:
            x = self.around_cross(x, look_across)
        return self.around_feed_forward(x, self.feed_forward)  # type: ignore[no-any-return]

    def for_decoding(self, layer: int, probe: Probe | None) -> LayerWeights:
        """The same weights, arranged for one position at a time. Of interventions, heads that are off are off here."""
        changes = {} if probe is None else probe.interventions
        own_off = changes.get(Site("decoder", layer), Intervention()).heads_off
        cross_off = changes.get(Site("cross", layer), Intervention()).heads_off
        own, cross, inner = self.self_attention, self.cross_attention, self.feed_forward
        heads, width = own.num_heads, max(own.w_q.out_features, own.w_v.out_features) // own.num_heads
        joint = (own.w_q.weight * own.scale, own.w_k.weight, own.w_v.weight)
        across = None
        if cross is not None and self.around_cross is not None:
            queries = (cross.w_q.weight * cross.scale).t()
            out = without_heads(cross.w_o.weight.t(), heads, cross_off)
            across = CrossWeights(normalise(self.around_cross.norm), queries, out)
        return LayerWeights(
            heads=heads,
            pre_norm=self.around_self.norm_order == "pre",
            residual=self.around_self.residual,
            norm_self=normalise(self.around_self.norm),
            query_key_value=torch.cat([filled_up(weight, heads, width) for weight in joint]).t(),
            out_self=without_heads(filled_up(own.w_o.weight.t(), heads, width), heads, own_off),
            cross=across,
            norm_feed_forward=normalise(self.around_feed_forward.norm),
            w_1=inner.w_1.weight.t(),
            b_1=inner.w_1.bias,
            w_2=inner.w_2.weight.t(),
            b_2=inner.w_2.bias,
        )


class Transformer(nn.Module):
    """The encoder-decoder of figure 1, or one half of it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.vocab_size < 1:
            raise ConfigError(f"model.vocab_size = {config.vocab_size}; a model needs its tokenizer's real size")
        self.config = config
        d_model = config.d_model

        def attend() -> MultiHeadAttention:
            return MultiHeadAttention(
                d_model, config.num_heads, config.key_size, config.value_size, config.attention_scale
            )

        def around(count: int) -> list[AddAndNorm]:
            return [
                AddAndNorm(d_model, config.dropout, config.norm, config.norm_order, config.residual)
                for _ in range(count)
            ]

        def norm_if(there: bool) -> nn.Module:
            return make_norm(config.norm, d_model) if there else nn.Identity()

        def embed(tokens: nn.Embedding | Patches) -> Embedding:
            norm = norm_if(config.embedding_norm)
            positions, most = config.positions, config.max_positions
            return Embedding(tokens, d_model, config.scale_embeddings, positions, most, norm, config.dropout)

        source_tokens = nn.Embedding(config.vocab_size, d_model)
        target_tokens = source_tokens if config.tie_embeddings else nn.Embedding(config.vocab_size, d_model)
        last_norm = config.norm_order == "pre"  # which leaves the last sum unnormalised
        has_encoder, has_decoder = config.encoder_layers > 0, config.decoder_layers > 0
        if has_encoder:
            patches = Patches(config.vocab_size, d_model, config.patch) if config.patch else None
            self.source_embedding = embed(patches or source_tokens)
        if has_decoder:
            self.target_embedding = embed(target_tokens)
        self.encoder = nn.ModuleList(
            EncoderLayer(attend(), FeedForward(d_model, config.d_ff), around(2)) for _ in range(config.encoder_layers)
        )
        self.encoder_norm = norm_if(last_norm and has_encoder)
        self.decoder = nn.ModuleList(
            DecoderLayer(attend(), attend(), FeedForward(d_model, config.d_ff), around(3))
            if has_encoder
            else DecoderLayer(attend(), None, FeedForward(d_model, config.d_ff), around(2))
            for _ in range(config.decoder_layers)
        )
        self.decoder_norm = norm_if(last_norm and has_decoder)
        self.output = nn.Linear(d_model, len(config.classes) or config.vocab_size, bias=False)
        if config.tie_embeddings and not config.classes:
            self.output.weight = target_tokens.weight
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot for projections. Embeddings have standard deviation d_model^-0.5: times sqrt(d_model), that is 1."""
        for name, parameter in self.named_parameters():
            if "tokens" in name or "positions" in name or name.startswith("output"):
                nn.init.normal_(parameter, std=self.config.d_model**-0.5)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.ones_(parameter)  # the gain of a normalisation

    def encode(self, source: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None) -> Tensor:
        """Source ids (B, S) to memory (B, S, D). source_mask (B, S): True at tokens; None: no padding."""
        mask = None if source_mask is None else source_mask[:, None, None, :]  # (B, 1, 1, S)
        x = self.source_embedding(source)
        for layer, block in enumerate(self.encoder):
            x = block(x, mask, layer, probe)
        return self.encoder_norm(x)  # type: ignore[no-any-return]

    def memory_keys_values(self, memory: Tensor | None) -> "list[Memory]":
        """Cross-attention's keys and values of every decoder layer."""
        if memory is None:
            return [None] * len(self.decoder)
        crosses: list[MultiHeadAttention] = [block.cross_attention for block in self.decoder]  # type: ignore[misc]
        return [(cross.split_heads(cross.w_k(memory)), cross.split_heads(cross.w_v(memory))) for cross in crosses]

    def decode(
        self, target: Tensor, memory: Tensor | None, source_mask: Tensor | None = None, probe: Probe | None = None
    ) -> Tensor:
        """Target ids (B, T), all positions at once, to states (B, T, D). Padding at the end of a target needs no
        mask: what comes after a position is hidden from it anyway."""
        mask = None if source_mask is None else source_mask[:, None, None, :]
        x = self.target_embedding(target)
        for layer, (block, memory_kv) in enumerate(zip(self.decoder, self.memory_keys_values(memory), strict=True)):
            x = block(x, memory_kv, mask, layer, probe)
        return self.decoder_norm(x)  # type: ignore[no-any-return]

    def states(
        self, source: Tensor, target: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None
    ) -> Tensor:
        """Encoder and decoder without the last projection, which the loss fuses with the softmax: (B, T, D).

        The decoder alone never looks at the source, nor the encoder alone, whose states are (B, S, D), at the target.
        """
        memory = self.encode(source, source_mask, probe) if self.encoder else None
        return self.decode(target, memory, source_mask, probe) if memory is None or self.decoder else memory

    def forward(
        self, source: Tensor, target: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None
    ) -> Tensor:
        """Logits of the token after each target position: (B, T, V); of the encoder alone, at each source position."""
        return self.output(self.states(source, target, source_mask, probe))  # type: ignore[no-any-return]

    @torch.no_grad()
    def start(self, source: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None) -> DecodingState:
        """The state before the first target position: the memory's keys and values, and an empty past."""
        memory = self.encode(source, source_mask, probe) if self.encoder else None
        keys_values = [kv for kv in self.memory_keys_values(memory) if kv is not None]
        weights = [block.for_decoding(layer, probe) for layer, block in enumerate(self.decoder)]  # type: ignore[operator]
        return DecodingState(
            source.shape[0], weights, EncoderMemory.of(keys_values, source_mask) if keys_values else None, Past()
        )

    @torch.no_grad()
    def step(self, ids: Tensor, state: DecodingState) -> Tensor:
        """One more position for each of (B, K) beams, `state` growing by it: logits (B, K, V)."""
        x = self.target_embedding(ids.reshape(-1, 1), state.past.length).squeeze(1)  # (B K, D)
        x = advance(x, ids.shape[1], state)
        return self.output(self.decoder_norm(x)).view(*ids.shape, -1)  # type: ignore[no-any-return]


Memory = tuple[Tensor, Tensor] | None  # cross-attention's keys and values, (B, H, S, d); None: there is no encoder


def count_parameters(model: nn.Module) -> int:
    """Each tied weight once."""
    return sum(parameter.numel() for parameter in model.parameters())
