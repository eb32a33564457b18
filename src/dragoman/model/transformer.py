"""The Transformer of "Attention Is All You Need", whole, in one file, to be read beside the paper.

Letters in shape comments: B sentences, S source positions, T target positions, K beams, H heads, D d_model,
V vocabulary. Every mask is boolean and True means "may attend".

    attention             3.2.1, equation 1, figure 2 left
    causal_mask           3.2.3
    MultiHeadAttention    3.2.2, figure 2 right
    FeedForward           3.3, equation 2
    AddAndNorm            3.1 and 5.4: residual connection, dropout and normalisation around each sub-layer
    sinusoids             3.5
    Embedding             3.4 and 3.5: shared weights, scaling, positions; learned ones are Table 3, row E
    EncoderLayer, DecoderLayer, Transformer    3.1, figure 1

What the paper does not have stands in variants.py and comes in as a plain argument. Either half stands alone too, by a
configuration of 0 layers of the other: the decoder continues text, as GPT does; the encoder restores hidden tokens or
classifies, as BERT and ViT do.

Three ways through it give the same numbers, and tests hold them equal: torch's fused attention (training), equation 1
step by step (when weights are asked for or changed: probe.py), and one position at a time with a cache
(incremental.py).
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError, DataError
from dragoman.model import variants
from dragoman.model.dropout import Dropout
from dragoman.model.incremental import DecodingState, EncodedSource, Past, advance, layer_weights
from dragoman.model.probe import Intervention, Probe, Site, recorded

KeysValues = tuple[Tensor, Tensor]  # (B, H, S, d_k) and (B, H, S, d_v)
RELU = variants.activation("relu")


def attention(
    query: Tensor,  # (B, H, T, d_k)
    key: Tensor,  # (B, H, S, d_k)
    value: Tensor,  # (B, H, S, d_v)
    scale: float,
    mask: Tensor | None,  # broadcasts to (B, H, T, S); None: all may be attended to
    intervention: Intervention,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Equation 1, softmax(Q K^T scale) V, step by step: its result, the weights, and the scores before the mask and
    after it, which are what the softmax is given."""
    # One dimension for sentences and heads, which is what a product of many small matrices takes without asking.
    rows = query.shape[:2]
    query, key, value = query.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1)
    scores = torch.bmm(query * scale, key.mT).view(*rows, query.shape[1], key.shape[1])  # (B, H, T, S)
    mask = intervention.mask(mask)
    masked_scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    weights = intervention.weights(masked_scores.softmax(dim=-1))
    context = torch.bmm(weights.flatten(0, 1), value).view(*rows, query.shape[1], value.shape[2])  # (B, H, T, d_v)
    return intervention.heads(context), weights, scores, masked_scores


def causal_mask(size: int, device: torch.device) -> Tensor:
    """(T, T): position t may attend to positions up to t (3.2.3)."""
    return torch.ones(size, size, dtype=torch.bool, device=device).tril()


class MultiHeadAttention(nn.Module):
    """3.2.2: h heads, each with its own projections of queries and keys to d_k and of values to d_v; no biases."""

    def __init__(
        self, d_model: int, num_heads: int, d_k: int, d_v: int, scale: float | None = None, bias: bool = False
    ) -> None:
        """scale: what equation 1 multiplies Q K^T by; None: the paper's 1/sqrt(d_k). bias: as imported models have."""
        super().__init__()
        self.num_heads = num_heads
        self.scale = d_k**-0.5 if scale is None else scale
        self.w_q = nn.Linear(d_model, num_heads * d_k, bias=bias)
        self.w_k = nn.Linear(d_model, num_heads * d_k, bias=bias)
        self.w_v = nn.Linear(d_model, num_heads * d_v, bias=bias)
        self.w_o = nn.Linear(num_heads * d_v, d_model, bias=bias)

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
        if probe is None:
            context = F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal, scale=self.scale)
        else:
            if causal:
                mask = causal_mask(query.shape[2], query.device)
            intervention = probe.interventions.get(site, Intervention())
            context, *looked_at = attention(query, key, value, self.scale, mask, intervention)
            probe.weights[site], probe.scores[site], probe.masked_scores[site] = looked_at
        return self.w_o(context.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class FeedForward(nn.Module):
    """Equation 2: max(0, x W1 + b1) W2 + b2."""

    def __init__(self, d_model: int, d_ff: int, activation: variants.Activate = RELU) -> None:
        super().__init__()
        self.activation = activation
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        # torch's product with a bias first copies the bias to every row, which takes longer than to add it afterwards.
        hidden = F.linear(x, self.w_1.weight).add_(self.w_1.bias)
        return F.linear(self.activation(hidden), self.w_2.weight).add_(self.w_2.bias)


class AddAndNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) (3.1, 5.4)."""

    pre_norm, residual = False, True  # what incremental.py asks this and its variants

    def __init__(self, norm: nn.Module, dropout: float) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(self.dropout(sublayer(x), onto=x))  # type: ignore[no-any-return]


SubLayerWrapper = AddAndNorm | variants.RearrangedAddAndNorm


def sinusoids(length: int, d_model: int) -> Tensor:
    """3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) the cosine: interleaved. (length, D)"""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position / 10_000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # (length, D/2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


class Embedding(nn.Module):
    """3.4 and 3.5: token embedding times sqrt(d_model), plus position, then dropout."""

    sinusoids: Tensor

    def __init__(
        self,
        tokens: nn.Embedding | variants.Patches,
        d_model: int,
        dropout: float,
        learned_positions: int = 0,  # how many there are; 0: sinusoids, or what other_positions gives
        other_positions: variants.PositionRows | None = None,
        scaled: bool = True,
        norm: nn.Module | None = None,  # of the sum, where an imported model has one
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.tokens = tokens
        self.norm = nn.Identity() if norm is None else norm
        self.scale = math.sqrt(d_model) if scaled else 1.0
        self.dropout = Dropout(dropout)
        self.other_positions = other_positions
        self.positions = nn.Parameter(torch.empty(learned_positions, d_model)) if learned_positions else None
        if not learned_positions and other_positions is None:
            self.register_buffer("sinusoids", sinusoids(512, d_model), persistent=False)

    def position_rows(self, first: int, count: int) -> Tensor | None:
        """The rows that are added at positions first ... first + count - 1: (count, D); None: nothing is."""
        if self.other_positions is not None:
            return self.other_positions(first, count, next(self.tokens.parameters()))
        if self.positions is not None:
            if first + count > self.positions.shape[0]:
                raise DataError(
                    f"a sequence of {first + count} tokens; the model has {self.positions.shape[0]} learned positions; "
                    f"split the text or train with a larger model.max_positions"
                )
            return self.positions[first : first + count]
        if first + count > self.sinusoids.shape[0]:
            self.sinusoids = sinusoids(2 * (first + count), self.d_model).to(self.sinusoids)
        return self.sinusoids[first : first + count]

    def forward(self, ids: Tensor, first: int = 0) -> Tensor:
        return self.place(self.tokens(ids), first)

    def place(self, x: Tensor, first: int = 0) -> Tensor:
        """Tokens' vectors (..., T, D), scaled, with what their positions add."""
        if self.scale != 1.0:
            x = x * self.scale
        rows = self.position_rows(first, x.shape[-2])
        return self.dropout(self.norm(x if rows is None else x + rows))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """Figure 1, left: self-attention, then feed-forward."""

    def __init__(
        self, self_attention: MultiHeadAttention, feed_forward: FeedForward, around: Sequence[SubLayerWrapper]
    ) -> None:
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
        around: Sequence[SubLayerWrapper],
    ) -> None:
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
        source: KeysValues | None,  # of the encoder's output; None: there is no encoder
        source_mask: Tensor | None,
        layer: int,
        probe: Probe | None,
    ) -> Tensor:
        def look_back(y: Tensor) -> Tensor:
            own = self.self_attention
            return own.attend(*own.project(y), Site("decoder", layer), causal=True, probe=probe)

        def look_across(y: Tensor) -> Tensor:
            cross = self.cross_attention
            assert cross is not None
            assert source is not None
            query = cross.split_heads(cross.w_q(y))
            return cross.attend(query, *source, Site("cross", layer), source_mask, probe=probe)

        x = self.around_self(x, look_back)
        if self.around_cross is not None:
            x = self.around_cross(x, look_across)
        return self.around_feed_forward(x, self.feed_forward)  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """The encoder-decoder of figure 1, or one half of it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.vocab_size < 1:
            raise ConfigError(f"model.vocab_size = {config.vocab_size}; a model needs its tokenizer's real size")
        self.config = config
        d_model, dropout, pre_norm = config.d_model, config.dropout, config.norm_order == "pre"
        has_encoder, has_decoder = config.encoder_layers > 0, config.decoder_layers > 0

        def attend() -> MultiHeadAttention:
            scale = variants.attention_scale(config.attention_scale, config.key_size)
            sizes = config.num_heads, config.key_size, config.value_size
            return MultiHeadAttention(d_model, *sizes, scale, config.attention_bias)

        def feed() -> FeedForward:
            return FeedForward(d_model, config.d_ff, variants.activation(config.activation))

        def around(count: int) -> list[SubLayerWrapper]:
            norms = [variants.make_norm(config.norm, d_model) for _ in range(count)]
            if pre_norm or not config.residual:
                return [variants.RearrangedAddAndNorm(norm, dropout, pre_norm, config.residual) for norm in norms]
            return [AddAndNorm(norm, dropout) for norm in norms]

        def norm_if(there: bool) -> nn.Module:
            return variants.make_norm(config.norm, d_model) if there else nn.Identity()

        def embed(tokens: nn.Embedding | variants.Patches) -> Embedding:
            learned = config.max_positions if config.positions == "learned" else 0
            other = variants.positions_for(config.positions, d_model, sinusoids)
            norm = norm_if(config.embedding_norm)
            return Embedding(tokens, d_model, dropout, learned, other, config.scale_embeddings, norm)

        source_tokens = nn.Embedding(config.source_tokens, d_model)
        target_tokens = source_tokens if config.ties_source_target else nn.Embedding(config.vocab_size, d_model)
        if has_encoder:
            patches = variants.Patches(config.vocab_size, d_model, config.patch) if config.patch else None
            self.source_embedding = embed(patches or source_tokens)
        if has_decoder:
            self.target_embedding = embed(target_tokens)
        self.encoder = nn.ModuleList(EncoderLayer(attend(), feed(), around(2)) for _ in range(config.encoder_layers))
        # Pre-norm leaves the last sum of a stack unnormalised.
        self.encoder_norm = norm_if(pre_norm and has_encoder)
        self.decoder = nn.ModuleList(
            DecoderLayer(attend(), attend(), feed(), around(3))
            if has_encoder
            else DecoderLayer(attend(), None, feed(), around(2))
            for _ in range(config.decoder_layers)
        )
        self.decoder_norm = norm_if(pre_norm and has_decoder)
        self.output = nn.Linear(d_model, len(config.classes) or config.vocab_size, bias=config.output_bias)
        if config.ties_target_output and not config.classes:
            self.output.weight = target_tokens.weight
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot for projections. Embeddings have standard deviation d_model^-0.5: times sqrt(d_model), that is 1."""
        for name, parameter in self.named_parameters():
            if "tokens" in name or "positions" in name or name == "output.weight":
                nn.init.normal_(parameter, std=self.config.d_model**-0.5)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.ones_(parameter)  # the gain of a normalisation

    def encode(self, source: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None) -> Tensor:
        """Source ids (B, S) to the encoder's output (B, S, D). source_mask (B, S): True at tokens; None: no padding."""
        mask = None if source_mask is None else source_mask[:, None, None, :]  # (B, 1, 1, S)
        x = recorded(probe, "encoder", self.source_embedding(source), first=True)
        for layer, block in enumerate(self.encoder):
            x = recorded(probe, "encoder", block(x, mask, layer, probe))
        return self.encoder_norm(x)  # type: ignore[no-any-return]

    def cross_keys_values(self, encoded: Tensor | None) -> list[KeysValues | None]:
        """The encoder's output as the keys and values of every decoder layer's cross-attention."""
        if encoded is None:
            return [None] * len(self.decoder)
        crosses: list[MultiHeadAttention] = [block.cross_attention for block in self.decoder]  # type: ignore[misc]
        return [(cross.split_heads(cross.w_k(encoded)), cross.split_heads(cross.w_v(encoded))) for cross in crosses]

    def decode(
        self, target: Tensor, encoded: Tensor | None, source_mask: Tensor | None = None, probe: Probe | None = None
    ) -> Tensor:
        """Target ids (B, T), all positions at once, to states (B, T, D). Padding at the end of a target needs no
        mask: what comes after a position is hidden from it anyway."""
        mask = None if source_mask is None else source_mask[:, None, None, :]
        x = recorded(probe, "decoder", self.target_embedding(target), first=True)
        for layer, (block, source) in enumerate(zip(self.decoder, self.cross_keys_values(encoded), strict=True)):
            x = recorded(probe, "decoder", block(x, source, mask, layer, probe))
        return self.decoder_norm(x)  # type: ignore[no-any-return]

    def states(
        self, source: Tensor, target: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None
    ) -> Tensor:
        """Encoder and decoder without the last projection, which the loss fuses with the softmax: (B, T, D).

        The decoder alone never looks at the source, nor the encoder alone, whose states are (B, S, D), at the target.
        """
        encoded = self.encode(source, source_mask, probe) if self.encoder else None
        return self.decode(target, encoded, source_mask, probe) if encoded is None or self.decoder else encoded

    def forward(
        self, source: Tensor, target: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None
    ) -> Tensor:
        """Logits of the token after each target position: (B, T, V); of the encoder alone, at each source position."""
        return self.output(self.states(source, target, source_mask, probe))  # type: ignore[no-any-return]

    @torch.no_grad()
    def start(self, source: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None) -> DecodingState:
        """The state before the first target position: the source's keys and values, and an empty past."""
        encoded = self.encode(source, source_mask, probe) if self.encoder else None
        keys_values = [pair for pair in self.cross_keys_values(encoded) if pair is not None]
        weights = [layer_weights(block, layer, probe) for layer, block in enumerate(self.decoder)]  # type: ignore[arg-type]
        attended = EncodedSource.of(keys_values, source_mask) if keys_values else None
        return DecodingState(source.shape[0], weights, attended, Past())

    @torch.no_grad()
    def step(self, ids: Tensor, state: DecodingState) -> Tensor:
        """One more position for each of (B, K) beams, `state` growing by it: logits (B, K, V)."""
        x = self.target_embedding(ids.reshape(-1, 1), state.past.length).squeeze(1)  # (B K, D)
        x = advance(x, ids.shape[1], state)
        return self.output(self.decoder_norm(x)).view(*ids.shape, -1)  # type: ignore[no-any-return]


def count_parameters(model: nn.Module) -> int:
    """Each tied weight once."""
    return sum(parameter.numel() for parameter in model.parameters())
