"""The commands that measure a run or its translations: evaluate, compare, score, quantize, calibrate."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.options import (
    AsJson,
    Checkpoint,
    EngineOptions,
    LinesOut,
    Protect,
    ReferenceFiles,
    RunPath,
    RunPaths,
    ScoredLanguage,
    SearchOptions,
    SourceLanguage,
    TargetLanguage,
    WholeLines,
    in_range,
    language_asked_for,
    out_option,
    whole,
)
from dragoman.cli.terminal import input_from, lines_from, lines_to, references_from, say, settle, show, write_file
from dragoman.decoding.engines import ComputeType
from dragoman.errors import CheckError, UsageError


def evaluate(
    search: SearchOptions,
    engine: EngineOptions,
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="Run directory; several make an ensemble.")
    ] = None,
    reference: ReferenceFiles = [],  # noqa: B006
    source: Annotated[Path | None, typer.Option(help="What to translate, one sentence a line.")] = None,
    hypotheses: Annotated[Path | None, typer.Option(help="Translations to score, in place of a run.")] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Other translations of the same text, to compare with by paired bootstrap.")
    ] = None,
    out: Annotated[Path | None, out_option("Keep the translations here.")] = None,
    checkpoint: Checkpoint = None,
    source_language: SourceLanguage = None,
    target_language: ScoredLanguage = None,
    protect: Protect = True,
    whole_lines: WholeLines = False,
    as_json: AsJson = False,
) -> None:
    """Score translations against references.

    A run translates as `dragoman translate` does: lines are cut into sentences, and what must come through does.
    `--whole-lines --no-protect` is the bare model, as papers score it.
    """
    from dragoman.evaluation import metrics as evaluation

    if not reference:
        raise UsageError("evaluate: --reference is missing; give the file of right translations")
    if bool(runs) == (hypotheses is not None) or (bool(runs) and source is None):
        raise UsageError("evaluate: give RUN and --source to translate, or --hypotheses with translations")
    references = references_from(reference, "evaluate")
    if hypotheses is not None:
        if source is not None or checkpoint is not None or search.given():
            raise UsageError("evaluate: --source, --beam, --alpha and --checkpoint go with RUN; leave them out")
        outputs = list(lines_from(hypotheses, "evaluate"))
    else:
        from dragoman.translation.translator import Translator

        assert runs
        sources = list(lines_from(source, "evaluate"))
        translator = Translator.load(
            *runs,
            checkpoint=checkpoint,
            vocabulary_map=None,
            to=language_asked_for(runs[0], target_language),
            engine=engine.engine,
            compute_type=engine.compute_type,
            source=source_language,
            **search.given(),
        )
        settle(translator)
        stream = translator.translate_stream(sources, warn=say, scores=False, whole=whole_lines, protect=protect)
        outputs = [translation.text for translation in stream]
    if out is not None:
        write_file(out, "".join(f"{line}\n" for line in outputs).encode())
    result = evaluation.evaluate(outputs, references, target_language)
    report: dict[str, Any] = result.to_dict()
    lines = result.lines()
    if baseline is not None:
        comparison = evaluation.compare(outputs, list(lines_from(baseline, "evaluate")), references, target_language)
        report["comparison"] = comparison.to_dict()
        lines += comparison.lines()
    show(json.dumps(report, ensure_ascii=False) if as_json else "\n".join(lines))


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="Run directory.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another run directory.")],
    source: Annotated[Path | None, typer.Option(help="A test set [default: validation pairs that both share].")] = None,
    reference: ReferenceFiles = [],  # noqa: B006
    sentences: Annotated[int, typer.Option(parser=whole(1, 10**9), help="The most validation pairs to use.")] = 1000,
    out: Annotated[Path | None, out_option("Keep the report here: `dragoman serve --results` opens it.")] = None,
    samples: Annotated[int, typer.Option(parser=whole(100, 100_000), help="Resamples of the bootstrap.")] = 1000,
    source_language: SourceLanguage = None,
    target_language: ScoredLanguage = None,
    as_json: AsJson = False,
) -> None:
    """Compare two runs: settings, scores with confidence, and sentence by sentence.

    B - A and its p-value come from paired bootstrap resampling.
    """
    from dragoman.evaluation.compare import compare_runs, read_test_set, shared_validation_set
    from dragoman.run_directory import RunDirectory
    from dragoman.translation.translator import Translator

    runs = RunDirectory.open(run_a), RunDirectory.open(run_b)
    text = None if source is None else input_from(source, "compare")
    test = read_test_set("compare", text, [input_from(path, "compare") for path in reference])
    test = test or shared_validation_set(*runs, sentences)
    # The text that runs were validated with has its language tags already.
    into = [language_asked_for(run, target_language) if source else "" for run in (run_a, run_b)]
    translators = (
        Translator.load(run_a, to=into[0], source=source_language),
        Translator.load(run_b, to=into[1], source=source_language),
    )
    say(f"translating {test.name} with both")
    report = compare_runs(runs, translators, test, target_language, samples)
    content = json.dumps(report.to_dict(), ensure_ascii=False)
    if out is not None:
        write_file(out, (content + "\n").encode())
    show(content if as_json else "\n".join(report.lines()))


def score(
    runs: RunPaths,
    pairs: Annotated[Path, typer.Option(help="Sentence pairs, tab-separated: source, translation.")],
    engine: EngineOptions,
    out: LinesOut = None,
    checkpoint: Checkpoint = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    as_json: AsJson = False,
) -> None:
    """Print the log-probability of given translations.

    Each line: the total, the mean a token, the source, the translation.
    """
    from dragoman.data.corpus import read_pairs
    from dragoman.translation.translator import Translator

    given = list(read_pairs(input_from(pairs, "score")))
    into = language_asked_for(runs[0], target_language)
    translator = Translator.load(*runs, checkpoint=checkpoint, to=into, source=source_language, **vars(engine))
    with lines_to(out) as write_line:
        for (source, target), log_probs in zip(given, translator.score(given), strict=True):
            total = sum(log_probs)
            if as_json:
                values = {"source": source, "target": target, "log_probability": total, "tokens": log_probs}
                write_line(json.dumps(values, ensure_ascii=False))
            else:
                write_line(f"{total:.4f}\t{total / len(log_probs):.4f}\t{source}\t{target}")


def quantize(
    run: RunPath,
    source: Annotated[Path, typer.Option(help="What to measure with, one sentence a line.")],
    reference: ReferenceFiles,
    search: SearchOptions,
    compute_type: Annotated[ComputeType, typer.Option(help="The numbers to try.")] = "int8",
    limit: Annotated[float, typer.Option(parser=in_range(0, 100), help="The most BLEU that may be lost.")] = 0.2,
    rounds: Annotated[
        int, typer.Option(parser=whole(1, 1000), help="Measurements of each speed, of which the median counts.")
    ] = 3,
    source_language: SourceLanguage = None,
    target_language: ScoredLanguage = None,
    as_json: AsJson = False,
) -> None:
    """Let a run translate with smaller numbers and a vocabulary map, if they are good enough.

    Prints BLEU and speed before and after. If no more BLEU is lost than the limit, the run translates with the
    smaller numbers from then on; else it stays as it was, and the exit code is 4. A vocabulary map (likely target
    words of each source word, learned from the training text) is kept with them if it costs less than 0.1 BLEU. Also
    finds and remembers the quickest number of workers and threads for this machine.
    """
    from dragoman.evaluation.quantize import quantize as measure

    references = references_from(reference, "quantize")
    verdict = measure(
        run,
        list(lines_from(source, "quantize")),
        references,
        compute_type,
        limit,
        rounds,
        target_language,
        False,
        language_asked_for(run, target_language),
        source_language,
        **search.given(),
    )
    show(json.dumps(verdict.to_dict()) if as_json else "\n".join(verdict.lines()))
    if not verdict.kept:
        raise CheckError(
            f"{compute_type} loses {verdict.lost:.2f} BLEU, more than the limit of {limit:g}; {run} stays with float32"
        )
    with_map = " and its vocabulary map" if verdict.map_kept else ""
    if not verdict.quicker:
        say(f"{compute_type} is smaller and, on this machine, not quicker than float32")
    say(f"{run} now translates with {compute_type}{with_map}; --compute-type float32 undoes it for a command")


def calibrate(
    run: RunPath,
    source: Annotated[Path, typer.Option(help="Sentences that the run was not trained on, one a line.")],
    reference: ReferenceFiles,
    good: Annotated[
        float, typer.Option(parser=in_range(0, 100), help="The chrF from which on a sentence counts as good.")
    ] = 50.0,
    drawings: Annotated[
        Path | None, typer.Option(help="A directory to draw reliability.svg and risk-coverage.svg into.")
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    as_json: AsJson = False,
) -> None:
    """Learn how sure a run's translations are, from sentences with references.

    From then on `translate --json`, the page and the API say of each sentence how probably it is good, and of each
    word how probably it is right; `translate --min-confidence` leaves the source where that is too little. What is
    printed was measured on parts of the sentences that the fit did not see.
    """
    from dragoman.evaluation.calibration import calibrate_run
    from dragoman.evaluation.confidence_plots import draw
    from dragoman.run_directory import RunDirectory

    references = references_from(reference, "calibrate")
    sources = list(lines_from(source, "calibrate"))
    if len(sources) != len(references):
        raise UsageError(
            f"calibrate: {len(sources)} lines in {source}, {len(references)} in {reference[0]}; both must be aligned"
        )
    into = language_asked_for(run, target_language)
    report = calibrate_run(run, sources, references, good, into, source_language)
    directory = RunDirectory.open(run)
    if drawings is not None:
        for name, drawing in draw(report).items():
            write_file(drawings / name, drawing.encode())
    show(json.dumps(report.to_dict()) if as_json else "\n".join(report.lines()))
    say(f"{directory.confidence_path} is written; its translations now come with their confidence")
