"""The command line: one function a command, heavy imports inside. stdout is data, stderr is progress.

Exit codes: 0 done, 2 wrong usage, 3 data or configuration at fault, 1 another failure, 130 asked to stop: interrupted,
or whoever read its progress has left.
"""

import dataclasses
import io
import json
import os
import shlex
import sys
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from dragoman import config as configuration
from dragoman.cli.corrections import corrections
from dragoman.cli.doctor import doctor
from dragoman.cli.documents import translate_file
from dragoman.cli.evaluation import calibrate, compare, evaluate, quantize, score
from dragoman.cli.export import bundle, export, import_, reproduce, unbundle
from dragoman.cli.finetune import backtranslate, finetune
from dragoman.cli.inspection import inspect
from dragoman.cli.lab import lab
from dragoman.cli.language_models import lm, mlm, tasks
from dragoman.cli.options import (
    Alpha,
    AsJson,
    Beam,
    Changes,
    Checkpoint,
    CorrectionsFile,
    EngineChoice,
    GlossaryFile,
    Into,
    Keep,
    MarkBefore,
    MinConfidence,
    Minutes,
    Numbers,
    Out,
    Protect,
    Run,
    Runs,
    Seed,
    Steps,
    Temperature,
    TopK,
    TopP,
    WholeLines,
    in_range,
    overrides_from,
    whole,
)
from dragoman.cli.parsing import parse
from dragoman.cli.quickstart import quickstart
from dragoman.cli.serve import serve
from dragoman.cli.stress import stress
from dragoman.cli.terminal import LongWork, lines_from, say, settle, show, this_command
from dragoman.cli.vision import vit
from dragoman.config import CorpusConfig, RunConfig
from dragoman.config_ranges import MOST_BEAM, MOST_SEED
from dragoman.data.corpus import corpus_from
from dragoman.errors import DragomanError, UnheardError, UsageError
from dragoman.translation.corrections import corrections_for

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
app.add_typer(parse, name="parse")
app.add_typer(lm, name="lm")
app.add_typer(mlm, name="mlm")
app.add_typer(vit, name="vit")
app.add_typer(corrections, name="corrections")
app.add_typer(lab, name="lab")


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        from importlib import metadata

        show(metadata.version("dragoman"))
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
    overrides = overrides_from(
        set_,
        steps,
        minutes,
        seed,
        data__train=_corpora(corpus_from("train", "--", pairs, source, target), both),
        data__valid=_corpora(corpus_from("train", "--valid-", valid_pairs, valid_source, valid_target), both),
        data__tokenizer=None if tokenizer is None else str(tokenizer),
    )
    layered = configuration.load(recipe or "small", overrides)
    if out is None:
        if recipe is None:
            raise UsageError("train: --out is missing; name the run's directory, for example --out runs/my")
        out = Path("runs") / Path(recipe).stem
    from dragoman.run_directory import RunDirectory
    from dragoman.training.loop import train as run_training

    run_training(layered.config, RunDirectory(out), this_command())
    if os.environ.get("RANK", "0") == "0":  # under torchrun, one of them says it
        say(f'try it: echo "..." | dragoman translate {shlex.quote(str(out))}')


@app.command()
def translate(
    runs: Runs,
    input_: Annotated[Path | None, typer.Option("--input", help="Text, one sentence a line [default: stdin].")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Where to write [default: stdout]; if stopped, the same command goes on.")
    ] = None,
    beam: Beam = None,
    alpha: Alpha = None,
    n_best: Annotated[
        int, typer.Option("--n-best", parser=whole(1, MOST_BEAM), help="So many translations a line.")
    ] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random in place of searching.")] = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Annotated[int, typer.Option(parser=whole(0, MOST_SEED), help="For --sample.")] = 0,
    checkpoint: Checkpoint = None,
    engine: EngineChoice = "auto",
    compute_type: Numbers = None,
    to: Into = None,
    glossary: GlossaryFile = None,
    keep: Keep = None,
    min_confidence: MinConfidence = None,
    mark: MarkBefore = "[?] ",
    repair: Annotated[
        bool, typer.Option("--repair/--no-repair", help="Decode again what loops, copies, runs away or is empty.")
    ] = True,
    protect: Protect = True,
    whole_lines: WholeLines = False,
    corrections: CorrectionsFile = None,
    as_json: AsJson = False,
) -> None:
    """Translate lines of text.

    The output has a line for each line of the input, in its order; empty lines stay empty. A line of several sentences
    is cut into them and put together again. Numbers, addresses, placeholders and emoji come through, or the line is
    named on stderr.
    """
    from dragoman.data.glossary import Glossary, requirements
    from dragoman.translation.confidence import require_calibration
    from dragoman.translation.result import Translation
    from dragoman.translation.translator import WINDOW, Translator

    changes = {"beam": beam, "alpha": alpha, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    if not sample and any(changes[name] is not None for name in ("temperature", "top_k", "top_p")):
        raise UsageError("translate: --temperature, --top-k and --top-p go with --sample; add it")
    if sample:
        changes["sampling"] = True
    given = {name: value for name, value in changes.items() if value is not None}
    if output is not None and input_ is None:
        raise UsageError("translate: --output goes with --input FILE; what comes from stdin goes to stdout")

    def text_of(translation: Translation) -> str:
        if as_json:
            candidates = [
                {"text": c.text, "score": c.score, "log_probability": c.log_probability} for c in translation.candidates
            ]
            values: dict[str, Any] = {"source": translation.source, "translations": candidates}
            values |= {"faults": translation.defects, "repaired": translation.repaired}
            values |= {"how": translation.how, "notes": translation.notes, "corrected": translation.corrected}
            if translation.suggestions:
                values["suggestions"] = [dataclasses.asdict(suggestion) for suggestion in translation.suggestions]
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
    settle(translator)
    if corrections is not None:
        translator = translator.with_corrections(*corrections_for(runs[0], corrections, to))
    if min_confidence is not None:
        if n_best > 1:
            raise UsageError(
                f"translate: --min-confidence and --n-best {n_best}; a line is one or the other: leave one"
            )
        require_calibration(translator.calibration, runs[0])
    rate = as_json or min_confidence is not None
    if input_ is not None and output is not None:
        from dragoman.translation.file import identity_of, translate_file

        identity: list[object] = [*identity_of(runs, checkpoint), translator.engine.name, as_json, terms, keep]
        identity += [whole_lines, protect, corrections and corrections.stat().st_mtime_ns]
        identity += [min_confidence, mark, repair, translator.calibration if rate else None, translator.tag]
        with LongWork() as work:
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
                whole=whole_lines,
                protect=protect,
                say=say,
                tell=work.at,
            )
        return
    lines = lines_from(input_, "translate")
    # A person who types wants each answer at once; a file is sorted by length in windows.
    window = 1 if input_ is None and sys.stdin.isatty() else WINDOW
    with LongWork() as work:

        def warn(line: str) -> None:
            work.interrupt()
            say(line)

        for translation in translator.translate_stream(
            lines,
            n_best,
            seed,
            window,
            warn=warn,
            scores=scores,
            required=required,
            repair=repair,
            rate=rate,
            whole=whole_lines,
            protect=protect,
            tell=work.at,
        ):
            work.interrupt()
            show(text_of(translation).removesuffix("\n"))
            work.at("")


@app.command()
def verify(
    run: Run,
    steps: Annotated[int, typer.Option(parser=whole(0, 10**9), help="Do at most so many steps again; 0: none.")] = 100,
) -> None:
    """Check that a run is what its log says: every hash, the chain of them, and a stretch of it trained again."""
    from dragoman.run_directory import RunDirectory
    from dragoman.training.verify import verify as verify_run

    for finding in verify_run(RunDirectory.open(run), steps, say):
        show(finding)


@app.command()
def average(
    run: Run,
    last: Annotated[int, typer.Option(parser=whole(1, 1_000_000), help="So many of the newest checkpoints.")] = 5,
) -> None:
    """Average a run's newest checkpoints.

    The average is what translates from then on.
    """
    from dragoman.model.checkpoint import average as mean_of
    from dragoman.model.checkpoint import promote
    from dragoman.run_directory import RunDirectory, step_of

    directory = RunDirectory.open(run)
    kept = directory.checkpoints()
    if len(kept) < last:
        raise UsageError(f"average: --last {last}, but {run} keeps {len(kept)} checkpoints; ask for as many at most")
    chosen = kept[-last:]
    promote(directory, mean_of(chosen), "average", [step_of(checkpoint) for checkpoint in chosen])
    say(f"{directory.model_path} is now the average of {', '.join(c.name for c in chosen)}")


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
        from dragoman.run_directory import RunDirectory

        config: RunConfig = RunDirectory(recipe).read_config()
        origins = {key: str(Path(recipe) / "config.json") for key, _ in configuration.flatten(config)}
    else:
        layered = configuration.load(recipe, [configuration.parse_set(text) for text in set_ or ()])
        config, origins = layered.config, dict(layered.origins)
    if as_json:
        show(config.to_json().rstrip("\n"))
        return
    values = [(key, _shown(value), origins[key]) for key, value in configuration.flatten(config)]
    widths = [max(len(row[column]) for row in values) for column in (0, 1)]
    for key, value, origin in values:
        show(f"{key:<{widths[0]}}  {value:<{min(widths[1], 24)}}  {origin}")


@app.command()
def demo(
    minutes: Annotated[
        float | None, typer.Option(parser=in_range(0, 1e6, above=True), help="Training time [default: the recipe's].")
    ] = None,
    out: Annotated[Path, typer.Option(help="The run's directory.")] = Path("runs/demo"),
) -> None:
    """Train an English-French translator and try it.

    Fetches real sentence pairs, trains for some minutes, scores on sentences held out, translates a few more.
    """
    from dragoman.quickstart.demo import run_demo

    run_demo(out, minutes, show)


for command in (
    evaluate, compare, score, quantize, calibrate, quickstart, serve, inspect, doctor, stress, finetune, backtranslate,
    export, bundle, unbundle, reproduce, tasks,
):  # fmt: skip
    app.command()(command)
app.command("import")(import_)
app.command("translate-file")(translate_file)


def main() -> NoReturn:
    """Run a command; turn what goes wrong into one line and an exit code."""
    _speak_utf8()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _one_line
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


def _one_line(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning for a person: what it says, and not the line of code that says it."""
    say(" ".join(str(message).split()))


def _fail(message: str, code: int, prefix: str = "dragoman: ") -> NoReturn:
    if os.environ.get("DRAGOMAN_TRACEBACK"):
        traceback.print_exc()
    with suppress(UnheardError):
        say(f"{prefix}{message}")
    sys.exit(code)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        named = ({k: v for k, v in vars(corpus).items() if v is not None} for corpus in value)
        return "[" + ", ".join(" ".join(f"{k}={v}" for k, v in corpus.items()) for corpus in named) + "]"
    return json.dumps(value)


def _corpora(corpus: CorpusConfig | None, both: str | None) -> list[dict[str, str]] | None:
    if corpus is None:
        return None
    if both is not None:
        from dragoman.cli.export import language_pair

        source, target = language_pair(both, "--both")
        forth, back = configuration.language_tag(target), configuration.language_tag(source)
        corpus = dataclasses.replace(corpus, tag=forth, back_tag=back)
    return [{name: value for name, value in vars(corpus).items() if name != "weight" and value is not None}]
