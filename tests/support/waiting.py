"""Waits that have an end: what never happens fails a test, it does not hang it."""

import asyncio
import time
from collections.abc import Callable

PATIENCE = 120.0  # seconds: a busy machine is not a failure


def until(
    holds: Callable[[], object], seconds: float = PATIENCE, pause: Callable[[float], object] = time.sleep
) -> None:
    """Waits until `holds()` is true. `pause` passes the time between two looks, in seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"it did not happen within {seconds:g} s"
        pause(0.005)


async def until_async(holds: Callable[[], object], seconds: float = PATIENCE) -> None:
    """The same on an event loop, which goes on meanwhile."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"it did not happen within {seconds:g} s"
        await asyncio.sleep(0.001)
