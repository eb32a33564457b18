"""`dragoman translate`. Heavy imports inside, as in the whole command line."""

import dataclasses
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dragoman.cli.options import (
    AsJson,
    Checkpoint,
    CorrectionsFile,
    EngineOptions,
    GlossaryFile,
    Input,
    Keep,
    MarkBefore,
    MinConfidence,
    Protect,
    RunPaths,
    SamplingOptions,
    SamplingSeed,
    SearchOptions,
    SourceLanguage,
    TargetLanguage,
    WholeLines,
    language_asked_for,
    n_best_option,
    out_option,
)
from dragoman.cli.terminal import LongWork, lines_from, named_file, say, settle, show
from dragoman.config.ranges import MOST_BEAM
from dragoman.errors import UsageError

if TYPE_CHECKING:
    from dragoman.translation.pivot import PivotTranslator
    from dragoman.translation.result import Translation
    from dragoman.translation.translator import Translator


@dataclass(frozen=True)
class Written:
    """How a translation is written down."""

    as_json: bool
    n_best: int
    min_confidence: float | None
    mark: str

    def text(self, translation: "Translation") -> str:
        """With the line's end."""
        if self.as_json:
            return json.dumps(self._values(translation), ensure_ascii=False) + "\n"
        if self.min_confidence is not None and translation.is_doubtful(self.min_confidence):
            return f"{self.mark}{translation.source.strip()}\n"
        if self.n_best == 1:
            return f"{translation.text}\n"
        return "".join(f"{candidate.score:.4f}\t{candidate.text}\n" for candidate in translation.candidates)

    def _values(self, translation: "Translation") -> dict[str, Any]:
        candidates = [
            {"text": c.text, "score": c.score, "log_probability": c.log_probability} for c in translation.candidates
        ]
        values: dict[str, Any] = {"source": translation.source, "translations": candidates}
        if translation.pivot_text is not None:
            values["pivot_text"] = translation.pivot_text
        values |= {"faults": translation.defects, "repaired": translation.repaired}
        values |= {"how": translation.how, "notes": translation.notes, "corrected": translation.corrected}
        if translation.suggestions:
            values["suggestions"] = [dataclasses.asdict(suggestion) for suggestion in translation.suggestions]
        if translation.confidence is not None:
            values["confidence"] = translation.confidence
            values["words"] = [word._asdict() for word in translation.words]
        if self.min_confidence is not None:
            values["withheld"] = translation.is_doubtful(self.min_confidence)
        return values


class Hop(NamedTuple):
    """Runs that translate from one language into another; None: as the run says."""

    runs: list[Path]
    source: str | None
    target: str | None


@dataclass(frozen=True)
class RunChain:
    """The runs to translate with, one after the other, and the languages of what comes in and goes out."""

    runs: list[Path]
    then: Path | None
    source: str | None
    target: str | None

    def languages(self) -> tuple[str, str] | None:
        """Of what comes in and what goes out, as far as they are said."""
        from dragoman.data.language_codes import languages_of
        from dragoman.run_directory import RunDirectory

        first, last = (languages_of(RunDirectory.open(run)) for run in (self.runs[0], self.then or self.runs[0]))
        source = self.source or (None if first is None else first[first[0] == self.target])
        target = self.target or (None if last is None else last[1])
        return (source, target) if source and target else None

    def steps(self) -> list[Hop]:
        """One step, or two, which fit together."""
        if self.then is None:
            return [Hop(self.runs, self.source, language_asked_for(self.runs[0], self.target))]
        from dragoman.data.language_codes import languages_of, same_language
        from dragoman.run_directory import RunDirectory

        before, after = (languages_of(RunDirectory.open(run)) for run in (self.runs[0], self.then))
        pivot = None if after is None else after[1] if same_language(after[0], self.target or "-") else after[0]
        many = _has_many_targets(self.runs[0])
        if many and pivot is None:
            raise UsageError(
                f"translate: {self.then} does not say its languages, so {self.runs[0]} cannot be told into which to "
                f'translate for it; write {{"source": "fr", "target": "de"}} into its languages.json'
            )
        first = Hop(self.runs, self.source, pivot if many else None)
        made = first.target or (None if before is None else before[1])
        if made is not None and pivot is not None and not same_language(made, pivot):
            raise UsageError(
                f"translate: {self.runs[0]} translates into {made}, and --then {self.then} from {pivot}; "
                f"give a run from {made}"
            )
        return [first, Hop([self.then], made, language_asked_for(self.then, self.target))]


def _has_many_targets(run: Path) -> bool:
    from dragoman.data.tokenizer import load_tokenizer
    from dragoman.run_directory import RunDirectory

    return bool(load_tokenizer(RunDirectory.open(run).path).languages)


def translate(
    runs: RunPaths,
    search: SearchOptions,
    sampling: SamplingOptions,
    engine: EngineOptions,
    input_: Input = None,
    out: Annotated[
        Path | None, out_option("Where to write [default: stdout]; if stopped, the same command goes on.")
    ] = None,
    n_best: Annotated[int, n_best_option(MOST_BEAM, "How many translations of each line, best first.")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random in place of searching.")] = False,
    seed: SamplingSeed = 0,
    checkpoint: Checkpoint = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    then: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Translate the result with this run: from English by French into German."),
    ] = None,
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
    named on stderr. With --then, the result of the first run is translated by the second, sentence by sentence.
    """
    from dragoman.data.glossary import Glossary, requirements

    if not sample and sampling.given():
        raise UsageError("translate: --temperature, --top-k and --top-p go with --sample; add it")
    source, out = named_file(input_), named_file(out)
    if out is not None and source is None:
        raise UsageError("translate: --out goes with --input FILE; what comes from stdin goes to stdout")
    chain = RunChain(runs, then, source_language, target_language)
    terms = None if glossary is None else Glossary.load(glossary, chain.languages())
    settings: dict[str, float] = search.given() | sampling.given() | ({"sampling": True} if sample else {})
    if min_confidence is not None and n_best > 1:
        raise UsageError(f"translate: --min-confidence and --n-best {n_best}; a line is one or the other: leave one")
    loaded = [
        _load(step, None if number else checkpoint, engine, settings, corrections, min_confidence)
        for number, step in enumerate(chain.steps())
    ]
    translator = _chained(loaded)
    rate = as_json or min_confidence is not None
    written = Written(as_json, n_best, min_confidence, mark)
    how: dict[str, Any] = {
        "n_best": n_best,
        "seed": seed,
        "scores": as_json or n_best > 1,
        "required": requirements(terms, keep or ()),
        "repair": repair,
        "rate": rate,
        "whole": whole_lines,
        "protect": protect,
    }
    if source is not None and out is not None:
        from dragoman.translation.file import identity_of, translate_file

        identity: list[object] = [*identity_of(runs, checkpoint), *identity_of([then] if then else [], None), as_json]
        identity += [terms, keep, whole_lines, protect, corrections and corrections.stat().st_mtime_ns]
        identity += [min_confidence, mark, repair]
        for one in loaded:
            identity += [one.engine.name, one.calibration if rate else None, one.tag, one.tokenizer.start_ids]
        with LongWork() as work:
            translate_file(translator, source, out, written.text, identity=identity, say=say, tell=work.at, **how)
    else:
        _translate_stream(translator, source, written, how)


def _load(
    step: "Hop",
    checkpoint: str | None,
    engine: EngineOptions,
    settings: dict[str, float],
    corrections: Path | None,
    min_confidence: float | None,
) -> "Translator":
    from dragoman.translation.translator import Translator

    translator = Translator.load(
        *step.runs,
        checkpoint=checkpoint,
        vocabulary_map=None,
        to=step.target,
        source=step.source,
        engine=engine.engine,
        compute_type=engine.compute_type,
        **settings,
    )
    settle(translator)
    if corrections is not None:
        from dragoman.translation.corrections import corrections_for

        translator = translator.with_corrections(*corrections_for(step.runs[0], corrections, step.target))
    if min_confidence is not None:
        from dragoman.translation.confidence import require_calibration

        require_calibration(translator.calibration, step.runs[0])
    return translator


def _chained(loaded: "list[Translator]") -> "Translator | PivotTranslator":
    if len(loaded) == 1:
        return loaded[0]
    from dragoman.translation.pivot import PivotTranslator

    return PivotTranslator(*loaded)


def _translate_stream(
    translator: "Translator | PivotTranslator", source: Path | None, written: Written, how: dict[str, Any]
) -> None:
    """Each line's translation on stdout, as soon as it is there."""
    from dragoman.translation.translator import WINDOW

    lines = lines_from(source, "translate")
    # A person who types wants each answer at once; a file is sorted by length in windows.
    window = 1 if source is None and sys.stdin.isatty() else WINDOW
    with LongWork() as work:

        def warn(line: str) -> None:
            work.interrupt()
            say(line)

        for translation in translator.translate_stream(lines, window=window, warn=warn, tell=work.at, **how):
            work.interrupt()
            show(written.text(translation).removesuffix("\n"))
            work.at("")
