"""The result of an experiment: claim, findings, arms and figures, as JSON that the report and the web page read."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from dragoman.errors import DataError
from dragoman.evaluation.charts import Figure

ClaimVerdict = Literal[
    "holds",
    "does not hold here",
    "undecided",
    "not testable here",  # its reason is the finding's
    "not measured yet",  # its arms are defined, and wait for a queue
    "smoke run",  # no verdict either: it shows that it runs
]


@dataclass(frozen=True)
class Finding:
    """The verdict on one part of a claim, the measurements that it follows from, and the size of the effect."""

    claim: str
    verdict: ClaimVerdict
    because: str
    effect: float | None = None
    low: float | None = None  # the effect's 95 % interval; None: it has none
    high: float | None = None
    unit: str = ""  # of the effect
    p: float | None = None  # of the comparison behind the verdict; None: nothing was compared that has noise


@dataclass(frozen=True)
class ExperimentResult:
    """Everything that the report says about an experiment."""

    experiment: str
    title: str
    claim: str
    method: str
    rule: str
    headline: str  # a sentence of `headline_of`
    findings: Sequence[Finding]
    arms: Sequence[Mapping[str, Any]]
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    size: str = "small"
    seconds: float = 0.0  # wall clock of the arms, shared ones in each experiment that uses them
    arms_measured: int = 0
    arms_planned: int = 0

    def marked(self) -> Self:
        """The result, without verdicts if it is of a smoke run: seconds of training on made-up text prove nothing."""
        if self.size != "smoke":
            return self
        findings = [dataclasses.replace(finding, verdict="smoke run") for finding in self.findings]
        return dataclasses.replace(self, headline="A smoke run, which has no verdict.", findings=findings)

    def to_json(self) -> str:
        # Numbers are rounded to the precision that was measured.
        return json.dumps(_rounded(dataclasses.asdict(self.marked())), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            values["findings"] = [Finding(**finding) for finding in values["findings"]]
            values["figures"] = [Figure(**figure) for figure in values["figures"]]
            return cls(**values).marked()
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(f"{path}: not a result ({error}); run the experiment again") from None


ORDER: Sequence[ClaimVerdict] = (
    "holds",
    "does not hold here",
    "undecided",
    "not testable here",
    "not measured yet",
    "smoke run",
)


def counted(findings: Sequence[Finding]) -> str:
    """How many findings have each verdict, for example "4 hold, 1 undecided"."""
    counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in ORDER}
    words = {"holds": "hold", "does not hold here": "do not hold here"}
    return ", ".join(
        f"{count} {words.get(verdict, verdict) if count > 1 else verdict}" for verdict, count in counts.items() if count
    )


def headline_of(findings: Sequence[Finding]) -> str:
    """One sentence on all findings: how many hold, and which do not, are open, or cannot be tested."""
    total = len(findings)
    held = sum(finding.verdict == "holds" for finding in findings)
    if not total or all(finding.verdict == "not measured yet" for finding in findings):
        return "Nothing of it is measured yet."
    parts = [f"{'All' if held == total else held or 'None'} of {total} findings hold{'s' if held == 1 else ''}"]
    if total == held == 1:
        parts = ["The one finding holds"]
    labels = {
        "does not hold here": "not seen here",
        "undecided": "undecided",
        "not testable here": "not testable here",
        "not measured yet": "not measured yet",
    }
    for verdict, label in labels.items():
        several = [finding.claim.rstrip(".") for finding in findings if finding.verdict == verdict]
        if len(several) > 2:
            parts.append(f"{label}: {len(several)} of them")
        elif several:
            parts.append(f"{label}: {' and '.join(f'“{claim}”' for claim in several)}")
    return "; ".join(parts) + "."


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if value == value and abs(value) != float("inf") else None
    if isinstance(value, Mapping):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value
