"""Charts as SVG, written by hand: one style, legible on light and dark ground, and without telling colours apart.

Colours are those of Okabe and Ito, lighter on dark ground; every series also has its own marker and dashes. The
style is in the chart itself, so that it is the same in a page, in Markdown and opened alone.
"""

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

FigureKind = Literal["lines", "bars", "points"]
AxisRange = tuple[float, float]
ChartPoint = tuple[float, float]


@dataclass(frozen=True)
class Figure:
    """Numbers to draw. Every series has a value, or None, for each x; `spread` is the half-width of its band."""

    title: str
    x: Sequence[float]
    series: Mapping[str, Sequence[float | None]]
    x_label: str = ""
    y_label: str = ""
    kind: FigureKind = "lines"
    labels: Sequence[str] = ()  # of the x, where they are names: then x counts them
    log_x: bool = False
    log_y: bool = False
    spread: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    point_labels: Sequence[str] = ()  # beside the points of kind "points"


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


def draw(figure: Figure, x_range: AxisRange | None = None, y_range: AxisRange | None = None, note: str = "") -> str:
    """An SVG of the figure. The ranges, for lines and points, are those that the axes have at least; `note` stands
    below the title."""
    match figure.kind:
        case "bars":
            return _bars(figure, note)
        case "lines" | "points":
            return _plane(figure, x_range or (), y_range or (), note)


def figure_of_curves(title: str, curves: Mapping[str, Sequence[ChartPoint]], x_label: str, y_label: str) -> Figure:
    """A figure of curves that need not have their points at the same x."""
    series: dict[str, list[float | None]] = {name: [] for name in curves}
    for name, points in curves.items():
        for other, values in series.items():
            values += [y if other == name else None for _, y in points]
    return Figure(title, [x for points in curves.values() for x, _ in points], series, x_label, y_label)


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


@dataclass(frozen=True)
class Axis:
    """The values from one end of an axis to the other, and those that are written beside it."""

    low: float
    high: float
    ticks: Sequence[float]
    log: bool = False

    def between(self, first: float, last: float) -> Callable[[float], float]:
        """A function from values to places, `low` at `first` and `high` at `last`."""

        def place(value: float) -> float:
            if self.log:
                share = math.log(value / self.low) / (math.log(self.high / self.low) or 1.0)
            else:
                share = (value - self.low) / ((self.high - self.low) or 1.0)
            return first + (last - first) * share

        return place


def _wrap(figure: Figure, height: float, parts: Sequence[str], note: str) -> str:
    title = html.escape(figure.title)
    below = _text(LEFT - 52, 38, note) if note else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dragoman-figure" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img" aria-label="{title}"><style>{STYLE}</style>'
        f'<text class="title" x="{LEFT - 52}" y="20">{title}</text>{below}{"".join(parts)}</svg>\n'
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
            parts.append(f'<path class="line s{i % 7}" d="M{x:.1f},{y - 4:.1f}h22"{_dashes(i)}/>')
        parts += [_marker(i, x + 11, y - 4), _text(x + 27, y, name)]
        x += width + 8
    return parts, y + 16


def _dashes(series: int) -> str:
    return f' stroke-dasharray="{DASHES[series % 7]}"' if DASHES[series % 7] else ""


def _plane(figure: Figure, x_range: AxisRange | tuple[()], y_range: AxisRange | tuple[()], note: str) -> str:
    """Lines, or points, over two axes of numbers."""
    parts, top = _head(figure, note, 34.0, figure.kind == "lines")
    bottom = top + PLOT_HEIGHT
    x_axis, y_axis = _x_axis(figure, x_range), _y_axis(figure, y_range)
    to_x, to_y = x_axis.between(LEFT, WIDTH - RIGHT - 8), y_axis.between(bottom, top)
    for tick in y_axis.ticks:
        parts.append(f'<path class="grid" d="M{LEFT},{to_y(tick):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 7, to_y(tick) + 4, number(tick), "end"))
    parts.append(f'<path class="axis" d="M{LEFT},{bottom:.1f}H{WIDTH - RIGHT}"/>')
    for tick in x_axis.ticks:
        parts.append(f'<path class="axis" d="M{to_x(tick):.1f},{bottom:.1f}v5"/>')
        parts.append(_text(to_x(tick), bottom + 18, number(tick), "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 37, figure.x_label, "middle"))
    middle = (top + bottom) / 2
    parts.append(_text(13, middle, figure.y_label, "middle", f' transform="rotate(-90 13 {middle:.1f})"'))
    for i, name in enumerate(figure.series):
        points = _points(figure, name)
        if figure.kind == "lines":
            placed = [(to_x(x), to_y(v), to_y(v + s), to_y(max(v - s, y_axis.low))) for x, v, s in points]
            parts += _line(i, placed, banded=any(s for _, _, s in points))
        if figure.kind == "points" or len(points) <= 30:
            parts += [_marker(i, to_x(x), to_y(v)) for x, v, _ in points]
    if figure.kind == "points":
        for at, label in enumerate(figure.point_labels):
            found = [series[at] for series in figure.series.values() if series[at] is not None]
            parts += [_text(to_x(figure.x[at]) + 7, to_y(v) + 4, label) for v in found[:1] if v is not None]
    return _wrap(figure, bottom + 48, parts, note)


def _head(figure: Figure, note: str, alone: float, lines: bool) -> tuple[list[str], float]:
    """The legend, where there are several series; and where the plot may begin, `alone` without a legend."""
    room = 18.0 if note else 0.0
    if len(figure.series) == 1:
        return [], alone + room
    return _legend(list(figure.series), 40 + room, lines)


def _x_axis(figure: Figure, least: Sequence[float]) -> Axis:
    low, high = min((*figure.x, *least)), max((*figure.x, *least))
    if low == high:
        low, high = low - 1, high + 1
    if figure.log_x:
        at = [float(x) for x in figure.x] if len(figure.x) <= 10 else log_ticks(low, high)
    else:
        at = [tick for tick in ticks(low, high, 8) if low <= tick <= high]
    if figure.kind == "points" and figure.log_x:
        ratio = high / low
        low, high = low / ratio**0.08, high * ratio**0.25  # labels stand to the right of their points
        at = [power * step for power in log_ticks(low, high) for step in (1, 2, 5) if low <= power * step <= high]
    elif figure.kind == "points":
        margin = 0.08 * (high - low)
        low, high = low - margin, high + margin
    return Axis(low, high, at, figure.log_x)


def _y_axis(figure: Figure, least: Sequence[float]) -> Axis:
    values = [*_values(figure), *least]
    if figure.log_y:
        values = [value for value in values if value > 0]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        low, high = (low / 2, high * 2) if figure.log_y else (low - 1, high + 1)
    at = log_ticks(low, high) if figure.log_y else ticks(low, high)
    return Axis(min(low, at[0]), max(high, at[-1]), at, figure.log_y)


def _values(figure: Figure) -> Iterator[float]:
    """Every value, and the ends of its spread."""
    for name, series in figure.series.items():
        for value, half in zip(series, figure.spread.get(name, [None] * len(series)), strict=True):
            if value is not None:
                yield from (value, value - half, value + half) if half else (value,)


def _points(figure: Figure, name: str) -> list[tuple[float, float, float]]:
    """A series from left to right: x, value and spread, where there is a value that the axis can show."""
    spread = figure.spread.get(name, [0.0] * len(figure.x))
    return sorted(
        (x, value, half or 0.0)
        for x, value, half in zip(figure.x, figure.series[name], spread, strict=True)
        if value is not None and (value > 0 or not figure.log_y)
    )


def _line(series: int, placed: Sequence[tuple[float, float, float, float]], banded: bool) -> Iterator[str]:
    """A line through places (x, y, upper and lower end of the spread), and the band of its spread below it."""
    if banded:
        upper = [f"{x:.1f},{above:.1f}" for x, _, above, _ in placed]
        lower = [f"{x:.1f},{below:.1f}" for x, _, _, below in reversed(placed)]
        yield f'<polygon class="band s{series % 7}" points="{" ".join(upper + lower)}"/>'
    if placed:
        way = "L".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in placed)
        yield f'<path class="line s{series % 7}" d="M{way}"{_dashes(series)}/>'


def _bars(figure: Figure, note: str) -> str:
    """Bars lying down, so that their names can be read."""
    labels = list(figure.labels) or [number(x) for x in figure.x]
    parts, top = _head(figure, note, 32.0, False)
    left = 24 + 6.8 * max(map(len, labels))
    thick = 16 if len(figure.series) == 1 else 11
    group = thick * len(figure.series) + 9
    bottom = top + group * len(labels)
    axis, zero = _bar_axis(figure)
    to_x = axis.between(left, WIDTH - RIGHT - 44)
    for tick in axis.ticks:
        parts.append(f'<path class="grid" d="M{to_x(tick):.1f},{top:.1f}V{bottom:.1f}"/>')
        parts.append(_text(to_x(tick), bottom + 16, number(tick), "middle"))
    for row, label in enumerate(labels):
        y = top + row * group + 4
        parts.append(_text(left - 8, y + (group - 9) / 2 + 4, label, "end"))
        for i, name in enumerate(figure.series):
            value = figure.series[name][row]
            if value is not None:
                half = figure.spread.get(name, [None] * len(labels))[row] or 0.0
                ends = to_x(max(value - half, axis.low)), to_x(min(value + half, axis.high))
                x = to_x(zero), to_x(value)
                parts += _bar(i, x, y + i * thick, thick, ends if half else None, number(value))
    parts.append(f'<path class="axis" d="M{to_x(zero):.1f},{top:.1f}V{bottom:.1f}"/>')
    parts.append(_text((left + WIDTH - RIGHT) / 2, bottom + 34, figure.y_label, "middle"))
    return _wrap(figure, bottom + 44, parts, note)


def _bar_axis(figure: Figure) -> tuple[Axis, float]:
    """The axis along the bars, and the value that they begin at."""
    values = list(_values(figure))
    if figure.log_y:
        at = log_ticks(min(values) / 2, max(values))
        return Axis(at[0], at[-1], at, log=True), at[0]
    at = ticks(min(0.0, *values), max(0.0, *values, 1e-9), 6)
    return Axis(at[0], at[-1], at), 0.0


def _bar(series: int, x: AxisRange, y: float, thick: int, spread: AxisRange | None, label: str) -> Iterator[str]:
    """One bar between two places, the ends of its spread, and its value behind it."""
    left, right = sorted(x)
    yield (
        f'<rect class="s{series % 7}" x="{left:.1f}" y="{y:.1f}" width="{right - left:.1f}" height="{thick - 2}" '
        f'fill-opacity="{1 if series % 2 == 0 else 0.35}"/>'
    )
    if spread:
        middle = y + (thick - 2) / 2
        yield (
            f'<path class="whisker" d="M{spread[0]:.1f},{middle - 3:.1f}v6m0,-3H{spread[1]:.1f}m0,-3v6" fill="none"/>'
        )
        right = max(right, spread[1])
    yield _text(right + 5, y + thick - 3, label, "start", ' font-size="10.5"')
