"""The behavioural suite: each test changes sentences in one way and says what must not change in the translation.

Where a test compares quality, it is chrF of lower-cased text over that of the plain sentences: what counts is whether
the words are still there, not their case.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu.metrics.chrf import CHRF

from dragoman.data.augmentation import with_typos
from dragoman.data.corpus import SentencePair
from dragoman.data.phrase_pairs import learn_lexicon, words_of
from dragoman.diagnosis.output_checks import loops
from dragoman.evaluation.metrics import bleu

Translate = Callable[[Sequence[str]], list[str]]

EMOJI = ("🙂", "🎉", "🐶", "❤️")
_FEW = 20
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# Words that negate, to be found in a source and then in its translation. A language that is not here is not tested.
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
_SURE = {"en": ("not", "n't", "never", "nothing", "nobody", "cannot")}  # of a source: "no" alone may be many things

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
    """One row of the table."""

    name: str
    sentences: int  # 0: there was nothing to test it with
    value: float  # 1 is perfect
    least: float
    measure: str
    example: tuple[str, str] | None = None  # where it went wrong: what went in, what came out

    @property
    def passed(self) -> bool:
        return not self.sentences or self.value >= self.least


@dataclass(frozen=True)
class Report:
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
    """Every test, on what these pairs have for it."""
    draw = random.Random(seed)
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    plain = translate(sources)
    everything = list(zip(sources, plain, strict=True))
    base = _chrf(plain, references)

    def quality(name: str, changed: Sequence[str], right: Sequence[str], of_plain: float, measure: str) -> Row:
        outputs = translate(changed)
        everything.extend(zip(changed, outputs, strict=True))
        worst = min(range(len(outputs)), key=lambda i: _chrf([outputs[i]], [right[i]]), default=None)
        example = None if worst is None else (changed[worst], outputs[worst])
        value = _chrf(outputs, right) / of_plain if of_plain and outputs else 0.0
        return Row(name, len(changed), value, least[name], measure, example)

    def share(name: str, given: Sequence[str], holds: Callable[[int, str], bool], measure: str) -> Row:
        outputs = translate(given)
        everything.extend(zip(given, outputs, strict=True))
        wrong = [i for i, output in enumerate(outputs) if not holds(i, output)]
        example = (given[wrong[0]], outputs[wrong[0]]) if wrong else None
        return Row(name, len(given), 1 - len(wrong) / max(1, len(given)), least[name], measure, example)

    of_plain = "chrF over that of the plain sentences"
    stopped = [i for i, source in enumerate(sources) if source.endswith((".", "!"))]
    ending = [references[i] for i in stopped]
    threes = [range(i, i + 3) for i in range(0, len(pairs) - 2, 3)]
    long_references = [" ".join(references[i] for i in three) for three in threes]
    in_parts = _chrf([" ".join(plain[i] for i in three) for three in threes], long_references)
    rows = [
        # What the next ones are shares of: of rubbish, all of it is easily kept.
        Row("plain", len(pairs), base / 100, least["plain"], "chrF of the plain sentences", everything[0]),
        quality("all capitals", [source.upper() for source in sources], references, base, of_plain),
        quality("no capitals", [source.lower() for source in sources], references, base, of_plain),
        quality("typos", [with_typos(source, draw) for source in sources], references, base, of_plain),
        quality("no full stop", [sources[i].rstrip(".! ") for i in stopped], ending,
                _chrf([plain[i] for i in stopped], ending), of_plain),
        quality("long", [" ".join(sources[i] for i in three) for three in threes], long_references, in_parts,
                "three sentences as one line: chrF over that of each by itself"),
    ]  # fmt: skip
    words = list(learn_lexicon(pairs))[:200]
    rows.append(share("single words", words, lambda _, output: _is_short(output), "a word or three, and no sentence"))
    numbered = [_renumbered(source, draw) for source in sources if _NUMBER.search(source)]
    if len(numbered) < _FEW:  # as in a numbered list
        numbered += [f"{draw.randrange(10, 2000)}. {source}" for source in sources[:_FEW]]
    rows.append(
        share(
            "numbers", numbered, lambda i, output: _digits(numbered[i]) == _digits(output), "the same digits, none else"
        )
    )
    rows.append(_negation(pairs, languages, share))
    lively = [f"{source} {draw.choice(EMOJI)}" for source in sources]
    rows.append(
        share("emoji", lively, lambda i, output: lively[i].split(" ")[-1] in output, "the emoji is still there")
    )
    nothing = ["", " ", "   ", "...", "?!", "-"]
    rows.append(
        share("empty", nothing, lambda i, output: len(output) <= 2 * len(nothing[i].strip()), "nothing from nothing")
    )
    looping = [(source, output) for source, output in everything if loops(output, source)]
    value = 1 - len(looping) / max(1, len(everything))
    rows.append(
        Row("no loops", len(everything), value, least["no loops"], "of all the above", looping[0] if looping else None)
    )
    return Report(bleu(plain, [[reference] for reference in references]).value, base, len(pairs), tuple(rows))


def _negation(pairs: Sequence[SentencePair], languages: tuple[str, str] | None, share: Callable[..., Row]) -> Row:
    """Sentences that negate, and whose references do with a word that we know."""
    measure = "negated still"
    if languages is None or any(code not in NEGATIONS for code in languages):
        known = ", ".join(NEGATIONS)
        measure = f"not tested: needs two languages of {known}"
        return share("negation", [], lambda _, __: True, measure)
    sure = _SURE.get(languages[0], NEGATIONS[languages[0]])
    negated = [s for s, t in pairs if _has(s, sure) and _has(t, NEGATIONS[languages[1]])]
    return share("negation", negated, lambda _, output: _has(output, NEGATIONS[languages[1]]), measure)


def _has(text: str, words: Sequence[str]) -> bool:
    plain = text.lower().replace("’", "'")
    found = set(words_of(plain))
    return any(plain.find(word) >= 0 if "'" in word else word in found for word in words)


def _is_short(output: str) -> bool:
    return 0 < len(output.split()) <= 3 and not loops(output)


def _renumbered(source: str, draw: random.Random) -> str:
    """Other digits in the same places, the first of a number not zero: what was learned by heart does not help."""
    return re.sub(r"\d", lambda _: str(draw.randrange(1, 10)), source)


def _digits(text: str) -> list[str]:
    return sorted("".join(re.findall(r"\d", number)) for number in _NUMBER.findall(text))


def _chrf(outputs: Sequence[str], references: Sequence[str]) -> float:
    if not outputs:
        return 0.0
    lowered = [output.lower() for output in outputs]
    return float(CHRF().corpus_score(lowered, [[reference.lower() for reference in references]]).score)
