"""Where sentences end, as a tiny ONNX graph in MiniSBD's form: Argos Translate splits text by it, and fetches nothing.

A sentence ends at . ! ? or …, with closing quotes after it, before a space that no small letter follows; and at the
full stops of scripts that need no space. MiniSBD gives the graph a number for each character and takes the likeliest of
three classes for it: 0 goes on, 1 ends a word (not used here), 2 ends a sentence.
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


def splitter(language: str) -> bytes:
    """The graph for texts of a language, with its table of characters inside."""
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise DragomanError("onnx is not installed; pip install 'dragoman[export]'") from None
    units = ["<PAD>", "<UNK>", *(character for characters in _SETS.values() for character in characters)]
    nodes: list[Any] = []
    constants: list[Any] = []

    def add(kind: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [f"{kind.lower()}_{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    def constant(name: str, values: Any) -> str:
        constants.append(numpy_helper.from_array(np.array(values), name))
        return name

    def is_in(name: str) -> str:  # (B, N): 1 where the character is one of the set
        table = np.array([float(unit in _SETS[name]) for unit in units], np.float32)
        table[:2] = 0  # the names of the two special units
        return add("Gather", constant(f"is_{name}", table), "units")

    def shifted(x: str, by: int) -> str:
        """(B, N): what stands `by` characters later; nothing beyond the ends."""
        padding = constant(f"padding_{len(constants)}", np.array([0, -by, 0, by], np.int64))
        return add("Pad", x, padding)

    one = constant("one", np.array(1.0, np.float32))
    mark, closer, wide, space, small = map(is_in, _SETS)
    ending = add("Max", mark, add("Mul", closer, shifted(mark, -1)))
    ending = add("Mul", ending, shifted(space, 1))
    ending = add("Mul", ending, add("Sub", one, shifted(small, 2)))
    ending = add("Max", ending, wide)
    axis = constant("last", np.array([2], np.int64))
    goes_on = add("Sub", one, ending)
    nothing = add("Sub", ending, ending)
    classes = [add("Unsqueeze", x, axis) for x in (goes_on, nothing, ending)]
    nodes.append(helper.make_node("Concat", classes, ["predictions"], axis=2))
    graph = helper.make_graph(
        nodes,
        "sentences",
        [
            helper.make_tensor_value_info("units", TensorProto.INT64, ["batch", "length"]),
            helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", "length", "features"]),
        ],
        [helper.make_tensor_value_info("predictions", TensorProto.FLOAT, ["batch", "length", 3])],
        constants,
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
