"""Runs on parts of Multi30k, trained alike and scored on its test set: what the benches that train them share."""

import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig
from dragoman.config.recipes import load
from dragoman.evaluation import metrics
from dragoman.run_directory import RunDirectory
from dragoman.training.loop import train
from dragoman.translation.translator import Translator
from shapes import DATA


def lines(name: str, language: str) -> list[str]:
    with gzip.open(DATA / f"{name}.{language}.gz", "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def written(path: Path, text: Sequence[str]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return str(path)


def trained(out: Path, corpora: Sequence[CorpusConfig], valid: CorpusConfig, steps: int, set_: Sequence[Any]) -> Path:
    """A run by recipes/multi30k-tiny.toml on other text; one that is there and finished is taken as it is."""
    layered = load("multi30k-tiny", [("train.steps", steps, "bench"), *set_])
    settings = replace(layered.config.train, valid_steps=max(1, min(layered.config.train.valid_steps, steps)))
    data = replace(layered.config.data, train=tuple(corpora), valid=(valid,))
    print(f"== {out.name}", file=sys.stderr)
    train(replace(layered.config, data=data, train=settings), RunDirectory(out), "the same command")
    return out


def translated(run: Path, sources: Sequence[str], to: str | None = None, **search: float | str) -> list[str]:
    return Translator.load(run, to=to, **search).translate(sources)


def table(
    outputs: dict[str, list[str]], references: Sequence[str], baseline: str, language: str
) -> list[dict[str, Any]]:
    """BLEU of each, and whether it differs from the baseline (paired bootstrap)."""
    wanted = [[line] for line in references]
    rows = []
    for name, found in outputs.items():
        compared = metrics.compare(outputs[baseline], found, wanted, language)
        rows.append(
            {
                "run": name,
                "bleu": round(compared.bleu.b, 2),
                "chrf": round(compared.chrf.b, 2),
                "difference": round(compared.bleu.b - compared.bleu.a, 2),
                "p": None if name == baseline else compared.bleu.p_value,
                "signature": compared.bleu.signature,
            }
        )
    return rows


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    print(f"\n{title}\n\n| run | BLEU | chrF2 | BLEU against the first | p |\n|---|---|---|---|---|")
    for row in rows:
        p = "" if row["p"] is None else f"{row['p']:.4f}"
        print(f"| {row['run']} | {row['bleu']:.2f} | {row['chrf']:.2f} | {row['difference']:+.2f} | {p} |")


def keep(path: Path, result: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"\nraw figures: {path}", file=sys.stderr)
