"""Curves as SVG, the same look for all."""

from collections.abc import Mapping, Sequence

import matplotlib

matplotlib.use("svg")
# The same numbers give the same file: no random ids, text as text.
matplotlib.rcParams.update({"svg.hashsalt": "dragoman", "svg.fonttype": "none", "font.size": 10})

import matplotlib.pyplot as plt  # noqa: E402

import report  # noqa: E402

Points = Sequence[tuple[float, float]]


def lines(
    name: str, series: Mapping[str, Points], x_label: str, y_label: str, log_y: bool = False, log_x: bool = True
) -> None:
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for (label, points), marker in zip(series.items(), "osD^vx" * len(series), strict=False):
        axes.plot(*zip(*points, strict=True), marker=marker, label=label)
    if log_x:
        axes.set_xscale("log", base=2)
        ticks = sorted({x for points in series.values() for x, _ in points})
        axes.set_xticks(ticks, [f"{x:,.0f}" for x in ticks])
    if log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    report.PLOTS.mkdir(exist_ok=True)
    figure.savefig(report.PLOTS / name, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
