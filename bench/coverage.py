"""How well defects find what a translation lost: right translations that are damaged on purpose.

python bench/coverage.py RUN --validation SOURCE REFERENCE --test SOURCE REFERENCE [--numbers TSV] [--write SECTION]

The references stand for translations, whole (a defect that is found is a false alarm) and damaged: one sentence of a
line of two, a clause, the last third of the words, a number or a negation is missing. Lines of two sentences are made
of pairs of neighbouring lines. Limits are measured on validation sentences and judged on test sentences; what the run's
own translations of the test sentences have is counted at the end. --numbers: more pairs, in a TSV file, of which those
with digits are looked at; as nothing of that check is learned, they may come from the training text.
"""

import argparse
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from sacrebleu.metrics.chrf import CHRF

import report
from dragoman.data.corpus import read_lines
from dragoman.translation.clauses import clauses
from dragoman.translation.defects import TokenizedText, defects_of
from dragoman.translation.fallbacks import losses_of
from dragoman.translation.lengths import ANY_PAIR, DEVIATIONS, UsualLengths
from dragoman.translation.result import SourceSentence, Translation
from dragoman.translation.translator import Translator

Pair = tuple[str, str]
# French, as the demo's; the checks themselves know no language.
_NEGATION = re.compile(r"\bne\s+|\bn['’]|\s(?:pas|jamais|rien|plus|personne)\b")
_NUMBER = re.compile(r"\d[\d.,:  ]*\d|\d")


def two_together(pairs: Sequence[Pair]) -> list[Pair]:
    return [(f"{one[0]} {two[0]}", f"{one[1]} {two[1]}") for one, two in zip(pairs[::2], pairs[1::2], strict=False)]


def without_half(pair: Pair) -> str | None:
    """The first of two sentences alone."""
    found = re.match(r".+?[.!?…»\"]\s(?=[A-ZÀ-Þ«\"])", pair[1])
    return found[0].rstrip() if found else None


def without_clause(pair: Pair) -> str | None:
    """The translation without its last clause, where the source has several, too."""
    own = clauses(pair[1])
    return (
        "".join(part.text + part.mark + part.space for part in own[:-1]).rstrip(" ,;") + "."
        if len(own) > 1 and len(clauses(pair[0])) > 1
        else None
    )


def without_third(pair: Pair) -> str | None:
    """The translation without the last third of its words."""
    words = pair[1].split()
    return " ".join(words[: -(len(words) // 3)]) if len(words) > 5 else None


def without_number(pair: Pair) -> str | None:
    return _NUMBER.sub("", pair[1], count=1).strip() if _NUMBER.search(pair[0]) and _NUMBER.search(pair[1]) else None


def without_negation(pair: Pair) -> str | None:
    return _NEGATION.sub(" ", pair[1]).strip() if len(_NEGATION.findall(pair[1])) > 1 else None


DAMAGES: dict[str, Callable[[Pair], str | None]] = {
    "a clause": without_clause,
    "the last third of the words": without_third,
    "a negation": without_negation,
}


def found_in(source: str, target: str, lengths: UsualLengths) -> set[str]:
    """The names of the defects and losses that are found."""
    names = set(defects_of(TokenizedText([], source), TokenizedText([], target), lengths=lengths))
    return names | ({"lost"} if losses_of(SourceSentence(source), target).grave else set())


def rows_of(pairs: Sequence[Pair], lengths: UsualLengths, name: str) -> list[list[str]]:
    """For each damage, how often each defect is named; and on the whole translations."""
    together = two_together(pairs)
    whole = [*pairs, *together]
    cases = {"nothing": whole}
    cases["one of two sentences"] = [(pair[0], cut) for pair in together if (cut := without_half(pair))]
    for damage, spoil in DAMAGES.items():
        cases[damage] = [(pair[0], cut) for pair in pairs if (cut := spoil(pair)) and cut != pair[1]]
    counts = {case: Counter(kind for pair in some for kind in found_in(*pair, lengths)) for case, some in cases.items()}
    rows = []
    for case, some in cases.items():
        shown = [_share(counts[case][kind], len(some)) for kind in ("short", "lost")]
        rows.append([name, case, f"{len(some):,}", *shown, _precision(counts, cases, case)])
    return rows


def number_rows(pairs: Sequence[Pair]) -> list[list[str]]:
    """The same of pairs with numbers, whole and without their first number."""
    chosen = [pair for pair in pairs if _NUMBER.search(pair[0]) and _NUMBER.search(pair[1])][:1000]
    damaged = [(pair[0], cut) for pair in chosen if (cut := without_number(pair))]
    rows = []
    for case, some in (("nothing", chosen), ("a number", damaged)):
        counts = Counter(kind for pair in some for kind in found_in(*pair, ANY_PAIR))
        shown = [_share(counts[kind], len(some)) for kind in ("short", "lost")]
        rows.append(["pairs with numbers", case, f"{len(some):,}", *shown, ""])
    return rows


def _precision(counts: dict[str, Counter[str]], cases: dict[str, list[Pair]], case: str) -> str:
    """If one in ten translations had this damage and the others none: how many of those that are named have it."""
    if case == "nothing" or not cases[case]:
        return ""
    hit, alarm = (counts[one]["short"] / len(cases[one]) for one in (case, "nothing"))
    return f"{100 * hit / (hit + 9 * alarm):.0f} %" if hit else "none"


def _share(count: int, of: int) -> str:
    return f"{count} ({100 * count / of:.1f} %)" if of else "0"


def tuning(validation: Sequence[Pair]) -> list[list[str]]:
    """False alarms and what is found for other limits; learned on one half of the validation sentences, and counted on
    the other."""
    order = list(validation)
    random.Random(1).shuffle(order)
    one, other = order[::2], order[1::2]
    rows = []
    for deviations in (2.0, 2.5, 3.0, 3.5):
        lengths = UsualLengths.measure(one, deviations)
        row = [f"{deviations:g}"]
        for _, _, count, short, _, _ in rows_of(other, lengths, "")[:4]:
            row.append(f"{short} of {count}")
        rows.append(row)
    return rows


def own_translations(run: Path, pairs: Sequence[Pair]) -> str:
    """How many of the run's own translations are short, and what the other ways make of them, by chrF2."""
    translator = Translator.load(run)
    rows = []
    for name, some, whole in (
        ("sentences", pairs, False),
        ("lines of two sentences, uncut", two_together(pairs), True),
    ):
        sources = [source for source, _ in some]
        plain = list(translator.translate_stream(sources, whole=whole, protect=False, warn=lambda _: None))
        found = list(translator.translate_stream(sources, whole=whole, warn=lambda _: None))
        all_three = list(zip(plain, found, some, strict=True))
        rows.append([name, "all", f"{len(found):,}", *_chrf_before_and_after(all_three)])
        for how, way in (("other", "next best"), ("pieces", "clause by clause")):
            mended = [one for one in all_three if "short" in one[1].repaired and one[1].how == how]
            rows.append([name, f"short, then {way}", str(len(mended)), *_chrf_before_and_after(mended)])
        left = [one for one in all_three if "short" in one[1].defects]
        rows.append([name, "short and left so", str(len(left)), *_chrf_before_and_after(left)])
    return report.table(["the run's own translations of", "which", "count", "chrF2 before", "after"], rows)


def _chrf_before_and_after(some: Sequence[tuple[Translation, Translation, Pair]]) -> list[str]:
    if not some:
        return ["", ""]
    references = [[target for _, _, (_, target) in some]]
    before, after = ([one[at].text for one in some] for at in (0, 1))
    return [f"{CHRF().corpus_score(texts, references).score:.1f}" for texts in (before, after)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--validation", nargs=2, type=Path, required=True, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--test", nargs=2, type=Path, required=True, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--numbers", type=Path, metavar="TSV", help="pairs to take those with numbers from")
    parser.add_argument("--write", metavar="SECTION", help="write this section of bench/results.md")
    given = parser.parse_args()
    validation, test = (
        [pair for pair in zip(*map(read_lines, paths), strict=True) if all(map(str.strip, pair))]
        for paths in (given.validation, given.test)
    )
    measured = UsualLengths.measure(validation)
    head = ["deviations", "false alarms", "one of two sentences", "a clause", "the last third of the words"]
    text = report.table(head, tuning(validation)) + f"\nChosen: {DEVIATIONS:g}. On the test sentences:\n\n"
    head = ["limits", "missing", "translations", "named short", "named lost", "precision of short if one in ten is so"]
    rows = [*rows_of(test, measured, "calibrated"), *rows_of(test, ANY_PAIR, "not calibrated")]
    if given.numbers:
        more = (line.split("\t") for line in read_lines(given.numbers))
        rows += number_rows([(source, target) for source, target, *_ in more])
    text += report.table(head, rows)
    text += "\n" + own_translations(given.run, test)
    print(text)
    if given.write:
        report.write_section(report.PAGE, given.write, text)


if __name__ == "__main__":
    main()
