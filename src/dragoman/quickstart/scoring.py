"""Measures a run after training: length penalty, quantising, calibration and test, as far as time allows."""

import shlex
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.decoding.engines.vocabulary_map import training_pairs
from dragoman.diagnosis.run_checks import times_seen
from dragoman.errors import DataError
from dragoman.evaluation.calibration import calibrate_run
from dragoman.evaluation.metrics import LEAST_TELLING_BLEU, Scores, bleu, evaluate, sentence_chrf
from dragoman.evaluation.quantize import QuantizationResult, quantize
from dragoman.progress import Say, discard, waiting
from dragoman.quickstart import sizing
from dragoman.quickstart.budget import SentenceCounts, TimeBudget, share_time
from dragoman.quickstart.text import QuickstartText
from dragoman.quickstart.verdict import MeasuredQuality, UsabilityVerdict, judge, threshold, worth_measuring
from dragoman.run_directory import RunDirectory
from dragoman.translation import confidence
from dragoman.translation.translator import Translator

ALPHAS = (0.6, 1.0, 1.4)  # the paper's length penalty, and larger ones, which suit briefly trained models better
_TIMED = 20  # sentences translated to estimate the time for the others


@dataclass(frozen=True)
class Outcome:
    """All that a quickstart measured: scores, verdict, and the steps to them."""

    run: Path
    data: QuickstartText
    plan: sizing.Plan
    verdict: UsabilityVerdict
    facts: MeasuredQuality
    scores: Scores
    actual: dict[str, float]  # steps, minutes and tokens_per_second of the training; all_minutes of everything
    samples: list[tuple[str, str, str, str]]  # source, output, reference, confidence
    penalties: dict[float, float] = field(default_factory=dict)  # BLEU on validation sentences by length penalty
    quantised: QuantizationResult | None = None
    calibration: confidence.CalibrationReport | None = None
    left_out: tuple[str, ...] = ()  # what was not measured, and why

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": str(self.run),
            **self.verdict.to_dict(),
            "facts": asdict(self.facts),
            "data": self.data.about,
            "plan": asdict(self.plan),
            "actual": self.actual,
            "scores": self.scores.to_dict(),
            "copied_bleu": self.facts.copied,
            "penalties": self.penalties,
            "quantised": self.quantised and self.quantised.to_dict(),
            "calibration": self.calibration and self.calibration.to_dict(),
            "left_out": list(self.left_out),
        }


def finish(
    run: RunDirectory, data: QuickstartText, plan: sizing.Plan, insists: bool, clock: TimeBudget, say: Say
) -> Outcome:
    """Measures a trained run. Only validation sentences decide anything; the test sentences only measure.

    `insists`: the user has set the length penalty.
    """
    events = run.events()
    left_out: list[str] = []
    valid_bleu = max((event["bleu"] for event in events if event["event"] == "valid"), default=0.0)
    copied = bleu(data.source("valid"), data.references("valid"), data.target_language).value
    worth = worth_measuring(valid_bleu, copied)
    shares = share_time(
        clock.left, _seconds_each(run, data), len(data.source("valid")), len(data.source("test")), worth
    )
    _say_left_out(shares, worth, insists, run, left_out)
    penalties = choose_penalty(run, data, shares.penalty) if shares.penalty and not insists else {}
    quantised = _quantise(run, data, shares.quantise) if shares.quantise else None
    calibration = _calibrate(run, data, shares.calibrate, left_out)
    scores, chrfs, samples = _test(run, data, shares.test)
    seen = times_seen(training_pairs(run), events)
    sources = data.source("test")[: shares.test]
    facts = MeasuredQuality(
        scores.bleu.value,
        bleu(sources, data.references("test")[: shares.test], data.target_language).value,
        sum(chrf >= confidence.GOOD for chrf in chrfs) / len(chrfs),
        len(sources),
        sum(len(source.split()) for source in sources) / len(sources),
        seen,
        threshold(calibration.sentences.judged) if calibration else None,
    )
    for line in left_out:
        say(line)
    return Outcome(
        run.path, data, plan, judge(facts), facts, scores, _actual(run, clock), samples, penalties, quantised,
        calibration, tuple(left_out),
    )  # fmt: skip


def _seconds_each(run: RunDirectory, data: QuickstartText) -> float:
    """Measures the seconds to translate a sentence, on a few of them, once the model is loaded and converted."""
    sentences = data.source("valid")[: _TIMED + 1]
    with waiting("loading the model"):
        translator = Translator.load(run.path, compute_type="float32", vocabulary_map=False)
        translator.translate(sentences[:1], warn=discard)
        began = time.perf_counter()
        translator.translate(sentences[1:], warn=discard)
    return max(1e-4, (time.perf_counter() - began) / max(1, len(sentences) - 1))


def _say_left_out(shares: SentenceCounts, worth: bool, insists: bool, run: RunDirectory, left_out: list[str]) -> None:
    if not worth:
        left_out.append(
            "length penalty and quantising: not measured, as the validation sentences are translated too badly"
        )
        return
    if not shares.penalty and not insists:
        left_out.append("length penalty: not searched for, as the time is up")
    if not shares.quantise:
        text, named = shlex.quote(str(run.quickstart_text_path)), shlex.quote(str(run.path))
        left_out.append(
            f"quantising: not measured, as the time is up; `dragoman quantize {named} --source {text}/valid.source "
            f"--reference {text}/valid.reference.0` does it"
        )


def choose_penalty(run: RunDirectory, data: QuickstartText, sentences: int) -> dict[float, float]:
    """Sets the run's length penalty to the one with the best BLEU on validation sentences, unless BLEU is too low to
    say anything; returns BLEU by length penalty."""
    sources, references = data.source("valid")[:sentences], data.references("valid")[:sentences]
    with waiting("choosing a length penalty"):
        translator = Translator.load(run.path, compute_type="float32", vocabulary_map=False)
        outputs = {alpha: translator.with_search(alpha=alpha).translate(sources, warn=discard) for alpha in ALPHAS}
        found = {alpha: bleu(lines, references, data.target_language).value for alpha, lines in outputs.items()}
    config = run.read_config()
    if max(found.values()) >= LEAST_TELLING_BLEU:
        best = max(found, key=lambda alpha: found[alpha])
        run.write_config(replace(config, search=replace(config.search, alpha=best)))
    return found


def _quantise(run: RunDirectory, data: QuickstartText, sentences: int) -> QuantizationResult:
    sources, references = data.source("valid")[:sentences], data.references("valid")[:sentences]
    with waiting(f"quantising, by {sentences:,} sentences"):
        return quantize(run.path, sources, references, language=data.target_language, must_be_quicker=True)


def _calibrate(
    run: RunDirectory, data: QuickstartText, sentences: int, left_out: list[str]
) -> confidence.CalibrationReport | None:
    sources, references = data.source("valid")[:sentences], data.references("valid")[:sentences]
    try:
        with waiting(f"calibrating with {sentences:,} validation sentences"):
            return calibrate_run(run.path, sources, references)
    except DataError as error:  # too few sentences, or none of them good
        run.confidence_path.unlink(missing_ok=True)
        left_out.append(f"not calibrated: {str(error).split(';')[0]}")
        return None


def _test(
    run: RunDirectory, data: QuickstartText, sentences: int
) -> tuple[Scores, list[float], list[tuple[str, str, str, str]]]:
    sources, references = data.source("test")[:sentences], data.references("test")[:sentences]
    with waiting(f"translating {sentences:,} test sentences"):
        found = list(Translator.load(run.path).translate_stream(sources, rate=True, warn=discard))
        outputs = [translation.text for translation in found]
        scores = evaluate(outputs, references, data.target_language)
        chrfs = sentence_chrf(outputs, references)
    every = max(1, len(sources) // 8)
    sure = ["" if t.confidence is None else f"{t.confidence:.0%}" for t in found]
    chosen = range(0, len(sources), every)
    return scores, chrfs, [(sources[i], outputs[i], references[i][0], sure[i]) for i in chosen][:8]


def _actual(run: RunDirectory, clock: TimeBudget) -> dict[str, float]:
    events = run.events()
    trained = [event for event in events if event["event"] == "train"]
    end = next(event for event in reversed(events) if event["event"] == "end")
    return {
        "steps": end["step"],
        "minutes": end["seconds"] / 60,
        "tokens_per_second": sum(event["tokens"] for event in trained) / trained[-1]["seconds"],
        "all_minutes": clock.elapsed / 60,
    }
