"""What Learn says that the lab found is what the lab found.

When the lab was run again: python tests/browser/test_learn_findings.py --write
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHOWN = ROOT / "src" / "dragoman" / "web" / "static" / "views" / "learn" / "findings.js"
EXPERIMENTS = (
    "embeddings", "positions", "scaling", "heads", "residual", "norm", "norm-order", "mask", "prune", "distance",
    "table1", "rnn",
)  # fmt: skip
HEAD = (
    "// Written by tests/browser/test_learn_findings.py from docs/lab/results: what the lab found, word for word.\n\n"
)


def module() -> str:
    found = {name: json.loads((ROOT / "docs" / "lab" / "results" / f"{name}.json").read_text()) for name in EXPERIMENTS}
    kept = {
        name: {
            "title": result["title"],
            "headline": result["headline"],
            "findings": [
                {key: one[key] for key in ("claim", "verdict", "because", "effect", "low", "high", "unit")}
                for one in result["findings"]
                if one["verdict"] != "not measured yet"
            ],
            "notes": result["notes"],
        }
        for name, result in found.items()
    }
    return f"{HEAD}export const FINDINGS = {json.dumps(kept, indent=1, ensure_ascii=False)};\n"


def test_findings_are_the_labs() -> None:
    assert SHOWN.read_text(encoding="utf-8") == module(), "run: python tests/browser/test_learn_findings.py --write"


def test_every_experiment_that_a_lesson_names_is_there() -> None:
    named = {
        name
        for path in SHOWN.parent.glob("*.js")
        for part in path.read_text(encoding="utf-8").split('of="')[1:]
        if (name := part.split('"')[0])
    }
    assert named
    assert named <= set(EXPERIMENTS)


if __name__ == "__main__" and "--write" in sys.argv:
    SHOWN.write_text(module(), encoding="utf-8")
