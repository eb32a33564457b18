"""Where results go: raw numbers to bench/<section>.json, a table between marks in bench/results.md."""

import json
import os
import platform
import re
import sys
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent
PAGE = OUT / "results.md"
PLOTS = OUT / "plots"


def write_into(directory: Path) -> None:
    """All that is written goes there, in place of bench/: what a quick run found is no result."""
    global OUT, PAGE, PLOTS
    OUT, PAGE, PLOTS = directory, directory / "results.md", directory / "plots"
    directory.mkdir(parents=True, exist_ok=True)


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    model, flags = platform.processor(), ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        text = cpuinfo.read_text(encoding="utf-8")
        if found := re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE):
            model = found[1]
        if found := re.search(r"^flags\s*:\s*(.*)$", text, re.MULTILINE):
            flags = found[1]
    vectors = next((name for name in ("avx512f", "avx2", "avx") if name in flags.split()), "none")
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "vectors": vectors,
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("torch", "ctranslate2", "transformers", "numpy")},
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
    }


def command() -> str:
    return " ".join(["python", "bench/run.py", *sys.argv[1:]])


def heading(about: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return (
        f"{about['date']}, {about['cores']} cores of {about['processor']} ({about['vectors']}), load before the run "
        f"{about['load_before']}; Python {about['python']}, {versions}. Medians over rounds, in brackets the lowest "
        f"and the highest.\n\n```sh\n{about['command']}\n```\n"
    )


def write_raw(section: str, values: dict[str, Any]) -> None:
    (OUT / f"{section}.json").write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def write_section(page: Path, section: str, text: str) -> None:
    """Put the text between the marks of its section; without marks yet, at the end of the page."""
    first, last = f"<!-- bench: {section} -->", f"<!-- end of {section} -->"
    block = f"{first}\n{text.strip()}\n{last}"
    old = page.read_text(encoding="utf-8") if page.exists() else "# What was measured\n"
    if first in old:
        before, _, rest = old.partition(first)
        _, found, after = rest.partition(last)
        if not found:
            raise SystemExit(f"{page}: {first} without {last}; put the second mark back")
        new = before + block + after
    else:
        new = f"{old.rstrip()}\n\n{block}\n"
    page.write_text(new, encoding="utf-8")
