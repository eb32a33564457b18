"""A tree as a sequence of symbols, and back: words -> `(S (NP (DT) (NN) )NP (VP (VBZ) )VP )S`.

Opening and closing brackets carry their label; in the place of each word stands its part of speech. The root is the
same in every tree and is left out. Why so: docs/decisions/010.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dragoman.parsing.trees import TOP, Leaf, Tree

Kind = Literal["open", "close", "word"]


def symbol_of(kind: Kind, label: str) -> str:
    """No symbol can be a word: those have no round brackets."""
    match kind:
        case "open":
            return f"({label}"
        case "close":
            return f"){label}"
        case "word":
            return f"({label})"


def read_symbol(symbol: str) -> tuple[Kind, str] | None:
    """The kind of a symbol and its label; None: no symbol of a tree."""
    if symbol.startswith("("):
        label = symbol[1:].removesuffix(")")
        kind: Kind = "word" if symbol.endswith(")") else "open"
        return (kind, label) if label and not set(label) & set("()") else None
    if symbol.startswith(")") and len(symbol) > 1 and not set(symbol[1:]) & set("()"):
        return "close", symbol[1:]
    return None


def linearise(tree: Tree) -> list[str]:
    """The symbols of a stripped tree, its root left out."""
    symbols: list[str] = []

    def visit(node: Tree | Leaf) -> None:
        if isinstance(node, Leaf):
            symbols.append(symbol_of("word", node.tag))
            return
        symbols.append(symbol_of("open", node.label))
        for child in node.children:
            visit(child)
        symbols.append(symbol_of("close", node.label))

    for child in tree.children:
        visit(child)
    return symbols


@dataclass
class Shape:
    """A prefix of a sequence as far as its form goes: which brackets are open, and how many words have been placed."""

    words: int = 0
    open: list[str] = field(default_factory=list)
    empty: bool = True  # the innermost open bracket (or the root) has no child yet

    def may(self, kind: Kind, label: str) -> bool:
        """Whether the symbol can stand here in some well-formed tree."""
        return kind != "close" or (bool(self.open) and not self.empty and self.open[-1] == label)

    def add(self, kind: Kind, label: str) -> None:
        match kind:
            case "open":
                self.open.append(label)
                self.empty = True
            case "close":
                self.open.pop()
                self.empty = False
            case "word":
                self.words += 1
                self.empty = False


def rebuild(symbols: Iterable[str], words: Sequence[str]) -> Tree | None:
    """The tree over these words; None where the symbols do not make exactly one: nothing is repaired."""
    shape = Shape()
    levels: list[list[Tree | Leaf]] = [[]]
    for symbol in symbols:
        read = read_symbol(symbol)
        if read is None or not shape.may(*read) or (read[0] == "word" and shape.words == len(words)):
            return None
        kind, label = read
        match kind:
            case "open":
                levels.append([])
            case "close":
                below = levels.pop()
                levels[-1].append(Tree(label, tuple(below)))
            case "word":
                levels[-1].append(Leaf(label, words[shape.words]))
        shape.add(kind, label)
    complete = not shape.open and shape.words == len(words) > 0
    return Tree(TOP, tuple(levels[0])) if complete else None
