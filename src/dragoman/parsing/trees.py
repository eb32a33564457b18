"""Reads and writes trees in Penn brackets, and strips them to what a parser learns.

In a file, each tree may be on one line or on several; errors name the file and the line.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dragoman.data.corpus import name_of, read_lines
from dragoman.errors import DataError

TOP = "TOP"  # the label of every root: the only name of it that COLLINS.prm deletes
_ROOTS = {"", "TOP", "ROOT", "S1"}  # the names that treebanks give it
_EMPTY = "-NONE-"
_DEEPEST = 400  # deeper than the tree of any sentence, and well within Python's stack
_TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)


@dataclass(frozen=True)
class Leaf:
    """A word and its part of speech."""

    tag: str
    word: str


@dataclass(frozen=True)
class Tree:
    """A bracket over one or more children."""

    label: str
    children: tuple["Tree | Leaf", ...]

    def leaves(self) -> Iterator[Leaf]:
        for child in self.children:
            if isinstance(child, Leaf):
                yield child
            else:
                yield from child.leaves()

    def words(self) -> list[str]:
        return [leaf.word for leaf in self.leaves()]

    def __str__(self) -> str:
        return write(self)


def write(node: Tree | Leaf) -> str:
    """The tree on one line: `(TOP (S (NP (PRP it)) (VP (VBZ works))))`."""
    if isinstance(node, Leaf):
        return f"({node.tag} {node.word})"
    return f"({node.label} {' '.join(map(write, node.children))})"


def write_indented(node: Tree | Leaf, indent: int = 0) -> str:
    """The tree on several lines, as treebanks write it; a bracket that holds only words stays on one line."""
    if isinstance(node, Leaf) or all(isinstance(child, Leaf) for child in node.children):
        return write(node)
    inner = " " * (indent + 2)
    return "\n".join([f"({node.label}", *(inner + write_indented(c, indent + 2) for c in node.children)]) + ")"


def read_trees(file: str | Path | BinaryIO) -> Iterator[Tree]:
    """The trees of a file or stream (.gz too), unchanged."""
    return parse_brackets(read_lines(file), name_of(file))


def parse_brackets(lines: Iterable[str], name: str = "input") -> Iterator[Tree]:
    """The trees in these lines. A tree ends where its first bracket is closed; the next may begin on the same line."""
    stack: list[tuple[list[str], list[Tree | Leaf]]] = []  # of each open bracket: its bare words, its children
    began = 0
    for number, line in enumerate(lines, start=1):
        for token in _TOKEN.findall(line):
            where = f"{name}:{number}"
            if not stack:
                _require_opening(token, where)
                began = number
            match token:
                case "(":
                    if len(stack) == _DEEPEST:
                        raise DataError(f"{where}: brackets more than {_DEEPEST} deep; is a closing bracket missing?")
                    stack.append(([], []))
                case ")":
                    node = _node(*stack.pop(), where)
                    if stack:
                        stack[-1][1].append(node)
                    else:
                        yield Tree("", (node,)) if isinstance(node, Leaf) else node
                case _:
                    _add_word(token, *stack[-1], where)
    if stack:
        raise DataError(f"{name}:{began}: {len(stack)} brackets of the tree that begins here are never closed")


def _require_opening(token: str, where: str) -> None:
    if token != "(":
        what = "a closing bracket without its opening one" if token == ")" else f"{token[:40]!r} outside brackets"
        raise DataError(f"{where}: {what}; a tree is written (LABEL (TAG word) ...)")


def _add_word(word: str, texts: list[str], children: list[Tree | Leaf], where: str) -> None:
    if children:
        raise DataError(f"{where}: the word {word[:40]!r} beside brackets; write it as (TAG {word[:40]})")
    texts.append(word)


def _node(texts: list[str], children: list[Tree | Leaf], where: str) -> Tree | Leaf:
    if children and len(texts) <= 1:
        return Tree(texts[0] if texts else "", tuple(children))
    if not children and len(texts) == 2:
        return Leaf(*texts)
    found = " ".join(texts)[:40]
    raise DataError(f"{where}: the bracket ({found}) is neither (TAG word) nor (LABEL with brackets in it); correct it")


def strip_tree(tree: Tree) -> Tree | None:
    """The tree as it is learned and scored: without empty nodes and function tags, and with TOP as the root.

    NP-SBJ-1 and NP=2 become NP; tags of words stay as they are. None if the tree has nothing but empty nodes.
    """
    children = _stripped(tree.children)
    if not children:
        return None
    label = _bare(tree.label)
    return Tree(TOP, children) if label in _ROOTS else Tree(TOP, (Tree(label, children),))


def _stripped(children: Iterable[Tree | Leaf]) -> tuple[Tree | Leaf, ...]:
    stripped: list[Tree | Leaf] = []
    for child in children:
        if isinstance(child, Leaf):
            if child.tag != _EMPTY:
                stripped.append(child)
        elif below := _stripped(child.children):
            stripped.append(Tree(_bare(child.label), below))
    return tuple(stripped)


def _bare(label: str) -> str:
    """A label without function tags and indices. One that begins with a hyphen, such as -LRB-, is a name."""
    return label if label[:1] in "-=" else re.split("[-=]", label, maxsplit=1)[0]


def read_stripped(file: str | Path | BinaryIO) -> list[Tree]:
    """The trees of a file, stripped; trees of nothing but empty nodes are left out."""
    return [tree for tree in map(strip_tree, read_trees(file)) if tree is not None]


_ESCAPES = {"(": "-LRB-", ")": "-RRB-"}


def escape_word(word: str) -> str:
    """A word as it is written in a tree: its round brackets become -LRB- and -RRB-."""
    return re.sub("[()]", lambda match: _ESCAPES[match[0]], word)


def right_branching(leaves: Iterable[Leaf]) -> Tree:
    """A baseline without knowledge: after each word, one bracket over all the rest."""
    *rest, last = leaves
    children: tuple[Tree | Leaf, ...] = (last,)
    for leaf in reversed(rest):
        children = (leaf, children[0] if len(children) == 1 else Tree("VP", children))
    return Tree(TOP, (Tree("S", children),))
