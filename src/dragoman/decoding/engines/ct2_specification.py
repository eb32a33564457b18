"""A run's weights in the places where CTranslate2's own model specification wants them. Imports no torch."""

from typing import Any

import numpy as np

from dragoman.config import ModelConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines.numpy_weights import Array, Weights, matrix_names, position_table


class SpecificationBuilder:
    """Fills CTranslate2's specification of a Transformer with a run's weights, layer by layer."""

    def __init__(self, specs: Any, config: ModelConfig, weights: Weights, positions: int) -> None:
        """positions: how many rows the table of positions has, unless positions are learned."""
        activations = {
            "relu": specs.Activation.RELU, "swish": specs.Activation.SWISH, "gelu": specs.Activation.GELU,
        }  # fmt: skip
        shape = {
            "num_heads": config.num_heads,
            "pre_norm": config.norm_order == "pre",
            "head_dim": weights.d_head,
            "activation": activations[config.activation],
            "layernorm_embedding": config.embedding_norm,
        }
        self.encoder = specs.TransformerEncoderSpec(config.encoder_layers, **shape)
        self.decoder = specs.TransformerDecoderSpec(config.decoder_layers, **shape)
        self.spec = specs.TransformerSpec(self.encoder, self.decoder)
        self.config = config
        self.weights = weights
        self.positions = positions

    def build(self, tokenizer: Tokenizer) -> Any:
        """The whole specification."""
        for index, layer in enumerate(self.encoder.layer):
            self._layer(layer, f"encoder.{index}")
        for index, layer in enumerate(self.decoder.layer):
            self._layer(layer, f"decoder.{index}")
            self._attention(layer.attention, f"decoder.{index}.cross_attention")
            self._norm(layer.attention.layer_norm, f"decoder.{index}.around_cross.norm")
        if self.config.norm_order == "pre":
            self._norm(self.encoder.layer_norm, "encoder_norm")
            self._norm(self.decoder.layer_norm, "decoder_norm")
        self._embeddings()
        self._vocabulary(tokenizer)
        self.weights.check_all_taken()
        self.spec.validate()
        return self.spec

    def _layer(self, layer: Any, name: str) -> None:
        """What encoder and decoder layers have in common."""
        self._attention(layer.self_attention, f"{name}.self_attention")
        self._norm(layer.self_attention.layer_norm, f"{name}.around_self.norm")
        self._feed_forward(layer.ffn, f"{name}.feed_forward")
        self._norm(layer.ffn.layer_norm, f"{name}.around_feed_forward.norm")

    def _attention(self, target: Any, name: str) -> None:
        config, weights = self.config, self.weights
        query = weights.projection(f"{name}.w_q.weight", config.key_size, config.d_model)
        key = weights.projection(f"{name}.w_k.weight", config.key_size, config.d_model)
        value = weights.projection(f"{name}.w_v.weight", config.value_size, config.d_model)
        # In self-attention all three are projections of one input; in cross-attention the queries have another one.
        joint = [[query, key, value]] if len(target.linear) == 2 else [[query], [key, value]]
        for linear, parts in zip(target.linear, joint, strict=False):
            linear.weight = np.concatenate(parts)
        target.linear[-1].weight = weights.output_projection(f"{name}.w_o.weight", config.d_model)
        if config.attention_bias:
            sizes = (config.key_size, config.key_size, config.value_size)
            biases = [
                weights.projection_bias(f"{name}.w_{letter}.bias", size)
                for letter, size in zip("qkv", sizes, strict=True)
            ]
            joint_biases = [biases] if len(target.linear) == 2 else [biases[:1], biases[1:]]
            for linear, parts in zip(target.linear, joint_biases, strict=False):
                linear.bias = np.concatenate(parts)
            target.linear[-1].bias = weights.take(f"{name}.w_o.bias", config.d_model)
        scales = {"1/sqrt(d_k)": config.key_size**-0.5, "1/d_k": 1 / config.key_size, "1": 1.0}
        target.queries_scale = scales[config.attention_scale]

    def _feed_forward(self, target: Any, name: str) -> None:
        d_model, d_ff = self.config.d_model, self.config.d_ff
        for linear, part, size in (
            (target.linear_0, "w_1", (d_ff, d_model)),
            (target.linear_1, "w_2", (d_model, d_ff)),
        ):
            linear.weight = self.weights.take(f"{name}.{part}.weight", *size)
            linear.bias = self.weights.take(f"{name}.{part}.bias", size[0])

    def _norm(self, target: Any, name: str) -> None:
        target.gamma = self.weights.take(f"{name}.weight", self.config.d_model)
        target.beta = self.weights.take(f"{name}.bias", self.config.d_model)

    def _embeddings(self) -> None:
        config, weights = self.config, self.weights
        source, target, output = matrix_names(config)
        self.encoder.embeddings[0].weight = weights.take(source, config.source_tokens, config.d_model)
        self.decoder.embeddings.weight = weights.take(target, config.vocab_size, config.d_model)
        self.decoder.projection.weight = weights.take(output, config.vocab_size, config.d_model)
        if config.output_bias:
            self.decoder.projection.bias = weights.take("output.bias", config.vocab_size)
        for stack, side in ((self.encoder, "source"), (self.decoder, "target")):
            stack.scale_embeddings = config.scale_embeddings
            if config.embedding_norm:
                self._norm(stack.layernorm_embedding, f"{side}_embedding.norm")
            stack.position_encodings.encodings = self._position_table(side)

    def _position_table(self, side: str) -> Array:
        if self.config.positions == "learned":
            return self.weights.take(f"{side}_embedding.positions", self.config.max_positions, self.config.d_model)
        return position_table(self.config, self.positions)

    def _vocabulary(self, tokenizer: Tokenizer) -> None:
        # The pieces are the names: sentencepiece allows none of them twice.
        names = [tokenizer.piece(index) for index in range(self.config.vocab_size)]
        of_source = [tokenizer.source_piece(index) for index in range(self.config.source_tokens)]
        self.spec.register_source_vocabulary(of_source)
        self.spec.register_target_vocabulary(names)
        settings = self.spec.config
        settings.unk_token = names[tokenizer.unk_id]
        settings.bos_token = settings.decoder_start_token = names[tokenizer.bos_id]
        settings.eos_token = names[tokenizer.eos_id]
        settings.add_source_eos = tokenizer.ends_source
        settings.add_attribute("positions", self.positions)
