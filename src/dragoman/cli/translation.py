"""`dragoman translate`. Heavy imports inside, as in the whole command line."""

import dataclasses
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    Runs,
    SamplingOptions,
    SamplingSeed,
    SearchOptions,
    TargetLanguage,
    WholeLines,
    language_asked_for,
    n_best_option,
    out_option,
)
from dragoman.cli.terminal import LongWork, lines_from, named_file, say, settle, show
from dragoman.config_ranges import MOST_BEAM
from dragoman.errors import UsageError

if TYPE_CHECKING:
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


def translate(
    runs: Runs,
    search: SearchOptions,
    sampling: SamplingOptions,
    engine: EngineOptions,
    input_: Input = None,
    out: Annotated[
        Path | None, out_option("Where to write [default: stdout]; if stopped, the same command goes on.")
    ] = None,
    n_best: Annotated[int, n_best_option(MOST_BEAM, "So many translations a line, best first.")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random in place of searching.")] = False,
    seed: SamplingSeed = 0,
    checkpoint: Checkpoint = None,
    target_language: TargetLanguage = None,
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
    from dragoman.translation.corrections import corrections_for
    from dragoman.translation.translator import Translator

    if not sample and sampling.given():
        raise UsageError("translate: --temperature, --top-k and --top-p go with --sample; add it")
    source, out = named_file(input_), named_file(out)
    if out is not None and source is None:
        raise UsageError("translate: --out goes with --input FILE; what comes from stdin goes to stdout")
    terms = None if glossary is None else Glossary.load(glossary)
    into = language_asked_for(runs[0], target_language)
    settings: dict[str, float] = search.given() | sampling.given() | ({"sampling": True} if sample else {})
    translator = Translator.load(
        *runs,
        checkpoint=checkpoint,
        vocabulary_map=None,
        to=into,
        engine=engine.engine,
        compute_type=engine.compute_type,
        **settings,
    )
    settle(translator)
    if corrections is not None:
        translator = translator.with_corrections(*corrections_for(runs[0], corrections, into))
    if min_confidence is not None:
        if n_best > 1:
            raise UsageError(
                f"translate: --min-confidence and --n-best {n_best}; a line is one or the other: leave one"
            )
        require_calibration(translator.calibration, runs[0])
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

        identity: list[object] = [*identity_of(runs, checkpoint), translator.engine.name, as_json, terms, keep]
        identity += [whole_lines, protect, corrections and corrections.stat().st_mtime_ns]
        identity += [min_confidence, mark, repair, translator.calibration if rate else None, translator.tag]
        with LongWork() as work:
            translate_file(translator, source, out, written.text, identity=identity, say=say, tell=work.at, **how)
    else:
        _translate_stream(translator, source, written, how)


def _translate_stream(translator: "Translator", source: Path | None, written: Written, how: dict[str, Any]) -> None:
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
