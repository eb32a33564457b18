"""Whether required words are always there, and what that costs the rest of the sentence.

python bench/terms.py RUN --source FILE --reference FILE [--count 300] [--write SECTION]

Three tests. "From the references": each sentence must use a word of its reference that the plain translation lacks, as
a user's glossary would ask for a better word. "Made-up names": a name that source and reference share is replaced by
one that does not exist and must be copied. "Made up, any word": the same in place of any word, verbs and articles too,
which no user would ask for and no grammar can bear. Every line is translated with and without the requirement; chrF is
of what is left when the required word is taken out of translation and reference. Of made-up names there is a stricter
baseline too: the plain translation of the sentence as it was, without the name that it had.
"""

import argparse
import random
import re
import time
from dataclasses import dataclass
from pathlib import Path

import report
from dragoman.data.corpus import read_lines
from dragoman.data.glossary import Glossary, Required, Requirements, occurrences, unmet
from dragoman.evaluation.metrics import evaluate
from dragoman.translation.translator import Translator

WORD = re.compile(r"[^\W\d_]{4,}")


# A name: a capital that does not only begin the sentence.
NAME = re.compile(r"(?<=[^\s.!?\"] )[^\W\d_a-zà-ÿ][^\W\d_]{2,}|^(?:Tom|Mary)\b")


@dataclass(frozen=True)
class Case:
    source: str
    reference: str
    term: str
    before: str = ""  # the source with the word that the term replaced
    replaced: str = ""


@dataclass(frozen=True)
class Result:
    name: str
    sentences: int
    obeyed: int
    obeyed_before: int  # by the plain translation
    plain: float  # chrF2 outside the term
    bound: float
    ratio: float  # of the time taken
    original: float | None  # chrF2 of the sentences as they were

    def row(self) -> list[str]:
        return [
            self.name,
            str(self.sentences),
            f"{self.obeyed} ({100 * self.obeyed / self.sentences:.1f} %)",
            str(self.obeyed_before),
            f"{self.plain:.2f}",
            "" if self.original is None else f"{self.original:.2f}",
            f"{self.bound:.2f}",
            f"{self.bound - self.plain:+.2f}",
            f"{self.ratio:.1f}",
        ]


def from_references(
    translator: Translator, pairs: list[tuple[str, str]], count: int, draw: random.Random
) -> list[Case]:
    cases = []
    outputs = translator.translate([source for source, _ in pairs])
    for (source, reference), output in zip(pairs, outputs, strict=True):
        words = [word for word in WORD.findall(reference) if not occurrences(output, word)]
        if words:
            cases.append(Case(source, reference, draw.choice(words)))
    return cases[:count]


def made_up(pairs: list[tuple[str, str]], count: int, draw: random.Random, names: bool) -> list[Case]:
    cases = []
    for source, reference in pairs:
        words = WORD.findall(source)
        if names:
            words = [name for name in NAME.findall(source) if occurrences(reference, name)]
        if not words:
            continue
        term = "".join(draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(draw.randint(2, 4)))
        term, word = term.capitalize(), draw.choice(words)
        replaced = re.sub(rf"\b{word}\b", term, source, count=1)
        if Glossary.of([(term, "")]).required(replaced):
            cases.append(Case(replaced, re.sub(rf"\b{word}\b", term, reference, count=1), term, source, word))
    return cases[:count]


def measure(name: str, translator: Translator, cases: list[Case]) -> Result:
    required: Requirements
    if cases[0].before:
        required = Glossary.of([(case.term, "") for case in cases]).required
    else:
        by_line = {case.source: [Required((case.term,))] for case in cases}
        required = by_line.__getitem__
    lines = [case.source for case in cases]
    times = []
    said = []
    for rule in (None, required):
        begin = time.perf_counter()
        said.append(translator.translate(lines, required=rule))
        times.append(time.perf_counter() - begin)
    plain, bound = said
    obeyed = [
        sum(not unmet(text, required(line)) for line, text in zip(lines, some, strict=True)) for some in (bound, plain)
    ]

    def chrf(outputs: list[str], terms: list[str]) -> float:
        outside = [without(text, term) for text, term in zip(outputs, terms, strict=True)]
        references = [[without(case.reference, case.term)] for case in cases]
        return evaluate(outside, references).chrf.value

    terms = [case.term for case in cases]
    original = None
    if cases[0].before:
        original = chrf(translator.translate([case.before for case in cases]), [case.replaced for case in cases])
    return Result(name, len(cases), *obeyed, chrf(plain, terms), chrf(bound, terms), times[1] / times[0], original)


def without(text: str, term: str) -> str:
    return " ".join(re.sub(rf"(?<!\w){re.escape(term)}(?!\w)", " ", text, count=1, flags=re.IGNORECASE).split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", metavar="SECTION", help="write this section of bench/results.md")
    given = parser.parse_args()
    pairs = [pair for pair in zip(read_lines(given.source), read_lines(given.reference), strict=True) if all(pair)]
    translator = Translator.load(given.run, engine="reference")
    draw = random.Random(given.seed)
    draw.shuffle(pairs)
    results = [
        measure("from the references", translator, from_references(translator, pairs, given.count, draw)),
        measure("made-up names", translator, made_up(pairs, given.count, draw, names=True)),
        measure("made up, any word", translator, made_up(pairs, given.count, draw, names=False)),
    ]
    head = ["terms", "sentences", "obeyed", "by the plain ones", "chrF2 outside, plain", "sentence as it was"]
    head += ["with terms", "difference", "time, plain = 1"]
    text = report.table(head, [result.row() for result in results])
    print(text)
    if given.write:
        report.write_section(report.PAGE, given.write, text)


if __name__ == "__main__":
    main()
