"""How the cost of training grows: with the length of sentences, and with the size of the model."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import report
from contestants import marian, ours
from contestants.batches import Step
from dragoman.data.dataset import Dataset, Prepared
from dragoman.processes import keep_freed_memory
from flops import training_flops
from rounds import Spread
from shapes import SHAPES, Shape, multi30k

LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
WIDTHS = (64, 128, 256, 512, 1024)
CONTESTANTS = {"dragoman": ours, "Hugging Face Marian": marian}


def sentences_of(length: int, tokens: int, text: Prepared) -> tuple[Prepared, Step]:
    """Random pairs of exactly this many tokens on each side, start and end symbols included; and one batch of them."""
    count = max(1, tokens // length)
    random = np.random.default_rng(length)
    ids = random.integers(4, text.tokenizer.vocab_size, (2, count * (length - 1)), dtype=np.uint16)
    lengths = np.full(count, length - 1, dtype=np.int32)
    offsets = np.arange(count + 1, dtype=np.uint64) * np.uint64(length - 1)
    corpus = np.zeros(count, dtype=np.uint16)
    data = Dataset(ids[0], ids[1], lengths, lengths, offsets, offsets, corpus, (1.0,))
    return replace(text, train=data), [np.arange(count)]


def speeds(shape: Shape, texts: Prepared, step: Step, num_rounds: int) -> dict[str, list[float]]:
    """Tokens a second of each contestant, by turns."""
    contestants = {name: module.Contestant(shape, texts) for name, module in CONTESTANTS.items()}
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(num_rounds + 1):
        for name, contestant in contestants.items():
            began = time.perf_counter()
            tokens = contestant.train([step])
            if number:  # the first is to warm up
                found[name].append(tokens / (time.perf_counter() - began))
    return found


def sgemm() -> float:
    left = torch.ones(2048, 2048)
    torch.mm(left, left)
    began = time.perf_counter()
    for _ in range(5):
        torch.mm(left, left)
    return 5 * 2 * 2048**3 / (time.perf_counter() - began)


def run(
    threads: int, num_rounds: int = 3, lengths: tuple[int, ...] = LENGTHS, widths: tuple[int, ...] = WIDTHS
) -> None:
    about = report.machine() | {"command": report.command(), "threads": threads}
    keep_freed_memory()  # for both
    torch.set_num_threads(threads)
    text = multi30k()
    by_length, by_width = {}, {}
    for length in lengths:
        data, step = sentences_of(length, 4096, text)
        by_length[length] = speeds(SHAPES["tiny"], data, step, num_rounds)
    for width in widths:
        data, step = sentences_of(16, 1024, text)
        shape = Shape(6, width, 4 * width, max(1, width // 64), 0.1, 1024)
        found = speeds(shape, data, step, max(1, num_rounds - 1))
        config = shape.model_config(text.tokenizer.vocab_size)
        a_token = training_flops(config, len(step[0]), 16, 16) / (len(step[0]) * 16)
        rate = sgemm()
        by_width[width] = {"speeds": found, "flops_a_token": a_token, "sgemm": rate}
    report.write_raw("growth", {"about": about, "by_length": by_length, "by_width": by_width})
    plot(by_length, by_width)
    report.write_section(report.PAGE, "growth", page(about, by_length, by_width))


def plot(by_length: dict[int, Any], by_width: dict[int, Any]) -> None:
    from plots import lines

    lines(
        "length.svg",
        {name: [(n, Spread.of(found[name]).median) for n, found in by_length.items()] for name in CONTESTANTS},
        "sentence length, tokens",
        "target tokens/s",
    )
    lines(
        "size.svg",
        {name: [(n, Spread.of(found["speeds"][name]).median) for n, found in by_width.items()] for name in CONTESTANTS},
        "d_model (6 + 6 layers, ff 4 d)",
        "target tokens/s",
        log_y=True,
    )


def page(about: dict[str, Any], by_length: dict[int, Any], by_width: dict[int, Any]) -> str:
    length_rows = [[str(n), *(str(Spread.of(found[name])) for name in CONTESTANTS)] for n, found in by_length.items()]
    width_rows = []
    for width, found in by_width.items():
        best = Spread.of(found["speeds"]["dragoman"])
        share = 100 * best.median * found["flops_a_token"] / found["sgemm"]
        width_rows.append(
            [str(width), *(str(Spread.of(found["speeds"][name])) for name in CONTESTANTS), f"{share:.0f} %"]
        )
    return "\n".join([
        "## How cost grows",
        "",
        report.heading(about),
        "Target tokens/s of training steps on random sentences of one length, both contestants by turns in one process "
        "with our allocator setting. Against length: tiny, 4,096 tokens a step (![length](plots/length.svg)).",
        "",
        report.table(["length", *CONTESTANTS], length_rows),
        "Against size: 6 + 6 layers, ff 4 d, vocabulary 8,000, 1,024 tokens a step in sentences of 16 "
        "(![size](plots/size.svg)).",
        "",
        report.table(["d_model", *CONTESTANTS, "ours, of sgemm"], width_rows),
    ])  # fmt: skip
