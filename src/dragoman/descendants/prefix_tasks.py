"""Makes training pairs for one model of several tasks, each named by a prefix of the source (T5, Raffel et al. 2020).

The tasks are part of the text, so `dragoman train` and `dragoman translate` need not know of them.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from dragoman.data.text_changes import with_typos

TaskName = Literal["forward", "backward", "spelling"]
TASKS: tuple[TaskName, ...] = ("forward", "backward", "spelling")


def prefix_of(task: TaskName, source_name: str, target_name: str) -> str:
    """The words in front of a source that name the task."""
    match task:
        case "forward":
            return f"translate to {target_name}: "
        case "backward":
            return f"translate to {source_name}: "
        case "spelling":
            return "correct the spelling: "


def task_pairs(
    pairs: Iterable[tuple[str, str]], tasks: Sequence[TaskName], source_name: str, target_name: str, seed: int = 0
) -> Iterator[tuple[str, str]]:
    """Each pair once for each task, with the task's prefix. Spelling errors are made in the two languages by turns, and
    depend on (seed, row) alone."""
    for row, (source, target) in enumerate(pairs):
        for task in tasks:
            prefix = prefix_of(task, source_name, target_name)
            match task:
                case "forward":
                    yield prefix + source, target
                case "backward":
                    yield prefix + target, source
                case "spelling":
                    right = (source, target)[row % 2]
                    yield prefix + with_typos(right, random.Random(f"{seed} {row}")), right
