"""Token-to-token contributions through encoder, cross-attention and decoder: ALTI+ (Ferrando et al. 2022).

An attention sub-layer, its residual connection included, makes each row a sum of one transformed vector for each token
that it mixes: the token's values through the heads' weights and output projections, and the row's own residual. A layer
normalisation after that (post-norm) is linear in the sum once its standard deviation is taken as it is, so that it
applies to each vector. A token contributes as much as its vector brings the sum nearer to what it is, by the L1 norm:
max(0, |sum| - |sum - vector|), made to sum to one over the tokens. The sub-layers' contributions are multiplied from
the last layer to the first. Feed-forward layers and final normalisations mix no tokens and are left out, as there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dragoman.inspection.html_tables import shown, table
from dragoman.model.probe import Intervention, Probe, Site
from dragoman.model.transformer import DecoderLayer, EncoderLayer, MultiHeadAttention, SubLayerWrapper, Transformer
from dragoman.model.variants import BatchNorm

# Transformed vectors are made for so many numbers at once: 16 MB.
NUMBERS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Contributions:
    """How much each source token and each fed token contributes to each produced one."""

    text: str
    translation: str
    source: tuple[str, ...]
    fed: tuple[str, ...]
    produced: tuple[str, ...]
    total: Tensor  # (rows, source tokens then fed tokens); rows are those of `produced`, and sum to one
    # Of each sub-layer, rows that sum to one: "encoder" (S, S), "decoder" (T, T), "cross" (T, S + 1), whose last
    # column is what the decoder had before it looked at the source.
    sublayers: Mapping[Site, Tensor]

    @property
    def from_source(self) -> tuple[float, ...]:
        """The share of each produced token that comes from the source; the rest comes from what was said before."""
        return tuple(self.total[:, : len(self.source)].sum(dim=1).tolist())

    def _repr_html_(self) -> str:
        """A row for each produced token: its share of each source token, then of each token said before."""
        columns = [*map(shown, self.source), *(f"…{shown(token)}" for token in self.fed)]
        rows = [
            (shown(token), [(f"{share:.2f}", share) for share in shares])
            for token, shares in zip(self.produced, self.total.tolist(), strict=True)
        ]
        return table("what each token came from: the source, then what was said before (…)", columns, rows)


@torch.inference_mode()
def contributions_of(
    model: Transformer, source: Tensor, fed: Tensor, probe: Probe
) -> tuple[Tensor, Mapping[Site, Tensor]]:
    """The contributions in one pass: in all, (T, S + T), and in each sub-layer. source (1, S), fed (1, T)."""
    model.eval()
    model(source, fed, probe=probe)
    found: dict[Site, Tensor] = {}
    for layer, block in enumerate(model.encoder):
        assert isinstance(block, EncoderLayer)
        site = Site("encoder", layer)
        x = probe.residuals["encoder"][layer][0]
        found[site], _ = _self_attention(block.self_attention, block.around_self, x, site, probe)
    encoded = model.encoder_norm(probe.residuals["encoder"][-1][0])
    for layer, block in enumerate(model.decoder):
        assert isinstance(block, DecoderLayer)
        assert block.cross_attention is not None
        assert block.around_cross is not None
        site, x = Site("decoder", layer), probe.residuals["decoder"][layer][0]
        found[site], x = _self_attention(block.self_attention, block.around_self, x, site, probe)
        site = Site("cross", layer)
        vectors = _head_vectors(block.cross_attention, encoded, site, probe)
        found[site], _ = _mixed(block.cross_attention, block.around_cross, vectors, x, site, probe, own_column=True)
    total = rolled_out(found, source.shape[1], fed.shape[1])
    return total.cpu(), {site: matrix.cpu() for site, matrix in found.items()}


def rolled_out(sublayers: Mapping[Site, Tensor], source_length: int, target_length: int) -> Tensor:
    """Sub-layers' shares multiplied through the model: (T, S + T), the source's columns first."""
    like = next(iter(sublayers.values()))
    encoder = torch.eye(source_length).to(like)
    for layer in range(sum(site.kind == "encoder" for site in sublayers)):
        encoder = sublayers[Site("encoder", layer)] @ encoder
    from_source, from_fed = like.new_zeros(target_length, source_length), torch.eye(target_length).to(like)
    for layer in range(sum(site.kind == "decoder" for site in sublayers)):
        own, cross = sublayers[Site("decoder", layer)], sublayers[Site("cross", layer)]
        kept = cross[:, -1:]  # of what the row was before it looked at the source
        from_source = kept * (own @ from_source) + cross[:, :-1] @ encoder
        from_fed = kept * (own @ from_fed)
    return torch.cat((from_source, from_fed), dim=1)


def _self_attention(
    attention: MultiHeadAttention, around: SubLayerWrapper, x: Tensor, site: Site, probe: Probe
) -> tuple[Tensor, Tensor]:
    """The shares (T, T) of a self-attention sub-layer, and what it gives, for what it is given: x (T, D)."""
    vectors = _head_vectors(attention, around.norm(x) if around.pre_norm else x, site, probe)
    return _mixed(attention, around, vectors, x, site, probe, own_column=False)


def _head_vectors(attention: MultiHeadAttention, y: Tensor, site: Site, probe: Probe) -> Tensor:
    """What each head would bring from each token at full weight: (H, S, D)."""
    values = attention.split_heads(attention.w_v(y))  # (H, S, d_v)
    by_head = attention.w_o.weight.view(attention.w_o.out_features, attention.num_heads, -1)  # (D, H, d_v)
    vectors = torch.einsum("hsv,dhv->hsd", values, by_head)
    off = probe.interventions.get(site, Intervention()).heads_off
    vectors[list(off)] = 0
    return vectors


def _mixed(
    attention: MultiHeadAttention,
    around: SubLayerWrapper,
    vectors: Tensor,  # (H, S, D)
    x: Tensor,  # (T, D)
    site: Site,
    probe: Probe,
    own_column: bool,  # the row's residual has a column of its own; else it belongs to the row's own token
) -> tuple[Tensor, Tensor]:
    """The shares of a sub-layer's rows, and its result (T, D)."""
    weights = probe.weights[site][0]  # (H, T, S)
    rows, columns = x.shape[0], vectors.shape[1] + own_column
    residual = x if around.residual else torch.zeros_like(x)
    shares, results = [], []
    step = max(1, NUMBERS_AT_ONCE // (columns * x.shape[1]))
    for first in range(0, rows, step):
        part = slice(first, min(rows, first + step))
        transformed = torch.einsum("hts,hsd->tsd", weights[:, part], vectors)
        if own_column:
            transformed = torch.cat((transformed, residual[part, None]), dim=1)
        else:
            at = torch.arange(part.start, part.stop)
            transformed[at - first, at] += residual[part]
        total = transformed.sum(dim=1)
        if attention.w_o.bias is not None:
            total = total + attention.w_o.bias
        if not around.pre_norm:
            transformed = _through_norm(around.norm, total, transformed)
            total = around.norm(total)
        shares.append(_shares(total, transformed))
        results.append(total)
    return torch.cat(shares), torch.cat(results)


def _through_norm(norm: nn.Module, total: Tensor, parts: Tensor) -> Tensor:
    """The parts (T, N, D) of a sum (T, D) after its normalisation, which is linear once its scale is known."""
    if isinstance(norm, nn.LayerNorm):
        scale = (total.var(dim=-1, unbiased=False) + norm.eps).rsqrt()  # (T,)
        return (parts - parts.mean(dim=-1, keepdim=True)) * scale[:, None, None] * norm.weight
    assert isinstance(norm, BatchNorm)
    assert norm.norm.running_var is not None
    return parts * (norm.norm.running_var + norm.norm.eps).rsqrt() * norm.norm.weight


def _shares(total: Tensor, parts: Tensor) -> Tensor:
    """By how much each part (T, N, D) brings the sum (T, D) nearer, as shares of one: (T, N)."""
    size = total.abs().sum(dim=-1, keepdim=True)  # (T, 1)
    nearer = (size - (total[:, None] - parts).abs().sum(dim=-1)).clamp(min=0)
    # Where no part does, for they cancel each other out, the parts' own sizes are all that there is to go by.
    nearer = torch.where(nearer.sum(dim=-1, keepdim=True) > 0, nearer, parts.abs().sum(dim=-1))
    return nearer / nearer.sum(dim=-1, keepdim=True)
