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

    before = sys.gettrace()  # the one that measures coverage, where that is done: without it the rest would not count
    sys.settrace(count)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(before)
    return counted
