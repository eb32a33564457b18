"""Packs many numbers into two bytes each, for a page to fetch: a JSON header, then 16-bit steps between two values.

    bytes 0 to 3    length of the header, little-endian
    header          {"shape": [...], "low": x, "high": y, ...} in JSON, padded with spaces to a multiple of 4
    values          uint16, little-endian, row by row; a step u means low + (high - low) * u / 65535

Weights lie between 0 and 1, so each is off by at most 0.000008, and rows sum to one as nearly. (A half-precision
float would be off by up to 0.0002 near 1.)
"""

import json
import struct
from typing import Any

import numpy
from torch import Tensor

STEPS = 65535


def pack(values: Tensor, low: float | None = None, high: float | None = None, **header: Any) -> bytes:
    """The bytes of a tensor; `low` and `high` are the least and the greatest of its values unless they are given."""
    found = values.double().cpu().numpy()
    bottom = float(found.min()) if low is None else low
    top = float(found.max()) if high is None else high
    steps = numpy.rint((found - bottom) / ((top - bottom) or 1.0) * STEPS).clip(0, STEPS).astype("<u2")
    head = json.dumps({"shape": list(found.shape), "low": bottom, "high": top, **header}).encode()
    head += b" " * (-len(head) % 4)
    return struct.pack("<I", len(head)) + head + steps.tobytes()
