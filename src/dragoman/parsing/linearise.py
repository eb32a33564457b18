"""A tree as a sequence of symbols, and back: words -> `(S (NP (DT) (NN) )NP (VP (VBZ) )VP )S`.

Opening and closing brackets carry their label; in the place of each word stands its part of speech. The root is the
same in every tree and is left out. For the model each word's place is marked as well. Why so: docs/decisions/010.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from dragoman.parsing.trees import TOP, Leaf, Tree

SymbolKind = Literal["open", "close", "word"]


def symbol_of(kind: SymbolKind, label: str) -> str:
    """No symbol can be a word: those have no round brackets."""
    match kind:
        case "open":
            return f"({label}"
        case "close":
            return f"){label}"
        case "word":
            return f"({label})"


PLACES = 64  # after so many words the marks begin anew: two words with the same one are far apart


def place_mark(number: int) -> str:
    """The mark of the place of a sentence's word: before the word in the source, after its tag in the target. It is no
    symbol, and no word has round brackets."""
    return f"(){number % PLACES}"


def read_symbol(symbol: str) -> tuple[SymbolKind, str] | None:
    """The kind of a symbol and its label; None: no symbol of a tree."""
    if symbol.startswith("("):
        label = symbol[1:].removesuffix(")")
        kind: SymbolKind = "word" if symbol.endswith(")") else "open"
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

    def fault(self, kind: SymbolKind, label: str) -> str | None:
        """Why the symbol cannot stand here in any well-formed tree; None: it can."""
        if kind != "close" or (self.open and not self.empty and self.open[-1] == label):
            return None
        if not self.open:
            return "closes a bracket that was never opened"
        if self.open[-1] != label:
            return f"stands where ({self.open[-1]} is to be closed"
        return "closes an empty bracket"

    def add(self, kind: SymbolKind, label: str) -> None:
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


def fault(symbols: Sequence[str], words: Sequence[str]) -> str | None:
    """Why the symbols are no tree over these words, at the first place where they cannot be; None: they are one."""
    shape = Shape()
    for number, symbol in enumerate(symbols, start=1):
        read = read_symbol(symbol)
        if read is None:
            return f"symbol {number}, {symbol}, is neither a bracket nor a tag"
        if (wrong := shape.fault(*read)) is not None:
            return f"symbol {number}, {symbol}, {wrong}"
        if read[0] == "word" and shape.words == len(words):
            return f"symbol {number}, {symbol}, is the tag of one word too many: there are {len(words)}"
        shape.add(*read)
    if shape.open:
        return f"never closed: {' '.join(f'({label}' for label in shape.open)}"
    if shape.words < len(words) or not words:
        return f"tags for {shape.words} of {len(words)} words"
    return None


def rebuild(symbols: Sequence[str], words: Sequence[str]) -> Tree | None:
    """The tree over these words; None where the symbols do not make exactly one: nothing is repaired."""
    if fault(symbols, words) is not None:
        return None
    levels: list[list[Tree | Leaf]] = [[]]
    unplaced = iter(words)
    for kind, label in filter(None, map(read_symbol, symbols)):
        match kind:
            case "open":
                levels.append([])
            case "close":
                below = levels.pop()
                levels[-1].append(Tree(label, tuple(below)))
            case "word":
                levels[-1].append(Leaf(label, next(unplaced)))
    return Tree(TOP, tuple(levels[0]))
