"""The command line: one function a command, heavy imports inside. stdout is data, stderr is progress.

Exit codes: 0 done, 2 wrong usage, 3 data or configuration at fault, 1 another failure, 130 interrupted.
"""

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
from dragoman.config import RunConfig
from dragoman.engines import ComputeType
from dragoman.errors import DragomanError, UsageError
from dragoman.lab.cli import lab_commands
from dragoman.options import Alpha, Beam, Changes, Checkpoint, EngineChoice, Minutes, Numbers, Out, Runs, Seed, Steps
from dragoman.parsing.cli import parse_commands
from dragoman.serve.cli import serve

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
app.add_typer(lab_commands(lambda line: _print(line)), name="lab")

AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]
Language = Annotated[str | None, typer.Option("--language", help="Code of the target language, for its tokenisation.")]
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
    out: Out = None,
    steps: Steps = None,
    minutes: Minutes = None,
    seed: Seed = None,
    set_: Changes = None,
) -> None:
    """Train a translator. The same command goes on with a run that was stopped."""
    flags: dict[str, Any] = {
        "data.train": _corpora("--", pairs, source, target),
        "data.valid": _corpora("--valid-", valid_pairs, valid_source, valid_target),
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
    as_json: AsJson = False,
) -> None:
    """Translate lines of text.

    The output has a line for each line of the input, in its order; empty lines stay empty.
    """
    from dragoman.corpus import read_lines
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
            return json.dumps({"source": translation.source, "translations": candidates}, ensure_ascii=False) + "\n"
        if n_best == 1:
            return f"{translation.text}\n"
        return "".join(f"{candidate.score:.4f}\t{candidate.text}\n" for candidate in translation.candidates)

    scores = as_json or n_best > 1
    translator = Translator.load(
        *runs, checkpoint=checkpoint, engine=engine, compute_type=compute_type, vocabulary_map=None, **given
    )
    _settle(translator)
    if input_ is not None and output is not None:
        from dragoman.resumable import identity_of, translate_file

        identity = [*identity_of(runs, checkpoint), translator.engine.name, as_json]
        translate_file(
            translator,
            input_,
            output,
            text_of,
            identity=identity,
            n_best=n_best,
            seed=seed,
            scores=scores,
            say=_say,
        )
        return
    lines = read_lines(sys.stdin.buffer if input_ is None else input_)
    # A person who types wants each answer at once; a file is sorted by length in windows.
    window = 1 if input_ is None and sys.stdin.isatty() else WINDOW
    for translation in translator.translate_stream(lines, n_best, seed, window, warn=_say, scores=scores):
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
def score(
    runs: Runs,
    pairs: Annotated[Path, typer.Option(help="Sentence pairs, tab-separated: source, translation.")],
    checkpoint: Checkpoint = None,
    engine: EngineChoice = "auto",
    compute_type: Numbers = None,
    as_json: AsJson = False,
) -> None:
    """Log-probability of given translations.

    Each line: the total, the mean a token, the source, the translation.
    """
    from dragoman.corpus import read_pairs
    from dragoman.translate import Translator

    given = list(read_pairs(pairs))
    translator = Translator.load(*runs, checkpoint=checkpoint, engine=engine, compute_type=compute_type)
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


app.command()(serve)


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


def _print(line: str) -> None:
    if sys.stdout is None:
        raise DragomanError("stdout is closed; the result has nowhere to go")
    try:
        print(line, flush=True)
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


def _corpora(prefix: str, pairs: Path | None, source: Path | None, target: Path | None) -> list[dict[str, str]] | None:
    if pairs is None and source is None and target is None:
        return None
    if (source is None) != (target is None) or (pairs is not None) == (source is not None):
        raise UsageError(f"train: give {prefix}pairs, or both {prefix}source and {prefix}target")
    return [{"pairs": str(pairs)}] if pairs is not None else [{"source": str(source), "target": str(target)}]
