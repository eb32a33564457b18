"""torch.nn.Transformer with a good loop: as for Marian, and dropout only where the paper has it."""

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from contestants.batches import Step, padded_batch
from dragoman.data.dataset import Prepared
from dragoman.model.transformer import sinusoids
from shapes import Shape


class Contestant:
    def __init__(self, shape: Shape, text: Prepared) -> None:
        torch.manual_seed(1)
        self.text = text
        self.scale = math.sqrt(shape.d_model)
        self.embedding = nn.Embedding(text.tokenizer.vocab_size, shape.d_model)
        nn.init.normal_(self.embedding.weight, std=shape.d_model**-0.5)
        self.positions = sinusoids(512, shape.d_model)
        self.dropout = nn.Dropout(shape.dropout)
        self.model = nn.Transformer(
            shape.d_model, shape.heads, shape.layers, shape.layers, shape.d_ff, shape.dropout, batch_first=True
        ).train()
        for module in self.model.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0  # of the attention weights
            if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = 0.0  # between the two products of the feed-forward
        parameters = [*self.model.parameters(), self.embedding.weight]
        self.optimizer = torch.optim.Adam(parameters, lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.shape[1]])

    def train(self, steps: Iterable[Step]) -> int:
        return sum(map(self.train_step, steps))

    def train_step(self, step: Step) -> int:
        batches = [padded_batch(self.text, rows) for rows in step]
        tokens = sum(batch.tokens for batch in batches)
        for batch in batches:
            padding = None if batch.source_mask is None else ~batch.source_mask
            future = torch.ones(batch.target.shape[1], batch.target.shape[1], dtype=torch.bool).triu(1)
            hidden = self.model(
                self.embed(batch.source),
                self.embed(batch.target),
                tgt_mask=future,
                src_key_padding_mask=padding,
                memory_key_padding_mask=padding,
                tgt_is_causal=True,
            )
            logits = F.linear(batch.at_real_positions(hidden), self.embedding.weight)
            loss = F.cross_entropy(logits, batch.real_labels, label_smoothing=0.1, reduction="sum")
            (loss / tokens).backward()
            float(loss.detach())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return tokens
