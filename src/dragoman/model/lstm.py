"""The LSTM that the Transformer replaced, as a baseline of equal size (Wu et al. 2016).

Its attention is multiplicative, additive (Bahdanau et al. 2015), or left out: then one vector, the encoder's two last
states, is all that the decoder knows of the source (Cho et al. 2014). A bidirectional encoder; a first decoder layer
whose output attends to the encoder's output, and further layers that are given the result: so in training all target
positions go through a layer at once. It has the Transformer's methods (`states`, `start`, `step`, `output`): the same
loop trains it, the same search decodes with it, the same files hold its weights.
"""

from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dragoman.config import ModelConfig
from dragoman.errors import UsageError
from dragoman.model.dropout import Dropout
from dragoman.model.probe import Probe

Recurrent = tuple[Tensor, Tensor]  # the hidden and the cell state of some layers, (layers, rows, D) each


class AttentionalLSTM(nn.Module):
    """Letters in shape comments are those of transformer.py."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        d_model, layers = config.d_model, config.decoder_layers
        self.source_tokens = nn.Embedding(config.vocab_size, d_model)
        self.target_tokens = self.source_tokens if config.tie_embeddings else nn.Embedding(config.vocab_size, d_model)
        between = config.dropout if config.encoder_layers > 1 else 0.0
        self.encoder = nn.LSTM(
            d_model, d_model // 2, config.encoder_layers, batch_first=True, bidirectional=True, dropout=between
        )
        self.first = nn.LSTM(d_model, d_model, batch_first=True)
        between = config.dropout if layers > 2 else 0.0
        self.further = (
            nn.LSTM(2 * d_model, d_model, layers - 1, batch_first=True, dropout=between) if layers > 1 else None
        )
        self.kind = config.recurrent_attention
        if self.kind != "none":
            self.w_q = nn.Linear(d_model, d_model, bias=False)
            self.w_k = nn.Linear(d_model, d_model, bias=False)
        if self.kind == "additive":
            self.w_score = nn.Linear(d_model, 1, bias=False)
        self.join = nn.Linear(2 * d_model, d_model, bias=False)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(d_model, config.vocab_size, bias=False)
        if config.tie_embeddings:
            self.output.weight = self.target_tokens.weight
        for name, parameter in self.named_parameters():
            if "tokens" in name or name.startswith("output"):
                nn.init.normal_(parameter, std=d_model**-0.5)

    def embed(self, tokens: nn.Embedding, ids: Tensor) -> Tensor:
        scale = self.config.d_model**0.5 if self.config.scale_embeddings else 1.0
        return self.dropout(tokens(ids) * scale)  # type: ignore[no-any-return]

    def encode(self, source: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None) -> Tensor:
        """Source ids (B, S) to the encoder's output (B, S, D)."""
        _refuse(probe)
        x = self.embed(self.source_tokens, source)
        if source_mask is None:
            encoded, _ = self.encoder(x)
        else:  # so that the way back begins at each sentence's own end
            lengths = source_mask.sum(dim=1).cpu()
            packed, _ = self.encoder(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
            encoded, _ = pad_packed_sequence(packed, batch_first=True, total_length=source.shape[1])
        return self.dropout(encoded)  # type: ignore[no-any-return]

    def keys(self, encoded: Tensor) -> Tensor:
        return encoded if self.kind == "none" else self.w_k(encoded)

    def look(self, query: Tensor, keys: Tensor, encoded: Tensor, mask: Tensor | None) -> Tensor:
        """What each of the queries (B, T, D) attends to in the encoder's output (B, S, D)."""
        allowed = None if mask is None else mask[:, None, :]  # (B, 1, S)
        match self.kind:
            case "multiplicative":
                return F.scaled_dot_product_attention(self.w_q(query), keys, encoded, attn_mask=allowed)
            case "additive":
                pairs = torch.tanh(self.w_q(query)[:, :, None] + keys[:, None])  # (B, T, S, D)
                scores = self.w_score(pairs).squeeze(-1)  # (B, T, S)
                if allowed is not None:
                    scores = scores.masked_fill(~allowed, -torch.inf)
                return scores.softmax(dim=-1) @ encoded  # type: ignore[no-any-return]
            case "none":
                half = encoded.shape[2] // 2
                # Each way ends where it has read all: forward at the last token, back at the first.
                last = encoded.shape[1] - 1 if mask is None else mask.sum(dim=1) - 1
                rows = torch.arange(encoded.shape[0], device=encoded.device)
                summary = torch.cat((encoded[rows, last, :half], encoded[:, 0, half:]), dim=-1)
                return summary[:, None].expand(-1, query.shape[1], -1)

    def states(
        self, source: Tensor, target: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None
    ) -> Tensor:
        """Without the last projection: (B, T, D)."""
        encoded = self.encode(source, source_mask, probe)
        lower, _ = self.first(self.embed(self.target_tokens, target))
        context = self.look(self.dropout(lower), self.keys(encoded), encoded, source_mask)
        upper = lower
        if self.further is not None:
            upper, _ = self.further(self.dropout(torch.cat([lower, context], dim=-1)))
        return self.top(upper, context)

    def top(self, upper: Tensor, context: Tensor) -> Tensor:
        return self.dropout(torch.tanh(self.join(torch.cat([upper, context], dim=-1))))  # type: ignore[no-any-return]

    def forward(
        self, source: Tensor, target: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None
    ) -> Tensor:
        """Logits of the token after each target position: (B, T, V)."""
        return self.output(self.states(source, target, source_mask, probe))  # type: ignore[no-any-return]

    def start(self, source: Tensor, source_mask: Tensor | None = None, probe: Probe | None = None) -> "RecurrentState":
        encoded = self.encode(source, source_mask, probe)
        return RecurrentState((self.keys(encoded), encoded), source_mask, None, None)

    def step(self, ids: Tensor, state: "RecurrentState") -> Tensor:
        """One more position for each of (B, K) beams, `state` growing by it: logits (B, K, V)."""
        rows = ids.flatten()[:, None]  # (B K, 1)
        lower, state.first = self.first(self.embed(self.target_tokens, rows), state.first)
        context = self.look(lower.view(*ids.shape, -1), *state.source, state.source_mask)  # (B, K, D)
        upper, row_context = lower, context.flatten(0, 1)[:, None]
        if self.further is not None:
            upper, state.further = self.further(torch.cat([lower, row_context], dim=-1), state.further)
        return self.output(self.top(upper, row_context)).view(*ids.shape, -1)  # type: ignore[no-any-return]


@dataclass
class RecurrentState:
    """What decoding keeps between positions: the encoded source a sentence, the layers' states a beam."""

    source: tuple[Tensor, Tensor]  # keys and values, (B, S, D)
    source_mask: Tensor | None  # (B, S)
    first: Recurrent | None  # None: before the first position
    further: Recurrent | None

    def select(self, sentences: Tensor, beams: Tensor) -> Self:
        """Keep these sentences (B',), and of each these beams (B', K') in this order."""
        keys, values = self.source
        num_sentences = keys.shape[0]
        rows_before = num_sentences if self.first is None else self.first[0].shape[1]
        rows = (sentences[:, None] * (rows_before // num_sentences) + beams).flatten()

        def of_rows(state: Recurrent | None) -> Recurrent | None:
            return None if state is None else (state[0].index_select(1, rows), state[1].index_select(1, rows))

        return type(self)(
            (keys.index_select(0, sentences), values.index_select(0, sentences)),
            None if self.source_mask is None else self.source_mask.index_select(0, sentences),
            of_rows(self.first),
            of_rows(self.further),
        )


def _refuse(probe: Probe | None) -> None:
    if probe is not None:
        raise UsageError(
            "an LSTM has no heads to look at or to change; use a run with model.architecture = transformer"
        )
