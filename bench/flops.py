"""Floating-point operations of a training step: what the products of the equations need, no matter how they are done.

A product with a weight matrix takes 2 operations a weight in the forward pass and 4 in the backward pass (one product
for the gradient of its input, one for that of the weight): 6 times the parameters that a position goes through.
Embedding look-ups are no products and are not counted; the projection before the softmax is one and is, though its
weights are those of the embeddings. Biases, normalisation and softmax are not counted. Attention's own two products,
Q K^T and the weighted sum of V, have no weights, and are counted from the lengths.
"""

from dragoman.config import ModelConfig

PASSES = 3  # forward, and two in the backward pass, for every product


def encoder_parameters(config: ModelConfig) -> int:
    """Weights that each source position goes through, the decoder's projections of the memory among them."""
    heads = config.num_heads
    keys, values = heads * config.key_size, heads * config.value_size
    attention = config.d_model * (2 * keys + 2 * values)
    feed_forward = 2 * config.d_model * config.d_ff
    memory = config.decoder_layers * config.d_model * (keys + values)
    return config.encoder_layers * (attention + feed_forward) + memory


def decoder_parameters(config: ModelConfig) -> int:
    """Weights that each target position goes through, but for the last projection."""
    heads = config.num_heads
    keys, values = heads * config.key_size, heads * config.value_size
    self_attention = config.d_model * (2 * keys + 2 * values)
    cross_attention = config.d_model * (keys + values)  # its queries and its output
    return config.decoder_layers * (self_attention + cross_attention + 2 * config.d_model * config.d_ff)


def attention_products(config: ModelConfig, sources: int, source_length: int, target_length: int) -> int:
    """Operations of Q K^T and of the weighted sums, forward, for so many pairs. Causal attention needs half of its
    square, but every product of whole matrices computes all of it; counted is the whole."""
    width = config.num_heads * (config.key_size + config.value_size)
    pairs = config.encoder_layers * source_length**2
    pairs += config.decoder_layers * (target_length**2 + target_length * source_length)
    return 2 * width * pairs * sources


def training_flops(config: ModelConfig, sentences: int, source_length: int, target_length: int) -> int:
    """One forward and backward pass over a batch without padding."""
    source, target = sentences * source_length, sentences * target_length
    weights = source * encoder_parameters(config) + target * decoder_parameters(config)
    projection = target * config.d_model * config.vocab_size
    own = attention_products(config, sentences, source_length, target_length)
    return PASSES * (2 * (weights + projection) + own)
