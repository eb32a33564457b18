"""Draws attention as a heat map, in characters for a terminal or as a PNG."""

import io
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from dragoman.errors import UsageError
from dragoman.inspection.contributions import Contributions
from dragoman.inspection.html_tables import shown
from dragoman.inspection.inspector import Inspection, Inspector
from dragoman.model.probe import AttentionKind, Site

SHADES = " ░▒▓█"  # a fifth of the way from 0 to 1 each
LONGEST_LABEL = 14


@dataclass(frozen=True)
class Heatmap:
    """A table of attention weights with its labels, ready to be drawn."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    weights: Tensor  # (rows, columns)


def heatmap_of(
    inspector: Inspector,
    seen: Inspection,
    kind: AttentionKind = "cross",
    layer: int | None = None,
    head: int | None = None,
) -> Heatmap:
    """The heat map of a head, or of the mean of a layer's heads. For cross-attention without a layer and a head: of the
    heads that are shown as alignment."""
    if layer is None and head is None and kind == "cross":
        chosen = inspector.explainer.alignment_heads.heads
        title = f"cross-attention, the heads that align best: {', '.join(f'{at}.{one}' for at, one in chosen)}"
    else:
        if layer is None:
            raise UsageError(f"{kind} without a layer; add --layer 0 (and --head 0 for one head)")
        if Site(kind, layer) not in seen.weights:
            raise UsageError(f"{kind} layer {layer}; the run has {sum(site.kind == kind for site in seen.weights)}")
        count = inspector.model.config.num_heads
        if head is not None and not 0 <= head < count:
            raise UsageError(f"head {head}; the run has heads 0 to {count - 1}")
        chosen = tuple((layer, one) for one in (range(count) if head is None else (head,)))
        title = f"{kind} layer {layer}, " + (f"mean of {count} heads" if head is None else f"head {head}")
    weights = sum(seen.weights[Site(kind, at)][one].double() for at, one in chosen) / len(chosen)
    assert isinstance(weights, Tensor)
    columns = seen.fed if kind == "decoder" else seen.source
    fed = tuple(f"{shown(fed)} → {shown(produced)}" for fed, produced in zip(seen.fed, seen.produced, strict=True))
    rows = tuple(map(shown, seen.source)) if kind == "encoder" else fed
    return Heatmap(title, rows, tuple(map(shown, columns)), weights)


def contributions_heatmap(found: Contributions) -> Heatmap:
    """What each produced token comes from: the source, then what was said before it."""
    columns = (*map(shown, found.source), *(f"…{shown(token)}" for token in found.fed))
    rows = tuple(f"{shown(fed)} → {shown(produced)}" for fed, produced in zip(found.fed, found.produced, strict=True))
    return Heatmap("contributions of the source, then of what was said before (…)", rows, columns, found.total)


def as_text(heatmap: Heatmap, width: int = 100) -> str:
    """The heat map in characters, two for each weight; columns that do not fit into the width follow below."""
    rows = [_short(label, 2 * LONGEST_LABEL) for label in heatmap.rows]
    left = max(map(len, rows)) + 1
    fit = max(1, (width - left) // 2)
    blocks = []
    for first in range(0, len(heatmap.columns), fit):
        names = [_short(label, LONGEST_LABEL) for label in heatmap.columns[first : first + fit]]
        height = max(map(len, names))
        # Labels of columns are written downwards and end at the map.
        lines = [
            " " * left + "".join(f"{name.rjust(height)[level]} " for name in names).rstrip() for level in range(height)
        ]
        for label, weights in zip(rows, heatmap.weights[:, first : first + fit].tolist(), strict=True):
            lines.append(f"{label:>{left - 1}} " + "".join(2 * _shade(weight) for weight in weights).rstrip())
        blocks.append("\n".join(lines))
    return f"{heatmap.title}\n\n" + "\n\n".join(blocks)


def as_png(heatmap: Heatmap) -> bytes:
    """The heat map as a PNG with labels, in a font of the system, or else in Pillow's own, which is Latin only."""
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise UsageError("a PNG needs Pillow, which is not installed; pip install 'dragoman[inspect]'") from None
    cell, font = 26, _font(15)
    rows, columns = [_short(one, 28) for one in heatmap.rows], [_short(one, LONGEST_LABEL) for one in heatmap.columns]
    left = int(max(font.getlength(label) for label in rows)) + 20
    top = int(max(font.getlength(label) for label in columns)) + 50
    size = (max(left + cell * len(columns) + 20, int(font.getlength(heatmap.title)) + 30), top + cell * len(rows) + 20)
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    draw.text((15, 8), heatmap.title, "black", font)
    for row, label in enumerate(rows):
        draw.text((left - 8, top + (row + 0.5) * cell), label, "black", font, anchor="rm")
        for column in range(len(columns)):
            weight = float(heatmap.weights[row, column])
            colour = tuple(round(255 + (dark - 255) * weight) for dark in (11, 74, 99))
            x, y = left + column * cell, top + row * cell
            draw.rectangle((x, y, x + cell - 2, y + cell - 2), colour)
    for column, label in enumerate(columns):
        upright = Image.new("RGB", (int(font.getlength(label)) + 4, cell), "white")
        ImageDraw.Draw(upright).text((2, cell / 2), label, "black", font, anchor="lm")
        turned = upright.rotate(90, expand=True)
        image.paste(turned, (left + column * cell, top - 6 - turned.height))
    found = io.BytesIO()
    image.save(found, "PNG", optimize=True)
    return found.getvalue()


def _font(size: int) -> Any:
    from PIL import ImageFont

    for name in ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "Arial.ttf"):
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


def _shade(weight: float) -> str:
    return SHADES[min(len(SHADES) - 1, int(weight * len(SHADES)))]


def _short(label: str, most: int) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"
