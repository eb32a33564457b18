"""Writes a run as two ONNX graphs, built node by node from the weights: without torch, and without a tracing exporter.

encoder.onnx   input_ids (B, S), attention_mask (B, S)
               -> cross_key_0 (B, H, S, d_k), cross_value_0 (B, H, S, d_v), ... of each decoder layer
decoder.onnx   input_ids (B,): one more token of each row; attention_mask (B, S); the encoder's outputs;
               past_key_0 (B, H, P, d_k), past_value_0 (B, H, P, d_v), ...: empty (P = 0) at first
               -> logits (B, V), and present_key_0, present_value_0, ...: the next step's past

Letters as in model/transformer.py. Masks are 1 at tokens and 0 at padding. A source ends with the end symbol, where
dragoman.json says so; a target begins with the start symbol. Their ids are there too.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.config import ModelConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.engines.ct2_convert import refusal
from dragoman.decoding.engines.numpy_weights import Weights, matrix_names, position_table
from dragoman.errors import DataError, DragomanError
from dragoman.run_directory import TOKENIZER, RunDirectory

OPSET = 17  # the first with LayerNormalization
IR_VERSION = 8  # the one that belongs to it: runtimes of 2022 and later read it
POSITIONS = 1024
ONE_FILE = 1_900_000_000  # bytes; protobuf holds no more than 2 GiB


def write_onnx(run: RunDirectory, tokenizer: Tokenizer, directory: Path) -> None:
    """Writes encoder.onnx, decoder.onnx, tokenizer.model, and dragoman.json with the numbers that a search needs."""
    config = run.read_config()
    if reason := refusal(config.model):
        raise DataError(f"{run.path}: cannot be written as ONNX: {reason}")
    try:
        import onnx
    except ImportError:
        raise DragomanError("onnx is not installed; pip install 'dragoman[export]'") from None
    weights = Weights(run.model_path, config.model)
    for name, graph in (("encoder", _Encoder(config.model, weights)), ("decoder", _Decoder(config.model, weights))):
        model = onnx.helper.make_model(
            graph.build(),
            opset_imports=[onnx.helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="dragoman",
        )
        apart = model.ByteSize() > ONE_FILE
        onnx.save(model, directory / f"{name}.onnx", save_as_external_data=apart, location=f"{name}.weights")
    weights.check_all_taken()
    (directory / TOKENIZER).write_bytes(tokenizer.model_bytes)
    about = {
        "start_id": tokenizer.bos_id,
        "end_id": tokenizer.eos_id,
        "ends_source": tokenizer.ends_source,
        "padding_id": tokenizer.pad_id,
        "vocab_size": config.model.vocab_size,
        "decoder_layers": config.model.decoder_layers,
        "heads": config.model.num_heads,
        "d_k": config.model.key_size,
        "d_v": config.model.value_size,
        "positions": _positions(config.model),
        "max_extra_length": config.search.max_extra_length,
    } | ({"casing": "inline"} if tokenizer.case_marks else {})
    (directory / "dragoman.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def _positions(config: ModelConfig) -> int:
    return config.max_positions if config.positions == "learned" else POSITIONS


class _Graph:
    """An ONNX graph in the making; each method adds nodes and returns the name of their result."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        import onnx

        self.onnx = onnx
        self.config = config
        self.weights = weights
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.scale = {
            "1/sqrt(d_k)": config.key_size**-0.5, "1/d_k": 1 / config.key_size, "1": 1.0,
        }[config.attention_scale]  # fmt: skip

    def add(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        output = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, name: str, array: NDArray[Any]) -> str:
        if name not in self.initializers:
            self.initializers[name] = self.onnx.numpy_helper.from_array(np.array(array, order="C"), name)
        return name

    def integers(self, *values: int) -> str:
        return self.constant(f"integers_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def number(self, value: float) -> str:
        return self.constant(f"number_{value:g}", np.array(value, np.float32))

    def linear(self, x: str, name: str, rows: int, columns: int, bias: bool = False) -> str:
        """x W^T + b. The weight is stored transposed, as ONNX computes x W."""
        result = self.add(
            "MatMul", x, self.constant(f"{name}.weight", self.weights.take(f"{name}.weight", rows, columns).T)
        )
        if bias:
            result = self.add("Add", result, self.constant(f"{name}.bias", self.weights.take(f"{name}.bias", rows)))
        return result

    def norm(self, x: str, name: str) -> str:
        gain, bias = (self.constant(f"{name}.{part}", self.weights.take(f"{name}.{part}", self.config.d_model))
                      for part in ("weight", "bias"))  # fmt: skip
        return self.add("LayerNormalization", x, gain, bias, axis=-1, epsilon=1e-5)

    def around(self, x: str, norm: str, sublayer: Any) -> str:
        """A sub-layer with its residual connection and normalisation, in the run's order."""
        if self.config.norm_order == "pre":
            return self.add("Add", x, sublayer(self.norm(x, norm)))
        return self.norm(self.add("Add", x, sublayer(x)), norm)

    def feed_forward(self, x: str, name: str) -> str:
        d_model, d_ff = self.config.d_model, self.config.d_ff
        hidden = self.activation(self.linear(x, f"{name}.w_1", d_ff, d_model, bias=True))
        return self.linear(hidden, f"{name}.w_2", d_model, d_ff, bias=True)

    def activation(self, x: str) -> str:
        match self.config.activation:
            case "relu":
                return self.add("Relu", x)
            case "swish":
                return self.add("Mul", x, self.add("Sigmoid", x))
            case "gelu":  # x/2 (1 + erf(x / sqrt 2)): the operator of its own is younger than most runtimes
                error = self.add("Erf", self.add("Mul", x, self.number(0.5**0.5)))
                return self.add("Mul", self.add("Mul", x, self.number(0.5)), self.add("Add", error, self.number(1.0)))

    def heads(self, x: str, size: int) -> str:
        """(B, T, H d) -> (B, H, T, d)"""
        split = self.add("Reshape", x, self.integers(0, 0, self.config.num_heads, size))
        return self.add("Transpose", split, perm=[0, 2, 1, 3])

    def attend(self, query: str, key: str, value: str, name: str, mask: str | None) -> str:
        """Attention (equation 1) of all heads, joined and projected: (B, T, D)."""
        scaled = self.add("Mul", query, self.number(self.scale))
        scores = self.add("MatMul", scaled, self.add("Transpose", key, perm=[0, 1, 3, 2]))
        if mask is not None:
            scores = self.add("Add", scores, mask)
        context = self.add("MatMul", self.add("Softmax", scores, axis=-1), value)
        width = self.config.num_heads * self.config.value_size
        joined = self.add("Reshape", self.add("Transpose", context, perm=[0, 2, 1, 3]), self.integers(0, 0, width))
        return self.linear(joined, f"{name}.w_o", self.config.d_model, width, self.config.attention_bias)

    def projected(self, x: str, name: str, letter: str) -> str:
        size = self.config.value_size if letter == "v" else self.config.key_size
        rows, bias = self.config.num_heads * size, self.config.attention_bias
        return self.heads(self.linear(x, f"{name}.w_{letter}", rows, self.config.d_model, bias), size)

    def mask_scores(self) -> str:
        """attention_mask (B, S) as something to add to scores: (B, 1, 1, S), 0 at tokens, -1e9 at padding."""
        real = self.add("Cast", "attention_mask", to=self.onnx.TensorProto.FLOAT)
        padding = self.add("Sub", real, self.number(1.0))
        return self.add("Unsqueeze", self.add("Mul", padding, self.number(1e9)), self.integers(1, 2))

    def embed(self, ids: str, side: str, positions: str) -> str:
        """Scaled token embeddings plus the rows of the position table that `positions` names."""
        config = self.config
        of_source, of_target, _ = matrix_names(config)
        name, size = (of_source, config.source_tokens) if side == "source" else (of_target, config.vocab_size)
        table = self.constant(name, self.weights.take(name, size, config.d_model))
        x = self.add("Gather", table, ids)
        if config.scale_embeddings:
            x = self.add("Mul", x, self.number(config.d_model**0.5))
        if config.positions == "learned":
            name = f"{side}_embedding.positions"
            rows = self.constant(name, self.weights.take(name, config.max_positions, config.d_model))
        else:
            rows = self.constant("positions", position_table(config, POSITIONS))
        x = self.add("Add", x, self.add("Gather", rows, positions))
        return self.norm(x, f"{side}_embedding.norm") if config.embedding_norm else x

    def length(self, x: str, axis: int) -> str:
        """The size of an axis: a scalar."""
        return self.add("Gather", self.add("Shape", x), self.constant(f"axis_{axis}", np.array(axis, np.int64)))

    def graph(self, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
        return self.onnx.helper.make_graph(self.nodes, name, inputs, outputs, list(self.initializers.values()))

    def ids(self, name: str, *shape: str) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, self.onnx.TensorProto.INT64, shape)

    def floats(self, name: str, *shape: str | int) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, shape)

    def keys_values(self, what: str, length: str) -> list[Any]:
        """Declares the keys and values of every decoder layer."""
        heads = self.config.num_heads
        return [
            self.floats(f"{what}_{part}_{layer}", "batch", heads, length, size)
            for layer in range(self.config.decoder_layers)
            for part, size in (("key", self.config.key_size), ("value", self.config.value_size))
        ]


class _Encoder:
    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        self.config, self.at = config, _Graph(config, weights)

    def build(self) -> Any:
        at = self.at
        zero, one = (at.constant(f"scalar_{value}", np.array(value, np.int64)) for value in (0, 1))
        x = at.embed("input_ids", "source", at.add("Range", zero, at.length("input_ids", 1), one))
        mask = at.mask_scores()
        for index in range(self.config.encoder_layers):
            name = f"encoder.{index}"

            def look(y: str, name: str = f"{name}.self_attention") -> str:
                query, key, value = (at.projected(y, name, letter) for letter in "qkv")
                return at.attend(query, key, value, name, mask)

            def feed(y: str, name: str = f"{name}.feed_forward") -> str:
                return at.feed_forward(y, name)

            x = at.around(x, f"{name}.around_self.norm", look)
            x = at.around(x, f"{name}.around_feed_forward.norm", feed)
        if self.config.norm_order == "pre":
            x = at.norm(x, "encoder_norm")
        for index in range(self.config.decoder_layers):
            for part, letter in (("key", "k"), ("value", "v")):
                found = at.projected(x, f"decoder.{index}.cross_attention", letter)
                at.add("Identity", found, name=f"cross_{part}_{index}")
        inputs = [at.ids("input_ids", "batch", "source"), at.ids("attention_mask", "batch", "source")]
        return at.graph("encoder", inputs, at.keys_values("cross", "source"))


class _Decoder:
    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        self.config, self.at = config, _Graph(config, weights)

    def build(self) -> Any:
        at, config = self.at, self.config
        row = at.add("Unsqueeze", "input_ids", at.integers(1))  # (B, 1)
        position = at.add("Unsqueeze", at.length("past_key_0", 2), at.integers(0))  # so much was decoded before
        x = at.embed(row, "target", position)
        mask = at.mask_scores()
        for index in range(config.decoder_layers):
            name = f"decoder.{index}"

            def look_back(y: str, index: int = index, name: str = f"{name}.self_attention") -> str:
                key, value = (
                    at.add("Concat", f"past_{part}_{index}", at.projected(y, name, letter),
                           name=f"present_{part}_{index}", axis=2)
                    for part, letter in (("key", "k"), ("value", "v"))
                )  # fmt: skip
                return at.attend(at.projected(y, name, "q"), key, value, name, None)

            def look_across(y: str, index: int = index, name: str = f"{name}.cross_attention") -> str:
                query = at.projected(y, name, "q")
                return at.attend(query, f"cross_key_{index}", f"cross_value_{index}", name, mask)

            def feed(y: str, name: str = f"{name}.feed_forward") -> str:
                return at.feed_forward(y, name)

            x = at.around(x, f"{name}.around_self.norm", look_back)
            x = at.around(x, f"{name}.around_cross.norm", look_across)
            x = at.around(x, f"{name}.around_feed_forward.norm", feed)
        if config.norm_order == "pre":
            x = at.norm(x, "decoder_norm")
        output = matrix_names(config)[2]
        matrices = [at.constant(output, at.weights.take(output, config.vocab_size, config.d_model))]
        if config.output_bias:
            matrices.append(at.constant("output.bias", at.weights.take("output.bias", config.vocab_size)))
        # Gemm takes the table as it is; a transposed copy would store tied weights twice.
        flat = at.add("Squeeze", x, at.integers(1))
        at.add("Gemm", flat, *matrices, name="logits", transB=1)
        inputs = [
            at.ids("input_ids", "batch"),
            at.ids("attention_mask", "batch", "source"),
            *at.keys_values("cross", "source"),
            *at.keys_values("past", "past"),
        ]
        outputs = [at.floats("logits", "batch", config.vocab_size), *at.keys_values("present", "present")]
        return at.graph("decoder", inputs, outputs)
