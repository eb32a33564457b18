"""Runs all stages of a distillation: collect the text, let the teachers translate it, plan, train, quantise, measure,
report.

Every stage leaves its result in the student's directory and finds it there again: after a stop, the same command goes
on; with more minutes, it trains longer; after the end, it has nothing to do.
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.config import CorpusConfig
from dragoman.config.recipes import load
from dragoman.data.language_codes import languages_of, write_languages
from dragoman.data.tokenizer import load_tokenizer
from dragoman.decoding.engines import ComputeType
from dragoman.distillation import Begin, StudentVocabulary, report
from dragoman.distillation.report import DistillationOutcome
from dragoman.distillation.stages import measure
from dragoman.distillation.student import begin_with_teacher, choice_for
from dragoman.distillation.teaching import seconds_before, teach
from dragoman.distillation.text import TextToTeach, prepare_text
from dragoman.errors import UsageError, require_torch
from dragoman.progress import Say, discard
from dragoman.quickstart.budget import TimeBudget
from dragoman.quickstart.finished import FinishedResult, earlier_result, keep_result, trained_before
from dragoman.quickstart.planning import plan_training
from dragoman.quickstart.text import QuickstartText
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator

LEAST_MINUTES, MOST_MINUTES = 0.1, 1e6


def distill(
    teachers: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    minutes: float = 60.0,
    text: Sequence[str | Path] = (),
    pairs: str | Path | CorpusConfig | None = None,
    valid: str | Path | CorpusConfig | None = None,
    vocabulary: StudentVocabulary = "own",
    begin: Begin = "scratch",
    noise: float = 0.1,
    n_best: int = 4,
    source: str | None = None,
    to: str | None = None,
    seed: int = 1,
    changes: Sequence[tuple[str, Any, str]] = (),
    again: str = "the same call",
    say: Say = discard,
) -> FinishedResult:
    """Teaches a small and fast model what a run, or an ensemble of runs, says; in about so many minutes.

    `text`: files of more source sentences. `pairs`: what is translated first, with references; None: what the first
    teacher was trained on. `valid`: pairs to choose by and to measure with; None: those of the first teacher. `noise`:
    the share of the sources that get typos, other capitals or no mark at the end before the teachers translate them.
    `n_best`: so many translations of each, of which the one nearest to the reference is learned. `source`, `to`: the
    languages, of teachers of several. `changes`: settings by full name, as --set gives them.
    """
    require_torch("distill")
    runs, run = _runs(teachers, Path(out)), RunDirectory(out)
    _check(minutes, noise, n_best, seed, changes)
    clock = TimeBudget(minutes, seconds_before(run) + trained_before(run))
    ask = functools.partial(_load, source=source, to=to)
    tokenizer = load_tokenizer(runs[0].path)
    choice = choice_for(runs, run, tokenizer, vocabulary, begin)
    translator = ask(*runs, vocabulary_map=False)
    languages = (translator.language, to) if to and translator.language else languages_of(runs[0])
    asked = TextToTeach(_corpus(pairs), _corpus(valid), tuple(map(Path, text)), noise, n_best, seed, languages)
    lesson = prepare_text(runs, translator, run, asked, say)
    taught = teach(runs, translator, run, n_best, clock, say)
    del translator
    data = QuickstartText(lesson.directory, lesson.about | {"characters": taught.characters})
    if vocabulary == "teacher" and not run.tokenizer_path.exists():
        tokenizer.save(run.tokenizer_path)
    clock.begin_probing()
    config, plan = plan_training(data, run, seed, changes, clock, say, choice)
    begun = begin_with_teacher(runs[0], run, config, tokenizer) if begin == "teacher" else 0
    from dragoman.training.loop import train

    train(config, run, again)
    if (earlier := earlier_result(run)) is not None:
        say("the student is finished and measured already: nothing is left to do")
        return earlier
    if data.languages:
        write_languages(run, *data.languages)
    measured = measure(runs, run, data, clock.left, taught.seconds_each, ask)
    outcome = DistillationOutcome(
        run.path, tuple(one.path for one in runs), data.about, taught, plan, config, begun, measured, clock.elapsed / 60
    )
    report.write(outcome)
    return keep_result(run, list(report.terminal_lines(outcome)), outcome.to_dict())


def _runs(teachers: str | Path | Sequence[str | Path], out: Path) -> list[RunDirectory]:
    several = [teachers] if isinstance(teachers, str | Path) else list(teachers)
    if not several:
        raise UsageError("distill: no teacher; name a run, or several with one vocabulary")
    runs = [RunDirectory.open(path) for path in several]
    paths = [run.path.resolve() for run in runs]
    if len(set(paths)) < len(paths):
        raise UsageError("distill: one of the teachers is named twice; name each once")
    if out.resolve() in paths:
        raise UsageError(f"distill: {out} is a teacher; give another --out")
    return runs


def _corpus(text: str | Path | CorpusConfig | None) -> CorpusConfig | None:
    return text if text is None or isinstance(text, CorpusConfig) else CorpusConfig(pairs=str(text))


def _check(minutes: float, noise: float, n_best: int, seed: int, changes: Sequence[tuple[str, Any, str]]) -> None:
    from dragoman.training.distributed import require_room

    if not LEAST_MINUTES <= minutes < MOST_MINUTES:
        raise UsageError(f"distill: {minutes:g} minutes; give a number from {LEAST_MINUTES:g} to {MOST_MINUTES:g}")
    if not 0 <= noise <= 1:
        raise UsageError(f"distill: noise of {noise:g}; give a share from 0 to 1")
    if n_best < 1:
        raise UsageError(f"distill: {n_best} translations of each source; give 1 or more")
    load(None, [("train.seed", seed, "--seed")])  # raises an error if it is out of range
    settings = {key: value for key, value, _ in changes}
    require_room(settings.get("train.processes", 0), settings.get("train.threads", 0))


def _load(
    *teachers: RunDirectory,
    source: str | None,
    to: str | None,
    compute_type: ComputeType | None = None,
    vocabulary_map: bool | None = None,
) -> Translator:
    paths = [teacher.path for teacher in teachers]
    return Translator.load(*paths, compute_type=compute_type, vocabulary_map=vocabulary_map, to=to, source=source)
