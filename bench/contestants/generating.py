"""Hugging Face's generate(), a batch at a time: a module, so that other processes can import it."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from contestants.hugging_face import converted
from dragoman.data.batching import pad
from dragoman.data.tokenizer import Tokenizer
from dragoman.model.checkpoint import load_model
from dragoman.run_directory import RunDirectory


@functools.cache
def marian(run: Path) -> tuple[Any, Any]:
    """A run's weights in Hugging Face's model, and its tokenizer."""
    directory = RunDirectory.open(run)
    tokenizer = Tokenizer.load(directory.tokenizer_path)
    return converted(load_model(directory), tokenizer), tokenizer


def generate(run: Path, extra_length: int, sources: Sequence[Sequence[int]]) -> list[list[int]]:
    """One batch."""
    model, tokenizer = marian(run)
    source, mask = pad([*sources], tokenizer.pad_id)
    found = model.generate(
        input_ids=source,
        attention_mask=torch.ones_like(source) if mask is None else mask.long(),
        num_beams=4,
        length_penalty=0.6,
        early_stopping=True,
        do_sample=False,
        max_new_tokens=source.shape[1] + (extra_length or 50),
    )
    return [ids[: ids.index(tokenizer.eos_id)] if tokenizer.eos_id in ids else ids for ids in found[:, 1:].tolist()]
