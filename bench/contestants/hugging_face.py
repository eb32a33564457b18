"""Our weights as a Hugging Face model, for generate(): Marian if the run is post-norm, M2M100 if it is pre-norm."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel

from dragoman.data.tokenizer import Tokenizer
from dragoman.model.transformer import DecoderLayer, EncoderLayer, Transformer, sinusoids

POSITIONS = 512


def converted(ours: Transformer, tokenizer: Tokenizer) -> nn.Module:
    config = ours.config
    settings: dict[str, Any] = {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.num_heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": "relu",
        "scale_embedding": True,
        "max_position_embeddings": POSITIONS,
        "pad_token_id": tokenizer.pad_id,
        "bos_token_id": tokenizer.bos_id,
        "eos_token_id": tokenizer.eos_id,
        "decoder_start_token_id": tokenizer.bos_id,
        "forced_eos_token_id": None,
        "attn_implementation": "sdpa",
    }
    theirs: Any
    table = sinusoids(POSITIONS, config.d_model)
    if config.norm_order == "post":
        theirs = MarianMTModel(MarianConfig(**settings, static_position_embeddings=True))
    else:
        theirs = M2M100ForConditionalGeneration(M2M100Config(**settings))
    with torch.no_grad():
        theirs.model.get_input_embeddings().weight.copy_(ours.output.weight)
        theirs.tie_weights()
        for side, layers in ((theirs.model.encoder, ours.encoder), (theirs.model.decoder, ours.decoder)):
            for their_layer, our_layer in zip(side.layers, layers, strict=True):
                _copy_layer(their_layer, our_layer)
            if config.norm_order == "post":
                side.embed_positions.weight.copy_(table)
            else:
                # Its positions are counted from the row after the padding's.
                rows = side.embed_positions.weights[tokenizer.pad_id + 1 :][:POSITIONS]
                rows.copy_(table[: len(rows)])
        if config.norm_order == "pre":
            _copy(theirs.model.encoder.layer_norm, ours.encoder_norm)
            _copy(theirs.model.decoder.layer_norm, ours.decoder_norm)
    return theirs.eval()


def _copy_layer(theirs: Any, ours: EncoderLayer | DecoderLayer) -> None:
    attentions = [(theirs.self_attn, ours.self_attention)]
    _copy(theirs.self_attn_layer_norm, ours.around_self.norm)
    _copy(theirs.final_layer_norm, ours.around_feed_forward.norm)
    if isinstance(ours, DecoderLayer):
        attentions.append((theirs.encoder_attn, ours.cross_attention))
        _copy(theirs.encoder_attn_layer_norm, ours.around_cross.norm)
    for their_attention, our_attention in attentions:
        _copy(their_attention.q_proj, our_attention.w_q)
        _copy(their_attention.k_proj, our_attention.w_k)
        _copy(their_attention.v_proj, our_attention.w_v)
        _copy(their_attention.out_proj, our_attention.w_o)
    _copy(theirs.fc1, ours.feed_forward.w_1)
    _copy(theirs.fc2, ours.feed_forward.w_2)


def _copy(theirs: Any, ours: Any) -> None:
    theirs.weight.copy_(ours.weight)
    bias: Tensor | None = getattr(ours, "bias", None)
    if bias is None:  # our projections in attention have none
        theirs.bias.zero_()
    else:
        theirs.bias.copy_(bias)
