"""Hugging Face's MarianMTModel with a good hand-written loop: length-bucketed token batches, no mask where lengths are
equal, the last projection at real positions only, fused Adam."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from transformers import MarianConfig, MarianMTModel

from contestants.batches import Step, padded_batch
from dragoman.data.dataset import Prepared
from shapes import Shape


def marian_config(shape: Shape, text: Prepared) -> MarianConfig:
    return MarianConfig(
        vocab_size=text.tokenizer.vocab_size,
        d_model=shape.d_model,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=shape.d_ff,
        decoder_ffn_dim=shape.d_ff,
        activation_function="relu",
        dropout=shape.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=True,
        static_position_embeddings=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        max_position_embeddings=1024,  # the longest sentences of growth.py
        pad_token_id=text.tokenizer.pad_id,
        bos_token_id=text.tokenizer.bos_id,
        eos_token_id=text.tokenizer.eos_id,
        decoder_start_token_id=text.tokenizer.bos_id,
        forced_eos_token_id=None,
        use_cache=False,
        attn_implementation="sdpa",
    )


class Contestant:
    def __init__(self, shape: Shape, text: Prepared) -> None:
        torch.manual_seed(1)
        self.text = text
        self.model = MarianMTModel(marian_config(shape, text)).train()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def train(self, steps: Iterable[Step]) -> int:
        return sum(map(self.train_step, steps))

    def train_step(self, step: Step) -> int:
        batches = [padded_batch(self.text, rows) for rows in step]
        tokens = sum(batch.tokens for batch in batches)
        for batch in batches:
            mask = None if batch.source_mask is None else batch.source_mask.long()
            hidden = self.model.model(
                input_ids=batch.source, attention_mask=mask, decoder_input_ids=batch.target, use_cache=False
            ).last_hidden_state
            logits = self.model.lm_head(batch.at_real_positions(hidden)) + self.model.final_logits_bias
            loss = F.cross_entropy(logits, batch.real_labels, label_smoothing=0.1, reduction="sum")
            (loss / tokens).backward()
            float(loss.detach())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return tokens
