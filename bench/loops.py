"""How often the plain decoder loops, copies, runs away or says nothing, and how often decoding again mends it.

python bench/loops.py RUN --source FILE [--count 100] [--write SECTION]

The inputs are made from FILE's sentences to make a model loop: names nobody has, nonsense, words repeated, lists,
capitals, sentences without end. FILE as it is stands beside them.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import report
from dragoman.data.corpus import read_lines
from dragoman.translation.translator import Translator

Make = Callable[[str, random.Random], str]


def nonsense(draw: random.Random) -> str:
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9)))


def names(sentence: str, draw: random.Random) -> str:
    words = sentence.split()
    places = set(draw.sample(range(len(words)), max(1, len(words) // 2)))
    return " ".join(nonsense(draw).capitalize() if place in places else word for place, word in enumerate(words))


def repeated(sentence: str, draw: random.Random) -> str:
    words = sentence.split()
    at = draw.randrange(len(words))
    return " ".join([*words[:at], *[words[at]] * 2, *words[at:]])


INPUTS: dict[str, Make] = {
    "as it is": lambda sentence, _: sentence,
    "half of the words are unknown names": names,
    "nonsense": lambda _, draw: " ".join(nonsense(draw) for _ in range(draw.randint(2, 12))),
    "a word three times": repeated,
    "capitals": lambda sentence, _: sentence.upper(),
    "no spaces": lambda sentence, _: sentence.replace(" ", ""),
    "four sentences": lambda sentence, draw: " ".join([sentence.rstrip(".!?")] * 2 + [names(sentence, draw)] * 2),
    "a list of numbers": lambda _, draw: ", ".join(str(draw.randint(1, 9999)) for _ in range(draw.randint(5, 20))),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", metavar="SECTION", help="write this section of bench/results.md")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    sentences = draw.sample([line for line in read_lines(given.source) if line.strip()], given.count)
    translator = Translator.load(given.run)
    rows = []
    for name, make in INPUTS.items():
        lines = [make(sentence, draw) for sentence in sentences]
        before = Counter(defect for t in translator.translate_stream(lines, repair=False) for defect in t.defects)
        mended = list(translator.translate_stream(lines))
        after = Counter(defect for t in mended for defect in t.defects)
        shown = [f"{before[kind]} → {after[kind]}" for kind in ("loop", "copy", "runaway", "empty")]
        rows.append([name, str(len(lines)), *shown, str(sum(bool(t.repaired) for t in mended))])
    head = ["input", "lines", "loop", "copy", "runaway", "empty", "lines decoded anew"]
    text = report.table(head, rows)
    print(text)
    if given.write:
        report.write_section(report.PAGE, given.write, text)


if __name__ == "__main__":
    main()
