"""Tests how robust a run is: each test changes sentences in one way, and checks what must not change in translation.

Quality is measured as chrF of lower-cased text, relative to that of the plain sentences: what counts is whether the
words are still there, not their case.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu.metrics.chrf import CHRF

from dragoman.data.corpus import SentencePair
from dragoman.data.phrase_pairs import learn_lexicon, words_of
from dragoman.data.text_changes import with_typos
from dragoman.diagnosis.output_checks import loops
from dragoman.evaluation.metrics import bleu

Translate = Callable[[Sequence[str]], list[str]]

EMOJI = ("🙂", "🎉", "🐶", "❤️")
_FEW = 20
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# Words that negate, looked for in a source and in its translation. Other languages are not tested.
NEGATIONS: Mapping[str, tuple[str, ...]] = {
    "en": ("not", "n't", "never", "no", "nothing", "nobody", "none", "cannot", "without", "neither", "nor", "nowhere"),
    "fr": ("ne", "n'", "pas", "jamais", "rien", "personne", "aucun", "aucune", "sans", "non", "ni", "impossible"),
    "de": ("nicht", "kein", "keine", "keinen", "keinem", "keiner", "nie", "nichts", "niemand", "ohne", "nein"),
    "es": ("no", "nunca", "nada", "nadie", "ningún", "ninguna", "ninguno", "sin", "tampoco", "jamás", "ni"),
    "it": ("non", "mai", "niente", "nulla", "nessun", "nessuno", "nessuna", "senza", "no", "né"),
    "pt": ("não", "nunca", "nada", "ninguém", "nenhum", "nenhuma", "sem", "nem", "jamais"),
    "nl": ("niet", "geen", "nooit", "niets", "niemand", "zonder", "nee", "noch"),
    "eo": ("ne", "neniam", "nenio", "nenion", "neniu", "neniun", "sen", "nek"),
    "pl": ("nie", "nigdy", "nic", "nikt", "żaden", "żadna", "bez", "ani"),
    "ru": ("не", "нет", "никогда", "ничего", "никто", "без", "ни", "нельзя"),
}  # fmt: skip
_SURE = {"en": ("not", "n't", "never", "nothing", "nobody", "cannot")}  # in a source, where "no" alone is ambiguous

LEAST: Mapping[str, float] = {
    "plain": 0.25,
    "all capitals": 0.6,
    "no capitals": 0.85,
    "typos": 0.75,
    "no full stop": 0.85,
    "single words": 0.8,
    "long": 0.8,
    "numbers": 0.8,
    "negation": 0.85,
    "emoji": 0.5,
    "empty": 1.0,
    "no loops": 0.98,
}


@dataclass(frozen=True)
class Row:
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


@dataclass(frozen=True)
class Report:
    """The results of all tests."""

    bleu: float
    chrf: float
    sentences: int
    rows: tuple[Row, ...]

    @property
    def passed(self) -> bool:
        return all(row.passed for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        rows = [{**asdict(row), "passed": row.passed} for row in self.rows]
        return {"bleu": self.bleu, "chrf": self.chrf, "sentences": self.sentences, "tests": rows, "passed": self.passed}

    def lines(self) -> list[str]:
        """Returns a table for the terminal."""
        lines = [f"plain: BLEU {self.bleu:.1f}, chrF2 {self.chrf:.1f} on {self.sentences:,} sentences", ""]
        lines.append(f"{'test':<14}{'sentences':>9}  {'value':>6}  {'least':>5}        measured")
        for row in self.rows:
            verdict = "-" if not row.sentences else "ok" if row.passed else "FAIL"
            value = f"{row.value:6.2f}" if row.sentences else "     -"
            lines.append(f"{row.name:<14}{row.sentences:>9,}  {value}  {row.least:5.2f}  {verdict:<4}  {row.measure}")
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
    rows = [
        # The next rows are relative to this one, which must be good enough: rubbish is easily kept.
        Row("plain", len(pairs), base / 100, least["plain"], "chrF of the plain sentences", tests.translated[0]),
        tests.quality("all capitals", [source.upper() for source in sources], references, base),
        tests.quality("no capitals", [source.lower() for source in sources], references, base),
        tests.quality("typos", [with_typos(source, draw) for source in sources], references, base),
        _no_full_stop(tests, sources, references, plain),
        _three_as_one(tests, sources, references, plain),
        tests.share("single words", list(learn_lexicon(pairs))[:200], lambda _, output: _is_short(output),
                    "a word or three, and no sentence"),
        _numbers(tests, sources, draw),
        _negation(tests, pairs, languages),
        _emoji(tests, sources, draw),
        _empty(tests),
    ]  # fmt: skip
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
    ) -> Row:  # fmt: skip
        """Measures how much of the plain sentences' chrF the changed sentences keep."""
        outputs = self._outputs(changed)
        worst = min(range(len(outputs)), key=lambda i: _chrf([outputs[i]], [references[i]]), default=None)
        example = None if worst is None else (changed[worst], outputs[worst])
        value = _chrf(outputs, references) / plain_chrf if plain_chrf and outputs else 0.0
        return Row(name, len(changed), value, self.least[name], measure, example)

    def share(self, name: str, sources: Sequence[str], holds: Callable[[int, str], bool], measure: str) -> Row:
        """Measures the share of outputs for which `holds(number of the source, output)` is true."""
        outputs = self._outputs(sources)
        wrong = [i for i, output in enumerate(outputs) if not holds(i, output)]
        example = (sources[wrong[0]], outputs[wrong[0]]) if wrong else None
        return Row(name, len(sources), 1 - len(wrong) / max(1, len(sources)), self.least[name], measure, example)

    def no_loops(self) -> Row:
        """Looks for loops in everything that was translated so far."""
        looping = [(source, output) for source, output in self.translated if loops(output, source)]
        value = 1 - len(looping) / max(1, len(self.translated))
        example = looping[0] if looping else None
        return Row("no loops", len(self.translated), value, self.least["no loops"], "of all the above", example)

    def _outputs(self, sources: Sequence[str]) -> list[str]:
        outputs = self.translate(sources)
        self.translated.extend(zip(sources, outputs, strict=True))
        return outputs


def _no_full_stop(tests: _Tests, sources: Sequence[str], references: Sequence[str], plain: Sequence[str]) -> Row:
    stopped = [i for i, source in enumerate(sources) if source.endswith((".", "!"))]
    ending = [references[i] for i in stopped]
    plain_chrf = _chrf([plain[i] for i in stopped], ending)
    return tests.quality("no full stop", [sources[i].rstrip(".! ") for i in stopped], ending, plain_chrf)


def _three_as_one(tests: _Tests, sources: Sequence[str], references: Sequence[str], plain: Sequence[str]) -> Row:
    threes = [range(i, i + 3) for i in range(0, len(sources) - 2, 3)]

    def joined(sentences: Sequence[str]) -> list[str]:
        return [" ".join(sentences[i] for i in three) for three in threes]

    by_itself = _chrf(joined(plain), joined(references))
    measure = "three sentences as one line: chrF over that of each by itself"
    return tests.quality("long", joined(sources), joined(references), by_itself, measure)


def _numbers(tests: _Tests, sources: Sequence[str], draw: random.Random) -> Row:
    numbered = [_renumbered(source, draw) for source in sources if _NUMBER.search(source)]
    if len(numbered) < _FEW:  # as in a numbered list
        numbered += [f"{draw.randrange(10, 2000)}. {source}" for source in sources[:_FEW]]
    return tests.share(
        "numbers", numbered, lambda i, output: _digits(numbered[i]) == _digits(output), "the same digits, none else"
    )


def _negation(tests: _Tests, pairs: Sequence[SentencePair], languages: tuple[str, str] | None) -> Row:
    """Tests negated sentences whose references are negated with a known word."""
    if languages is None or any(code not in NEGATIONS for code in languages):
        measure = f"not tested: needs two languages of {', '.join(NEGATIONS)}"
        return tests.share("negation", [], lambda _, __: True, measure)
    sure = _SURE.get(languages[0], NEGATIONS[languages[0]])
    negated = [s for s, t in pairs if _has(s, sure) and _has(t, NEGATIONS[languages[1]])]
    return tests.share("negation", negated, lambda _, output: _has(output, NEGATIONS[languages[1]]), "negated still")


def _emoji(tests: _Tests, sources: Sequence[str], draw: random.Random) -> Row:
    lively = [f"{source} {draw.choice(EMOJI)}" for source in sources]
    return tests.share(
        "emoji", lively, lambda i, output: lively[i].split(" ")[-1] in output, "the emoji is still there"
    )


def _empty(tests: _Tests) -> Row:
    nothing = ["", " ", "   ", "...", "?!", "-"]
    return tests.share(
        "empty", nothing, lambda i, output: len(output) <= 2 * len(nothing[i].strip()), "nothing from nothing"
    )


def _has(text: str, words: Sequence[str]) -> bool:
    plain = text.lower().replace("’", "'")
    found = set(words_of(plain))
    return any(plain.find(word) >= 0 if "'" in word else word in found for word in words)


def _is_short(output: str) -> bool:
    return 0 < len(output.split()) <= 3 and not loops(output)


def _renumbered(source: str, draw: random.Random) -> str:
    """Replaces each digit by a random one that is not zero, so that numbers learned by heart do not help."""
    return re.sub(r"\d", lambda _: str(draw.randrange(1, 10)), source)


def _digits(text: str) -> list[str]:
    return sorted("".join(re.findall(r"\d", number)) for number in _NUMBER.findall(text))


def _chrf(outputs: Sequence[str], references: Sequence[str]) -> float:
    if not outputs:
        return 0.0
    lowered = [output.lower() for output in outputs]
    return float(CHRF().corpus_score(lowered, [[reference.lower() for reference in references]]).score)
