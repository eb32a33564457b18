"""Looks into the attention of a forward pass, and changes it: for inspection and experiments, not in the paper."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from torch import Tensor

AttentionKind = Literal["encoder", "decoder", "cross"]
Half = Literal["encoder", "decoder"]


class Site(NamedTuple):
    """One attention sub-layer of the model."""

    kind: AttentionKind
    layer: int


class Override(NamedTuple):
    """The attention weights that one head is made to use in place of its own."""

    head: int
    query: int | None  # the row, counted in positions of the sequence; None: every row
    weights: Tensor  # (keys,); where decoding has fewer keys so far, the first of them


@dataclass(frozen=True)
class Intervention:
    """What is changed in one attention sub-layer."""

    heads_off: tuple[int, ...] = ()  # these heads contribute nothing
    overrides: tuple[Override, ...] = ()
    drop_mask: bool = False  # padding and the future become visible

    def mask(self, mask: Tensor | None) -> Tensor | None:
        """The mask, unless it is to be dropped."""
        return None if self.drop_mask else mask

    def weights(self, weights: Tensor) -> Tensor:
        """Attention weights (B, H, T, S) with those of some heads overridden."""
        if self.overrides:
            weights = weights.clone()
        for override in self.overrides:
            queries = slice(None) if override.query is None else slice(override.query, override.query + 1)
            weights[:, override.head, queries] = override.weights[: weights.shape[3]].to(weights)
        return weights

    def heads(self, context: Tensor) -> Tensor:
        """The heads' results (B, H, T, d_v), zero where a head is off."""
        if self.heads_off:
            context = context.clone()
            context[:, list(self.heads_off)] = 0
        return context


@dataclass
class Probe:
    """Passed to a forward pass by those who look inside: what to change, and where the weights are put."""

    interventions: Mapping[Site, Intervention] = field(default_factory=dict)
    weights: dict[Site, Tensor] = field(default_factory=dict)  # (B, H, queries, keys), filled by the pass
    scores: dict[Site, Tensor] = field(default_factory=dict)  # likewise: queries times keys, before any mask
    masked_scores: dict[Site, Tensor] = field(default_factory=dict)  # likewise: what the softmax is given
    # Of each half, what its first layer is given and what each layer gives: (B, positions, D), one more than layers.
    residuals: dict[Half, list[Tensor]] = field(default_factory=dict)


def recorded(probe: Probe | None, half: Half, x: Tensor, first: bool = False) -> Tensor:
    """The residual stream as it is, after its record in the probe, if there is one."""
    if probe is not None:
        if first:
            probe.residuals[half] = []
        probe.residuals[half].append(x)
    return x
