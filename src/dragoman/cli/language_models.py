"""`dragoman lm`, `dragoman mlm` and `dragoman tasks`. Heavy imports inside, as in the command line they are part of."""

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.options import (
    AsJson,
    Checkpoint,
    Input,
    LinesOut,
    Recipe,
    RunOut,
    RunPath,
    RunPaths,
    SamplingOptions,
    SamplingSeed,
    TrainingOptions,
    n_best_option,
    whole,
)
from dragoman.cli.registration import command, group
from dragoman.cli.terminal import input_from, lines_from, lines_to, say, show, this_command
from dragoman.cli.training import show_trained
from dragoman.config import RunConfig, recipes
from dragoman.errors import UsageError

Texts = Annotated[list[Path], typer.Option("--text", help="Plain text, one sentence a line (.gz too).")]
ValidText = Annotated[Path | None, typer.Option(help="Text to validate with [default: 1,000 lines held out].")]
TokenizerFile = Annotated[Path | None, typer.Option(help="A sentencepiece model, in place of learning one.")]


lm = group("Train and use language models: the decoder alone.")


@command(lm, "train")
def train_lm(
    text: Texts,
    training: TrainingOptions,
    valid_text: ValidText = None,
    recipe: Recipe = "lm",
    tokenizer: TokenizerFile = None,
    out: RunOut = None,
    as_json: AsJson = False,
) -> None:
    """Train a language model.

    The same command goes on with a run that was stopped.
    """
    from dragoman.descendants.plain_text import require_half, with_text

    config = _config(recipe, training, tokenizer)
    require_half(config, recipe, "continue")
    name = run_training(with_text(config, text, valid_text), recipe, out, as_json)
    say(f'try it: dragoman lm generate {name} --prompt "I have"')


@command(lm)
def generate(
    runs: RunPaths,
    sampling: SamplingOptions,
    prompt: Annotated[str, typer.Option(help="How the text begins.")] = "",
    n_best: Annotated[int, n_best_option(10_000, "How many texts.")] = 1,
    greedy: Annotated[bool, typer.Option("--greedy", help="The most probable token each time.")] = False,
    max_tokens: Annotated[
        int | None, typer.Option(parser=whole(1, 100_000), help="The most tokens after the prompt.")
    ] = None,
    seed: SamplingSeed = 0,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """Write text, each token as it is drawn."""
    from dragoman.descendants.language_model import LanguageModel

    if greedy and (n_best > 1 or sampling.given()):
        raise UsageError("lm generate: --greedy draws nothing; leave out -n, --temperature, --top-k and --top-p")
    given: dict[str, Any] = {**sampling.given()}
    if max_tokens is not None:
        given["max_extra_length"] = max_tokens
    given |= {"beam": 1, "sampling": False} if greedy else {"sampling": True}
    model = LanguageModel.load(*runs, checkpoint=checkpoint, **given)
    if n_best == 1 and not as_json:
        model.generate(prompt, 1, seed, lambda part: show(part, ""))
        show("")
        return
    for written in model.generate(prompt, n_best, seed):
        show(json.dumps(dataclasses.asdict(written), ensure_ascii=False) if as_json else written.text)


@command(lm)
def evaluate(
    runs: RunPaths,
    text: Annotated[Path, typer.Option(help="Plain text that was held out, one sentence a line.")],
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """Measure perplexity a token and bits per byte. Each line's end counts, as one token and one byte."""
    from dragoman.descendants.language_model import LanguageModel

    model = LanguageModel.load(*runs, checkpoint=checkpoint)
    scored = model.evaluate([line.strip() for line in lines_from(text, "lm evaluate") if line.strip()])
    measured = {"perplexity": scored.perplexity, "bits_per_byte": scored.bits_per_byte}
    if as_json:
        show(json.dumps({**dataclasses.asdict(scored), **measured}))
    else:
        show(f"bits per byte {scored.bits_per_byte:.4f}  perplexity a token {scored.perplexity:.2f}  "
              f"({scored.lines:,} lines, {scored.tokens:,} tokens, {scored.bytes:,} bytes)", "\n")  # fmt: skip


mlm = group("Train and use masked models and classifiers: the encoder alone.")


@command(mlm, "train")
def train_mlm(
    training: TrainingOptions,
    text: Annotated[
        list[Path] | None, typer.Option("--text", help="Plain text, to learn from by restoring hidden tokens.")
    ] = None,
    labelled: Annotated[
        Path | None, typer.Option(help="Sentence, tab, label on each line: trains a classifier.")
    ] = None,
    start_from: Annotated[Path | None, typer.Option(help="With --labelled: a masked model to begin with.")] = None,
    valid_text: ValidText = None,
    valid_labelled: Annotated[Path | None, typer.Option(help="As --labelled, to validate with.")] = None,
    recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="RECIPE", help="A TOML file or a known name [default: mlm, or classify with --labelled]."
        ),
    ] = None,
    tokenizer: TokenizerFile = None,
    out: RunOut = None,
    as_json: AsJson = False,
) -> None:
    """Train a masked model, or a classifier.

    The same command goes on with a run that was stopped.
    """
    from dragoman.descendants.plain_text import continuing_from, require_half, with_labels, with_text

    if bool(text) == (labelled is not None):
        raise UsageError("mlm train: give --text for a masked model, or --labelled for a classifier")
    if start_from is not None and (labelled is None or tokenizer is not None):
        raise UsageError("mlm train: --start-from goes with --labelled, and brings its own tokenizer")
    recipe = recipe or ("mlm" if text else "classify")
    config = _config(recipe, training, tokenizer)
    require_half(config, recipe, "restore")
    if labelled is None:
        name = run_training(with_text(config, text or (), valid_text), recipe, out, as_json)
        say(f'try it: echo "I ___ tea." | dragoman mlm fill {name}')
    else:
        out, config = out or Path("runs") / Path(recipe).stem, with_labels(config, labelled, valid_labelled)
        if start_from is not None:
            config = continuing_from(start_from, config, out)
        name = run_training(config, recipe, out, as_json)
        say(f'try it: echo "..." | dragoman mlm classify {name}')


@command(mlm)
def fill(
    run: RunPath,
    input_: Input = None,
    n_best: Annotated[int, n_best_option(100_000, "How many fillings of each gap, best first.")] = 5,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """Fill the gaps of sentences, each written ___: one token, most often a word."""
    from dragoman.descendants.masked_model import MaskedModel

    model = MaskedModel.load(run, checkpoint)
    for line in lines_from(input_, "mlm fill"):
        filled = model.fill(line, n_best)
        if as_json:
            show(json.dumps({"source": line, **dataclasses.asdict(filled)}, ensure_ascii=False))
            continue
        show(filled.text)
        for gap in filled.gaps:
            say("  " + "  ".join(f"{one.piece.replace('▁', ' ').strip()} {one.probability:.1%}" for one in gap))


@command(mlm)
def classify(
    run: RunPath,
    input_: Input = None,
    labelled: Annotated[Path | None, typer.Option(help="Sentence, tab, label: prints the accuracy.")] = None,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """Print the class of each sentence, its probability and the sentence; or the accuracy on labelled ones."""
    from dragoman.data.corpus import read_pairs
    from dragoman.descendants.masked_model import Classifier

    classifier = Classifier.load(run, checkpoint)
    if labelled is not None:
        pairs = list(read_pairs(input_from(labelled, "mlm classify")))
        share = classifier.accuracy(pairs)
        show(json.dumps({"accuracy": share, "lines": len(pairs)}) if as_json
             else f"accuracy {share:.2%} of {len(pairs):,} lines")  # fmt: skip
        return
    lines = list(lines_from(input_, "mlm classify"))
    for line, classified in zip(lines, classifier.classify(lines), strict=True):
        if as_json:
            classes = dict(zip(classified.classes, classified.probabilities, strict=True))
            show(json.dumps({"source": line, "classes": classes}, ensure_ascii=False))
        else:
            show(f"{classified.label}\t{classified.probabilities[0]:.4f}\t{line}")


def tasks(
    pairs: Annotated[Path, typer.Option(help="Sentence pairs, tab-separated (.gz too).")],
    source_language: Annotated[
        str, typer.Option(metavar="CODE", help="The language of the first column, or its name.")
    ] = "en",
    target_language: Annotated[
        str, typer.Option(metavar="CODE", help="The language of the second column, or its name.")
    ] = "fr",
    task: Annotated[
        list[str] | None,
        typer.Option(help="forward, backward, spelling; several times for several [default: all three]."),
    ] = None,
    out: LinesOut = None,
    seed: SamplingSeed = 0,
    as_json: AsJson = False,
) -> None:
    """Make pairs for one model of several tasks.

    From sentence pairs to pairs that begin with what is to be done: translate to one language, to the other,
    restore the spelling. Train on them with `dragoman train --pairs`, and begin a line to translate likewise.
    """
    from dragoman.data.corpus import read_pairs
    from dragoman.data.language_codes import language_name
    from dragoman.descendants.prefix_tasks import TASKS, task_pairs

    chosen = [name for name in TASKS if name in (task or TASKS)]
    if unknown := set(task or ()) - set(TASKS):
        raise UsageError(f"tasks: --task {sorted(unknown)[0]}; known: {', '.join(TASKS)}")
    names = language_name(source_language), language_name(target_language)
    given = read_pairs(input_from(pairs, "tasks"))
    with lines_to(out) as write_line:
        for source, target in task_pairs(given, chosen, *names, seed):
            pair = {"source": source, "target": target}
            write_line(json.dumps(pair, ensure_ascii=False) if as_json else f"{source}\t{target}")


def _config(recipe: str, training: TrainingOptions, tokenizer: Path | None) -> RunConfig:
    given = None if tokenizer is None else str(tokenizer)
    return recipes.load(recipe, training.overrides(data__tokenizer=given)).config


def run_training(config: RunConfig, recipe: str, out: Path | None, as_json: bool) -> str:
    """Train; the run's directory as a shell reads it."""
    from dragoman.run_directory import RunDirectory
    from dragoman.training.loop import train

    out = out or Path("runs") / Path(recipe).stem
    train(config, RunDirectory(out), this_command())
    if as_json:
        show_trained(out)
    return shlex.quote(str(out))
