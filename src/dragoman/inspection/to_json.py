"""Inspections as plain values, the same for the API's answers, the command's JSON and the saved page."""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from dragoman.data.words import Word
from dragoman.inspection.contrast import Contrast
from dragoman.inspection.contributions import Contributions
from dragoman.inspection.inspector import Inspection, Inspector, InterventionOutcome
from dragoman.inspection.logit_lens import LogitLens
from dragoman.inspection.uint16_codec import pack


def describe(inspector: Inspector, seen: Inspection) -> dict[str, Any]:
    """An inspection without its weights."""
    explainer, config = inspector.explainer, inspector.model.config
    return {
        "text": seen.text,
        "translation": seen.translation,
        "tokens": list(seen.tokens),
        "source": list(seen.source),
        "fed": list(seen.fed),
        "produced": list(seen.produced),
        "source_words": _words(seen.source_words),
        "target_words": _words(explainer.words(explainer.token_ids(seen.tokens))),
        "log_probabilities": list(seen.log_probabilities),
        "log_probability": seen.log_probability,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "num_heads": config.num_heads,
        "d_model": config.d_model,
        "d_k": seen.d_k,
        "scale": seen.scale,
        "heads": describe_heads(seen),
        "changes": [str(change) for change in seen.changes],
    }


def describe_heads(seen: Inspection) -> list[dict[str, Any]]:
    return [
        {"kind": site.kind, "layer": site.layer, "head": head, **vars(statistics)}
        for site, heads in seen.statistics.items()
        for head, statistics in enumerate(heads)
    ]


def describe_outcome(outcome: InterventionOutcome) -> dict[str, Any]:
    return {
        "changes": [str(change) for change in outcome.after.changes],
        "before": list(outcome.before.log_probabilities),
        "after": list(outcome.after.log_probabilities),
        "log_probability_before": outcome.before.log_probability,
        "log_probability_after": outcome.after.log_probability,
        "change": outcome.change,
        "translation": outcome.translation,
        "tokens": None if outcome.tokens is None else list(outcome.tokens),
        "translation_log_probability": outcome.translation_log_probability,
        "heads": describe_heads(outcome.after),
    }


def describe_lens(lens: LogitLens) -> dict[str, Any]:
    return asdict(lens)


def describe_contributions(found: Contributions) -> dict[str, Any]:
    return {
        "text": found.text,
        "translation": found.translation,
        "source": list(found.source),
        "fed": list(found.fed),
        "produced": list(found.produced),
        "from_source": list(found.from_source),
        "total": _rounded(found.total),
        "sublayers": {f"{site.kind}.{site.layer}": _rounded(matrix) for site, matrix in found.sublayers.items()},
    }


def pack_contributions(found: Contributions) -> bytes:
    """The same in two bytes a number; the header says which tables follow each other."""
    tables = {"total": found.total, **{f"{site.kind}.{site.layer}": table for site, table in found.sublayers.items()}}
    parts = [{"name": name, "shape": list(table.shape)} for name, table in tables.items()]
    return pack(torch.cat([table.flatten() for table in tables.values()]), 0.0, 1.0, parts=parts)


def describe_contrast(contrast: Contrast) -> dict[str, Any]:
    return {**asdict(contrast), "difference": contrast.difference}


def _rounded(matrix: Tensor) -> list[list[float]]:
    return [[round(value, 6) for value in row] for row in matrix.tolist()]


def _words(words: tuple[Word, ...]) -> list[dict[str, Any]]:
    return [dict(vars(word)) for word in words]
