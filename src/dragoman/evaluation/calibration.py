"""Calibrates a run: learns its confidences from sentences with references, and keeps them in its directory."""

from collections.abc import Sequence
from pathlib import Path

from dragoman.decoding.engines.ct2_cache import digest_of
from dragoman.errors import DataError
from dragoman.evaluation.metrics import References
from dragoman.run_directory import RunDirectory
from dragoman.translation import confidence
from dragoman.translation.lengths import UsualLengths
from dragoman.translation.translator import Translator


def calibrate_run(
    run: str | Path,
    sources: Sequence[str],
    references: References,
    good: float = confidence.GOOD,
    to: str | None = None,
    source: str | None = None,
) -> confidence.CalibrationReport:
    """Calibrates a run, so that its translations come with confidences. `good`: the least chrF of a good sentence.
    `to`, `source`: the languages that a run of several is asked for."""
    if len(sources) != len(references):
        raise DataError(
            f"{len(sources)} sentences to calibrate with, but references for {len(references)}; both must be aligned"
        )
    translator = Translator.load(run, to=to, source=source)
    rows = zip(translator.evidence(sources), references, strict=True)
    seen = [(evidence, row) for evidence, row in rows if evidence is not None]
    directory = RunDirectory.open(run)
    report = confidence.calibrate(
        [evidence for evidence, _ in seen],
        [row for _, row in seen],
        digest_of(directory, translator.tokenizer),
        good,
        UsualLengths.measure(
            (source.strip(), reference.strip())
            for source, row in zip(sources, references, strict=True)
            for reference in row
            if source.strip() and reference.strip()
        ),
    )
    report.calibration.save(directory)
    return report
