"""Results as HTML tables without scripts, which is what a notebook shows of them; and a token as a reader sees it."""

from collections.abc import Sequence
from html import escape

Cell = tuple[str, float]  # what it says, and how strong its colour is, from 0 to 1


def shown(piece: str) -> str:
    """A token as a reader sees it: a dot before one that continues a word."""
    if piece in ("<s>", "</s>"):
        return "⟨start⟩" if piece == "<s>" else "⟨end⟩"
    plain = piece.replace("▁", " ").strip() or "␣"
    return f"·{plain}" if not piece.startswith("▁") and plain[0].isalpha() else plain


def table(title: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[Cell]]]) -> str:
    """A table with a name for each row."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr><th>{escape(name)}</th>{''.join(map(_cell, cells))}</tr>" for name, cells in rows)
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(cell: Cell) -> str:
    said, strength = cell
    # Half as strong at most, so that the text on it can be read in light and dark.
    return f'<td style="background: rgba(64, 140, 180, {0.5 * strength:.3f})">{escape(said)}</td>'
