"""Translation speed, side by side: beam 4, batches of 32, the same weights for all; and cold starts."""

import gzip
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import report
from dragoman.config import RunConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.run_directory import RunDirectory
from rounds import BenchError, Spread, Worker, ratios
from shapes import DATA, ROOT, SHAPES, WORK, multi30k

HERE = Path(__file__).parent
BASELINE = "hugging-face"
BASELINE_KEEPING = "hugging-face keeping memory"  # with the allocator setting of `dragoman translate`
BASELINE_SHARED = "hugging-face processes"  # of one thread each, with that setting: what our reference engine does
# Those that need a conversion come before those that use it.
ENGINES = (
    "dragoman reference",
    "dragoman ctranslate2 float32",
    "dragoman ctranslate2 int8",
    "ctranslate2 float32",
    "ctranslate2 int8",
    BASELINE,
    BASELINE_KEEPING,
    BASELINE_SHARED,
)
WITH_MAP = "dragoman ctranslate2 int8 map"  # where one was kept
# Of the trained model alone: a map is learned from the training text, and an untrained model's outputs never end.
OF_TINY_ALONE = (
    "dragoman reference first",
    "dragoman reference wide",
    "dragoman reference wide first",
    "hugging-face wide",
    "hugging-face unsorted",
)
NAMES = {
    "dragoman reference": "dragoman, reference engine",
    "dragoman reference first": "dragoman, reference engine, stopping as generate() does (`search.stop`)",
    "dragoman reference wide": "dragoman, reference engine, batches of 2,048 tokens, as `dragoman translate` has them",
    "dragoman reference wide first": "dragoman, reference engine, both",
    "dragoman ctranslate2 float32": "dragoman through CTranslate2, float32",
    "dragoman ctranslate2 int8": "dragoman through CTranslate2, int8",
    WITH_MAP: "dragoman through CTranslate2, int8 and vocabulary map",
    "ctranslate2 float32": "CTranslate2 alone, float32",
    "ctranslate2 int8": "CTranslate2 alone, int8",
    BASELINE: "Hugging Face generate()",
    "hugging-face wide": "Hugging Face generate(), batches of 128",
    "hugging-face unsorted": "Hugging Face generate(), in the order of the file",
    BASELINE_KEEPING: "Hugging Face generate(), our allocator setting",
    BASELINE_SHARED: "Hugging Face generate(), our allocator setting, a process a core",
}


def trained_run(given: Path | None) -> Path:
    """A copy of the run, as engines write into it. Without one: a short training, kept for the next time."""
    if given is None:
        given = WORK / "short-training"
        if not (given / "model.safetensors").exists():
            command = [sys.executable, "-m", "dragoman", "train", str(ROOT / "recipes" / "multi30k-tiny.toml")]
            for name, option in (("train", ""), ("val", "valid-")):
                command += [f"--{option}source", str(DATA / f"{name}.en.gz")]
                command += [f"--{option}target", str(DATA / f"{name}.de.gz")]
            command += ["--out", str(given), "--minutes", "3", "--set", "train.valid_sentences=100"]
            subprocess.run(command, check=True, stdout=sys.stderr)
    copy = WORK / "run-tiny"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in ("config.json", "tokenizer.model", "model.safetensors", "model.json"):
        shutil.copy(given / name, copy / name)
    (copy / "data").symlink_to((given / "data").resolve())  # the training text, for a vocabulary map
    return copy


def with_map(run: Path) -> str:
    """Learn a vocabulary map, as `dragoman quantize` does; what that says of its cost in BLEU on val. Where that is too
    much, there is none."""
    command = [sys.executable, "-m", "dragoman", "quantize", str(run), "--target-language", "de"]
    command += ["--source", str(DATA / "val.en.gz"), "--reference", str(DATA / "val.de.gz")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in ran.stdout.splitlines() if line.startswith("vocabulary map")]
    if ran.returncode or not said:
        raise BenchError(f"{' '.join(command)} learned no vocabulary map: {(ran.stdout + ran.stderr)[-300:]}")
    (run / "engine.json").unlink(missing_ok=True)  # the map is for the row that asks for it
    return said[0]


def base_run() -> Path:
    """Base-shaped, with the weights that a model begins with: its outputs say nothing, their cost is real."""
    import torch

    from dragoman.model.checkpoint import promote, weights_of
    from dragoman.model.transformer import Transformer

    text = multi30k()
    run = RunDirectory(WORK / "run-base")
    shutil.rmtree(run.path, ignore_errors=True)
    run.path.mkdir(parents=True)
    config = replace(RunConfig(), model=SHAPES["base"].model_config(text.tokenizer.vocab_size))
    run.write_config(config)
    text.tokenizer.save(run.tokenizer_path)
    torch.manual_seed(1)
    promote(run, weights_of(Transformer(config.model)), "last", [0])
    return run.path


def of_one_length(run: Path, lines: list[str]) -> list[str]:
    """The lines of the commonest length in tokens. Where every output is cut, sentences of several lengths would be cut
    at as many places, and an engine that has one limit a batch would have to search most of them twice."""
    lengths = [len(ids) for ids in Tokenizer.load(run / "tokenizer.model").encode_batch(lines)]
    [(commonest, _)] = Counter(lengths).most_common(1)
    return [line for line, length in zip(lines, lengths, strict=True) if length == commonest]


def start(engine: str, run: Path, extra_length: int, threads: int, mean_length: float) -> Worker:
    arguments = [str(HERE / "translator_worker.py"), engine, str(run), "--threads", str(threads)]
    arguments += ["--extra-length", str(extra_length), "--mean-length", str(mean_length)]
    log = WORK / "logs" / f"translate-{engine.replace(' ', '-')}-{run.name}.log"
    return Worker(engine, arguments, environment(threads), log)


def environment(threads: int) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}


def race(
    run: Path, engines: Sequence[str], lines: list[str], extra_length: int, threads: int, num_rounds: int
) -> dict[str, Any]:
    tokenizer = Tokenizer.load(run / "tokenizer.model")
    mean = sum(map(len, tokenizer.encode_batch(lines))) / len(lines)
    results: dict[str, list[dict[str, Any]]] = {}
    with ExitStack() as stack:
        workers = []
        for engine in engines:
            worker = stack.enter_context(start(engine, run, extra_length, threads, mean))
            worker.ask(lines=lines)  # a first time: whatever starts, loads or measures then is not timed
            workers.append(worker)
        for number in range(num_rounds):
            for worker in workers[number % len(workers) :] + workers[: number % len(workers)]:
                results.setdefault(worker.name, []).append(worker.ask(lines=lines))
    expected = results["dragoman reference"][0]["outputs"]
    same = {
        name: sum(a == b for a, b in zip(found[0]["outputs"], expected, strict=True)) for name, found in results.items()
    }
    for found in results.values():
        for one in found:
            del one["outputs"]
    return {"rounds": results, "same": same, "lines": len(lines)}


def cold_starts(run: Path, line: str, extra_length: int, threads: int, repeats: int) -> dict[str, list[float]]:
    """Seconds from the start of a process to its first translation; of ours, the command itself."""
    found: dict[str, list[float]] = {}
    for number in range(repeats + 1):
        for engine in (engine for engine in ENGINES if engine != BASELINE_SHARED):  # it has one sentence to share
            if engine.startswith("dragoman"):
                _, name, *numbers = engine.split()
                command = [sys.executable, "-m", "dragoman", "translate", str(run), "--engine", name]
                command += ["--beam", "4", "--alpha", "0.6", *(["--compute-type", *numbers] if numbers else [])]
            else:
                command = [sys.executable, str(HERE / "translator_worker.py"), engine, str(run), "--once"]
                command += ["--threads", str(threads), "--extra-length", str(extra_length)]
            began = time.perf_counter()
            ran = subprocess.run(
                command, input=f"{line}\n", env=environment(threads), capture_output=True, text=True, check=False
            )
            seconds = time.perf_counter() - began
            if ran.returncode or not ran.stdout.strip():
                raise BenchError(f"{' '.join(command)} ended with code {ran.returncode}: {ran.stderr[-300:]}")
            if number:  # the first brings the files into memory
                found.setdefault(engine, []).append(seconds)
    return found


def run(
    given: Path | None,
    threads: int,
    num_rounds: int = 3,
    sentences: int = 1000,
    base_sentences: int = 96,
    colds: int = 3,
) -> None:
    about = report.machine() | {"command": report.command(), "threads": threads}
    with gzip.open(DATA / "test_2016_flickr.en.gz", "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    runs = {"tiny": (trained_run(given), sentences, 0), "base": (base_run(), base_sentences, 5)}
    raw: dict[str, Any] = {"about": about, "map": with_map(runs["tiny"][0])}
    for name, (path, count, extra) in runs.items():
        chosen = lines if name == "tiny" else of_one_length(path, lines)
        more = OF_TINY_ALONE if name == "tiny" else ()
        engines = (*ENGINES, *more, *([WITH_MAP] if list(path.rglob("vmap.txt")) else []))
        raw[name] = race(path, engines, chosen[:count], extra, threads, num_rounds)
        raw[name]["cold"] = cold_starts(path, lines[0], extra, threads, colds)
    report.write_raw("translation", raw)
    report.write_section(report.PAGE, "translation", page(raw))


def page(raw: dict[str, Any]) -> str:
    def speeds(size: str, engine: str) -> list[float]:
        """Sentences/s of tiny, tokens/s of base."""
        amount = {"tiny": lambda _: raw["tiny"]["lines"], "base": lambda found: found["tokens"]}[size]
        return [amount(found) / found["seconds"] for found in raw[size]["rounds"][engine]]

    alone = speeds("tiny", "ctranslate2 float32")
    rows = []
    for engine in (engine for engine in NAMES if engine in raw["tiny"]["rounds"]):
        found = speeds("tiny", engine)
        cells = [NAMES[engine], str(Spread.of(found)), str(ratios(found, speeds("tiny", BASELINE)))]
        cells.append(str(ratios(found, alone)))
        cells.append(f"{raw['tiny']['same'][engine]} of {raw['tiny']['lines']}")
        if engine in ENGINES:
            found = speeds("base", engine)
            cells += [str(Spread.of(found)), str(ratios(found, speeds("base", BASELINE)))]
            colds = [raw[size]["cold"].get(engine) for size in ("tiny", "base")]
            cells += [str(Spread.of(found)) if found else "" for found in colds]
        rows.append(cells + [""] * (9 - len(cells)))
    head = ["translation", "tiny, sentences/s", "times generate()", "times CTranslate2 alone, float32"]
    head += ["same output as our reference", "base, tokens/s", "times generate()"]
    head += ["cold start tiny, s", "cold start base, s"]
    return "\n".join([
        "## Translation",
        "",
        report.heading(raw["about"]),
        f"Beam 4, batches of about 32 sentences of like length, {raw['about']['threads']} threads (CTranslate2: as "
        "many workers of one thread; our reference engine: as many processes), sentences of test_2016_flickr, the same "
        "weights for all. Base has the weights a model begins with: no output ends by itself, so its sentences have "
        "one length and are cut at that + 5. A "
        f"cold start is from the start of the process to the translation of one sentence. On val: {raw['map']}.",
        "",
        report.table(head, rows),
    ])  # fmt: skip
