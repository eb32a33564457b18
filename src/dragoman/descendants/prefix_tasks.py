"""One model for many tasks, told by a prefix which one is meant (T5, Raffel et al. 2020): pairs to train it on.

The tasks are written into the text, so `dragoman train` and `dragoman translate` need know nothing of them.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from dragoman.data.augmentation import with_typos

TaskName = Literal["forward", "backward", "spelling"]
TASKS: tuple[TaskName, ...] = ("forward", "backward", "spelling")


def prefix_of(task: TaskName, source_name: str, target_name: str) -> str:
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
    """Each pair once for each task, its prefix in front. Spelling is restored in one of the pair's two languages, by
    turns; the errors depend on (seed, row) alone."""
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
