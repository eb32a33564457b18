"""Draws a picture and the attention that its classification is based on, as text and as SVG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.descendants.digits import LEVELS, SIDE
from dragoman.descendants.masked_model import Classification, Classifier
from dragoman.inspection.attention_trace import trace
from dragoman.inspection.heatmaps import SHADES

Grid = list[list[float]]  # rows of values from 0 to 1

_CELL, _GAP, _LABEL = 12, 14, 22


@dataclass(frozen=True)
class PatchAttention:
    """A picture, its classification, and the attention of the end symbol, whose state is classified, to the patches."""

    picture: Grid
    classification: Classification
    heads: list[list[Grid]]  # of each layer, of each head; a layer's patches sum to at most 1


def patch_attention(classifier: Classifier, line: str) -> PatchAttention:
    """Classifies a picture and records the attention to its patches."""
    tokenizer, model = classifier.tokenizer, classifier.model
    traced = trace(model, [*tokenizer.encode(line), tokenizer.eos_id], [])
    across = SIDE // model.config.patch
    heads = [
        [_grid(head[-1, :-1].tolist(), across) for head in weights]
        for site, weights in sorted(traced.weights.items(), key=lambda item: item[0].layer)
    ]
    light = [LEVELS.index(letter) / (len(LEVELS) - 1) for letter in line]
    [classification] = classifier.classify([line])
    return PatchAttention(_grid(light, SIDE), classification, heads)


def _grid(values: Sequence[float], width: int) -> Grid:
    return [list(values[start : start + width]) for start in range(0, len(values), width)]


def mean_of(grids: Sequence[Grid]) -> Grid:
    return [[sum(values) / len(grids) for values in zip(*rows, strict=True)] for rows in zip(*grids, strict=True)]


def widened(grid: Grid, side: int = SIDE) -> Grid:
    """A map of patches enlarged to all pixels, scaled so that its highest value is 1."""
    times, most = side // len(grid), max(map(max, grid)) or 1.0
    return [[grid[row // times][column // times] / most for column in range(side)] for row in range(side)]


def draw_text(seen: PatchAttention) -> str:
    """The picture, and beside it the mean attention of each layer; the darkest patch has the most."""
    maps = [seen.picture, *(widened(mean_of(layer)) for layer in seen.heads)]
    names = ["picture", *(f"layer {number}" for number in range(1, len(maps)))]
    width = 2 * SIDE
    lines = ["   ".join(name.center(width) for name in names).rstrip()]
    for rows in zip(*maps, strict=True):
        lines.append("   ".join("".join(2 * _shade(value) for value in row) for row in rows))
    return "\n".join(lines)


def _shade(value: float) -> str:
    return SHADES[round(value * (len(SHADES) - 1))]


def draw_svg(seen: PatchAttention, title: str) -> str:
    """A row for each layer, a column for each head: the picture in grey, attention over it in colour."""
    size = SIDE * _CELL
    rows, columns = len(seen.heads), len(seen.heads[0])
    width, height = _GAP + (columns + 1) * (size + _GAP), _LABEL + rows * (size + _LABEL)
    parts = [_picture(seen.picture, _GAP, _LABEL), _name("picture", _GAP + size / 2, _LABEL)]
    for layer, heads in enumerate(seen.heads):
        for head, grid in enumerate(heads):
            x, y = _GAP + (head + 1) * (size + _GAP), _LABEL + layer * (size + _LABEL)
            parts += [_picture(seen.picture, x, y), _attention(widened(grid), x, y)]
            parts.append(_name(f"layer {layer + 1}, head {head + 1}", x + size / 2, y))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{title}">\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n'
        "<style>text{font:11px sans-serif;text-anchor:middle;fill:#222}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _name(text: str, x: float, y: float) -> str:
    return f'<text x="{x:g}" y="{y - 6:g}">{text}</text>'


def _picture(grid: Grid, x: int, y: int) -> str:
    return _cells(grid, x, y, lambda value: f'fill="#{3 * f"{255 - round(200 * value):02x}"}"')


def _attention(grid: Grid, x: int, y: int) -> str:
    return _cells(grid, x, y, lambda value: f'fill="#d1495b" fill-opacity="{0.75 * value:.2f}"')


def _cells(grid: Grid, x: int, y: int, paint: Callable[[float], str]) -> str:
    return "".join(
        f'<rect x="{x + column * _CELL}" y="{y + row * _CELL}" width="{_CELL}" height="{_CELL}" {paint(value)}/>'
        for row, values in enumerate(grid)
        for column, value in enumerate(values)
    )
