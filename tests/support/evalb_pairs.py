"""Pairs of trees from a seed, many of them damaged, and what EVALB itself said of them.

`python tests/support/evalb_pairs.py EVALB COLLINS.prm` runs the compiled EVALB on them and writes
evalb_figures.json, which the tests hold dragoman.parsing.evalb to. EVALB is not part of this repository;
nikitakit/self-attentive-parser
has it: one C file, `gcc -o evalb evalb.c`.
"""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COUNT = 1200
FIGURES = Path(__file__).with_name("evalb_figures.json")

LABELS = ["S", "NP", "VP", "PP", "ADVP", "PRT", "SBAR", "NP-SBJ", "NP=2", "ADJP-PRD", "WHNP", "S-NOM-SBJ", "TOP", "X"]
TAGS = ["NN", "DT", "VBZ", "IN", "JJ", "PRP$", "-LRB-", "-RRB-", "HYPH", "POS", "ADVP", "PRT"]
PUNCTUATION = [(",", ","), (".", "."), (":", "--"), ("``", "``"), ("''", "''"), ("-NONE-", "*T*-1")]
WORDS = ["the", "dog", "n't", "Über", "1,000", "-LRB-", "'s", "it", "runs", "%"]

Node = list[Any]  # [label, children...] or [tag, word]


class Draw:
    """Draws by random.random alone: Python keeps what that gives for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def below(self, count: int) -> int:
        return int(self.random() * count)

    def one_of(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]


def random_tree(draw: Draw, depth: int) -> Node:
    children: list[Node] = []
    for _ in range(1 + draw.below(4)):
        kind = draw.random()
        if depth and kind < 0.5:
            children.append(random_tree(draw, depth - 1))
        elif kind < 0.85:
            children.append([draw.one_of(TAGS), draw.one_of(WORDS)])
        else:
            children.append(list(draw.one_of(PUNCTUATION)))
    return [draw.one_of(LABELS), *children]


def is_leaf(node: Node) -> bool:
    return isinstance(node[1], str)


def copied(node: Node) -> Node:
    return list(node) if is_leaf(node) else [node[0], *map(copied, node[1:])]


def nodes(node: Node) -> list[Node]:
    return [node] if is_leaf(node) else [node, *(below for child in node[1:] for below in nodes(child))]


def perturb(draw: Draw, tree: Node) -> None:
    """One change of the kind a parser makes: a label, a bracket more, less, or with another end, a tag."""
    brackets = [node for node in nodes(tree) if not is_leaf(node)]
    leaves = [node for node in nodes(tree) if is_leaf(node)]
    kind = draw.below(7)
    if kind == 0:
        draw.one_of(brackets)[0] = draw.one_of(LABELS)
    elif kind == 1:
        node = draw.one_of(brackets)
        first = 1 + draw.below(len(node) - 1)
        last = first + 1 + draw.below(len(node) - first)
        node[first:last] = [[draw.one_of(LABELS), *node[first:last]]]
    elif kind == 2:
        node = draw.one_of(brackets)
        where = 1 + draw.below(len(node) - 1)
        if not is_leaf(node[where]):
            node[where : where + 1] = node[where][1:]
    elif kind == 3:
        leaf = draw.one_of(leaves)
        if leaf[0] in TAGS:
            leaf[0] = draw.one_of(TAGS)
    elif kind in (4, 5):  # a bracket gives its first child to the one around it, and takes the next of that
        node = draw.one_of(brackets)
        for where in range(1, len(node) - 1):
            if not is_leaf(node[where]) and len(node[where]) > 2:
                node[where].append(node.pop(where + 1))
                node.insert(where, node[where].pop(1))
                break
    else:  # a tag that makes a word vanish, or appear
        draw.one_of(leaves)[0] = draw.one_of([*TAGS, ",", "."])


def written(node: Node) -> str:
    return f"({node[0]} {node[1] if is_leaf(node) else ' '.join(map(written, node[1:]))})"


def damaged(draw: Draw, line: str) -> str:
    """What a line can suffer that EVALB survives: it stops for good at text outside brackets."""
    kind = draw.below(6)
    if kind == 0:
        return line[:-1]  # a bracket is never closed
    if kind == 1:
        closing = len(line) - len(line.rstrip(")"))
        return line[: len(line) - draw.below(closing)]  # all but the first, which is that of a word
    if kind == 2:
        return "(())"
    if kind == 3:
        return ""
    if kind == 4:
        return line.replace("dog", "cat")
    return line.replace(") (", ")(")


def pairs(count: int = COUNT) -> list[tuple[str, str]]:
    """Gold and test lines."""
    draw = Draw(7)
    found: list[tuple[str, str]] = []
    while len(found) < count:
        gold = ["TOP", random_tree(draw, 1 + draw.below(5))]
        test = copied(gold)
        for _ in range(draw.below(8)):
            perturb(draw, test)
        gold_line, test_line = written(gold), written(test)
        if draw.random() < 0.2:
            test_line = damaged(draw, test_line)
        # Within EVALB's own arrays, and the line ends where a bracket does.
        if max(len(gold_line.encode()), len(test_line.encode())) < 4000 and max(map(_size, (gold, test))) < 180:
            found.append((gold_line, test_line))
    return found


def _size(tree: Node) -> int:
    return len(nodes(tree))


def main() -> None:
    evalb, parameters = sys.argv[1:]
    found = pairs()
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name) / side for side in ("gold", "test")]
        for file, lines in zip(files, zip(*found, strict=True), strict=True):
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        # Its limit of 10 errors is for those who want to stop early.
        command = [evalb, "-p", parameters, "-e", "1000000", *map(str, files)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = ran.stdout.splitlines()
    FIGURES.write_text(json.dumps(figures, indent=0) + "\n", encoding="utf-8")
    print(f"{FIGURES}: what EVALB said of {len(found)} pairs", file=sys.stderr)


if __name__ == "__main__":
    main()
