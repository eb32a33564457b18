"""Draws a calibration: its reliability diagram, and the risk among the surest sentences (risk-coverage curve)."""

from dragoman.evaluation import charts
from dragoman.translation.confidence import CalibrationReport, bins, risk_at

_SHARES = (0.0, 1.0)  # what both axes show


def draw(report: CalibrationReport) -> dict[str, str]:
    """Both figures as SVG, by file name."""
    sentences, words = (
        [(one.confidence, one.right) for one in bins(measured.judged)] for measured in (report.sentences, report.words)
    )
    raw = [(one.confidence, one.right) for one in bins(report.sentences.raw)]
    shares = [number / 50 for number in range(1, 51)]
    risk = [(share, risk_at(report.sentences.judged, share)[1]) for share in shares]
    raw_risk = [(share, risk_at(report.sentences.raw, share)[1]) for share in shares]
    good = f"good: chrF of at least {report.calibration.good:g}"
    counted = f"{len(report.sentences.judged):,} sentences ({good})"
    reliability = {
        "sentences": sentences,
        "words": words,
        "sentences by the model's own probability": raw,
        "a confidence that keeps its word": [(0.0, 0.0), (1.0, 1.0)],
    }
    risks = {"by confidence": risk, "by the model's own probability": raw_risk}
    return {
        "reliability.svg": charts.draw(
            charts.figure_of_curves(
                "Does a confidence keep its word?", reliability, "confidence", "share that is right"
            ),
            _SHARES,
            _SHARES,
            f"{counted}, {len(report.words.judged):,} words; 10 equal bins",
        ),
        "risk-coverage.svg": charts.draw(
            charts.figure_of_curves(
                "What is wrong among the surest sentences",
                risks,
                "share of sentences kept, surest first",
                "share of those that is not good",
            ),
            _SHARES,
            _SHARES,
            counted,
        ),
    }
