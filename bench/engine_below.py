"""Our translator beside CTranslate2 alone: the same weights, beam, penalty and rule, one thread, and the same results.

    python bench/engine_below.py RUN [--text FILE] [--sentences 256] [--rounds 5]

RUN is a trained run of width 128 with four heads, as that of recipes/multi30k-tiny.toml and the demo's; base is the
same model widened (widen.py). FILE: sentences of the kind that it was trained on, so that outputs end by themselves
(Multi30k's test set if none is given). By turns
within one process; a ratio is of processor time within a round, and counts what both do: encoding, search, decoding.
CTranslate2 alone has batches of 32 sentences and of 2,048 tokens, the better of which counts. Then one sentence at a
time, and the processor time of a process from its start to one translation, ours by the command. Whole: as `dragoman
translate` does it, with lines cut, defects repaired, and numbers and addresses looked after, which is more work.
"""

import argparse
import gzip
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import ctranslate2

from dragoman.data.tokenizer import Tokenizer
from dragoman.translation.translator import Translator
from rounds import ratios
from shapes import DATA, WORK

HERE = Path(__file__).parent
SEARCH: dict[str, Any] = {"beam": 4, "alpha": 0.6, "penalty": "length", "vocabulary_map": False}
Way = Callable[[list[str]], list[str]]


def alone(run: Path, compute_type: str) -> Callable[[int, str], Way]:
    tokenizer = Tokenizer.load(run / "tokenizer.model")
    [model] = (run / "ctranslate2").glob(f"{compute_type}-*")
    translator = ctranslate2.Translator(str(model), compute_type=compute_type, inter_threads=1, intra_threads=1)
    names = [tokenizer.piece(token) for token in range(tokenizer.vocab_size)]
    ids = {name: token for token, name in enumerate(names)}

    def way(size: int, kind: str) -> Way:
        def translate(lines: list[str]) -> list[str]:
            sources = [[names[i] for i in encoded] for encoded in tokenizer.encode_batch(lines)]
            limit = max(map(len, sources)) + 50
            found = translator.translate_batch(
                sources, beam_size=4, min_decoding_length=0, max_batch_size=size, batch_type=kind, length_penalty=0.6,
                max_decoding_length=limit, return_end_token=True,
            )  # fmt: skip
            return tokenizer.decode_batch([[ids[name] for name in one.hypotheses[0]] for one in found])

        return translate

    return way


def ways(run: Path, compute_type: Any) -> dict[str, Way]:
    ours = Translator.load(run, engine="ctranslate2", compute_type=compute_type, **SEARCH)

    def bare(lines: list[str]) -> list[str]:
        found = ours.translate_stream(lines, repair=False, scores=False, whole=True, protect=False)
        return [one.text for one in found]

    raw = alone(run, compute_type)
    return {"32": raw(32, "examples"), "2,048": raw(2048, "tokens"), "ours": bare, "whole": ours.translate}


def seconds(way: Way, lines: list[str]) -> float:
    began = time.process_time()
    way(lines)
    return time.process_time() - began


def cold(command: list[str], line: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], input=f"{line}\n", capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(name: str, run: Path, compute_type: str, lines: list[str], rounds: int) -> str:
    them = ways(run, compute_type)
    outputs = {key: way(lines) for key, way in them.items()}  # loads, and is not timed
    times: dict[str, list[float]] = {key: [] for key in them}
    for number in range(rounds):
        for key in them if number % 2 else reversed(them):
            times[key].append(seconds(them[key], lines))
    best = min(times["32"], times["2,048"], key=median)
    same = sum(map(str.__eq__, outputs["ours"], outputs["32"]))
    some = lines[: len(lines) // 4]
    waits: dict[str, list[float]] = {"32": [], "ours": []}
    for line in some:
        for key, kept in waits.items():
            kept.append(seconds(them[key], [line]))
    cells = [f"{name}, {compute_type}", str(ratios(best, times["ours"])), f"{same} of {len(lines)}"]
    cells.append(str(ratios(best, times["whole"])))
    for kept in waits.values():
        cut = quantiles(kept, n=100)
        cells.append(f"{1000 * cut[49]:.1f} and {1000 * cut[98]:.1f} ms")
    ours = ["-m", "dragoman", "translate", str(run), "--compute-type", compute_type]
    theirs = [str(HERE / "translator_worker.py"), f"ctranslate2 {compute_type}", str(run), "--once", "--threads", "1"]
    starts = [(cold(theirs, lines[0]), cold(ours, lines[0])) for _ in range(rounds + 1)][1:]
    cells += [f"{1000 * median(column):.0f} ms" for column in zip(*starts, strict=True)]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--text", type=Path, default=DATA / "test_2016_flickr.en.gz")
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    from widen import widen

    base = widen(given.run, WORK / "run-wide")
    opened = gzip.open if given.text.suffix == ".gz" else open
    with opened(given.text, "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file][: given.sentences]
    print("| | times CTranslate2 alone | same text | whole | alone, p50 and p99 | ours | cold, alone | cold, ours |")
    print("|---|---|---|---|---|---|---|---|")
    for name, run, some in (("tiny", given.run, lines), ("base", base, lines[: max(32, len(lines) // 4)])):
        for compute_type in ("float32", "int8"):
            print(row(name, run, compute_type, some, given.rounds), flush=True)


if __name__ == "__main__":
    main()
