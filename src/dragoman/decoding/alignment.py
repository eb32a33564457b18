"""What a word alignment is, and which attention heads show it: a run keeps them, so that they are chosen once."""

import json
from dataclasses import asdict, dataclass

from dragoman.data.words import Word
from dragoman.errors import DragomanError
from dragoman.files import read_json, write_atomically
from dragoman.run_directory import RunDirectory

_FILE = "alignment.json"  # beside what is kept for CTranslate2


@dataclass(frozen=True)
class Alignment:
    """How much each word of a translation looks at each word of its source."""

    source_words: tuple[Word, ...]
    target_words: tuple[Word, ...]
    weights: tuple[tuple[float, ...], ...]  # target words by source words: how much each looks at each


@dataclass(frozen=True)
class AlignmentHeads:
    """The heads whose attention is shown as alignment, and how often it agrees with the effect of hiding a token."""

    heads: tuple[tuple[int, int], ...]  # (layer, head)
    shift: int  # 0: the row that predicts a token; 1: the next row, which is fed it
    agreement: float | None  # None: not measured


def remembered_heads(run: RunDirectory, digest: str) -> AlignmentHeads | None:
    """The heads that were chosen for exactly these weights; None: not yet."""
    path = run.converted_path / _FILE
    try:
        kept = read_json(path) if path.is_file() else {}
        if kept.get("digest") != digest:
            return None
        heads = tuple((int(layer), int(head)) for layer, head in kept["heads"])
        return AlignmentHeads(heads, int(kept["shift"]), kept["agreement"]) if heads else None
    except (DragomanError, AttributeError, KeyError, TypeError, ValueError):  # they are chosen again
        return None


def remember_heads(run: RunDirectory, digest: str, heads: AlignmentHeads) -> None:
    """Keeps the choice, where the run can be written."""
    try:
        write_atomically(run.converted_path / _FILE, (json.dumps({"digest": digest, **asdict(heads)}) + "\n").encode())
    except DragomanError:
        return
