"""Runs the demo: fetches sentence pairs, trains a translator on them in minutes, scores it, translates a few sentences
with their confidence, and verifies the run against its log."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.config.recipes import load
from dragoman.data.corpus import read_lines
from dragoman.data.language_codes import language_name
from dragoman.errors import DataError
from dragoman.evaluation import metrics
from dragoman.evaluation.calibration import calibrate_run
from dragoman.progress import discard, to_stderr, waiting
from dragoman.quickstart.corpora import CORPORA, DEFAULT, DemoName
from dragoman.quickstart.tatoeba import prepare_demo
from dragoman.run_directory import RunDirectory, default_cache
from dragoman.translation.translator import Translator

# None of these is in any of the corpora.
SENTENCES = (
    "If it rains tomorrow, we will stay at home.",
    "My brother bought a red bicycle last week.",
    "Where did you learn to cook so well?",
    "The old man was reading a newspaper in the garden.",
    "I would like to speak {language} without thinking.",
)
# Nothing like these is in a corpus: their translations should get a low confidence.
BEYOND = (
    "The patient was diagnosed with acute pneumonia.",
    "The quarterly earnings exceeded analysts' expectations.",
)
VERIFIED_STEPS = 50  # to train again at the end: up to the next line of the log


def run_demo(name: DemoName, out: Path, minutes: float | None, show: Callable[[str], None]) -> None:
    """Runs a demo. Progress goes to stderr; `show` is given scores and translations."""
    corpus = CORPORA[name]
    with waiting(f"fetching {corpus.languages} sentence pairs of the Tatoeba project (once)"):
        data = prepare_demo(default_cache(), corpus)
    to_stderr(f"{data.summary.train_pairs:,} pairs to train on; sentences held out, none of which occurs in training: "
         f"{data.summary.valid_sentences:,} to validate, {data.summary.test_sentences:,} to test")  # fmt: skip
    overrides: list[tuple[str, Any, str]] = [
        ("data.train", [{"pairs": str(data.train)}], "demo"),
        ("data.valid", [{"pairs": str(data.valid)}], "demo"),
    ]
    if minutes is not None:
        overrides.append(("train.minutes", minutes, "command line"))
    from dragoman.training.loop import train  # torch is not needed before

    again = ["dragoman", "demo", *([] if name == DEFAULT else [name]), "--out", str(out)]
    again += [] if minutes is None else ["--minutes", f"{minutes:g}"]
    train(load("demo", overrides).config, RunDirectory(out), shlex.join(again))

    to_stderr(f"calibrating with the {data.summary.valid_sentences:,} validation sentences")
    try:
        calibrate_run(out, list(read_lines(data.valid_source)), metrics.read_references(data.valid_references))
    except DataError as error:  # too few sentences, or a model so young that none is good
        to_stderr(f"not calibrated: {error}")
    translator = Translator.load(out)
    to_stderr(f"translating the {data.summary.test_sentences:,} test sentences")
    outputs = translator.translate(list(read_lines(data.test_source)), warn=discard)
    scores = metrics.evaluate(outputs, metrics.read_references(data.test_references), corpus.target)
    show(f"On {data.summary.test_sentences:,} held-out sentences, one or more references each:")
    show(f"  {scores.bleu.line()}\n  {scores.chrf.line()}\n")
    show_translations(translator, language_name(corpus.target), show)
    from dragoman.training.verify import verify

    named = shlex.quote(str(out))
    page = f"dragoman serve --pair {corpus.name}={named}"
    to_stderr("verifying the run: checking its hashes, and training some steps again")
    passed = [line.split()[0] for line in verify(RunDirectory(out), VERIFIED_STEPS, to_stderr)]
    show(
        f"\nVerified, as `dragoman verify {named}` does: {', '.join(passed)}.\n"
        f"Sentences: Tatoeba, CC BY 2.0 FR, see {data.attribution}\n\n"
        f"Now try (the commands are in .venv/bin after `make setup`):\n"
        f'  echo "Two dogs play in the snow." | dragoman translate {named}\n'
        f"  dragoman translate {named} --n-best 4\n"
        f"  dragoman train --pairs my.tsv --out runs/my      # your own: source, tab, target on each line\n"
        f"  {page:<48} # the page, at http://localhost:5000"
    )


def show_translations(translator: Translator, language: str, show: Callable[[str], None]) -> None:
    """Shows translations into a language of sentences like those in the corpus, and of others, each with its
    confidence."""
    for heading, sentences in (("Everyday sentences:", SENTENCES), ("Beyond what it learned from:", BEYOND)):
        show(heading)
        for translation in translator.translate_stream(
            [text.format(language=language) for text in sentences], rate=True
        ):
            sure = "" if translation.confidence is None else f"   ({translation.confidence:.0%} sure)"
            show(f"  {translation.source}\n    {translation.text}{sure}")
