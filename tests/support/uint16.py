"""Reads what dragoman.inspection.uint16_codec packs, as the page does."""

import json
import struct
from typing import Any

import numpy
from numpy.typing import NDArray


def unpack(content: bytes) -> tuple[dict[str, Any], NDArray[numpy.float64]]:
    """The header and the values."""
    (length,) = struct.unpack_from("<I", content)
    header = json.loads(content[4 : 4 + length])
    steps = numpy.frombuffer(content, "<u2", offset=4 + length).reshape(header["shape"])
    return header, header["low"] + (header["high"] - header["low"]) * steps.astype(numpy.float64) / 65535
