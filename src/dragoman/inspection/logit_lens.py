"""The logit lens: what each layer of the decoder would have said, had it been the last (nostalgebraist 2020).

The decoder's final normalisation and the output projection, which belong to the last layer's residual stream, are
applied to that of every layer. The last layer's reading is the model's own distribution.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.inspection.explain import Alternative
from dragoman.inspection.html_tables import shown, table
from dragoman.model.probe import Probe
from dragoman.model.transformer import Transformer


@dataclass(frozen=True)
class ProbabilityShift:
    """A token whose probability a layer changes."""

    token: str
    before: float  # as the layer before would have had it; for the first layer, as the embeddings would
    after: float


@dataclass(frozen=True)
class LayerReading:
    """What one layer would have said at one position."""

    layer: int
    probability: float  # of the token that is produced there
    rank: int  # of that token; 1: the most probable
    candidates: tuple[Alternative, ...]  # the best first
    promoted: tuple[ProbabilityShift, ...]  # whose probability the layer raises most
    suppressed: tuple[ProbabilityShift, ...]  # whose probability it lowers most


@dataclass(frozen=True)
class LogitLens:
    """The readings of every layer at every position of a translation."""

    text: str
    translation: str
    fed: tuple[str, ...]
    produced: tuple[str, ...]
    positions: tuple[tuple[LayerReading, ...], ...]  # of each produced token: one of each layer, the first layer first

    def settled(self, position: int) -> int | None:
        """The first layer from which on the produced token is the most probable one; None: it never is."""
        layers = self.positions[position]
        never = [reading.layer for reading in layers if reading.rank > 1]
        return None if never and never[-1] == layers[-1].layer else (never[-1] + 1 if never else 0)

    def _repr_html_(self) -> str:
        """A column for each produced token, a row for what each layer would have said there."""
        rows = []
        for layers in zip(*self.positions, strict=True):
            best = [reading.candidates[0] for reading in layers]
            cells = [(f"{shown(one.token)} {one.probability:.2f}", one.probability) for one in best]
            rows.append((f"layer {layers[0].layer}", cells))
        return table(f"{self.text} → {self.translation}", list(map(shown, self.produced)), rows)


@torch.inference_mode()
def read_layers(
    model: Transformer, source: Tensor, target: Tensor, probe: Probe, count: int, piece: Callable[[int], str]
) -> tuple[tuple[LayerReading, ...], ...]:
    """The readings along one translation. source (1, S), target (1, T + 1): start symbol first, end symbol last.
    count: how many tokens of each list."""
    model.eval()
    model(source, target[:, :-1], probe=probe)
    produced = target[0, 1:, None]  # (T, 1)
    before: Tensor | None = None
    by_layer: list[list[LayerReading]] = []
    for layer, residual in enumerate(probe.residuals["decoder"], start=-1):
        now = model.output(model.decoder_norm(residual[0])).float().softmax(dim=-1)  # (T, V)
        if before is not None:
            by_layer.append(_readings(layer, before, now, produced, count, piece))
        before = now
    return tuple(zip(*by_layer, strict=True))


def _readings(
    layer: int, before: Tensor, now: Tensor, produced: Tensor, count: int, piece: Callable[[int], str]
) -> list[LayerReading]:
    probabilities = now.gather(1, produced)  # (T, 1)
    ranks = (now > probabilities).sum(dim=1) + 1
    many = min(count, now.shape[1])
    best, raised, lowered = now.topk(many), (now - before).topk(many), (before - now).topk(many)

    def shifts(row: int, tokens: Sequence[int], sign: int) -> tuple[ProbabilityShift, ...]:
        pairs = ((token, before[row, token].item(), now[row, token].item()) for token in tokens)
        return tuple(ProbabilityShift(piece(token), old, new) for token, old, new in pairs if sign * (new - old) > 0)

    return [
        LayerReading(
            layer=layer,
            probability=probabilities[row].item(),
            rank=int(ranks[row]),
            candidates=tuple(
                Alternative(piece(token), value)
                for token, value in zip(best.indices[row].tolist(), best.values[row].tolist(), strict=True)
            ),
            promoted=shifts(row, raised.indices[row].tolist(), 1),
            suppressed=shifts(row, lowered.indices[row].tolist(), -1),
        )
        for row in range(now.shape[0])
    ]
