"""Builds a small ONNX graph that finds the ends of sentences, in MiniSBD's form: Argos Translate splits text with it.

A sentence ends at . ! ? or …, with closing quotes after it, before a space that no lower-case letter follows; and at
the full stops of scripts that need no space. MiniSBD gives the graph a number for each character, and takes the most
probable of three classes for it: 0 continues, 1 ends a word (not used here), 2 ends a sentence.
"""

import json
import sys
from typing import Any

import numpy as np

from dragoman.errors import DragomanError

_SETS = {
    "mark": ".!?…",
    "closer": "\"'”“’»)]",
    "wide": "。！？",
    "space": " ",
    "small": "".join(c for c in map(chr, range(sys.maxunicode + 1)) if c.islower() and ord(c) < 0x2100),
}


class _Nodes:
    """Nodes and constants of an ONNX graph as they are added; each method returns the name of its result."""

    def __init__(self, units: list[str]) -> None:
        from onnx import helper, numpy_helper

        self.helper, self.numpy_helper = helper, numpy_helper
        self.units = units
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(self.helper.make_node(kind, inputs, [f"{kind.lower()}_{len(self.nodes)}"], **attributes))
        return str(self.nodes[-1].output[0])

    def constant(self, name: str, values: Any) -> str:
        self.constants.append(self.numpy_helper.from_array(np.array(values), name))
        return name

    def is_in(self, name: str) -> str:
        """(B, N): 1 where the character is one of the set."""
        table = np.array([float(unit in _SETS[name]) for unit in self.units], np.float32)
        table[:2] = 0  # the names of the two special units
        return self.add("Gather", self.constant(f"is_{name}", table), "units")

    def shifted(self, x: str, by: int) -> str:
        """(B, N): the value `by` characters later; 0 beyond the ends."""
        padding = self.constant(f"padding_{len(self.constants)}", np.array([0, -by, 0, by], np.int64))
        return self.add("Pad", x, padding)


def segmenter_graph(language: str) -> bytes:
    """The ONNX graph for texts of a language, with its table of characters inside."""
    try:
        from onnx import TensorProto, helper
    except ImportError:
        raise DragomanError("onnx is not installed; pip install 'dragoman[export]'") from None
    units = ["<PAD>", "<UNK>", *(character for characters in _SETS.values() for character in characters)]
    at = _Nodes(units)
    _add_classes(at)
    graph = helper.make_graph(
        at.nodes,
        "sentences",
        [
            helper.make_tensor_value_info("units", TensorProto.INT64, ["batch", "length"]),
            helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", "length", "features"]),
        ],
        [helper.make_tensor_value_info("predictions", TensorProto.FLOAT, ["batch", "length", 3])],
        at.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    vocabulary = {"lang": language, "_unit2id": {unit: i for i, unit in enumerate(units)}, "_id2unit": units}
    config = {"feat_funcs": ["capitalized"], "max_seqlen": 1000, "batch_size": 1}
    about = {"lang_code": language, "config": config, "vocab": vocabulary, "lexicon": None}
    for key, value in about.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value if isinstance(value, str) else json.dumps(value)
    content: bytes = model.SerializeToString()
    return content


def _add_classes(at: _Nodes) -> None:
    """The three classes of each character, from "units" to "predictions"."""
    one = at.constant("one", np.array(1.0, np.float32))
    mark, closer, wide, space, small = map(at.is_in, _SETS)
    ending = at.add("Max", mark, at.add("Mul", closer, at.shifted(mark, -1)))
    ending = at.add("Mul", ending, at.shifted(space, 1))
    ending = at.add("Mul", ending, at.add("Sub", one, at.shifted(small, 2)))
    ending = at.add("Max", ending, wide)
    axis = at.constant("last", np.array([2], np.int64))
    goes_on = at.add("Sub", one, ending)
    nothing = at.add("Sub", ending, ending)
    classes = [at.add("Unsqueeze", x, axis) for x in (goes_on, nothing, ending)]
    at.nodes.append(at.helper.make_node("Concat", classes, ["predictions"], axis=2))
