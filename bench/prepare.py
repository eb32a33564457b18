"""Memory, speed and disk of preparing a corpus and of reading it in training order, as it grows.

python bench/prepare.py --pairs 20000 --pairs 200000 --pairs 2000000

Each size is made from a seed: Zipfian words of two invented languages, a tab-separated file of about 160 bytes a pair.
A process of its own prepares it as `dragoman train` would, another plans an epoch and reads batches. Meanwhile their
memory and that of their own processes is looked at ten times a second, anonymous memory apart from mapped files: pages
of those belong to the system, which takes them back when it wants them. Everything made is removed at the end.

python bench/prepare.py --without-text --pairs 2000000 --pairs 20000000

has only the two parts whose memory grows with the number of pairs, on random hashes and lengths: comparing lines, and
planning an epoch. That takes a minute where the text of 20 million pairs takes an hour.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

WORDS = 60_000
LETTERS = ("abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnoprstuvwzäöüß")
CHUNK = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, action="append", help="size of a corpus; several times for several")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--read-seconds", type=float, default=20.0, help="how long to read batches")
    parser.add_argument("--directory", type=Path, default=None, help="where to work [default: a temporary directory]")
    parser.add_argument("--json", action="store_true", help="one JSON object a size, in place of rows of a table")
    parser.add_argument("--without-text", action="store_true", help="only what grows with the number of pairs")
    parser.add_argument("--phase", choices=["prepare", "read"], help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.phase:
        (prepare_phase if options.phase == "prepare" else read_phase)(options.directory, options.seconds)
        return
    if options.without_text:
        for pairs in options.pairs or [20_000]:
            print(json.dumps(measure_without_text(pairs, options.seed)), flush=True)
        return
    if not options.json:
        print("| pairs | text MB | disk MB | pairs/s, cleaning | pairs/s, all | CPU s, cleaning | CPU s, all "
              "| peak MB (reader + cleaners) | again, s | plan, CPU s | plan, MB | batches, pairs/s of CPU time "
              "| tokens/s |\n|" + "---|" * 13)  # fmt: skip
    for pairs in options.pairs or [20_000]:
        with tempfile.TemporaryDirectory(dir=options.directory, prefix="prepare-") as directory:
            report = measure(Path(directory), pairs, options.seed, options.read_seconds)
        print(json.dumps(report) if options.json else row(report), flush=True)


def row(report: dict[str, Any]) -> str:
    cells = (
        f"{report['pairs']:,}", f"{report['text_mb']:,.0f}", f"{report['disk_mb']:,.0f}",
        f"{report['cleaning_pairs_per_second']:,.0f}", f"{report['pairs_per_second']:,.0f}",
        f"{report['cleaning_cpu_seconds']:,.1f}", f"{report['prepare_cpu_seconds']:,.1f}",
        f"{report['peak_mb']:,.0f} ({report['reader_peak_mb']:,.0f} + {report['cleaners_peak_mb']:,.0f})",
        f"{report['again_seconds']:.2f}", f"{report['plan_cpu_seconds']:.2f}", f"{report['plan_mb']:,.0f}",
        f"{report['read_pairs_per_second']:,.0f}", f"{report['read_tokens_per_second']:,.0f}",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def measure(directory: Path, pairs: int, seed: int, read_seconds: float) -> dict[str, Any]:
    begin = time.monotonic()
    write_corpus(directory / "text.tsv", pairs, seed)
    made = time.monotonic() - begin
    prepared, memory = watched("prepare", directory, read_seconds)
    read, _ = watched("read", directory, read_seconds)
    return {
        "pairs": pairs,
        "cores": len(os.sched_getaffinity(0)),
        "made_seconds": round(made, 1),
        "text_mb": (directory / "text.tsv").stat().st_size / 1e6,
        "disk_mb": sum(path.stat().st_size for path in (directory / "run").rglob("*") if path.is_file()) / 1e6,
        "peak_mb": memory.together,
        "reader_peak_mb": memory.first,
        "cleaners_peak_mb": memory.others,
        **prepared,
        **read,
    }


def write_corpus(path: Path, pairs: int, seed: int) -> None:
    """Word-by-word translations, one word in ten left out; 12 words a sentence, most between 5 and 25."""
    random = np.random.default_rng(seed)
    lexicons = [lexicon(random, letters) for letters in LETTERS]
    cumulative = np.cumsum(1 / (np.arange(WORDS) + 2.7))
    cumulative /= cumulative[-1]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for start in range(0, pairs, CHUNK):
            lengths = np.exp(random.normal(2.35, 0.5, min(CHUNK, pairs - start))).astype(np.int64).clip(1, 120)
            ids = np.searchsorted(cumulative, random.random(int(lengths.sum()))).clip(max=WORDS - 1)
            left_out = random.random(len(ids)) < 0.1
            sources = lexicons[0][ids].tolist()
            targets = np.where(left_out, "", lexicons[1][ids]).tolist()
            at = 0
            lines = []
            for length in lengths.tolist():
                source, target = sources[at : at + length], filter(None, targets[at : at + length])
                lines.append(f"{' '.join(source)}.\t{' '.join(target)}.\n")
                at += length
            file.write("".join(lines))


def lexicon(random: np.random.Generator, letters: str) -> Any:
    """Different words, the frequent ones short."""
    words: dict[str, None] = {}
    while len(words) < WORDS:
        size = 1 + int(random.poisson(1 + math.log1p(len(words)) / 1.8))
        words["".join(random.choice(list(letters), size))] = None
    return np.array(list(words), dtype=object)


@dataclass
class Memory:
    """The most that was seen, in MB of anonymous memory: of all together, the first process, and its children."""

    together: float = 0.0
    first: float = 0.0
    others: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)

    def watch(self, process: int) -> None:
        while not self.done.wait(0.1):
            first, others = anonymous_mb(process), sum(anonymous_mb(child) for child in children_of(process))
            self.together = max(self.together, first + others)
            self.first, self.others = max(self.first, first), max(self.others, others)


def anonymous_mb(process: int) -> float:
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:  # it is gone
        return 0.0
    return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")) / 1e3


def children_of(process: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text(encoding="utf-8").split()]
        except OSError:
            continue
    return found


def watched(phase: str, directory: Path, seconds: float) -> tuple[dict[str, Any], Memory]:
    command = [sys.executable, __file__, "--phase", phase, "--directory", str(directory), "--seconds", str(seconds)]
    memory = Memory()
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        watcher = threading.Thread(target=memory.watch, args=(process.pid,))
        watcher.start()
        said, _ = process.communicate()
        memory.done.set()
        watcher.join()
    if process.returncode:
        raise SystemExit(f"{phase} failed")
    return json.loads(said), memory


def now() -> Any:
    """Seconds on the clock, and of CPU time: of this process and of those it waited for."""
    used = os.times()
    return np.array([time.monotonic(), used.user + used.system + used.children_user + used.children_system])


def prepare_phase(directory: Path, _: float) -> None:
    from dragoman.config import CorpusConfig, DataConfig
    from dragoman.data.dataset import prepare

    config = DataConfig(train=(CorpusConfig(pairs=str(directory / "text.tsv")),))
    moments = [("start", now())]

    def say(line: str) -> None:
        moments.append((line.split()[0], now()))
        print(f"{(now() - moments[0][1])[0]:8.1f} s  {line}", file=sys.stderr, flush=True)

    prepared = prepare(config, 0, 1, directory / "run", say)
    ended = now()
    at = dict(reversed(moments))  # the first line of each kind
    cleaning, learning, everything = (
        end - start
        for start, end in ((at["reading"], at["learning"]), (at["learning"], at["encoding"]), (at["start"], ended))
    )
    lines = prepared.report.corpora[0].lines
    prepare(config, 0, 1, directory / "run", lambda _: None)
    print(json.dumps({
        "kept": len(prepared.train),
        "vocabulary": prepared.tokenizer.vocab_size,
        "cleaning_seconds": cleaning[0],
        "cleaning_cpu_seconds": cleaning[1],
        "cleaning_pairs_per_second": lines / cleaning[0],
        "learning_seconds": learning[0],
        "learning_cpu_seconds": learning[1],
        "prepare_seconds": everything[0],
        "prepare_cpu_seconds": everything[1],
        "pairs_per_second": lines / everything[0],
        "again_seconds": (now() - ended)[0],
    }))  # fmt: skip


def read_phase(directory: Path, seconds: float) -> None:
    from dragoman.data.batching import make_batch, plan_epoch
    from dragoman.data.dataset import Dataset
    from dragoman.data.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(directory / "run" / "tokenizer.model")
    (data_directory,) = (directory / "run" / "data").iterdir()
    data = Dataset.open(data_directory / "train", [1.0])
    for path in (data_directory / "train").iterdir():  # read from the disk, not from the system's memory
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before, memory = anonymous_mb(os.getpid()), Memory()
    watcher = threading.Thread(target=memory.watch, args=(os.getpid(),))
    watcher.start()
    begin = now()
    plan = plan_epoch(data, 25_000, 6_250, 1, 0)
    planned = now()
    pairs = tokens = 0
    for step in plan:
        for rows in step:
            batch = make_batch(data, rows, tokenizer)
            pairs += len(rows)
            tokens += batch.tokens
        if (now() - planned)[0] > seconds:
            break
    ended = now()
    memory.done.set()
    watcher.join()
    print(json.dumps({
        "plan_seconds": (planned - begin)[0],
        "plan_cpu_seconds": (planned - begin)[1],
        "plan_mb": memory.first - before,
        "steps": len(plan),
        "read_pairs": pairs,
        "read_seconds": (ended - planned)[0],
        "read_pairs_per_second": pairs / (ended - planned)[1],
        "read_tokens_per_second": tokens / (ended - planned)[1],
    }))  # fmt: skip


def measure_without_text(pairs: int, seed: int) -> dict[str, Any]:
    from dragoman.config import CorpusConfig
    from dragoman.data.batching import plan_epoch
    from dragoman.data.cleaning import _compare_lines, _LineHashes
    from dragoman.data.corpus import Corpus
    from dragoman.data.dataset import Dataset

    random = np.random.default_rng(seed)
    corpus = Corpus(CorpusConfig(pairs="none"), "train", np.zeros(pairs, np.uint8), 0)
    hashes = _LineHashes(*(bytearray(random.bytes(8 * pairs)) for _ in range(2)))
    compared = grown(partial(_compare_lines, [corpus], hashes, True, 1000))
    del hashes, corpus
    lengths = [np.exp(random.normal(2.9, 0.5, pairs)).astype(np.int32).clip(1, 256) for _ in range(2)]
    nothing = np.zeros(0, np.uint16)
    data = Dataset(nothing, nothing, *lengths, nothing, nothing, nothing, (1.0,))
    planned = grown(partial(plan_epoch, data, 25_000, 6_250, 1, 0))
    return {
        "pairs": pairs,
        **{f"compare_{key}": value for key, value in compared.items()},
        **{f"plan_{key}": value for key, value in planned.items()},
    }


def grown(work: Callable[[], Any]) -> dict[str, float]:
    """How much memory this process has more, at the most, while it works, and how long that takes."""
    before, memory, begin = anonymous_mb(os.getpid()), Memory(), now()
    watcher = threading.Thread(target=memory.watch, args=(os.getpid(),))
    watcher.start()
    result = work()
    took = now() - begin
    memory.done.set()
    watcher.join()
    left = anonymous_mb(os.getpid()) - before
    del result
    return {"peak_mb": memory.first - before, "left_mb": left, "seconds": took[0], "cpu_seconds": took[1]}


if __name__ == "__main__":
    main()
