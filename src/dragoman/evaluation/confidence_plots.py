"""Two drawings of a calibration: how far its confidences keep their word, and what leaving the doubtful ones buys."""

from collections.abc import Iterable, Sequence

from dragoman.translation.confidence import CalibrationReport, bins, risk_at

Point = tuple[float, float]

_WIDTH, _HEIGHT, _MARGIN = 460, 380, 56
_BLUE, _ORANGE, _GREY = "#2563a8", "#b4541a", "#777777"


def draw(report: CalibrationReport) -> dict[str, str]:
    """SVG by file name."""
    sentences, words = (
        [(one.confidence, one.right) for one in bins(measured.judged)] for measured in (report.sentences, report.words)
    )
    raw = [(one.confidence, one.right) for one in bins(report.sentences.raw)]
    shares = [number / 50 for number in range(1, 51)]
    risk = [(share, risk_at(report.sentences.judged, share)[1]) for share in shares]
    raw_risk = [(share, risk_at(report.sentences.raw, share)[1]) for share in shares]
    good = f"good: chrF of at least {report.calibration.good:g}"
    return {
        "reliability.svg": _chart(
            "Does a confidence keep its word?",
            ("confidence", "share that is right"),
            [
                ("sentences", _BLUE, sentences, True),
                ("words", _ORANGE, words, True),
                ("sentences by the model's own probability", _GREY, raw, True),
            ],
            f"{len(report.sentences.judged):,} sentences ({good}), {len(report.words.judged):,} words; 10 equal bins",
            diagonal=True,
        ),
        "risk-coverage.svg": _chart(
            "What is wrong among the surest sentences",
            ("share of sentences kept, surest first", "share of those that is not good"),
            [("by confidence", _BLUE, risk, False), ("by the model's own probability", _GREY, raw_risk, False)],
            f"{len(report.sentences.judged):,} sentences ({good})",
        ),
    }


def _chart(
    title: str,
    axes: tuple[str, str],
    curves: Sequence[tuple[str, str, Sequence[Point], bool]],
    note: str,
    diagonal: bool = False,
) -> str:
    """Both axes from 0 to 1. A curve: its name, colour, points, and whether the points are marked."""
    inner_width, inner_height = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN

    def place(point: Point) -> str:
        return f"{_MARGIN + point[0] * inner_width:.1f},{_HEIGHT - _MARGIN - point[1] * inner_height:.1f}"

    def line(points: Iterable[Point], colour: str, more: str = "") -> str:
        return f'<polyline fill="none" stroke="{colour}" points="{" ".join(map(place, points))}" {more}/>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT + 20 * len(curves)}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{title}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT + 20 * len(curves)}" fill="white"/>',
        f'<text x="{_WIDTH / 2}" y="22" text-anchor="middle" font-size="15">{title}</text>',
        f'<text x="{_WIDTH / 2}" y="40" text-anchor="middle" fill="#555">{note}</text>',
    ]
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        x, y = place((tick, tick)).split(",")
        parts += [
            line([(tick, 0.0), (tick, 1.0)], "#e4e4e4"),
            line([(0.0, tick), (1.0, tick)], "#e4e4e4"),
            f'<text x="{x}" y="{_HEIGHT - _MARGIN + 16}" text-anchor="middle">{tick:.0%}</text>',
            f'<text x="{_MARGIN - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{tick:.0%}</text>',
        ]
    if diagonal:
        parts.append(line([(0.0, 0.0), (1.0, 1.0)], "#999", 'stroke-dasharray="4 4"'))
    for number, (name, colour, points, marked) in enumerate(curves):
        parts.append(line(points, colour, 'stroke-width="2"'))
        if marked:
            for x, y in (place(point).split(",") for point in points):
                parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
        below = _HEIGHT + 20 * number
        parts.append(f'<rect x="{_MARGIN}" y="{below - 4}" width="18" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{_MARGIN + 26}" y="{below + 2}">{name}</text>')
    parts += [
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 20}" text-anchor="middle">{axes[0]}</text>',
        f'<text transform="translate(16 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">{axes[1]}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
