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
    "holds", "does not hold here", "undecided", "smoke run"
]  # which is no verdict: it shows that it runs


@dataclass(frozen=True)
class Finding:
    """The verdict on one part of a claim, and the measurements that it follows from."""

    claim: str
    verdict: ClaimVerdict
    because: str


@dataclass(frozen=True)
class ExperimentResult:
    """Everything that the report says about an experiment. `verdict` is `rules.combined` of the findings."""

    experiment: str
    title: str
    claim: str
    method: str
    rule: str
    verdict: ClaimVerdict
    findings: Sequence[Finding]
    arms: Sequence[Mapping[str, Any]]
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    size: str = "small"
    seconds: float = 0.0  # wall clock of the arms, shared ones in each experiment that uses them

    def marked(self) -> Self:
        """The result, without verdicts if it is of a smoke run: seconds of training on made-up text prove nothing."""
        if self.size != "smoke":
            return self
        findings = [dataclasses.replace(finding, verdict="smoke run") for finding in self.findings]
        return dataclasses.replace(self, verdict="smoke run", findings=findings)

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


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if value == value and abs(value) != float("inf") else None
    if isinstance(value, Mapping):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value
