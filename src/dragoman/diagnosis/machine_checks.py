"""Checks the machine: versions, threads, disk, memory, and one pass through a small model."""

import importlib.metadata
import math
import os
import platform
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import has_torch
from dragoman.processes import cores

_NEEDED = ("torch", "numpy", "sentencepiece", "sacrebleu", "ctranslate2")
_LEAST_FREE_GB = 1.0


@dataclass(frozen=True)
class Line:
    name: str
    found: str
    fault: str | None = None  # and its remedy


def examine_environment(directory: Path = Path()) -> list[Line]:
    """The state of this machine; what trains is looked at where torch is installed."""
    return [_versions(), *([_threads()] if has_torch() else []), _disk(directory), *([_pass()] if has_torch() else [])]


def _versions() -> Line:
    found = {name: importlib.metadata.version(name) for name in _NEEDED if name != "torch" or has_torch()}
    return Line("versions", f"Python {platform.python_version()}, " + ", ".join(f"{n} {v}" for n, v in found.items()))


def _threads() -> Line:
    import torch

    threads, usable, there = torch.get_num_threads(), cores(), os.cpu_count() or 1
    fault = None
    if threads < usable and "OMP_NUM_THREADS" in os.environ:
        fault = f"OMP_NUM_THREADS={os.environ['OMP_NUM_THREADS']} holds torch to {threads} of {usable} cores; unset it"
    elif usable < there:
        fault = f"this process may use {usable} of {there} cores; see: taskset -p $$"
    return Line("threads", f"{threads} of torch, {usable} cores usable, {there} there", fault)


def _disk(directory: Path) -> Line:
    standing = next(path for path in (directory.resolve(), *directory.resolve().parents) if path.exists())
    free = shutil.disk_usage(standing).free / 1e9
    fault = (
        None
        if free >= _LEAST_FREE_GB
        else f"less than {_LEAST_FREE_GB:g} GB free; a run of a small model takes about that"
    )
    return Line("disk", f"{free:.1f} GB free at {standing}", fault)


def _pass() -> Line:
    """Runs forward and backward of a small model: whether it works, and how long it takes."""
    import torch

    from dragoman.config import ModelConfig
    from dragoman.model.loss import smoothed_cross_entropy
    from dragoman.model.transformer import Transformer

    torch.manual_seed(0)
    model = Transformer(
        ModelConfig(vocab_size=1000, encoder_layers=2, decoder_layers=2, d_model=128, d_ff=512, num_heads=4)
    )
    ids = torch.randint(4, 1000, (16, 20))
    best = math.inf
    for _ in range(3):
        model.zero_grad()
        began = time.perf_counter()
        states = model.states(ids, ids, None)
        loss, _ = smoothed_cross_entropy(states.flatten(0, 1), model.output.weight, ids.flatten(), 0.1)
        loss.backward()
        best = min(best, time.perf_counter() - began)
    finite = all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())
    fault = None if finite and math.isfinite(float(loss.detach())) else "gradients are not finite; install torch again"
    return Line("one pass", f"forward and backward of 320 tokens in {1000 * best:.0f} ms", fault)
