"""Scores our sentence splitter and three others on texts that are not ours, and prints the tables of results.md.

    python -m venv PEERS && PEERS/bin/pip install pysbd==0.3.4 sentence-splitter==1.4 blingfire==0.1.8 numpy
    python bench/splitters.py --peers PEERS/bin/python --golden GOLDEN --treebanks TREEBANKS

Run with the Python that has Dragoman; the others stay in an environment of their own. GOLDEN is the directory
tests/lang of pySBD's repository (its Golden Rules, one test_LANGUAGE.py each; they are read, not run). TREEBANKS is a
directory with *-ud-dev.conllu and *-ud-test.conllu of Universal Dependencies, whose names begin with their language
("en_ewt-ud-dev.conllu"). `--part dev` is for looking at mistakes (`--wrong`); the tables are of `test`.
"""

import argparse
import ast
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rounds import BenchError, Spread, Worker

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.sentence_cases import CASES

OURS = "dragoman"
UNKNOWN = "dragoman-unknown"
PEERS = ("pysbd", "sentence-splitter", "blingfire")
TITLES = {OURS: "ours", UNKNOWN: "ours, language not told"}
NO_SPACES = ("ja", "zh", "my", "km", "th")  # scripts that put no space between sentences
TOGETHER = 10  # sentences in a text where a treebank marks no paragraphs and no documents

# What users paste: spaces of every kind, marks that regular expressions know, no last full stop.
AWKWARD = [
    "  two  spaces.  And a tab\there. ",
    "He said (see below) that a*b. Then c+d.",
    "One. one. One.",
    "... and then? ... nothing",
    "A sentence.\n\nAnother one. \n",
    "∯ and ȸ and &&* stay. Do they?",
    "It costs $5. \\1 is a group. [x] is not.",
    "a.\u00a0b.\u2009c. D.",
]


@dataclass(frozen=True)
class Case:
    text: str
    ends: frozenset[int]  # of sentences but the last, counted in characters that are no space


@dataclass
class Score:
    """Counts over cases; a peer that has not the language has none."""

    cases: int = 0
    whole: int = 0  # cases with every boundary right
    found: int = 0  # boundaries
    right: int = 0
    wanted: int = 0
    lossy: int = 0  # cases in which characters were lost or changed

    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    def recall(self) -> float:
        return self.right / self.wanted if self.wanted else 1.0

    def f1(self) -> float:
        return 2 * self.right / (self.found + self.wanted) if self.found + self.wanted else 1.0


def bare(text: str) -> str:
    return "".join(text.split())


def case(sentences: Sequence[str], between: str = " ", text: str | None = None) -> Case:
    length, ends = 0, set()
    for sentence in sentences[:-1]:
        length += len(bare(sentence))
        ends.add(length)
    return Case(between.join(sentences) if text is None else text, frozenset(ends))


def ends_of(text: str, parts: Sequence[str]) -> tuple[frozenset[int], bool]:
    """Where parts of a text end, and whether they have all its characters. A part that was changed has its length."""
    whole = bare(text)
    position, ends, lost = 0, set(), False
    for part in map(bare, parts):
        if not part:
            continue
        at = whole.find(part, position, position + len(part) + 40)
        lost |= at != position
        position = (position if at < 0 else at) + len(part)
        ends.add(position)
    return frozenset(end for end in ends if end < len(whole)), lost or position != len(whole)


def golden_rules(directory: Path, kind: str) -> dict[str, list[Case]]:
    """Cases by language from pySBD's test files: its `GOLDEN` rules, or its `MORE` tests.

    Those that ask for a text to be cleaned are left out: they are about changing texts, not about cutting them.
    """
    name = re.compile(r"(?P<kind>GOLDEN|)_?(?P<language>[A-Z]{2})_(?:RULES|MORE)_TEST_CASES|TESTS_WO_CLEAN")
    found: dict[str, list[Case]] = {}
    for path in sorted(directory.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
                continue
            target = name.fullmatch(node.targets[0].id)
            if target is None or (target["kind"] or "MORE") != kind:
                continue
            assert isinstance(node.value, ast.List)
            for item in node.value.elts:
                # pytest.param(text, sentences, marks=...) where pySBD itself is known to fail.
                values = item.args[:2] if isinstance(item, ast.Call) else item.elts  # type: ignore[attr-defined]
                text, sentences = map(ast.literal_eval, values)
                found.setdefault((target["language"] or "en").lower(), []).append(case(sentences, text=text))
    return dict(sorted(found.items()))


def treebank(path: Path, language: str) -> list[Case]:
    """The sentences of a treebank put together again: by paragraphs, or documents, or ten by ten where neither is told.

    Between them stands one space, or nothing in scripts that have none there.
    """
    texts: dict[str, list[list[str]]] = {"newpar": [], "newdoc": []}
    sentences: list[str] = []
    begins = set[str]()
    for line in path.read_text(encoding="utf-8").splitlines():
        comment = re.match(r"# ?(newpar|newdoc|text =)", line)
        if comment is None:
            continue
        if comment[1] != "text =":
            begins |= {comment[1], "newpar"} if comment[1] == "newdoc" else {comment[1]}
            continue
        sentence = line.partition("=")[2].strip()
        sentences.append(sentence)
        for kind, groups in texts.items():
            if kind in begins or not groups:
                groups.append([])
            groups[-1].append(sentence)
        begins.clear()
    groups = next((groups for groups in texts.values() if 1 < len(groups) < len(sentences)), None)
    if groups is None or len(texts["newpar"]) == len(texts["newdoc"]) == 1:
        groups = [sentences[at : at + TOGETHER] for at in range(0, len(sentences), TOGETHER)]
    between = "" if language in NO_SPACES else " "
    return [case(group, between) for group in groups]


def score(cases: Sequence[Case], answers: Sequence[Sequence[str]] | None) -> Score | None:
    if answers is None:
        return None
    total = Score()
    for one, parts in zip(cases, answers, strict=True):
        ends, lost = ends_of(one.text, parts)
        total.cases += 1
        total.whole += ends == one.ends and not lost
        total.found += len(ends)
        total.right += len(ends & one.ends)
        total.wanted += len(one.ends)
        total.lossy += lost
    return total


def split(worker: Worker, language: str, cases: Sequence[Case]) -> tuple[Score | None, float | None]:
    answer = worker.ask(language=language, texts=[one.text for one in cases])
    return score(cases, answer["parts"]), answer.get("seconds")


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def counts(title: str, sets: dict[str, list[Case]], workers: dict[str, Worker]) -> str:
    """Cases wholly right, by language, and over the languages that a splitter has."""
    scores = {
        language: {name: split(worker, language, cases)[0] for name, worker in workers.items()}
        for language, cases in sets.items()
    }
    rows = [
        [language, str(len(sets[language])), *(str(one.whole) if one else "–" for one in by_name.values())]
        for language, by_name in scores.items()
    ]
    totals, lossy = [], []
    for name in workers:
        known = [one for one in (by_name[name] for by_name in scores.values()) if one]
        whole, cases = sum(one.whole for one in known), sum(one.cases for one in known)
        totals.append(f"{whole} of {cases} ({whole / cases:.1%})")
        lossy.append(str(sum(one.lossy for one in known)))
    rows.append(["of its languages", str(sum(map(len, sets.values()))), *totals])
    rows.append(["characters lost in", "", *lossy])
    return table([title, "cases", *(TITLES.get(name, name) for name in workers)], rows)


def boundaries(banks: dict[str, tuple[str, list[Case]]], workers: dict[str, Worker]) -> str:
    rows, every = [], {name: dict[str, Score]() for name in workers}
    for bank, (language, cases) in banks.items():
        row = [bank, str(sum(len(one.ends) for one in cases))]
        scores = {name: split(worker, language, cases)[0] for name, worker in workers.items()}
        best = max(one.f1() for name, one in scores.items() if one and name != UNKNOWN)
        for name, one in scores.items():
            if one is None:
                row.append("–")
                continue
            every[name][bank] = one
            f1 = f"**{one.f1():.1%}**" if one.f1() == best and name != UNKNOWN else f"{one.f1():.1%}"
            row.append(f"{f1} ({one.precision():.1%}, {one.recall():.1%})")
        rows.append(row)
    means = []
    for name, scores_of in every.items():
        mine = statistics.mean(every[OURS][bank].f1() for bank in scores_of)
        mean = statistics.mean(one.f1() for one in scores_of.values())
        means.append(f"{mean:.1%}" if name == OURS else f"{mean:.1%}; ours there {mine:.1%}")
    rows.append(["mean F1 of its languages", "", *means])
    return table(["treebank", "boundaries", *(TITLES.get(name, name) for name in workers)], rows)


def paces(banks: dict[str, tuple[str, list[Case]]], workers: dict[str, Worker], rounds: int) -> str:
    """How many times as long as ours each takes for the same texts, in rounds by turns."""
    rows = []
    some = {bank: (language, cases[:100]) for bank, (language, cases) in banks.items()}
    for peer in PEERS:
        known = [value for value in some.values() if split(workers[peer], value[0], value[1][:1])[0]]
        ratios = []
        for _ in range(rounds):
            seconds = [
                sum(split(workers[name], language, cases)[1] or 0.0 for language, cases in known)
                for name in (OURS, peer)
            ]
            ratios.append(seconds[1] / seconds[0])
        rows.append([peer, str(len(known)), str(Spread.of(ratios))])
    return table(["splitter", "treebanks", "times as long as ours"], rows)


def mistakes(banks: dict[str, tuple[str, list[Case]]], worker: Worker, other: Worker | None) -> Iterator[str]:
    """Boundaries missed and added, with what stands around them; with `other`, those alone that it gets right."""
    for bank, (language, cases) in banks.items():
        asked = [one.text for one in cases]
        answers = worker.ask(language=language, texts=asked)["parts"]
        others = other.ask(language=language, texts=asked)["parts"] if other else None
        for number, one in enumerate(cases):
            ends = ends_of(one.text, answers[number])[0]
            theirs = ends_of(one.text, others[number])[0] if others else None
            places = [at for at, char in enumerate(one.text) if not char.isspace()]
            for end in sorted(ends ^ one.ends):
                if theirs is None or (end in theirs) == (end in one.ends):
                    at = places[end - 1] + 1
                    kind = "added" if end in ends else "missed"
                    around = f"{one.text[max(0, at - 40) : at]}|{one.text[at : at + 30]}".replace("\n", "\\n")
                    yield f"{bank} {kind} {around}"


def own_cases(workers: dict[str, Worker]) -> str:
    """Our own cases, on which our splitter was corrected: what the others make of them."""
    sets: dict[str, list[Case]] = {}
    for language, text in CASES:
        sets.setdefault(language, []).append(case(text.split("|"), text=text.replace("|", "")))
    awkward = [Case(text, frozenset()) for text in AWKWARD]
    rows = []
    for name, worker in workers.items():
        known = [one for one in (split(worker, language, cases)[0] for language, cases in sets.items()) if one]
        lossy = [*known, split(worker, "en", awkward)[0] or Score()]
        rows.append([
            TITLES.get(name, name),
            f"{sum(one.whole for one in known)} of {sum(one.cases for one in known)}",
            f"{sum(one.lossy for one in lossy)} of {sum(one.cases for one in lossy)}",
        ])  # fmt: skip
    return table(["splitter", "right of our own cases in its languages", "characters lost in"], rows)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="the Python of the environment that has the peers")
    parser.add_argument("--golden", type=Path, required=True, help="pySBD's tests/lang")
    parser.add_argument("--treebanks", type=Path, required=True, help="a directory of .conllu files")
    parser.add_argument("--part", choices=("dev", "test"), default="test", help="of the treebanks")
    parser.add_argument("--rounds", type=int, default=5, help="of the timing; 0 leaves it out")
    parser.add_argument("--wrong", action="store_true", help="print our mistakes in the treebanks in place of tables")
    parser.add_argument("--against", choices=PEERS, help="with --wrong: only where this one is right")
    chosen = parser.parse_args()
    if chosen.wrong and chosen.part == "test":
        parser.error("--wrong looks at texts: use --part dev, so that nothing is tuned on the test part")
    return chosen


def main() -> None:
    chosen = options()
    banks = {}
    for path in sorted(chosen.treebanks.glob(f"*-ud-{chosen.part}.conllu")):
        language = path.name.partition("_")[0]
        banks[path.name.partition("-ud-")[0]] = (language, treebank(path, language))
    if not banks:
        sys.exit(f"{chosen.treebanks} has no *-ud-{chosen.part}.conllu: put files of Universal Dependencies there")
    rules, further = (golden_rules(chosen.golden, kind) for kind in ("GOLDEN", "MORE"))
    if not (rules and further):
        sys.exit(f"{chosen.golden} has no test_*.py with rules: give the directory tests/lang of pySBD's repository")
    script = str(Path(__file__).with_name("splitter_worker.py"))
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workers = {}
        for name in (OURS, UNKNOWN, *PEERS):
            python = chosen.peers if name in PEERS else sys.executable
            worker = Worker(name, [script, name], dict(os.environ), logs / f"{name}.log", python)
            workers[name] = stack.enter_context(worker)
        if chosen.wrong:
            print(*mistakes(banks, workers[OURS], workers.get(chosen.against)), sep="\n")
            return
        without_unknown = {name: worker for name, worker in workers.items() if name != UNKNOWN}
        print(counts("Golden Rules", rules, without_unknown))
        print(counts("pySBD's further tests", further, without_unknown))
        print(boundaries(banks, workers))
        print(own_cases(without_unknown))
        if chosen.rounds:
            print(paces(banks, workers, chosen.rounds))


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit(str(error))
