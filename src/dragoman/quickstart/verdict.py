"""Judges what a trained model is good for: usable, usable for some purpose, or not usable; with reasons.

Pure functions. docs/guides/your-data.md explains each limit.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dragoman.evaluation.metrics import LEAST_TELLING_BLEU
from dragoman.translation.confidence import GOOD, Judged

ABOVE_COPY = 1.0  # BLEU points by which translations must beat the untranslated source
USABLE, POST_EDIT = 0.6, 0.3  # share of test sentences that are good
SURE_RISK = 0.2  # largest share of bad sentences among those that a threshold keeps ...
SURE_SHARE = 0.1  # ... and the smallest share of all sentences that it must keep to be useful
SHORT = 10.0  # words in a sentence, on average
FEW_SENTENCES = 100  # in the test; with fewer, a verdict is a guess
LITTLE_SEEN = 2.0  # epochs


@dataclass(frozen=True)
class ConfidenceThreshold:
    """A confidence threshold and what it keeps, measured on sentences that the calibration did not see."""

    confidence: float
    share: float  # of all sentences, that it keeps
    good: float  # share of the kept sentences that are good


@dataclass(frozen=True)
class MeasuredQuality:
    """The measurements that a verdict follows from."""

    bleu: float
    copied: float  # BLEU of the untranslated test sentences
    good: float  # share of the test sentences whose chrF is at least 50
    sentences: int  # in the test
    words: float  # in a source sentence, on average
    seen: float  # epochs: how often training went through the text
    sure: ConfidenceThreshold | None  # None: no threshold separates good from bad, or there is no calibration


@dataclass(frozen=True)
class UsabilityVerdict:
    """What the model is good for, and why."""

    kind: Literal["usable", "usable for", "not usable"]
    use: str  # the purpose, if it is not usable for everything
    reasons: tuple[str, ...]

    @property
    def line(self) -> str:
        return f"{self.kind} {self.use}" if self.use else self.kind

    def to_dict(self) -> dict[str, Any]:
        return {"verdict": self.line, **asdict(self)}


def threshold(
    judged: Sequence[Judged], most_risk: float = SURE_RISK, least_share: float = SURE_SHARE
) -> ConfidenceThreshold | None:
    """Returns the lowest confidence above which few enough sentences are bad; None if that keeps too few sentences."""
    ordered = sorted(judged, key=lambda sentence: -sentence.confidence)
    lowest, bad = None, 0
    for kept, sentence in enumerate(ordered, start=1):
        bad += not sentence.right
        if bad <= most_risk * kept and kept >= least_share * len(ordered):
            lowest = ConfidenceThreshold(sentence.confidence, kept / len(ordered), 1 - bad / kept)
    return lowest


def worth_measuring(valid_bleu: float, copied: float) -> bool:
    """Tells whether the model is good enough that speed and length penalty are worth measuring."""
    return valid_bleu >= LEAST_TELLING_BLEU and valid_bleu > copied


def judge(facts: MeasuredQuality) -> UsabilityVerdict:
    """Applies the rules in order; the first that holds decides."""
    reasons = tuple(_reasons(facts))
    if facts.bleu <= facts.copied + ABOVE_COPY:
        return UsabilityVerdict("not usable", "", reasons)
    if facts.good >= USABLE:
        if facts.words >= SHORT:
            return UsabilityVerdict("usable", "", reasons)
        return UsabilityVerdict(
            "usable for", f"short sentences like those of its text ({facts.words:.0f} words)", reasons
        )
    if facts.good >= POST_EDIT and facts.bleu >= LEAST_TELLING_BLEU:
        return UsabilityVerdict("usable for", "a draft that a person corrects", reasons)
    if facts.sure is not None and facts.bleu >= LEAST_TELLING_BLEU:
        return UsabilityVerdict("usable for", f"the {facts.sure.share:.0%} of sentences that it is sure of", reasons)
    return UsabilityVerdict("not usable", "", reasons)


def _reasons(facts: MeasuredQuality) -> list[str]:
    if facts.bleu < facts.copied:
        beside = "worse than leaving the source as it is"
    elif facts.bleu <= facts.copied + ABOVE_COPY:
        beside = "no better than leaving the source as it is"
    else:
        beside = "better than leaving the source as it is"
    found = [
        f"{beside}: BLEU {facts.bleu:.2f}, a copy of the source {facts.copied:.2f}, on the same "
        f"{facts.sentences:,} test sentences"
    ]
    found.append(f"{facts.good:.0%} of the test sentences are good (chrF {GOOD:g} or more)")
    if facts.good < POST_EDIT and facts.bleu > facts.copied + ABOVE_COPY:
        found.reverse()  # the deciding reason comes first
    if facts.seen < LITTLE_SEEN:
        found.append(f"too little training for so much text: each pair was seen {facts.seen:.1f} times")
    if facts.sure is not None:
        found.append(
            f"with --min-confidence {facts.sure.confidence:.2f} it translates {facts.sure.share:.0%} of the sentences, "
            f"and {facts.sure.good:.0%} of those are good"
        )
    else:
        found.append("no confidence tells its good translations from its bad ones")
    if facts.sentences < FEW_SENTENCES:
        found.append(f"{facts.sentences} test sentences are few: another {facts.sentences} may say something else")
    return found
