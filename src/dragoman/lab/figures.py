"""Figures as SVG, written by hand: one style, legible on light and dark ground, and without telling colours apart.

Colours are those of Okabe and Ito, lighter on dark ground; every series also has its own marker and dashes. The
style is in the figure itself, so that it is the same in a page, in Markdown and opened alone.
"""

import html
import math
from collections.abc import Callable, Sequence

from dragoman.lab.result import Figure

WIDTH, LEFT, RIGHT, PLOT_HEIGHT = 680, 64, 20, 250
LIGHT = ("#0072b2", "#d55e00", "#007a5a", "#a8487f", "#a87400", "#3b8fc4", "#555555")
DARK = ("#5fb0e6", "#f5935a", "#3fd0a4", "#eba4cc", "#f3c255", "#9bd3f5", "#c8c8c8")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2")

STYLE = (
    ".dragoman-figure{font:12px system-ui,sans-serif;background:transparent}"
    ".dragoman-figure text{fill:#333}.dragoman-figure .title{font-weight:600;font-size:14px;fill:#111}"
    ".dragoman-figure .axis{stroke:#888;fill:none}.dragoman-figure .grid{stroke:#ddd;fill:none}"
    + "".join(f".dragoman-figure .s{i}{{stroke:{c};fill:{c}}}" for i, c in enumerate(LIGHT))
    + ".dragoman-figure .whisker{stroke:#111;stroke-width:1.2}"
    "@media (prefers-color-scheme:dark){.dragoman-figure text{fill:#d4d4d4}.dragoman-figure .title{fill:#f2f2f2}"
    ".dragoman-figure .axis{stroke:#888}.dragoman-figure .grid{stroke:#3a3a3a}"
    ".dragoman-figure .whisker{stroke:#f2f2f2}"
    + "".join(f".dragoman-figure .s{i}{{stroke:{c};fill:{c}}}" for i, c in enumerate(DARK))
    + "}.dragoman-figure .line{fill:none;stroke-width:2}.dragoman-figure .band{stroke:none;opacity:.16}"  # last
)


def draw(figure: Figure) -> str:
    match figure.kind:
        case "bars":
            return _bars(figure)
        case "lines" | "points":
            return _plane(figure)


def number(value: float) -> str:
    """Short, for an axis or a table."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-3:
        return f"{value:.2g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if size < 100 else f"{value:.0f}"


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers that cover low to high."""
    rough = (high - low) / wanted or 1.0
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first = math.floor(low / step + 1e-9)
    return [i * step for i in range(first, math.ceil(high / step - 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9) + 1)
    return [10.0**power for power in powers] if len(powers) > 1 else [10.0 ** powers[0], 10.0 ** (powers[0] + 1)]


AxisScale = Callable[[float], float]


def _scale(low: float, high: float, first: float, last: float, log: bool) -> AxisScale:
    def to(value: float) -> float:
        if log:
            return first + (last - first) * (math.log(value / low) / (math.log(high / low) or 1.0))
        return first + (last - first) * ((value - low) / ((high - low) or 1.0))

    return to


def _wrap(figure: Figure, height: float, parts: Sequence[str]) -> str:
    title = html.escape(figure.title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dragoman-figure" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img" aria-label="{title}"><style>{STYLE}</style>'
        f'<text class="title" x="{LEFT - 52}" y="20">{title}</text>{"".join(parts)}</svg>\n'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(text)}</text>'


def _marker(series: int, x: float, y: float, size: float = 4) -> str:
    shapes = (
        f"M{x - size:.1f},{y:.1f}a{size},{size} 0 1,0 {2 * size},0a{size},{size} 0 1,0 {-2 * size},0",
        f"M{x - size:.1f},{y - size:.1f}h{2 * size}v{2 * size}h{-2 * size}z",
        f"M{x:.1f},{y - size - 1:.1f}l{size + 1},{2 * size}h{-2 * size - 2}z",
        f"M{x:.1f},{y - size - 1:.1f}l{size + 1},{size + 1}l{-size - 1},{size + 1}l{-size - 1},{-size - 1}z",
        f"M{x:.1f},{y + size + 1:.1f}l{size + 1},{-2 * size}h{-2 * size - 2}z",
        f"M{x - size:.1f},{y - 1:.1f}h{2 * size}v2h{-2 * size}z",
        f"M{x - 1:.1f},{y - size:.1f}h2v{2 * size}h-2z",
    )
    return f'<path class="s{series % 7}" d="{shapes[series % 7]}"/>'


def _legend(names: Sequence[str], y: float, lines: bool) -> tuple[list[str], float]:
    """Entries side by side in as many rows as they need; and where the plot may begin."""
    parts, x = [], float(LEFT - 52)
    for i, name in enumerate(names):
        width = 34 + 6.6 * len(name)
        if x + width > WIDTH - RIGHT and x > LEFT:
            x, y = float(LEFT - 52), y + 18
        if lines:
            dash = f' stroke-dasharray="{DASHES[i % 7]}"' if DASHES[i % 7] else ""
            parts.append(f'<path class="line s{i % 7}" d="M{x:.1f},{y - 4:.1f}h22"{dash}/>')
        parts += [_marker(i, x + 11, y - 4), _text(x + 27, y, name)]
        x += width + 8
    return parts, y + 16


def _plane(figure: Figure) -> str:
    names = list(figure.series)
    parts, top = _legend(names, 40, figure.kind == "lines") if len(names) > 1 else ([], 34.0)
    bottom = top + PLOT_HEIGHT
    values = [v for series in figure.series.values() for v in series if v is not None and (v > 0 or not figure.log_y)]
    for name, widths in figure.spread.items():
        pairs = zip(figure.series[name], widths, strict=True)
        around = [w for v, s in pairs if v is not None and s for w in (v - s, v + s)]
        values += [v for v in around if v > 0 or not figure.log_y]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        low, high = (low / 2, high * 2) if figure.log_y else (low - 1, high + 1)
    y_ticks = log_ticks(low, high) if figure.log_y else ticks(low, high)
    low, high = min(low, y_ticks[0]), max(high, y_ticks[-1])
    x_low, x_high = min(figure.x), max(figure.x)
    if x_low == x_high:
        x_low, x_high = x_low - 1, x_high + 1
    if figure.log_x:
        x_ticks = [float(x) for x in figure.x] if len(figure.x) <= 10 else log_ticks(x_low, x_high)
    else:
        x_ticks = [tick for tick in ticks(x_low, x_high, 8) if x_low <= tick <= x_high]
    if figure.kind == "points":
        margin = 0.08 * (x_high - x_low)
        x_low, x_high = x_low - margin, x_high + margin
    to_x = _scale(x_low, x_high, LEFT, WIDTH - RIGHT - 8, figure.log_x)
    to_y = _scale(low, high, bottom, top, figure.log_y)
    for tick in y_ticks:
        parts.append(f'<path class="grid" d="M{LEFT},{to_y(tick):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 7, to_y(tick) + 4, number(tick), "end"))
    parts.append(f'<path class="axis" d="M{LEFT},{bottom:.1f}H{WIDTH - RIGHT}"/>')
    for tick in x_ticks:
        parts.append(f'<path class="axis" d="M{to_x(tick):.1f},{bottom:.1f}v5"/>')
        parts.append(_text(to_x(tick), bottom + 18, number(tick), "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 37, figure.x_label, "middle"))
    middle = (top + bottom) / 2
    parts.append(_text(13, middle, figure.y_label, "middle", f' transform="rotate(-90 13 {middle:.1f})"'))
    for i, name in enumerate(names):
        points = sorted(
            (x, v, s or 0.0)
            for x, v, s in zip(
                figure.x, figure.series[name], figure.spread.get(name, [0.0] * len(figure.x)), strict=True
            )
            if v is not None and (v > 0 or not figure.log_y)
        )
        if figure.kind == "lines":
            if any(s for _, _, s in points):
                upper = [f"{to_x(x):.1f},{to_y(v + s):.1f}" for x, v, s in points]
                lower = [f"{to_x(x):.1f},{to_y(max(v - s, low)):.1f}" for x, v, s in reversed(points)]
                parts.append(f'<polygon class="band s{i % 7}" points="{" ".join(upper + lower)}"/>')
            dash = f' stroke-dasharray="{DASHES[i % 7]}"' if DASHES[i % 7] else ""
            way = "L".join(f"{to_x(x):.1f},{to_y(v):.1f}" for x, v, _ in points)
            parts.append(f'<path class="line s{i % 7}" d="M{way}"{dash}/>' if points else "")
        if figure.kind == "points" or len(points) <= 30:
            parts += [_marker(i, to_x(x), to_y(v)) for x, v, _ in points]
    if figure.kind == "points":
        for at, label in enumerate(figure.point_labels):
            found = [series[at] for series in figure.series.values() if series[at] is not None]
            parts += [_text(to_x(figure.x[at]) + 7, to_y(v) + 4, label) for v in found[:1] if v is not None]
    return _wrap(figure, bottom + 48, parts)


def _bars(figure: Figure) -> str:
    """Lying down, so that names can be read."""
    names = list(figure.series)
    labels = list(figure.labels) or [number(x) for x in figure.x]
    parts, top = _legend(names, 40, False) if len(names) > 1 else ([], 32.0)
    left = 24 + 6.8 * max(map(len, labels))
    thick = 16 if len(names) == 1 else 11
    group = thick * len(names) + 9
    bottom = top + group * len(labels)
    values = [v for series in figure.series.values() for v in series if v is not None]
    for name, widths in figure.spread.items():
        values += [w for v, s in zip(figure.series[name], widths, strict=True) if v is not None and s
                   for w in (v - s, v + s)]  # fmt: skip
    if figure.log_y:
        at = log_ticks(min(values) / 2, max(values))
        low, high, zero = at[0], at[-1], at[0]
    else:
        at = ticks(min(0.0, *values), max(0.0, *values, 1e-9), 6)
        low, high, zero = at[0], at[-1], 0.0
    to_x = _scale(low, high, left, WIDTH - RIGHT - 44, figure.log_y)
    for tick in at:
        parts.append(f'<path class="grid" d="M{to_x(tick):.1f},{top:.1f}V{bottom:.1f}"/>')
        parts.append(_text(to_x(tick), bottom + 16, number(tick), "middle"))
    for row, label in enumerate(labels):
        y = top + row * group + 4
        parts.append(_text(left - 8, y + (group - 9) / 2 + 4, label, "end"))
        for i, name in enumerate(names):
            value = figure.series[name][row]
            if value is None:
                continue
            x, bar = to_x(value), y + i * thick
            parts.append(
                f'<rect class="s{i % 7}" x="{min(x, to_x(zero)):.1f}" y="{bar:.1f}" '
                f'width="{abs(x - to_x(zero)):.1f}" height="{thick - 2}" fill-opacity="{1 if i % 2 == 0 else 0.35}"/>'
            )
            half = figure.spread.get(name, [None] * len(labels))[row]
            end = max(x, to_x(zero))
            if half:
                a, b = to_x(max(value - half, low)), to_x(min(value + half, high))
                middle = bar + (thick - 2) / 2
                parts.append(f'<path class="whisker" d="M{a:.1f},{middle - 3:.1f}v6m0,-3H{b:.1f}m0,-3v6" fill="none"/>')
                end = max(end, b)
            parts.append(_text(end + 5, bar + thick - 3, number(value), "start", ' font-size="10.5"'))
    parts.append(f'<path class="axis" d="M{to_x(zero):.1f},{top:.1f}V{bottom:.1f}"/>')
    parts.append(_text((left + WIDTH - RIGHT) / 2, bottom + 34, figure.y_label, "middle"))
    return _wrap(figure, bottom + 44, parts)
