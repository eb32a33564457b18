"""Tests how robust a run is: each test changes sentences in one way, and checks what must not change in translation.

Quality is measured as chrF of lower-cased text, relative to that of the plain sentences: what counts is whether the
words are still there, not their case. All other tests count the outputs that are right.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu.metrics.chrf import CHRF

from dragoman.data.corpus import SentencePair
from dragoman.data.phrase_pairs import learn_lexicon
from dragoman.data.text_changes import title_case, with_typos
from dragoman.diagnosis import stress_cases
from dragoman.diagnosis.output_checks import loops
from dragoman.diagnosis.stress_cases import NEGATIONS, Case
from dragoman.evaluation.metrics import bleu

Translate = Callable[[Sequence[str]], list[str]]

# The value that each test must reach, and why: docs/guides/your-data.md.
LEAST: Mapping[str, float] = {
    "plain": 0.25,
    "all capitals": 0.6,
    "title case": 0.75,
    "no capitals": 0.85,
    "a word in capitals": 0.8,
    "typos": 0.75,
    "no full stop": 0.85,
    "added full stop": 0.9,
    "several sentences": 0.8,
    "long": 0.9,
    "single words": 0.8,
    "numbers": 0.8,
    "prices and dates": 0.8,
    "addresses": 0.95,
    "negation": 0.85,
    "emoji": 0.5,
    "foreign names": 0.8,
    "quotes and brackets": 0.7,
    "other batches": 0.95,
    "empty": 1.0,
    "no loops": 0.98,
}
# What a model of ten minutes should come to. Nothing fails for missing it.
AIM: Mapping[str, float] = {
    "all capitals": 0.85,
    "no capitals": 0.95,
    "typos": 0.85,
    "several sentences": 0.85,
    "single words": 0.95,
    "numbers": 0.9,
    "emoji": 0.95,
    "empty": 1.0,
}
_IN_OTHER_BATCHES = 20


@dataclass(frozen=True)
class StressRow:
    """The result of one test."""

    name: str
    sentences: int  # 0: there was nothing to test with
    value: float  # 1 is perfect
    least: float
    measure: str
    example: tuple[str, str] | None = None  # source and output of a failure

    @property
    def passed(self) -> bool:
        return not self.sentences or self.value >= self.least

    @property
    def aim(self) -> float | None:
        return AIM.get(self.name)


@dataclass(frozen=True)
class Report:
    """The results of all tests."""

    bleu: float
    chrf: float
    sentences: int
    rows: tuple[StressRow, ...]

    @property
    def passed(self) -> bool:
        return all(row.passed for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        rows = [{**asdict(row), "aim": row.aim, "passed": row.passed} for row in self.rows]
        return {"bleu": self.bleu, "chrf": self.chrf, "sentences": self.sentences, "tests": rows, "passed": self.passed}

    def lines(self) -> list[str]:
        """Returns a table for the terminal."""
        lines = [f"plain: BLEU {self.bleu:.1f}, chrF2 {self.chrf:.1f} on {self.sentences:,} sentences", ""]
        lines.append(f"{'test':<19}{'sentences':>10}  {'value':>6}  {'least':>5}  {'aim':>5}        measured")
        for row in self.rows:
            verdict = "-" if not row.sentences else "ok" if row.passed else "FAIL"
            value = f"{row.value:6.2f}" if row.sentences else "     -"
            aim = "     " if row.aim is None else f"{row.aim:5.2f}"
            numbers = f"{row.sentences:>10,}  {value}  {row.least:5.2f}  {aim}"
            lines.append(f"{row.name:<19}{numbers}  {verdict:<4}  {row.measure}")
            if row.example and not row.passed:
                lines.append(f"    {row.example[0]}\n      {row.example[1]}")
        return lines


def stress(
    pairs: Sequence[SentencePair],
    translate: Translate,
    languages: tuple[str, str] | None = None,
    least: Mapping[str, float] = LEAST,
    seed: int = 1,
) -> Report:
    """Runs every test on the pairs that suit it. `least`: the value that each test must reach."""
    draw = random.Random(seed)
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    plain = translate(sources)
    tests = _Tests(translate, least, list(zip(sources, plain, strict=True)))
    base = _chrf(plain, references)
    lexicon = learn_lexicon(pairs)
    rows = [
        # The next rows are relative to this one, which must be good enough: rubbish is easily kept.
        StressRow("plain", len(pairs), base / 100, least["plain"], "chrF of the plain sentences", tests.translated[0]),
        tests.quality("all capitals", [source.upper() for source in sources], references, base),
        tests.quality("title case", [title_case(source) for source in sources], references, base),
        tests.quality("no capitals", [source.lower() for source in sources], references, base),
        tests.share("a word in capitals", stress_cases.capital_words(sources, plain, lexicon), "kept or translated"),
        tests.quality("typos", [with_typos(source, draw) for source in sources], references, base),
        _no_full_stop(tests, sources, references, plain),
        _added_full_stop(tests, sources, references, plain),
        _several_sentences(tests, sources, references, plain),
        _long(tests, sources, plain),
        tests.share("single words", stress_cases.single_words(lexicon), "a word or three, and no sentence"),
        tests.share("numbers", stress_cases.numbers(sources, draw), "the same digits, none else"),
        tests.share("prices and dates", stress_cases.measures(sources, draw), "every number, in whatever format"),
        tests.share("addresses", stress_cases.addresses(sources, draw), "the URL or e-mail address, letter by letter"),
        _negation(tests, pairs, languages),
        tests.share("emoji", stress_cases.emoji(sources, draw), "the emoji is still there"),
        tests.share("foreign names", stress_cases.foreign_names(pairs), "the name in another script is still there"),
        tests.share("quotes and brackets", stress_cases.enclosed(sources, draw), "as many, around as much"),
        _other_batches(tests, sources, plain),
        tests.share("empty", stress_cases.nothing(), "nothing from nothing"),
    ]
    rows.append(tests.no_loops())
    return Report(bleu(plain, [[reference] for reference in references]).value, base, len(pairs), tuple(rows))


@dataclass(frozen=True)
class _Tests:
    """The two kinds of test, and everything that was translated for them."""

    translate: Translate
    least: Mapping[str, float]
    translated: list[tuple[str, str]]  # source and output

    def quality(
        self, name: str, changed: Sequence[str], references: Sequence[str], plain_chrf: float,
        measure: str = "chrF over that of the plain sentences",
    ) -> StressRow:  # fmt: skip
        """Measures how much of the plain sentences' chrF the changed sentences keep."""
        outputs = self.outputs(changed)
        worst = min(range(len(outputs)), key=lambda i: _chrf([outputs[i]], [references[i]]), default=None)
        example = None if worst is None else (changed[worst], outputs[worst])
        value = _chrf(outputs, references) / plain_chrf if plain_chrf and outputs else 0.0
        return StressRow(name, len(changed), value, self.least[name], measure, example)

    def share(self, name: str, cases: Sequence[Case], measure: str) -> StressRow:
        """Measures the share of outputs that are right."""
        outputs = self.outputs([case.source for case in cases])
        wrong = [(case.source, output) for case, output in zip(cases, outputs, strict=True) if not case.holds(output)]
        value = 1 - len(wrong) / max(1, len(cases))
        return StressRow(name, len(cases), value, self.least[name], measure, wrong[0] if wrong else None)

    def no_loops(self) -> StressRow:
        """Looks for loops in everything that was translated so far."""
        looping = [(source, output) for source, output in self.translated if loops(output, source)]
        value = 1 - len(looping) / max(1, len(self.translated))
        example = looping[0] if looping else None
        return StressRow("no loops", len(self.translated), value, self.least["no loops"], "of all the above", example)

    def outputs(self, sources: Sequence[str]) -> list[str]:
        outputs = self.translate(sources)
        self.translated.extend(zip(sources, outputs, strict=True))
        return outputs


def _no_full_stop(tests: _Tests, sources: Sequence[str], references: Sequence[str], plain: Sequence[str]) -> StressRow:
    stopped = [i for i, source in enumerate(sources) if source.endswith((".", "!"))]
    ending = [references[i] for i in stopped]
    plain_chrf = _chrf([plain[i] for i in stopped], ending)
    return tests.quality("no full stop", [sources[i].rstrip(".! ") for i in stopped], ending, plain_chrf)


def _added_full_stop(
    tests: _Tests, sources: Sequence[str], references: Sequence[str], plain: Sequence[str]
) -> StressRow:
    """Tests the sentences that end without any mark; there may be none."""
    unmarked = [i for i, source in enumerate(sources) if re.search(r"\w$", source)]
    ending = [references[i] for i in unmarked]
    plain_chrf = _chrf([plain[i] for i in unmarked], ending)
    return tests.quality("added full stop", [f"{sources[i]}." for i in unmarked], ending, plain_chrf)


def _several_sentences(
    tests: _Tests, sources: Sequence[str], references: Sequence[str], plain: Sequence[str]
) -> StressRow:
    threes = [range(i, i + 3) for i in range(0, len(sources) - 2, 3)]

    def joined(sentences: Sequence[str]) -> list[str]:
        return [" ".join(sentences[i] for i in three) for three in threes]

    by_itself = _chrf(joined(plain), joined(references))
    measure = "three on one line: chrF over that of each by itself"
    return tests.quality("several sentences", joined(sources), joined(references), by_itself, measure)


def _long(tests: _Tests, sources: Sequence[str], plain: Sequence[str]) -> StressRow:
    """Looks for each sentence of a long line by the words that only its own translation has."""
    groups = stress_cases.long_lines(sources)
    lines = [" ".join(sources[i] for i in group) for group in groups]
    outputs = tests.outputs(lines)
    found = [
        stress_cases.missing(output, [plain[i] for i in group]) for group, output in zip(groups, outputs, strict=True)
    ]
    lost, sought = (sum(counts) for counts in zip(*found, strict=True)) if found else (0, 0)
    worst = max(range(len(found)), key=lambda i: found[i][0], default=None)
    example = None if worst is None else (lines[worst], outputs[worst])
    measure = "sentences of lines of 100 words that are there"
    return StressRow("long", sought, 1 - lost / max(1, sought), tests.least["long"], measure, example)


def _negation(tests: _Tests, pairs: Sequence[SentencePair], languages: tuple[str, str] | None) -> StressRow:
    if languages is None or any(code not in NEGATIONS for code in languages):
        return tests.share("negation", [], f"not tested: needs two languages of {', '.join(NEGATIONS)}")
    return tests.share("negation", stress_cases.negated(pairs, languages), "negated still")


def _other_batches(tests: _Tests, sources: Sequence[str], plain: Sequence[str]) -> StressRow:
    """Translates some sentences one by one, and together in the opposite order."""
    chosen = range(0, len(sources), max(1, len(sources) // _IN_OTHER_BATCHES))[:_IN_OTHER_BATCHES]
    alone = [tests.outputs([sources[i]])[0] for i in chosen]
    together = tests.outputs([sources[i] for i in reversed(chosen)])[::-1]
    wrong = [
        (sources[i], output)
        for outputs in (alone, together)
        for i, output in zip(chosen, outputs, strict=True)
        if output != plain[i]
    ]
    value = 1 - len(wrong) / max(1, 2 * len(chosen))
    measure = "the same alone, and among others"
    return StressRow(
        "other batches", 2 * len(chosen), value, tests.least["other batches"], measure, wrong[0] if wrong else None
    )


def _chrf(outputs: Sequence[str], references: Sequence[str]) -> float:
    if not outputs:
        return 0.0
    lowered = [output.lower() for output in outputs]
    return float(CHRF().corpus_score(lowered, [[reference.lower() for reference in references]]).score)
