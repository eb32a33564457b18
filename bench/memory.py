"""Peak memory, each point in a process of its own: one step of the paper's size, and attention against length."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import report
from rounds import BenchError

STEP_TOKENS, SENTENCE, VOCABULARY = 25_000, 25, 37_000
LENGTHS = (128, 512, 2048, 8192)


def step_of_the_papers_size(micro_batch_tokens: int, threads: int) -> None:
    """25,000 + 25,000 tokens through the base model, accumulated over micro-batches of so many."""
    import torch

    from dragoman.config import ModelConfig, TrainConfig
    from dragoman.model.loss import smoothed_cross_entropy
    from dragoman.model.transformer import Transformer
    from dragoman.processes import keep_freed_memory
    from dragoman.training.optimizer import make_optimizer

    keep_freed_memory()
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = Transformer(ModelConfig(vocab_size=VOCABULARY)).train()
    optimizer = make_optimizer(model, TrainConfig())
    sentences = micro_batch_tokens // SENTENCE
    for _ in range(STEP_TOKENS // micro_batch_tokens):
        source, target = torch.randint(4, VOCABULARY, (2, sentences, SENTENCE))
        hidden = model.states(source, target)
        loss, _ = smoothed_cross_entropy(hidden.flatten(0, 1), model.output.weight, target.flatten(), 0.1)
        (loss / STEP_TOKENS).backward()
    optimizer.step()


def attention(length: int, path: str, threads: int) -> None:
    """Forward and backward pass of one encoder layer (d 128, 4 heads) over one sentence."""
    import torch

    from dragoman.config import ModelConfig
    from dragoman.model.probe import Probe
    from dragoman.model.transformer import Transformer

    torch.set_num_threads(threads)
    config = ModelConfig(vocab_size=100, encoder_layers=1, decoder_layers=1, d_model=128, d_ff=256, num_heads=4)
    model = Transformer(config)
    probe = Probe() if path == "explicit" else None
    model.encode(torch.randint(100, (1, length)), probe=probe).sum().backward()


def measured(*arguments: str, threads: int) -> dict[str, float]:
    command = [sys.executable, __file__, *arguments, "--threads", str(threads)]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise BenchError(f"{' '.join(arguments)} ended with code {ran.returncode}: {ran.stderr.strip()[-300:]}")
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def run(threads: int, only_lengths: tuple[int, ...] = LENGTHS, whole_step: bool = True) -> None:
    about = report.machine() | {"command": report.command(), "threads": threads}
    steps: dict[str, dict[str, float]] = {}
    if whole_step:
        for micro in (STEP_TOKENS // 4, STEP_TOKENS):
            steps[str(micro)] = measured("step", str(micro), threads=threads)
    lengths: dict[str, dict[str, dict[str, float]]] = {
        path: {str(n): measured("attention", str(n), path, threads=threads) for n in only_lengths}
        for path in ("explicit", "fused")
    }
    report.write_raw("memory", {"about": about, "steps": steps, "lengths": lengths})
    plot(lengths)
    report.write_section(report.PAGE, "memory", page(about, steps, lengths))


def plot(lengths: dict[str, dict[str, dict[str, float]]]) -> None:
    from plots import lines

    series = {
        path: [(int(n), values["megabytes_of_work"]) for n, values in points.items()]
        for path, points in lengths.items()
    }
    lines("memory.svg", series, "sentence length, tokens", "memory beyond the model's own, MB", log_y=True)


def page(about: dict[str, Any], steps: dict[str, Any], lengths: dict[str, Any]) -> str:
    step_rows = [
        [f"{int(micro):,}", f"{STEP_TOKENS // int(micro)}", f"{values['peak_megabytes'] / 1000:.1f}"]
        for micro, values in steps.items()
    ]
    length_rows = [
        [f"{int(n):,}", *(f"{lengths[path][n]['megabytes_of_work']:,.0f}" for path in ("explicit", "fused"))]
        for n in lengths["fused"]
    ]
    return "\n".join([
        "## Memory",
        "",
        report.heading(about),
        f"One step of the paper's size: 25,000 + 25,000 tokens in sentences of {SENTENCE}, base model, vocabulary "
        f"{VOCABULARY:,}, Adam's state included; peak resident memory of the process:",
        "",
        report.table(["tokens a micro-batch", "micro-batches", "peak, GB"], step_rows),
        "Forward and backward pass of one encoder layer (d 128, 4 heads) over one sentence; peak memory less what the "
        "process had with the model loaded (![memory against length](plots/memory.svg)):",
        "",
        report.table(["length", "explicit attention, MB", "fused attention, MB"], length_rows),
    ])  # fmt: skip


def main() -> None:
    """One point."""
    kind, *arguments = sys.argv[1 : sys.argv.index("--threads")]
    threads = int(sys.argv[-1])
    import torch  # noqa: F401

    import dragoman.model.transformer
    import dragoman.training.loop  # noqa: F401

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if kind == "step":
        step_of_the_papers_size(int(arguments[0]), threads)
    else:
        attention(int(arguments[0]), arguments[1], threads)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"peak_megabytes": peak, "megabytes_of_work": peak - before}))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
