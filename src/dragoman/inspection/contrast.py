"""Why this word and not that one: contrastive attribution (Yin and Neubig 2022).

What is explained is the difference between the log-probabilities of two continuations after the same beginning; for
two single tokens that is the difference of their logits. Of each token of the source and of the beginning, three
answers: the gradient of the difference by the token's vector, times that vector; the gradient's L1 norm; and erasure,
what the difference loses when the token is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.inspection.html_tables import shown, table
from dragoman.model.transformer import Transformer

# So many sequences with a token left out go through the model at once.
ERASED_AT_ONCE = 32


@dataclass(frozen=True)
class Influence:
    """What one token does for one continuation against the other. Above 0: it speaks for the first one."""

    token: str
    gradient_input: float
    gradient_norm: float  # how strongly the difference depends on the token, in either direction
    erasure: float | None  # None: it cannot be left out, as nothing would be left, or it is the start symbol


@dataclass(frozen=True)
class Contrast:
    """Two continuations of a translation, and what speaks for the first one."""

    text: str
    translation: str
    position: int  # of the first token that differs, among the produced tokens
    this: tuple[str, ...]  # as the translation goes on
    that: tuple[str, ...]  # as it might
    this_log_probability: float  # after the same beginning
    that_log_probability: float
    source: tuple[Influence, ...]
    before: tuple[Influence, ...]  # of the tokens that the decoder was fed before the position

    @property
    def difference(self) -> float:
        """How much more log-probability `this` has than `that`."""
        return self.this_log_probability - self.that_log_probability

    def _repr_html_(self) -> str:
        """A row for each token of the source, then for each that was said before."""
        this, that = (" ".join(map(shown, tokens)) for tokens in (self.this, self.that))
        named = [(shown(one.token), one) for one in self.source] + [
            (f"…{shown(one.token)}", one) for one in self.before
        ]
        rows = []
        for name, one in named:
            erasure = "–" if one.erasure is None else f"{one.erasure:+.3f}"
            numbers = f"{one.gradient_input:+.3f}", erasure, f"{one.gradient_norm:.2f}"
            rows.append((name, [(number, 0.0) for number in numbers]))
        title = f"why {this} and not {that}: {self.difference:+.3f} in log P"
        return table(title, ["gradient × input", "left out", "gradient, size"], rows)


@dataclass(frozen=True)
class Continuations:
    """Two continuations, as token ids."""

    source: Sequence[int]  # as the encoder reads it
    before: Sequence[int]  # as the decoder is fed it, the start symbol first
    this: Sequence[int]
    that: Sequence[int]


Numbers = tuple[list[float], list[float], list[float | None]]  # gradient times input, gradient norm, erasure


def log_probabilities(model: Transformer, asked: Continuations) -> tuple[float, float]:
    """Those of the two continuations."""
    source, before = _looked_up(model, asked)
    with torch.inference_mode():
        this, that = _scores(model, source, before, asked)
    return this.item(), that.item()


def attribute(model: Transformer, asked: Continuations, given: int = 1) -> tuple[Numbers, Numbers]:
    """What the source's tokens do, and the beginning's. given: so many tokens of the beginning are no choice."""
    model.eval()
    by_input, by_norm = gradients(model, asked)
    erased_source, erased_before = erasures(model, asked, given)
    return (by_input[0], by_norm[0], erased_source), (by_input[1], by_norm[1], erased_before)


def gradients(model: Transformer, asked: Continuations) -> tuple[tuple[list[float], list[float]], ...]:
    """Gradient times input, and the gradient's L1 norm: each for the source's tokens and for the beginning's."""
    with torch.inference_mode(False), torch.enable_grad():
        leaves = [vectors.detach().clone().requires_grad_() for vectors in _looked_up(model, asked)]
        this, that = _scores(model, leaves[0], leaves[1], asked)
        found = torch.autograd.grad(this - that, leaves)
    times_input = tuple((one * leaf.detach()).sum(dim=-1)[0].tolist() for one, leaf in zip(found, leaves, strict=True))
    return times_input, tuple(one.abs().sum(dim=-1)[0].tolist() for one in found)  # type: ignore[return-value]


@torch.inference_mode()
def erasures(model: Transformer, asked: Continuations, given: int) -> tuple[list[float | None], list[float | None]]:
    """What the difference loses without each token: of the source, and of the beginning."""
    device = model.output.weight.device
    source = torch.tensor([list(asked.source)], device=device)
    before = torch.tensor([list(asked.before)], device=device)
    plain = _difference(model, model.encode(source), before, asked)[0]
    lost: list[float | None] = [None] * len(asked.source)
    if len(asked.source) > 1:
        left = torch.cat([_difference(model, model.encode(part), before, asked) for part in _each_left_out(source, 0)])
        lost = (plain - left).tolist()
    lost_before: list[float | None] = [None] * len(asked.before)
    if len(asked.before) > given:
        encoded = model.encode(source)
        left = torch.cat([_difference(model, encoded, part, asked) for part in _each_left_out(before, given)])
        lost_before[given:] = (plain - left).tolist()
    return lost, lost_before


def _each_left_out(ids: Tensor, first: int) -> list[Tensor]:
    """The sequence (1, N) without each of its tokens from `first` on: (at most 32, N - 1) each."""
    count = ids.shape[1]
    kept = ~torch.eye(count, dtype=torch.bool, device=ids.device)[first:]
    return list(ids.expand(count - first, -1)[kept].view(count - first, count - 1).split(ERASED_AT_ONCE))


def _difference(model: Transformer, encoded: Tensor, before: Tensor, asked: Continuations) -> Tensor:
    """The log-probability of this less that of that: (B,), for an encoded source or a beginning for each of B."""
    rows = max(encoded.shape[0], before.shape[0])

    def score(continuation: Sequence[int]) -> Tensor:
        said = torch.tensor([list(continuation)], device=before.device).expand(rows, -1)
        fed = torch.cat((before.expand(rows, -1), said[:, :-1]), dim=1)
        logits = model.output(model.decode(fed, encoded.expand(rows, -1, -1))[:, -said.shape[1] :])
        return _summed(logits, said)

    return score(asked.this) - score(asked.that)


def _looked_up(model: Transformer, asked: Continuations) -> tuple[Tensor, Tensor]:
    """The vectors of the source and of the beginning, as the embeddings' tables have them: (1, N, D)."""
    device = model.output.weight.device
    source, before = (torch.tensor([list(ids)], device=device) for ids in (asked.source, asked.before))
    return model.source_embedding.tokens(source), model.target_embedding.tokens(before)


def _scores(model: Transformer, source: Tensor, before: Tensor, asked: Continuations) -> tuple[Tensor, Tensor]:
    """The continuations' log-probabilities, from the vectors of what comes before them."""
    x = model.source_embedding.place(source)
    for layer, block in enumerate(model.encoder):
        x = block(x, None, layer, None)
    keys_values = model.cross_keys_values(model.encoder_norm(x))

    def score(continuation: Sequence[int]) -> Tensor:
        said = torch.tensor([list(continuation)], device=source.device)
        y = model.target_embedding.place(torch.cat((before, model.target_embedding.tokens(said[:, :-1])), dim=1))
        for layer, (block, encoded) in enumerate(zip(model.decoder, keys_values, strict=True)):
            y = block(y, encoded, None, layer, None)
        return _summed(model.output(model.decoder_norm(y[:, -said.shape[1] :])), said)[0]

    return score(asked.this), score(asked.that)


def _summed(logits: Tensor, said: Tensor) -> Tensor:
    """The log-probability of tokens (B, N) by their logits (B, N, V): (B,). In the model's own precision."""
    return logits.log_softmax(dim=-1).gather(2, said[..., None]).sum(dim=(1, 2))
