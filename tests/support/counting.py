"""Counts how much work a function does, which, unlike its time, is the same on every machine."""

import sys
from collections.abc import Callable


def count_steps(work: Callable[[], object]) -> int:
    """Lines of Python that are executed. What a regular expression or a library does inside is not counted."""
    counted = 0

    def count(*_: object) -> object:
        nonlocal counted
        counted += 1
        return count

    sys.settrace(count)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(None)
    return counted
