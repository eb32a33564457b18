"""The demo: real sentence pairs, a translator trained on them in minutes, its score, and a few sentences to try."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman import evaluate
from dragoman.config import load
from dragoman.corpus import read_lines
from dragoman.rundir import RunDirectory, default_cache
from dragoman.tatoeba import prepare_demo
from dragoman.translate import Translator

# None of them is in the corpus.
SENTENCES = (
    "If it rains tomorrow, we will stay at home.",
    "My brother bought a red bicycle last week.",
    "Where did you learn to cook so well?",
    "The old man was reading a newspaper in the garden.",
    "I would like to speak French without thinking.",
)


def run_demo(out: Path, minutes: float | None, show: Callable[[str], None]) -> None:
    """Progress goes to stderr; `show` is given scores and translations."""
    _say("fetching English-French sentence pairs of the Tatoeba project (once)")
    data = prepare_demo(default_cache())
    _say(f"{data.summary.train_pairs:,} pairs to train on; sentences held out, none of which occurs in training: "
         f"{data.summary.valid_sentences:,} to validate, {data.summary.test_sentences:,} to test")  # fmt: skip
    overrides: list[tuple[str, Any, str]] = [
        ("data.train", [{"pairs": str(data.train)}], "demo"),
        ("data.valid", [{"pairs": str(data.valid)}], "demo"),
    ]
    if minutes is not None:
        overrides.append(("train.minutes", minutes, "command line"))
    from dragoman.train import train  # torch is not needed before

    again = ["dragoman", "demo", "--out", str(out)] + ([] if minutes is None else ["--minutes", f"{minutes:g}"])
    train(load("demo", overrides).config, RunDirectory(out), shlex.join(again))

    translator = Translator.load(out)
    _say(f"translating the {data.summary.test_sentences:,} test sentences")
    outputs = translator.translate(list(read_lines(data.test_source)))
    scores = evaluate.evaluate(outputs, evaluate.read_references(data.test_references), "fr")
    show(f"On {data.summary.test_sentences:,} held-out sentences, one or more references each:")
    show(f"  {scores.bleu.line()}\n  {scores.chrf.line()}\n")
    for source, target in zip(SENTENCES, translator.translate(SENTENCES), strict=True):
        show(f"  {source}\n    {target}")
    named = shlex.quote(str(out))
    show(
        f"\nNow try:\n"
        f'  echo "Two dogs play in the snow." | dragoman translate {named}\n'
        f"  dragoman translate {named} --n-best 4\n"
        f"  dragoman train --pairs my.tsv --out runs/my      # your own: source, tab, target on each line\n"
        f"The commands are in .venv/bin after `make setup`. Sentences: Tatoeba, CC BY 2.0 FR, see {data.attribution}"
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr)
