"""Draws trees, in characters for a terminal and as SVG."""

from dataclasses import dataclass
from html import escape

from dragoman.parsing.trees import Leaf, Tree


def draw_text(tree: Tree) -> str:
    """The tree in characters: a line for each bracket and each word, children below their parent."""
    lines = [tree.label]

    def below(node: Tree, margin: str) -> None:
        for number, child in enumerate(node.children, start=1):
            last = number == len(node.children)
            name = f"{child.tag} {child.word}" if isinstance(child, Leaf) else child.label
            lines.append(f"{margin}{'└' if last else '├'}─ {name}")
            if isinstance(child, Tree):
                below(child, margin + ("   " if last else "│  "))

    below(tree, "")
    return "\n".join(lines)


@dataclass(frozen=True)
class PlacedNode:
    """A label, a tag or a word of the drawing: its centre, and its row from the top."""

    text: str
    kind: str
    x: float
    row: int
    parent: int | None  # the index of the node above it


_LETTER = 8.0  # about the width of a letter
_GAP = 14.0
_ROW = 44.0
_MARGIN = 20.0


def place(tree: Tree) -> list[PlacedNode]:
    """Places the nodes: words side by side in the last row, a bracket above the middle of its first and last child."""
    deepest = _depth(tree)
    placed: dict[int, PlacedNode] = {}
    right_edge = _MARGIN

    def visit(node: Tree | Leaf, row: int, parent: int | None) -> float:
        nonlocal right_edge
        own = len(placed)
        placed[own] = PlacedNode("", "", 0.0, row, parent)  # takes its index before its children do
        if isinstance(node, Leaf):
            width = max(len(node.word), len(node.tag)) * _LETTER
            x = right_edge + width / 2
            right_edge += width + _GAP
            placed[own] = PlacedNode(node.tag, "tag", x, deepest, parent)
            placed[len(placed)] = PlacedNode(node.word, "word", x, deepest + 1, own)
        else:
            middles = [visit(child, row + 1, own) for child in node.children]
            x = (middles[0] + middles[-1]) / 2
            placed[own] = PlacedNode(node.label, "label", x, row, parent)
        return x

    visit(tree, 0, None)
    return list(placed.values())


def _depth(node: Tree | Leaf) -> int:
    return 0 if isinstance(node, Leaf) else 1 + max(map(_depth, node.children))


def draw_svg(tree: Tree) -> str:
    """The tree as a self-contained SVG that takes the text colour of the page around it."""
    placed = place(tree)
    width = max(p.x + len(p.text) * _LETTER / 2 for p in placed) + _MARGIN
    height = max(p.row for p in placed) * _ROW + 2 * _MARGIN
    lines, texts = [], []
    for p in placed:
        y = _MARGIN + p.row * _ROW
        if p.parent is not None:
            above = placed[p.parent]
            lines.append(
                f'<line x1="{above.x:.1f}" y1="{_MARGIN + above.row * _ROW + 7:.1f}" x2="{p.x:.1f}" y2="{y - 9:.1f}"/>'
            )
        texts.append(f'<text class="{p.kind}" x="{p.x:.1f}" y="{y:.1f}">{escape(p.text)}</text>')
    title = escape(" ".join(tree.words()))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{title}">\n'
        "<style>text{font:13px sans-serif;text-anchor:middle;dominant-baseline:middle;fill:currentColor}"
        ".label{font-weight:bold}.tag{opacity:.6}line{stroke:currentColor;opacity:.4}</style>\n"
        + "\n".join([*lines, *texts])
        + "\n</svg>\n"
    )
