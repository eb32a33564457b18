"""The command line: one function a command, heavy imports inside. stdout is data, stderr is progress.

Exit codes: 0 done, 2 wrong usage, 3 data or configuration at fault, 1 another failure, 130 interrupted.
"""

import dataclasses
import io
import json
import os
import shlex
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dragoman import config as configuration
from dragoman.adapt.cli import add_adapting_commands, corpus_from
from dragoman.config import CorpusConfig, RunConfig
from dragoman.corrections.cli import correction_commands
from dragoman.doctor.cli import doctor
from dragoman.documents.cli import translate_file_command
from dragoman.engines import ComputeType
from dragoman.errors import DragomanError, UsageError
from dragoman.export.cli import add_exporting_commands
from dragoman.inspection.cli import inspect_command
from dragoman.lab.cli import lab_commands
from dragoman.languages.cli import lm_commands, make_tasks, mlm_commands
from dragoman.options import (
    Alpha,
    AsJson,
    Beam,
    Changes,
    Checkpoint,
    EngineChoice,
    GlossaryFile,
    Into,
    Keep,
    Language,
    Minutes,
    Numbers,
    Out,
    Runs,
    Seed,
    Steps,
)
from dragoman.parsing.cli import parse_commands
from dragoman.quickstart.cli import quickstart
from dragoman.serve.cli import serve
from dragoman.stress.cli import stress
from dragoman.vision.cli import vit_commands

if TYPE_CHECKING:
    from dragoman.translate import Translator

app = typer.Typer(
    name="dragoman",
    help='The Transformer of "Attention Is All You Need": from sentence pairs to a translator.',
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
# typer carries a copy of click under a private name; this is that copy's class of wrong command lines.
_WrongCommandLine: type[typer.BadParameter] = typer.BadParameter.__bases__[0]

config_app = typer.Typer(help="Look at configurations.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(config_app, name="config")
app.add_typer(parse_commands(lambda line: _print(line)), name="parse")
app.add_typer(lm_commands(lambda line, end: _print(line, end)), name="lm")
app.add_typer(mlm_commands(lambda line: _print(line)), name="mlm")
app.add_typer(vit_commands(lambda line: _print(line)), name="vit")
app.add_typer(correction_commands(lambda line: _print(line)), name="corrections")
app.add_typer(lab_commands(lambda line: _print(line)), name="lab")

References = Annotated[
    list[Path], typer.Option("--reference", help="Reference translations; several times for several of them.")
]


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        from importlib import metadata

        _print(metadata.version("dragoman"))
        raise typer.Exit


@app.command()
def train(
    recipe: Annotated[str | None, typer.Argument(metavar="[RECIPE]", help="A TOML file or a known name.")] = None,
    pairs: Annotated[Path | None, typer.Option(help="Sentence pairs, tab-separated: source, target.")] = None,
    source: Annotated[Path | None, typer.Option(help="Source sentences, one a line (.gz too).")] = None,
    target: Annotated[Path | None, typer.Option(help="Their translations, line by line.")] = None,
    valid_pairs: Annotated[Path | None, typer.Option(help="Validation pairs, tab-separated.")] = None,
    valid_source: Annotated[Path | None, typer.Option(help="Validation sources.")] = None,
    valid_target: Annotated[Path | None, typer.Option(help="Validation targets.")] = None,
    tokenizer: Annotated[Path | None, typer.Option(help="A sentencepiece model, in place of learning one.")] = None,
    both: Annotated[
        str | None, typer.Option(metavar="en-de", help="Learn both directions in one model; the pairs' languages.")
    ] = None,
    out: Out = None,
    steps: Steps = None,
    minutes: Minutes = None,
    seed: Seed = None,
    set_: Changes = None,
) -> None:
    """Train a translator. The same command goes on with a run that was stopped."""
    flags: dict[str, Any] = {
        "data.train": _corpora(corpus_from("train", "--", pairs, source, target), both),
        "data.valid": _corpora(corpus_from("train", "--valid-", valid_pairs, valid_source, valid_target), both),
        "data.tokenizer": None if tokenizer is None else str(tokenizer),
        "train.steps": steps,
        "train.minutes": minutes,
        "train.seed": seed,
    }
    overrides = [configuration.parse_set(text) for text in set_ or ()]
    overrides += [(key, value, "command line") for key, value in flags.items() if value is not None]
    layered = configuration.load(recipe or "small", overrides)
    if out is None:
        if recipe is None:
            raise UsageError("train: --out is missing; name the run's directory, for example --out runs/my")
        out = Path("runs") / Path(recipe).stem
    from dragoman.rundir import RunDirectory
    from dragoman.train import train as run_training

    again = shlex.join(["dragoman", *sys.argv[1:]])
    run_training(layered.config, RunDirectory(out), again)
    if os.environ.get("RANK", "0") == "0":  # under torchrun, one of them says it
        _say(f'try it: echo "..." | dragoman translate {shlex.quote(str(out))}')


@app.command()
def translate(
    runs: Runs,
    input_: Annotated[Path | None, typer.Option("--input", help="Text, one sentence a line [default: stdin].")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Where to write [default: stdout]; if stopped, the same command goes on.")
    ] = None,
    beam: Beam = None,
    alpha: Alpha = None,
    n_best: Annotated[int, typer.Option("--n-best", min=1, help="So many translations a line, best first.")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random in place of searching.")] = False,
    temperature: Annotated[float | None, typer.Option(help="For --sample: below 1 is safer, above 1 wilder.")] = None,
    top_k: Annotated[int | None, typer.Option(help="For --sample: among the k most probable tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="For --sample: among the most probable up to p in all.")] = None,
    seed: Annotated[int, typer.Option(help="For --sample.")] = 0,
    checkpoint: Checkpoint = None,
    engine: EngineChoice = "auto",
    compute_type: Numbers = None,
    to: Into = None,
    glossary: GlossaryFile = None,
    keep: Keep = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Leave the source, marked, in place of what is less sure than this."),
    ] = None,
    mark: Annotated[str, typer.Option(help="For --min-confidence: put before a source that is left.")] = "[?] ",
    repair: Annotated[
        bool, typer.Option("--repair/--no-repair", help="Decode again what loops, copies, runs away or is empty.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Translate lines of text.

    The output has a line for each line of the input, in its order; empty lines stay empty.
    """
    from dragoman.corpus import read_lines
    from dragoman.glossary import Glossary, requirements
    from dragoman.translate import WINDOW, Translation, Translator

    changes = {"beam": beam, "alpha": alpha, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    if not sample and any(changes[name] is not None for name in ("temperature", "top_k", "top_p")):
        raise UsageError("translate: --temperature, --top-k and --top-p go with --sample; add it")
    if sample:
        changes["sampling"] = True
    given = {name: value for name, value in changes.items() if value is not None}
    if input_ is None and sys.stdin is None:
        raise UsageError("translate: stdin is closed; give --input FILE")
    if output is not None and input_ is None:
        raise UsageError("translate: --output goes with --input FILE; what comes from stdin goes to stdout")

    def text_of(translation: Translation) -> str:
        if as_json:
            candidates = [
                {"text": c.text, "score": c.score, "log_probability": c.log_probability} for c in translation.candidates
            ]
            values: dict[str, Any] = {"source": translation.source, "translations": candidates}
            values |= {"faults": translation.faults, "repaired": translation.repaired}
            if translation.confidence is not None:
                values["confidence"] = translation.confidence
                values["words"] = [word._asdict() for word in translation.words]
            if min_confidence is not None:
                values["withheld"] = translation.is_doubtful(min_confidence)
            return json.dumps(values, ensure_ascii=False) + "\n"
        if min_confidence is not None and translation.is_doubtful(min_confidence):
            return f"{mark}{translation.source.strip()}\n"
        if n_best == 1:
            return f"{translation.text}\n"
        return "".join(f"{candidate.score:.4f}\t{candidate.text}\n" for candidate in translation.candidates)

    scores = as_json or n_best > 1
    terms = None if glossary is None else Glossary.load(glossary)
    required = requirements(terms, keep or ())
    translator = Translator.load(
        *runs, checkpoint=checkpoint, engine=engine, compute_type=compute_type, vocabulary_map=None, to=to, **given
    )
    _settle(translator)
    if min_confidence is not None:
        if n_best > 1:
            raise UsageError(
                f"translate: --min-confidence and --n-best {n_best}; a line is one or the other: leave one"
            )
        if translator.calibration is None:
            raise UsageError(
                f"translate: --min-confidence: {runs[0]} is not calibrated; run once: dragoman calibrate {runs[0]} "
                f"--source FILE --reference FILE (of sentences it was not trained on)"
            )
    rate = as_json or min_confidence is not None
    if input_ is not None and output is not None:
        from dragoman.resumable import identity_of, translate_file

        identity: list[object] = [*identity_of(runs, checkpoint), translator.engine.name, as_json, terms, keep]
        identity += [min_confidence, mark, repair, translator.calibration if rate else None, translator.tag]
        translate_file(
            translator,
            input_,
            output,
            text_of,
            identity=identity,
            n_best=n_best,
            seed=seed,
            scores=scores,
            required=required,
            repair=repair,
            rate=rate,
            say=_say,
        )
        return
    lines = read_lines(sys.stdin.buffer if input_ is None else input_)
    # A person who types wants each answer at once; a file is sorted by length in windows.
    window = 1 if input_ is None and sys.stdin.isatty() else WINDOW
    for translation in translator.translate_stream(
        lines, n_best, seed, window, warn=_say, scores=scores, required=required, repair=repair, rate=rate
    ):
        _print(text_of(translation).removesuffix("\n"))


@app.command()
def evaluate(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN...]", help="Run directory; several make an ensemble.")
    ] = None,
    reference: References = [],  # noqa: B006
    source: Annotated[Path | None, typer.Option(help="What to translate, one sentence a line.")] = None,
    hypotheses: Annotated[Path | None, typer.Option(help="Translations to score, in place of a run.")] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Other translations of the same: paired bootstrap against them.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Keep the translations here.")] = None,
    beam: Beam = None,
    alpha: Alpha = None,
    checkpoint: Checkpoint = None,
    engine: EngineChoice = "auto",
    compute_type: Numbers = None,
    to: Into = None,
    language: Language = None,
    as_json: AsJson = False,
) -> None:
    """Score translations against references."""
    from dragoman import evaluate as evaluation
    from dragoman.corpus import read_lines

    if not reference:
        raise UsageError("evaluate: --reference is missing; give the file of right translations")
    references = evaluation.read_references(reference)
    if bool(runs) == (hypotheses is not None) or (bool(runs) and source is None):
        raise UsageError("evaluate: give RUN and --source to translate, or --hypotheses with translations")
    if hypotheses is not None:
        if any(value is not None for value in (source, beam, alpha, checkpoint)):
            raise UsageError("evaluate: --source, --beam, --alpha and --checkpoint go with RUN; leave them out")
        outputs = list(read_lines(hypotheses))
    else:
        from dragoman.translate import Translator

        sources = list(read_lines(source))  # type: ignore[arg-type]
        given = {name: value for name, value in {"beam": beam, "alpha": alpha}.items() if value is not None}
        translator = Translator.load(
            *(runs or ()),
            checkpoint=checkpoint,
            engine=engine,
            compute_type=compute_type,
            vocabulary_map=None,
            to=to,
            **given,
        )
        _settle(translator)
        outputs = [t.text for t in translator.translate_stream(sources, warn=_say, scores=False)]
    if output is not None:
        _write(output, "".join(f"{line}\n" for line in outputs).encode())
    result = evaluation.evaluate(outputs, references, language)
    report: dict[str, Any] = result.to_dict()
    lines = result.lines()
    if baseline is not None:
        comparison = evaluation.compare(outputs, list(read_lines(baseline)), references, language)
        report["comparison"] = comparison.to_dict()
        lines += comparison.lines()
    _print(json.dumps(report, ensure_ascii=False) if as_json else "\n".join(lines))


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="Run directory.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another.")],
    source: Annotated[Path | None, typer.Option(help="A test set [default: validation pairs that both share].")] = None,
    reference: References = [],  # noqa: B006
    sentences: Annotated[int, typer.Option(min=1, help="At most so many of the validation pairs.")] = 1000,
    out: Annotated[Path | None, typer.Option(help="Keep the report here: `dragoman serve --results` opens it.")] = None,
    samples: Annotated[int, typer.Option(min=100, help="Resamples of the bootstrap.")] = 1000,
    language: Language = None,
    as_json: AsJson = False,
) -> None:
    """Compare two runs: settings, scores with confidence, and sentence by sentence.

    B - A and its p-value come from paired bootstrap resampling.
    """
    from dragoman.comparison import compare_runs, read_test_set, shared_validation_set
    from dragoman.rundir import RunDirectory
    from dragoman.translate import Translator

    runs = RunDirectory.open(run_a), RunDirectory.open(run_b)
    test = read_test_set("compare", source, reference) or shared_validation_set(*runs, sentences)
    translators = Translator.load(run_a), Translator.load(run_b)
    _say(f"translating {test.name} with both")
    report = compare_runs(runs, translators, test, language, samples)
    content = json.dumps(report.to_dict(), ensure_ascii=False)
    if out is not None:
        _write(out, (content + "\n").encode())
    _print(content if as_json else "\n".join(report.lines()))


@app.command()
def score(
    runs: Runs,
    pairs: Annotated[Path, typer.Option(help="Sentence pairs, tab-separated: source, translation.")],
    checkpoint: Checkpoint = None,
    engine: EngineChoice = "auto",
    compute_type: Numbers = None,
    to: Into = None,
    as_json: AsJson = False,
) -> None:
    """Log-probability of given translations.

    Each line: the total, the mean a token, the source, the translation.
    """
    from dragoman.corpus import read_pairs
    from dragoman.translate import Translator

    given = list(read_pairs(pairs))
    translator = Translator.load(*runs, checkpoint=checkpoint, engine=engine, compute_type=compute_type, to=to)
    for (source, target), log_probs in zip(given, translator.score(given), strict=True):
        total = sum(log_probs)
        if as_json:
            values = {"source": source, "target": target, "log_probability": total, "tokens": log_probs}
            _print(json.dumps(values, ensure_ascii=False))
        else:
            _print(f"{total:.4f}\t{total / len(log_probs):.4f}\t{source}\t{target}")


@app.command()
def quantize(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    source: Annotated[Path, typer.Option(help="What to measure with, one sentence a line.")],
    reference: References,
    to: Annotated[ComputeType, typer.Option(help="The smaller numbers.")] = "int8",
    limit: Annotated[float, typer.Option(min=0.0, help="So much BLEU may be lost.")] = 0.2,
    rounds: Annotated[int, typer.Option(min=1, help="Each speed is the median of so many measurements.")] = 3,
    beam: Beam = None,
    alpha: Alpha = None,
    language: Language = None,
    as_json: AsJson = False,
) -> None:
    """Translate with smaller numbers and a vocabulary map, if they are good enough.

    Prints BLEU and speed before and after. If no more BLEU is lost than the limit, the run translates with the
    smaller numbers from then on; else it stays as it was. A vocabulary map (likely target words of each source word,
    learned from the training text) is kept with them if it costs less than 0.1 BLEU. Also finds and remembers the
    quickest number of workers and threads for this machine.
    """
    from dragoman import evaluate as evaluation
    from dragoman.corpus import read_lines
    from dragoman.quantize import quantize as measure

    references = evaluation.read_references(reference)
    given = {name: value for name, value in {"beam": beam, "alpha": alpha}.items() if value is not None}
    verdict = measure(run, list(read_lines(source)), references, to, limit, rounds, language, **given)
    _print(json.dumps(verdict.to_dict()) if as_json else "\n".join(verdict.lines()))
    if not verdict.kept:
        raise DragomanError(
            f"{to} loses {verdict.lost:.2f} BLEU, more than the limit of {limit:g}; {run} stays with float32"
        )
    with_map = " and its vocabulary map" if verdict.map_kept else ""
    _say(f"{run} now translates with {to}{with_map}; --compute-type float32 undoes it for a command")


@app.command()
def calibrate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    source: Annotated[Path, typer.Option(help="Sentences that the run was not trained on, one a line.")],
    reference: References,
    good: Annotated[float, typer.Option(help="The chrF from which on a sentence counts as good.")] = 50.0,
    plots: Annotated[Path | None, typer.Option(help="Draw reliability.svg and risk-coverage.svg there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Learn how sure the run's translations are, from sentences with references.

    From then on `translate --json`, the page and the API say of each sentence how probably it is good, and of each
    word how probably it is right; `translate --min-confidence` leaves the source where that is too little. What is
    printed was measured on parts of the sentences that the fit did not see.
    """
    from dragoman import confidence
    from dragoman.confidence_plots import draw
    from dragoman.corpus import read_lines
    from dragoman.engines.converted import digest_of
    from dragoman.evaluate import read_references
    from dragoman.rundir import RunDirectory
    from dragoman.translate import Translator

    references = read_references(reference)
    sources = list(read_lines(source))
    if len(sources) != len(references):
        raise UsageError(
            f"calibrate: {len(sources)} lines in {source}, {len(references)} in {reference[0]}; both must be aligned"
        )
    translator = Translator.load(run)
    seen = [(e, some) for e, some in zip(translator.evidence(sources), references, strict=True) if e is not None]
    directory = RunDirectory.open(run)
    report = confidence.calibrate(
        [evidence for evidence, _ in seen],
        [some for _, some in seen],
        digest_of(directory, translator.tokenizer),
        good,
    )
    report.calibration.save(directory)
    if plots is not None:
        for name, drawing in draw(report).items():
            _write(plots / name, drawing.encode())
    _print(json.dumps(report.to_dict()) if as_json else "\n".join(report.lines()))
    _say(f"{directory.confidence_path} is written; its translations now come with their confidence")


@app.command()
def verify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    steps: Annotated[int, typer.Option(min=0, help="Do at most so many steps again; 0: none.")] = 100,
) -> None:
    """Check that a run is what its log says: every hash, the chain of them, and a stretch of it trained again."""
    from dragoman.rundir import RunDirectory
    from dragoman.verify import verify as verify_run

    for finding in verify_run(RunDirectory.open(run), steps, _say):
        _print(finding)


@app.command()
def average(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    last: Annotated[int, typer.Option(min=1, help="So many of the newest checkpoints.")] = 5,
) -> None:
    """Average a run's newest checkpoints.

    The average is what translates from then on.
    """
    from dragoman.checkpoint import average as mean_of
    from dragoman.checkpoint import promote
    from dragoman.rundir import RunDirectory, step_of

    directory = RunDirectory.open(run)
    kept = directory.checkpoints()
    if len(kept) < last:
        raise UsageError(f"average: --last {last}, but {run} keeps {len(kept)} checkpoints; ask for as many at most")
    chosen = kept[-last:]
    promote(directory, mean_of(chosen), "average", [step_of(checkpoint) for checkpoint in chosen])
    _say(f"{directory.model_path} is now the average of {', '.join(c.name for c in chosen)}")


@config_app.command("show")
def show_config(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE|RUN", help="A recipe, or a run's directory.")],
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="As for train.")] = None,
    as_json: AsJson = False,
) -> None:
    """Every value and where it came from."""
    if (Path(recipe) / "config.json").is_file():
        if set_:
            raise UsageError("config show: --set goes with a recipe; a run is what it is, so leave it out")
        from dragoman.rundir import RunDirectory

        config: RunConfig = RunDirectory(recipe).read_config()
        origins = {key: str(Path(recipe) / "config.json") for key, _ in configuration.flatten(config)}
    else:
        layered = configuration.load(recipe, [configuration.parse_set(text) for text in set_ or ()])
        config, origins = layered.config, dict(layered.origins)
    if as_json:
        _print(config.to_json().rstrip("\n"))
        return
    values = [(key, _shown(value), origins[key]) for key, value in configuration.flatten(config)]
    widths = [max(len(row[column]) for row in values) for column in (0, 1)]
    for key, value, origin in values:
        _print(f"{key:<{widths[0]}}  {value:<{min(widths[1], 24)}}  {origin}")


@app.command()
def demo(
    minutes: Annotated[float | None, typer.Option(help="Training time [default: the recipe's].")] = None,
    out: Annotated[Path, typer.Option(help="The run's directory.")] = Path("runs/demo"),
) -> None:
    """Train an English-French translator and try it.

    Fetches real sentence pairs, trains for some minutes, scores on sentences held out, translates a few more.
    """
    from dragoman.demo import run_demo

    run_demo(out, minutes, _print)


app.command()(quickstart)
app.command("translate-file")(translate_file_command(lambda line: _print(line)))
app.command()(serve)
app.command()(inspect_command(lambda line: _print(line)))
app.command()(doctor)
app.command()(stress)
add_adapting_commands(app, lambda line: _print(line))
add_exporting_commands(app, lambda line: _print(line))
app.command()(make_tasks(lambda line: _print(line)))


def main() -> NoReturn:
    """Run a command; turn what goes wrong into one line and an exit code."""
    _speak_utf8()
    try:
        code = app(prog_name="dragoman", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except DragomanError as error:
        _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except _WrongCommandLine as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a bare `dragoman` asks what there is
            _fail(error.format_message(), 2, prefix="")
        command = getattr(getattr(error, "ctx", None), "command_path", "dragoman")
        said = " ".join(error.format_message().split())
        _fail(f"{said.rstrip('.')}; see: {command} --help", 2)
    except OSError as error:
        _fail(f"{error.filename or 'the system'}: {error.strerror or error}", 1)
    except Exception as error:
        said = " ".join(str(error).split())
        _fail(f"{type(error).__name__}: {said}; to see where, set DRAGOMAN_TRACEBACK=1", 1)


def _speak_utf8() -> None:
    """Whatever the locale says: it is what we read, too. Names of files that are not UTF-8 come out as they are."""
    for stream, errors in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


def _fail(message: str, code: int, prefix: str = "dragoman: ") -> NoReturn:
    if os.environ.get("DRAGOMAN_TRACEBACK"):
        traceback.print_exc()
    _say(f"{prefix}{message}")
    sys.exit(code)


def _settle(translator: "Translator") -> None:
    """The reference engine takes and frees the same large blocks at every step; faulting them in anew is a fifth of its
    time. The process is ours here, so its allocator may be told; in a user's own it may not."""
    if translator.engine.name == "reference":
        from dragoman.safeguards import keep_freed_memory

        keep_freed_memory()


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _print(line: str, end: str = "\n") -> None:
    if sys.stdout is None:
        raise DragomanError("stdout is closed; the result has nowhere to go")
    try:
        print(line, end=end, flush=True)
    except OSError as error:
        # What could not be written is not tried again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # whoever read our output has seen enough
            raise typer.Exit from None
        raise DragomanError(f"stdout: cannot be written ({error.strerror})") from None


def _write(path: Path, content: bytes) -> None:
    """A file is replaced when all of it is there; a pipe or a device is written to, and stays what it is."""
    from dragoman.rundir import write_atomically

    if not path.exists() or path.is_file() or path.is_dir():
        write_atomically(path, content)
        return
    try:
        with path.open("wb") as stream:
            stream.write(content)
    except OSError as error:
        raise DragomanError(f"{path}: cannot be written ({error.strerror})") from None


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        named = ({k: v for k, v in vars(corpus).items() if v is not None} for corpus in value)
        return "[" + ", ".join(" ".join(f"{k}={v}" for k, v in corpus.items()) for corpus in named) + "]"
    return json.dumps(value)


def _corpora(corpus: CorpusConfig | None, both: str | None) -> list[dict[str, str]] | None:
    if corpus is None:
        return None
    if both is not None:
        from dragoman.export.cli import language_pair

        source, target = language_pair(both, "--both")
        forth, back = configuration.language_tag(target), configuration.language_tag(source)
        corpus = dataclasses.replace(corpus, tag=forth, back_tag=back)
    return [{name: value for name, value in vars(corpus).items() if name != "weight" and value is not None}]
