"""Estimates how sure a translation is (quality estimation): calibrated probabilities, learned from references.

A model's own probabilities are not calibrated: a sentence that it gives 30 % may well be right. So a logistic
regression is fitted on held-out sentences. Its features are known of every translation: how probable its tokens were
on average and at worst, and how long it is for its source. It predicts, for a sentence, whether its chrF reaches a
threshold, and for a word, whether it stands in the reference. What is reported is measured on parts that the fit did
not see.

Applying it needs neither torch nor numpy.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

from dragoman.data.words import Word, split_words
from dragoman.errors import DataError, UsageError
from dragoman.files import read_json, write_atomically
from dragoman.run_directory import RunDirectory
from dragoman.translation.lengths import ANY_PAIR, UsualLengths

GOOD = 50.0  # chrF2 of a sentence that counts as good
PARTS = 5  # of the data: what is measured on one of them was fitted on the others
FEWEST = 50  # sentences to calibrate with
FORMAT = 2  # 1 had no lengths


@dataclass(frozen=True)
class Evidence:
    """What is known of a translation without a reference."""

    source_tokens: int
    text: str
    words: tuple[Word, ...]
    log_probabilities: tuple[float, ...]  # of each token, the end symbol's last


class WordConfidence(NamedTuple):
    """A word of a translation, and how probably it is right."""

    text: str
    start: int  # in characters of the translation
    end: int
    confidence: float


class Rating(NamedTuple):
    """How probably a translation is good, and each of its words right."""

    confidence: float
    words: tuple[WordConfidence, ...]


@dataclass(frozen=True)
class Logistic:
    """A probability from features: 1 / (1 + exp(-(bias + weights · (x - means) / scales)))."""

    bias: float
    weights: tuple[float, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]

    def __call__(self, features: Sequence[float]) -> float:
        columns = zip(self.weights, features, self.means, self.scales, strict=True)
        total = self.bias + sum(weight * (x - mean) / scale for weight, x, mean, scale in columns)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        columns = (tuple(map(float, values[name])) for name in ("weights", "means", "scales"))
        return cls(float(values["bias"]), *columns)

    @classmethod
    def fit(cls, rows: Sequence[Sequence[float]], labels: Sequence[bool], ridge: float = 1.0) -> Self:
        """Fits the weights by Newton's method, with a small ridge penalty."""
        import numpy as np

        x = np.asarray(rows, dtype=np.float64)
        y = np.asarray(labels, dtype=np.float64)
        means, scales = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
        design = np.column_stack([np.ones(len(x)), (x - means) / scales])
        penalty = np.diag([1e-6, *[ridge] * x.shape[1]])
        beta = np.zeros(design.shape[1])
        for _ in range(50):
            p = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
            gradient = design.T @ (y - p) - penalty @ beta
            curvature = design.T @ (design * (p * (1 - p))[:, None]) + penalty
            step = np.linalg.solve(curvature, gradient)
            beta += step
            if np.abs(step).max() < 1e-8:
                break
        return cls(float(beta[0]), *(tuple(map(float, column)) for column in (beta[1:], means, scales)))


@dataclass(frozen=True)
class Calibration:
    """The fitted regressions, which a run keeps in confidence.json."""

    sentence: Logistic
    word: Logistic
    good: float  # the chrF2 that a good sentence has
    digest: str  # of the weights and vocabulary that it was measured with
    lengths: UsualLengths = ANY_PAIR

    def rate(self, evidence: Evidence) -> Rating:
        return Rating(
            self.sentence(sentence_features(evidence)),
            tuple(
                WordConfidence(word.text, word.start, word.end, self.word(features))
                for word, features in zip(evidence.words, word_features(evidence), strict=True)
            ),
        )

    def save(self, run: RunDirectory) -> None:
        values = {"format": FORMAT, **asdict(self), "lengths": self.lengths.steps}
        write_atomically(run.confidence_path, (json.dumps(values, indent=2) + "\n").encode())

    @classmethod
    def load(cls, run: RunDirectory) -> "Calibration | None":
        """Reads the run's calibration; None: it has none."""
        if not run.confidence_path.is_file():
            return None
        values = read_json(run.confidence_path)
        try:
            if values["format"] not in (1, FORMAT):
                raise ValueError
            lengths = UsualLengths.of(values["lengths"]) if values["format"] == FORMAT else ANY_PAIR
            sentence, word = (Logistic.of(values[name]) for name in ("sentence", "word"))
            return cls(sentence, word, float(values["good"]), str(values["digest"]), lengths)
        except (KeyError, TypeError, ValueError):
            raise DataError(f"{run.confidence_path}: damaged; make it anew with `dragoman calibrate`") from None


def require_calibration(found: Calibration | None, run: Path) -> None:
    if found is None:
        raise UsageError(
            f"--min-confidence: {run} is not calibrated; run once: dragoman calibrate {run} --source FILE "
            f"--reference FILE (of sentences it was not trained on)"
        )


def sentence_features(evidence: Evidence) -> tuple[float, ...]:
    log_probs = evidence.log_probabilities
    ratio = math.log(len(log_probs) / (evidence.source_tokens + 1))
    return _mean(log_probs), min(log_probs), ratio, abs(ratio), math.log(len(log_probs))


def word_features(evidence: Evidence) -> list[tuple[float, ...]]:
    log_probs = evidence.log_probabilities
    whole = _mean(log_probs)
    found: list[tuple[float, ...]] = []
    for word in evidence.words:
        own = log_probs[word.first_token : word.last_token + 1]
        after = log_probs[word.last_token + 1]  # there is one: the end symbol's
        found.append((min(own), _mean(own), after, whole, min(log_probs), math.log(1 + len(word.text))))
    return found


class Judged(NamedTuple):
    """A confidence, and whether what it was given to was right."""

    confidence: float
    right: bool


@dataclass(frozen=True)
class ConfidenceQuality:
    """How well the confidences of parts that the fit did not see agree with what was right."""

    judged: tuple[Judged, ...]
    raw: tuple[Judged, ...]  # the same by the model's own probability

    @property
    def error(self) -> float:
        return calibration_error(self.judged)

    @property
    def raw_error(self) -> float:
        return calibration_error(self.raw)

    @property
    def ranking(self) -> float:
        """The share of pairs of a right and a wrong one in which the right one has more confidence (0.5: by chance)."""
        return ranking(self.judged)


@dataclass(frozen=True)
class CalibrationReport:
    """A calibration, and how good its confidences are."""

    calibration: Calibration
    sentences: ConfidenceQuality
    words: ConfidenceQuality

    def lines(self) -> list[str]:
        found = []
        for name, measured in (("sentences", self.sentences), ("words", self.words)):
            right = sum(judged.right for judged in measured.judged)
            found.append(
                f"{len(measured.judged):,} {name}, {100 * right / len(measured.judged):.1f} % right: "
                f"expected calibration error {100 * measured.error:.1f} % "
                f"(the model's own probability {100 * measured.raw_error:.1f} %), "
                f"right above wrong in {100 * measured.ranking:.1f} % of pairs"
            )
        found.append("keeping the surest sentences, so many of the kept are not good:")
        for share in (1.0, 0.9, 0.75, 0.5, 0.25):
            threshold, risk = risk_at(self.sentences.judged, share)
            found.append(f"  {100 * share:3.0f} %  risk {100 * risk:4.1f} %  --min-confidence {threshold:.2f}")
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "good": self.calibration.good,
            **{
                name: {
                    "count": len(measured.judged),
                    "right": sum(judged.right for judged in measured.judged),
                    "calibration_error": measured.error,
                    "raw_calibration_error": measured.raw_error,
                    "ranking": measured.ranking,
                    "reliability": [asdict(bin_) for bin_ in bins(measured.judged)],
                }
                for name, measured in (("sentences", self.sentences), ("words", self.words))
            },
            "risk_coverage": [
                {"coverage": share / 20, "threshold": threshold, "risk": risk}
                for share in range(1, 21)
                for threshold, risk in [risk_at(self.sentences.judged, share / 20)]
            ],
        }


def calibrate(
    evidence: Sequence[Evidence],
    references: Sequence[Sequence[str]],
    digest: str,
    good: float = GOOD,
    lengths: UsualLengths = ANY_PAIR,
) -> CalibrationReport:
    """Fits a calibration on all sentences. What is reported of each fifth was predicted by a fit on the other four."""
    if len(evidence) < FEWEST:
        raise DataError(f"{len(evidence)} sentences to calibrate with; at least {FEWEST} are needed, 500 are good")
    sentence_labels = [is_good(one.text, row, good) for one, row in zip(evidence, references, strict=True)]
    if len(set(sentence_labels)) < 2:
        share = "all" if sentence_labels[0] else "none"
        raise DataError(f"{share} of {len(evidence)} translations reach chrF {good:g}; choose another --good")
    sentence_rows = [sentence_features(one) for one in evidence]
    word_rows = [row for one in evidence for row in word_features(one)]
    labels_by_sentence = [right_words(one, row) for one, row in zip(evidence, references, strict=True)]
    word_labels = [label for labels in labels_by_sentence for label in labels]
    sentence_parts = [number % PARTS for number in range(len(evidence))]
    word_parts = [part for part, labels in zip(sentence_parts, labels_by_sentence, strict=True) for _ in labels]
    return CalibrationReport(
        Calibration(
            Logistic.fit(sentence_rows, sentence_labels), Logistic.fit(word_rows, word_labels), good, digest, lengths
        ),
        _measure(sentence_rows, sentence_labels, sentence_parts, lambda row: math.exp(row[0])),
        _measure(word_rows, word_labels, word_parts, lambda row: math.exp(row[1])),
    )


def _measure(
    rows: Sequence[Sequence[float]],
    labels: Sequence[bool],
    parts: Sequence[int],
    raw: Callable[[Sequence[float]], float],
) -> ConfidenceQuality:
    """The confidences of each part by a fit on the other parts. raw: the model's own probability, from a row."""
    fitted = {}
    for part in set(parts):
        others = [index for index, own in enumerate(parts) if own != part]
        fitted[part] = Logistic.fit([rows[i] for i in others], [labels[i] for i in others])
    both = list(zip(rows, labels, parts, strict=True))
    return ConfidenceQuality(
        tuple(Judged(fitted[part](row), label) for row, label, part in both),
        tuple(Judged(raw(row), label) for row, label, _ in both),
    )


def is_good(text: str, references: Sequence[str], good: float) -> bool:
    """Whether a translation's chrF2 reaches the threshold."""
    from sacrebleu.metrics.chrf import CHRF

    return bool(CHRF().sentence_score(text, list(references)).score >= good)


def right_words(evidence: Evidence, references: Sequence[str]) -> list[bool]:
    """Whether each word of a translation stands in the reference that shares most words with it; a word counts as often
    as it stands there."""
    words = [word.text for word in evidence.words]
    counts = [Counter(split_words(reference)) for reference in references]
    left = max(counts, key=lambda reference: (reference & Counter(words)).total())
    right = []
    for word in words:
        right.append(left[word] > 0)
        left[word] -= 1
    return right


@dataclass(frozen=True)
class Bin:
    """Judgements of like confidence."""

    confidence: float  # on average
    right: float  # the share
    count: int


def bins(judged: Iterable[Judged], count: int = 10) -> list[Bin]:
    """The judgements in bins of equal size, so that none of them holds only a few."""
    ordered = sorted(judged, key=lambda one: one.confidence)
    edges = [round(number * len(ordered) / count) for number in range(count + 1)]
    return [
        Bin(_mean([one.confidence for one in inside]), _mean([float(one.right) for one in inside]), len(inside))
        for start, end in pairwise(edges)
        if (inside := ordered[start:end])
    ]


def calibration_error(judged: Sequence[Judged]) -> float:
    """The expected calibration error: how far confidence and share of right ones differ, bin by bin."""
    return sum(one.count * abs(one.confidence - one.right) for one in bins(judged)) / len(judged)


def ranking(judged: Sequence[Judged]) -> float:
    """The area under the ROC curve: the share of pairs of a right and a wrong one that are in the right order."""
    ordered = sorted(judged, key=lambda one: one.confidence)
    ranks: dict[float, float] = {}
    start = 0
    while start < len(ordered):  # equal confidences share their places
        end = start
        while end < len(ordered) and ordered[end].confidence == ordered[start].confidence:
            end += 1
        ranks[ordered[start].confidence] = (start + end + 1) / 2
        start = end
    right = [one for one in ordered if one.right]
    wrong = len(ordered) - len(right)
    if not right or not wrong:
        return math.nan
    total = sum(ranks[one.confidence] for one in right)
    return (total - len(right) * (len(right) + 1) / 2) / (len(right) * wrong)


def risk_at(judged: Sequence[Judged], share: float) -> tuple[float, float]:
    """For the surest `share`, the least confidence among them and the share of them that is wrong."""
    kept = sorted(judged, key=lambda one: -one.confidence)[: max(1, round(share * len(judged)))]
    return kept[-1].confidence, _mean([float(not one.right) for one in kept])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
