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


@dataclass(frozen=True)
class Line:
    """The result of one check of the machine."""

    name: str
    found: str
    fault: str | None = None  # and its remedy


def examine_environment(directory: Path = Path(), least_free_gb: float = 1.0) -> list[Line]:
    """Checks this machine; threads and a pass through a model only where torch is installed.

    least_free_gb: a disk with less free space is a fault.
    """
    if not has_torch():
        return [_versions(), _disk(directory, least_free_gb)]
    return [_versions(), _threads(), _disk(directory, least_free_gb), _pass()]


def _versions() -> Line:
    found = {name: importlib.metadata.version(name) for name in _NEEDED if name != "torch" or has_torch()}
    return Line("versions", f"Python {platform.python_version()}, " + ", ".join(f"{n} {v}" for n, v in found.items()))


def _threads() -> Line:
    import torch

    threads, usable, present = torch.get_num_threads(), cores(), os.cpu_count() or 1
    fault = None
    if threads < usable and "OMP_NUM_THREADS" in os.environ:
        fault = f"OMP_NUM_THREADS={os.environ['OMP_NUM_THREADS']} limits torch to {threads} of {usable} cores; unset it"
    elif usable < present:
        fault = f"this process may use {usable} of {present} cores; see: taskset -p $$"
    return Line("threads", f"torch uses {threads}; {usable} of {present} cores usable", fault)


def _disk(directory: Path, least_free_gb: float) -> Line:
    existing = next(path for path in (directory.resolve(), *directory.resolve().parents) if path.exists())
    free = shutil.disk_usage(existing).free / 1e9
    fault = None
    if free < least_free_gb:
        fault = f"less than {least_free_gb:g} GB free, which is about what a run of a small model takes; free some disk"
    return Line("disk", f"{free:.1f} GB free at {existing}", fault)


def _pass() -> Line:
    """Runs a small model forward and backward, to see whether that works and how long it takes."""
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
    fault = (
        None if finite and math.isfinite(float(loss.detach())) else "the gradients are not finite; install torch again"
    )
    return Line("one pass", f"forward and backward of 320 tokens in {1000 * best:.0f} ms", fault)
