"""`dragoman parse`: train, run, evaluate. Heavy imports inside, as in the command line that this is part of."""

import dataclasses
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dragoman.cli.options import (
    AsJson,
    Checkpoint,
    Input,
    LinesOut,
    Recipe,
    RunOut,
    RunPaths,
    SearchOptions,
    TrainingOptions,
    in_range,
    out_option,
    whole,
)
from dragoman.cli.registration import command, group
from dragoman.cli.terminal import input_from, lines_from, lines_to, named_file, say, show, this_command, write_file
from dragoman.cli.training import show_trained
from dragoman.config import recipes
from dragoman.errors import UsageError

if TYPE_CHECKING:
    from dragoman.parsing.parser import Parse
    from dragoman.parsing.trees import Tree

TreeFormat = Literal["line", "indented", "drawing", "json"]

Unconstrained = Annotated[
    bool, typer.Option("--unconstrained", help="Let the model write what it likes; what is no tree is left out.")
]


parse = group("Train and use constituency parsers (section 6.3 of the paper).")


@command(parse)
def train(
    trees: Annotated[list[Path], typer.Option("--trees", help="Trees in Penn brackets (.gz too).")],
    valid_trees: Annotated[Path, typer.Option(help="Trees to validate with.")],
    training: TrainingOptions,
    recipe: Recipe = "parsing-small",
    silver: Annotated[list[Path] | None, typer.Option(help="Trees that a parser made, by `parse run`.")] = None,
    silver_weight: Annotated[
        float, typer.Option(parser=in_range(0, 1000, above=True), help="How often a silver tree is seen in an epoch.")
    ] = 1.0,
    sentences: Annotated[
        int | None,
        typer.Option(
            parser=whole(1, 10**12), help="How many of the trees to train on, drawn at random [default: all]."
        ),
    ] = None,
    units: Annotated[
        Literal["words", "subwords"], typer.Option(help="A token is a word, rare ones by class, or a part of it.")
    ] = "words",
    out: RunOut = None,
    as_json: AsJson = False,
) -> None:
    """Train a parser.

    The same command goes on with a run that was stopped.
    """
    config = recipes.load(recipe, training.overrides()).config
    out = out or Path("runs") / Path(recipe).stem
    from dragoman.parsing.training import Treebanks, prepare_run
    from dragoman.run_directory import RunDirectory
    from dragoman.training.loop import train as run_training

    banks = Treebanks(trees, valid_trees, silver or (), silver_weight, sentences)
    config = prepare_run(banks, config, out, units)
    run_training(config, RunDirectory(out), this_command())
    if as_json:
        show_trained(out)
    named = shlex.quote(str(out))
    say(f'try it: echo "..." | dragoman parse run {named} --raw')
    say(f"its bracket F1: dragoman parse evaluate {named} --trees {shlex.quote(str(valid_trees))}")


@command(parse)
def run(
    runs: RunPaths,
    search: SearchOptions,
    input_: Input = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Split the text into words first; else they stand apart already.")
    ] = False,
    out: LinesOut = None,
    form: Annotated[TreeFormat | None, typer.Option("--format", help="How trees are written [default: line].")] = None,
    drawings: Annotated[Path | None, typer.Option(help="A directory to draw each tree into, as SVG.")] = None,
    unconstrained: Unconstrained = False,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """Parse sentences.

    The output has a tree for each line of the input, in its order; an empty line stays empty.
    """
    from dragoman.files import write_atomically
    from dragoman.parsing.draw import draw_svg
    from dragoman.parsing.parser import Parser
    from dragoman.parsing.words import split_words

    if as_json and form not in (None, "json"):
        raise UsageError(f"parse run: --json and --format {form}; leave one out")
    form = "json" if as_json else form or "line"
    parser = Parser.load(*runs, checkpoint=checkpoint, **search.given())
    lines = lines_from(input_, "parse run")
    words = (split_words(line) if raw else line.split() for line in lines)
    window = 1 if named_file(input_) is None and sys.stdin.isatty() else 500
    with lines_to(out) as write_line:
        for number, parse in enumerate(parser.parse_stream(words, not unconstrained, window), start=1):
            for line in _written(parse, form):
                write_line(line)
            if drawings is not None and parse.tree is not None:
                write_atomically(drawings / f"{number}.svg", draw_svg(parse.tree).encode())


@command(parse)
def evaluate(
    trees: Annotated[Path, typer.Option("--trees", help="The right trees.")],
    search: SearchOptions,
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="Run directory; several make an ensemble.")
    ] = None,
    hypotheses: Annotated[Path | None, typer.Option(help="Trees to score, one a line, in place of a run.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also without the constraint, and the right-branching baseline.")
    ] = False,
    unconstrained: Unconstrained = False,
    sentences: Annotated[
        int | None, typer.Option(parser=whole(1, 10**12), help="How many trees, from the first on [default: all].")
    ] = None,
    out: Annotated[Path | None, out_option("Keep the parses here, one a line.")] = None,
    checkpoint: Checkpoint = None,
    table: Annotated[bool, typer.Option("--table", help="Every sentence, as EVALB prints it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure labelled bracket F1, as EVALB computes it with COLLINS.prm."""
    from dragoman.parsing import evalb
    from dragoman.parsing.trees import read_stripped, right_branching

    if bool(runs) == (hypotheses is not None):
        raise UsageError("parse evaluate: give RUN to parse with, or --hypotheses with trees")
    gold = read_stripped(input_from(trees, "parse evaluate"))[:sentences]
    gold_lines = list(map(str, gold))
    systems: dict[str, list[str]] = {}
    if hypotheses is not None:
        systems["hypotheses"] = list(lines_from(hypotheses, "parse evaluate"))[:sentences]
    else:
        from dragoman.parsing.parser import Parser

        parser = Parser.load(*(runs or ()), checkpoint=checkpoint, **search.given())
        for constrained in (True, False) if compare else (not unconstrained,):
            parses = parser.parse([tree.words() for tree in gold], constrained)
            name = "constrained" if constrained else "unconstrained"
            systems[name] = [evalb.NO_TREE if p.tree is None else str(p.tree) for p in parses]
    if out is not None:
        write_file(out, "".join(f"{line}\n" for line in next(iter(systems.values()))).encode())
    if compare:
        systems["right-branching"] = [str(right_branching(tree.leaves())) for tree in gold]
    scored = {name: evalb.score_lines(gold_lines, lines) for name, lines in systems.items()}
    if as_json:
        show(json.dumps({name: dataclasses.asdict(evalb.EvalbSummary.of(found)) for name, found in scored.items()}))
        return
    for name, found in scored.items():
        if table:
            for line in evalb.report(found):
                show(line)
        else:
            show(_summary_line(name, evalb.EvalbSummary.of(found)))


def _summary_line(name: str, summary: Any) -> str:
    return (
        f"{name}: F1 {summary.f1:.2f}  recall {summary.recall:.2f}  precision {summary.precision:.2f}  "
        f"complete {summary.complete:.2f}  tags {summary.tagging:.2f}  sentences {summary.sentences}  "
        f"errors {summary.errors}  skipped {summary.skipped}  F1 of all {summary.f1_of_all:.2f}"
    )


def _written(parse: "Parse", form: TreeFormat) -> Iterator[str]:
    from dragoman.parsing.draw import draw_text
    from dragoman.parsing.trees import write, write_indented

    tree: Tree | None = parse.tree
    match form:
        case "json":
            values = {"words": parse.words, "symbols": parse.symbols, "log_probability": parse.log_probability}
            yield json.dumps({**values, "tree": None if tree is None else write(tree)}, ensure_ascii=False)
        case "line":
            yield "" if tree is None else write(tree)
        case "indented":
            yield "" if tree is None else write_indented(tree)
        case "drawing":
            yield "" if tree is None else draw_text(tree)
