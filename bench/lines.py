"""A long file through `dragoman translate`: lines a second and memory, stretch by stretch, and a stop in the middle.

python bench/lines.py RUN --source FILE [--lines 1000000] [--stop-at 0.4] [--beam 1] [--write SECTION]

The lines are FILE's sentences by turns with what a real file has beside them: halves and pairs of sentences, empty
lines, numbers, capitals. Memory is the process's resident memory, read from outside while it works. At --stop-at of the
way it is killed without warning and started again.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import report
from dragoman.data.corpus import read_lines

STRETCHES = 10


def synthetic(sentences: list[str], count: int, seed: int) -> Iterator[str]:
    draw = random.Random(seed)
    for _ in range(count):
        one = draw.choice(sentences)
        yield draw.choices(
            (
                one,
                f"{one} {draw.choice(sentences)}",
                " ".join(one.split()[: max(1, len(one.split()) // 2)]),
                "",
                f"{draw.randint(1, 10**6)}: {one}",
                one.upper(),
            ),
            weights=(70, 10, 10, 4, 5, 1),
        )[0]


def resident(process: int) -> int:
    """Megabytes."""
    for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--stop-at", type=float, default=0.4)
    parser.add_argument("--beam", type=int, help="other than the run's")
    parser.add_argument("--write", metavar="SECTION", help="write this section of bench/results.md")
    given = parser.parse_args()
    sentences = [line for line in read_lines(given.source) if line.strip()]
    with TemporaryDirectory() as name:
        directory = Path(name)
        source, output, progress = (directory / part for part in ("in", "out", "out.progress"))
        with source.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in synthetic(sentences, given.lines, seed=1))
        command = [sys.executable, "-m", "dragoman", "translate", str(given.run)]
        command += ["--input", str(source), "--out", str(output)]
        command += [] if given.beam is None else ["--beam", str(given.beam)]
        marks = [round(given.lines * number / STRETCHES) for number in range(1, STRETCHES + 1)]
        rows: list[list[str]] = []
        stopped = False
        begin, done_before, peak = time.monotonic(), 0, 0
        process = subprocess.Popen(command)
        while True:
            time.sleep(0.2)
            over = process.poll() is not None
            done = given.lines if over else done_before
            if not over:
                peak = max(peak, resident(process.pid))
                if progress.is_file():
                    done = json.loads(progress.read_text(encoding="utf-8"))["lines"]
            if marks and done >= marks[0]:
                now = time.monotonic()
                rows.append([f"{done:,}", f"{(done - done_before) / (now - begin):,.0f}", str(peak)])
                begin, done_before, peak = now, done, 0
                marks = [mark for mark in marks if mark > done]
            if over:
                break
            if not stopped and done >= given.stop_at * given.lines > 0:
                process.kill()
                process.wait()
                stopped = True
                process = subprocess.Popen(command)
                begin = time.monotonic()
        if process.returncode:
            raise SystemExit(f"translate ended with {process.returncode}")
        with output.open(encoding="utf-8") as file:
            written = sum(1 for _ in file)
        if written != given.lines:
            raise SystemExit(f"{written:,} lines came out, {given.lines:,} went in")
    text = report.table(["lines done", "lines a second in this stretch", "most memory in it, MB"], rows)
    text += f"\nAs many lines came out as went in; killed at {given.stop_at:.0%} of the way and started again.\n"
    print(text)
    if given.write:
        report.write_section(report.PAGE, given.write, text)


if __name__ == "__main__":
    main()
