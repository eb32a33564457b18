"""The bench: `python bench/run.py all`, or one section of it. Needs the environment that `make bench` makes.

Every section writes its own part of bench/results.md, its numbers to bench/<section>.json and its plots to
bench/plots/, so that a section can be run again alone.
"""

import argparse
import os
import sys
import time
from pathlib import Path

SECTIONS = ("training-tiny", "training-base", "memory", "growth", "translation", "tried")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", nargs="+", choices=[*SECTIONS, "quality", "all"], help="all: everything but quality")
    parser.add_argument("--threads", type=int, default=2, help="of one process [2]")
    parser.add_argument("--data", type=Path, help="the directory of Multi30k [$BENCH_DATA, ../shared/data/multi30k]")
    parser.add_argument("--run", type=Path, help="a trained run of the tiny shape to translate with [a short training]")
    parser.add_argument("--quick", action="store_true", help="one short round, into build/bench/quick: does it work?")
    parser.add_argument("--goal", type=float, default=35.0, help="the BLEU of quality [35]")
    parser.add_argument("--every", type=int, default=300, help="steps between two scores of quality [300]")
    parser.add_argument("--only", choices=["ours", "adam", "post-norm", "hugging-face"], help="one arm of quality")
    given = parser.parse_args()
    if given.data:
        os.environ["BENCH_DATA"] = str(given.data.resolve())
    os.environ["OMP_NUM_THREADS"] = str(given.threads)  # before torch is imported

    import report
    from rounds import BenchError
    from shapes import WORK

    if given.quick:
        report.write_into(WORK / "quick")

    sections = list(SECTIONS) if "all" in given.section else given.section
    failed = []
    for section in sections:
        began = time.monotonic()
        print(f"{section} ...", file=sys.stderr)
        try:
            run_section(section, given)
        except BenchError as error:  # the other sections are still worth having
            print(f"bench: {section} FAILED: {error}", file=sys.stderr)
            failed.append(section)
        else:
            print(f"{section}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    if failed:
        raise SystemExit(f"bench: failed: {', '.join(failed)}")


def run_section(section: str, given: argparse.Namespace) -> None:
    quick, threads = given.quick, given.threads
    match section:
        case "training-tiny" | "training-base":
            import training

            shape = section.removeprefix("training-")
            seconds, rounds = (0.1, 1) if quick else (5.0, 5) if shape == "tiny" else (10.0, 3)
            training.run(shape, threads, seconds, rounds)
        case "memory":
            import memory

            if quick:
                memory.run(threads, only_lengths=(128, 512), whole_step=False)
            else:
                memory.run(threads)
        case "growth":
            import growth

            if quick:
                growth.run(threads, 1, lengths=(8, 16), widths=(64, 128))
            else:
                growth.run(threads)
        case "translation":
            import translation

            if quick:
                translation.run(given.run, threads, 1, sentences=8, base_sentences=2, colds=1)
            else:
                translation.run(given.run, threads)
        case "tried":
            import tried

            if quick:
                tried.run(threads, 1, compiles=False)
            else:
                tried.run(threads)
        case "quality":
            import quality

            quality.run(threads, given.every, given.goal, given.only)


if __name__ == "__main__":
    main()
