"""Trees for tests: drawn at random, and of a small grammar."""

import random
from collections.abc import Iterator

from dragoman.parsing.trees import Leaf, Tree, parse_brackets

SENTENCE = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ runs) (ADVP (RB away))) (. .)))"
LABELS = ["S", "NP", "VP", "PP", "ADVP", "WHNP"]
LEAVES = [Leaf("NN", "a"), Leaf("DT", "Ä"), Leaf("-LRB-", "-LRB-"), Leaf("PRP$", "b"), Leaf(",", ","), Leaf("``", "``")]


def random_trees(count: int, seed: int) -> list[Tree]:
    """Of every form: one child or several, brackets beside words, more than one child of the root."""
    draw = random.Random(seed)

    def children(depth: int) -> Iterator[Tree | Leaf]:
        for _ in range(draw.randint(1, 3)):
            bracket = depth and draw.random() < 0.6
            yield Tree(draw.choice(LABELS), tuple(children(depth - 1))) if bracket else draw.choice(LEAVES)

    return [Tree("TOP", tuple(children(draw.randint(1, 5)))) for _ in range(count)]


def read_one(text: str) -> Tree:
    (tree,) = parse_brackets(text.splitlines())
    return tree


def grammar_trees(count: int, seed: int) -> Iterator[Tree]:
    """`with` belongs to the verb, `of` to the noun: what a bracket spans depends on a word."""
    draw = random.Random(seed)

    def noun_phrase(depth: int) -> Tree:
        middle = [Leaf("JJ", draw.choice(["red", "old"]))] if draw.random() < 0.4 else []
        noun = Tree("NP", (Leaf("DT", "the"), *middle, Leaf("NN", draw.choice(["dog", "cat", "king", "saw"]))))
        if depth and draw.random() < 0.5:
            return Tree("NP", (noun, Tree("PP", (Leaf("IN", "of"), noun_phrase(depth - 1)))))
        return noun

    for _ in range(count):
        verb: list[Tree | Leaf] = [Leaf("VBZ", draw.choice(["sees", "saw", "likes"])), noun_phrase(1)]
        if draw.random() < 0.5:
            verb.append(Tree("PP", (Leaf("IN", "with"), noun_phrase(0))))
        yield Tree("ROOT", (Tree("S", (noun_phrase(1), Tree("VP", tuple(verb)), Leaf(".", "."))),))
