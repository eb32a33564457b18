"""fairseq 0.12: its TransformerModel and label-smoothed criterion, in a loop as its Trainer has it; fused Adam."""

import dataclasses
import logging
from collections.abc import Iterable
from types import SimpleNamespace

import torch

from contestants.batches import Step, padded_batch
from dragoman.data.dataset import Prepared
from shapes import Shape

_dataclass = dataclasses.dataclass


def _hashable_dataclass(cls=None, /, **options):
    """Python 3.11 refuses fairseq's own dataclasses as defaults of each other's fields unless they can be hashed."""

    def decorate(decorated):
        extra = {"unsafe_hash": True} if decorated.__module__.startswith("fairseq") else {}
        return _dataclass(decorated, **(options | extra))

    return decorate if cls is None else decorate(cls)


dataclasses.dataclass = _hashable_dataclass
logging.disable(logging.WARNING)
try:
    from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
    from fairseq.data import Dictionary
    from fairseq.models.transformer import TransformerModel, base_architecture
finally:
    dataclasses.dataclass = _dataclass


class Contestant:
    def __init__(self, shape: Shape, text: Prepared) -> None:
        torch.manual_seed(1)
        self.text = text
        tokenizer = text.tokenizer
        dictionary = Dictionary()
        dictionary.symbols = [tokenizer.piece(token) for token in range(tokenizer.vocab_size)]
        dictionary.count = [1] * tokenizer.vocab_size
        dictionary.pad_index, dictionary.eos_index = tokenizer.pad_id, tokenizer.eos_id
        dictionary.bos_index, dictionary.unk_index = tokenizer.bos_id, tokenizer.unk_id
        arguments = SimpleNamespace(
            encoder_layers=shape.layers,
            decoder_layers=shape.layers,
            encoder_embed_dim=shape.d_model,
            decoder_embed_dim=shape.d_model,
            encoder_ffn_embed_dim=shape.d_ff,
            decoder_ffn_embed_dim=shape.d_ff,
            encoder_attention_heads=shape.heads,
            decoder_attention_heads=shape.heads,
            dropout=shape.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            share_all_embeddings=True,
            share_decoder_input_output_embed=True,
            max_source_positions=1024,
            max_target_positions=1024,
        )
        base_architecture(arguments)
        task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
        self.model = TransformerModel.build_model(arguments, task).train()
        self.criterion = LabelSmoothedCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def train(self, steps: Iterable[Step]) -> int:
        return sum(map(self.train_step, steps))

    def train_step(self, step: Step) -> int:
        batches = [padded_batch(self.text, rows) for rows in step]
        tokens = sum(batch.tokens for batch in batches)
        for batch in batches:
            lengths = (batch.source != self.text.tokenizer.pad_id).sum(dim=1)
            inputs = {"src_tokens": batch.source, "src_lengths": lengths, "prev_output_tokens": batch.target}
            sample = {"net_input": inputs, "target": batch.labels, "ntokens": batch.tokens}
            loss, _, log = self.criterion(self.model, sample)
            (loss / tokens).backward()
            float(log["loss"])
        self.optimizer.step()
        self.optimizer.zero_grad()
        return tokens
