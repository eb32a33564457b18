"""`dragoman corrections`. Heavy imports inside, as in the command line that this is part of."""

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from dragoman.cli.options import AsJson, LinesOut, NewRun, OldShare, ScoredLanguage, TrainingOptions
from dragoman.cli.registration import command, group
from dragoman.cli.terminal import lines_from, lines_to, references_from, say, show, this_command
from dragoman.errors import CheckError, UsageError

File = Annotated[Path, typer.Argument(metavar="FILE", help="What `dragoman serve --corrections FILE` keeps.")]
Source = Annotated[str, typer.Option("--source-language", metavar="CODE", help="Only corrections from this language,")]
Target = Annotated[str, typer.Option("--target-language", metavar="CODE", help="and into this one.")]


corrections = group("List corrections made on the page, exchange them as TMX, and fine-tune a run on them.")


@command(corrections, "list")
def list_all(file: File, as_json: AsJson = False) -> None:
    """List all corrections, oldest first: languages, source, correction, what was corrected."""
    from dragoman.translation.translation_memory import TranslationMemory

    for correction in TranslationMemory(file, must_exist=True):
        columns = (correction.pair, correction.source, correction.target, correction.machine)
        show(json.dumps(dataclasses.asdict(correction), ensure_ascii=False) if as_json else "\t".join(columns))


@command(corrections, "import")
def import_pairs(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of corrections; made if it is not there.")],
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS", help="A translation memory (TMX), or XLIFF, PO, TSV, CSV or JSON lines.")
    ],
    source_language: Source,
    target_language: Target,
    as_json: AsJson = False,
) -> None:
    """Keep the pairs of a translation memory as corrections, in place of those of the same sentences.

    From then on they are the translations of their sentences, wherever the file is used.
    """
    from dragoman.data.language_codes import checked_code
    from dragoman.data.pair_formats import read_any
    from dragoman.translation.translation_memory import TranslationMemory

    languages = checked_code(source_language), checked_code(target_language)
    found = read_any([pairs], languages)
    for remark in found.remarks():
        say(f"{pairs}: {remark}")
    count = TranslationMemory(file).store_all("-".join(languages), found.pairs)
    show(
        json.dumps({"imported": count})
        if as_json
        else f"{count:,} {'pair is' if count == 1 else 'pairs are'} kept in {file}"
    )


@command(corrections)
def export(
    file: File,
    source_language: Source,
    target_language: Target,
    out: LinesOut = None,
    format_: Annotated[
        Literal["auto", "tsv", "tmx"], typer.Option("--format", help="TSV or TMX; auto: by the end of --out's name.")
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Write the corrections as sentence pairs, tab-separated or as TMX.

    For `dragoman train` and `finetune`, and for CAT tools.
    """
    from importlib import metadata

    from dragoman.data.tmx_writer import tmx_lines
    from dragoman.training.promotion import of_pair
    from dragoman.translation.translation_memory import TranslationMemory

    as_tmx = format_ == "tmx" or (format_ == "auto" and out is not None and out.suffix.lower() == ".tmx")
    if as_json and as_tmx:
        raise UsageError("corrections export: --json and TMX; a line is one or the other: leave one")
    found = of_pair(TranslationMemory(file, must_exist=True), f"{source_language}-{target_language}")
    with lines_to(out) as write_line:
        if as_tmx:
            units = ((one.source, one.target, one.made_at) for one in found)
            for line in tmx_lines(units, source_language, target_language, metadata.version("dragoman")):
                write_line(line)
            return
        for correction in found:
            pair = {"source": correction.source, "target": correction.target}
            write_line(json.dumps(pair, ensure_ascii=False) if as_json else "\t".join(pair.values()))


@command(corrections)
def train(
    file: File,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run that was corrected.")],
    source_language: Source,
    target_language: Target,
    out: NewRun,
    training: TrainingOptions,
    old: OldShare = 1.0,
    as_json: AsJson = False,
) -> None:
    """Fine-tune a copy of the run on the corrections.

    Three in ten are held out to measure with. The same command goes on with a training that was stopped.
    """
    from dragoman.training.promotion import train_on
    from dragoman.translation.translation_memory import TranslationMemory

    again = this_command()
    memory = TranslationMemory(file, must_exist=True)
    result = train_on(
        memory,
        f"{source_language}-{target_language}",
        run,
        out,
        old=old,
        overrides=training.overrides(),
        language=target_language,
        again=again,
        say=say,
    )
    show(json.dumps(result.to_dict(), ensure_ascii=False) if as_json else "\n".join(result.lines()))
    say(f"if it is better: dragoman corrections promote {shlex.quote(str(run))} {shlex.quote(str(out))}")


@command(corrections)
def promote(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run that was corrected.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="What `corrections train` made of it.")],
    source: Annotated[Path | None, typer.Option(help="A test that must not get worse, one sentence a line.")] = None,
    reference: Annotated[
        list[Path] | None, typer.Option(help="Its reference translations; several times for several of them.")
    ] = None,
    target_language: ScoredLanguage = None,
    as_json: AsJson = False,
) -> None:
    """Let the new model take the run's place, if it is better.

    Significantly better on the corrections held out, and not significantly worse on what the run was validated
    with, or on the test that is given. Else nothing changes, and the exit code is 4.
    """
    from dragoman.run_directory import CONFIDENCE
    from dragoman.training.promotion import BEFORE
    from dragoman.training.promotion import promote as put_in_place

    if (source is None) != (not reference):
        raise UsageError("corrections promote: --source and --reference go together; give both or none")
    command = "corrections promote"
    test = None if source is None else (list(lines_from(source, command)), references_from(reference or [], command))
    verdict = put_in_place(run, new, test, target_language)
    show(json.dumps(verdict.to_dict()) if as_json else "\n".join(verdict.reasons))
    if not verdict.promoted:
        raise CheckError(f"{new} is not promoted; {run} stays as it was")
    say(f"{run} now translates with the weights of {new}; the old ones are in {run / BEFORE}")
    if (run / CONFIDENCE).exists():
        say(f"its confidences were of the old weights: dragoman calibrate {run} --source FILE --reference FILE")
