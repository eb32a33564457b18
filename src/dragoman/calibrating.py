"""A run calibrated: its translations of sentences with references seen, and what they teach kept in its directory."""

from collections.abc import Sequence
from pathlib import Path

from dragoman import confidence
from dragoman.engines.converted import digest_of
from dragoman.errors import DataError
from dragoman.evaluate import References
from dragoman.rundir import RunDirectory
from dragoman.translate import Translator


def calibrate_run(
    run: str | Path, sources: Sequence[str], references: References, good: float = confidence.GOOD
) -> confidence.Report:
    """Calibrate by sentences that the run was not trained on; from now on its translations come with confidences."""
    if len(sources) != len(references):
        raise DataError(f"{len(sources)} source lines but references for {len(references)}; both must be aligned")
    directory, translator = RunDirectory.open(run), Translator.load(run)
    seen = [(e, some) for e, some in zip(translator.evidence(sources), references, strict=True) if e is not None]
    digest = digest_of(directory, translator.tokenizer)
    report = confidence.calibrate([e for e, _ in seen], [some for _, some in seen], digest, good)
    report.calibration.save(directory)
    return report
