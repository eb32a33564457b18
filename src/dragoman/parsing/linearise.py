"""Turns a tree into a sequence of symbols and back: words -> `(S (NP (DT) (NN) )NP (VP (VBZ) )VP )S`.

Opening and closing brackets carry their label; each word is replaced by its part-of-speech tag. The root is the same in
every tree and is left out. For the model, the place of each word is marked as well. Why so: docs/decisions/010.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from dragoman.parsing.trees import TOP, Leaf, Tree

SymbolKind = Literal["open", "close", "word"]


def symbol_of(kind: SymbolKind, label: str) -> str:
    """A symbol as text. It cannot be confused with a word: words have no round brackets."""
    match kind:
        case "open":
            return f"({label}"
        case "close":
            return f"){label}"
        case "word":
            return f"({label})"


PLACES = 64  # after so many words the marks repeat: two words with the same mark are far apart


def place_mark(number: int) -> str:
    """The mark for the place of a word in its sentence: before the word in the source, after its tag in the target. It
    can be neither a symbol nor a word."""
    return f"(){number % PLACES}"


def read_symbol(symbol: str) -> tuple[SymbolKind, str] | None:
    """The kind and the label of a symbol; None if the text is no symbol."""
    if symbol.startswith("("):
        label = symbol[1:].removesuffix(")")
        kind: SymbolKind = "word" if symbol.endswith(")") else "open"
        return (kind, label) if label and not set(label) & set("()") else None
    if symbol.startswith(")") and len(symbol) > 1 and not set(symbol[1:]) & set("()"):
        return "close", symbol[1:]
    return None


def linearise(tree: Tree) -> list[str]:
    """The symbols of a stripped tree without its root."""
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
    """The state of a prefix of symbols: which brackets are open, and how many words have their tag."""

    words: int = 0
    open: list[str] = field(default_factory=list)
    empty: bool = True  # the innermost open bracket (or the root) has no child yet

    def fault(self, kind: SymbolKind, label: str) -> str | None:
        """Why the symbol cannot follow in any well-formed tree; None if it can."""
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
    """The first reason why the symbols are not a tree over these words; None if they are."""
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
    """The tree over these words; None if the symbols are not well-formed, as nothing is repaired."""
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
