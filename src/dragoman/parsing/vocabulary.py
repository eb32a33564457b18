"""The vocabulary of a parser: a sentencepiece model, as a translator has.

Each tree symbol is one token, and so is each place mark. With units "words", a word is one token too, and rare words
share a token with others of the same form (`<rare:Xx:ing>`); with "subwords", words are split into subwords.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from dragoman.data.tokenizer import Tokenizer, train_model
from dragoman.errors import DataError
from dragoman.parsing.constraint import TreeSymbols
from dragoman.parsing.linearise import PLACES, linearise, place_mark, read_symbol
from dragoman.parsing.trees import Tree, escape_word

Units = Literal["words", "subwords"]

_RAREST = "<rare>"  # for rare words that fit no other class
_SPECIAL = 4  # padding, unknown, start, end
_BYTES = 256
_SUFFIXES = (
    *("ability", "ation", "ments", "ness", "ions", "ment", "able", "less", "ings", "ical", "ists", "ally"),
    *("ing", "ion", "ers", "est", "ful", "ous", "ive", "ity", "ial", "ist", "ize", "ise", "ies", "ish", "ate"),
    *("ed", "er", "ly", "al", "ic", "es", "or", "an", "en", "th", "y", "s", "e"),
)


class Vocabulary:
    """A tokenizer, and the tree symbols in it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        pieces = _pieces(tokenizer)
        self.symbols = _symbols(pieces)
        if not self.symbols.words or not self.symbols.opens or not self.symbols.places:
            raise DataError("the vocabulary has no brackets: not a parser's run; make one with `dragoman parse train`")
        self._names = {i: pieces[i] for i in self.symbols.meaning}
        self._known = set(pieces.values()) if _RAREST in pieces.values() else None  # None: words are spelt

    @property
    def units(self) -> Units:
        return "subwords" if self._known is None else "words"

    def source_text(self, words: Iterable[str]) -> str:
        """The sentence as a line for the tokenizer: each word after its place mark."""
        return " ".join(self.marked_words(words))

    def marked_words(self, words: Iterable[str]) -> list[str]:
        """Words with their place marks; those that the tokenizer does not know are replaced by their class."""
        known = self._known
        escaped = map(escape_word, words)  # no word is a symbol
        written = escaped if known is None else (_shown(word, known) for word in escaped)
        return [f"{place_mark(number)} {word}" for number, word in enumerate(written)]

    def read(self, ids: Sequence[int]) -> tuple[list[str], list[int]]:
        """The symbols of an output, and the step that wrote each. The right place mark after a tag is left out; any
        other token that is no symbol stays, and makes the output malformed."""
        symbols: list[str] = []
        steps: list[int] = []
        words = 0
        for step, token in enumerate(ids):
            if step and ids[step - 1] in self.symbols.words:
                words += 1
                if token == self.symbols.places[(words - 1) % len(self.symbols.places)]:
                    continue
            symbols.append(self._names.get(token) or self.tokenizer.piece(token))
            steps.append(step)
        return symbols, steps


def target_text(tree: Tree) -> str:
    """The tree as a line for the tokenizer: its symbols, and after each tag the place mark of the word."""
    written: list[str] = []
    words = 0
    for symbol in linearise(tree):
        written.append(symbol)
        kind, _ = read_symbol(symbol) or ("", "")
        if kind == "word":
            written.append(place_mark(words))
            words += 1
    return " ".join(written)


def is_of_trees(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer is a parser's; a translator's may have brackets, but no closing one for every label."""
    symbols = _symbols(_pieces(tokenizer))
    opened = {label for kind, label in symbols.meaning.values() if kind == "open"}
    return bool(symbols.words and opened) and opened == symbols.closes.keys()


def _pieces(tokenizer: Tokenizer) -> dict[int, str]:
    return {i: tokenizer.piece(i).removeprefix("▁") for i in range(tokenizer.vocab_size)}


def _symbols(pieces: Mapping[int, str]) -> TreeSymbols:
    ids = {piece: i for i, piece in pieces.items()}
    places = [ids[mark] for mark in map(place_mark, range(PLACES)) if mark in ids]
    return TreeSymbols.of({i: read for i, piece in pieces.items() if (read := read_symbol(piece))}, places)


def learn_vocabulary(trees: Sequence[Tree], units: Units, size: int, least_count: int = 2) -> Tokenizer:
    """A tokenizer with all symbols of the trees and as many of their words as fit into `size`.

    With units "words", a word seen less than `least_count` times is replaced by its class, so that classes are learned.
    """
    symbols = [*map(place_mark, range(PLACES)), *sorted({symbol for tree in trees for symbol in linearise(tree)})]
    counts = Counter(word for tree in trees for word in tree.words())
    match units:
        case "words":
            room = size - _SPECIAL - len(symbols) - 1
            words = [word for word, count in counts.most_common(room * 9 // 10) if count >= least_count]
            classes: Counter[str] = Counter()
            for word in counts.keys() - set(words):
                for name in word_classes(word):
                    classes[name] += counts[word]
            # From a class that is hardly ever seen nothing is learned: its words fall into a wider one.
            frequent = sorted(name for name, count in classes.most_common(room - len(words)) if count >= 3)
            frequent = [name for name in frequent if name != _RAREST]
            return Tokenizer(_word_model([_RAREST, *frequent, *symbols, *words]))
        case "subwords":
            sentences = [" ".join(tree.words()) for tree in trees]
            return Tokenizer(_subword_model(sentences, symbols, max(size, _SPECIAL + _BYTES + len(symbols) + 200)))


def _shown(word: str, known: set[str]) -> str:
    if word in known:
        return word
    return next((name for name in word_classes(word) if name in known), _RAREST)


def word_classes(word: str) -> list[str]:
    """The classes of a rare word by its form, narrowest first."""
    shape = _shape(word)
    lowered = word.lower()
    suffix = next((s for s in _SUFFIXES if lowered.endswith(s) and len(word) > len(s) + 1), "")
    narrow = [f"<rare:{shape}:{suffix}>"] if suffix and shape.isalpha() else []
    return [*narrow, f"<rare:{shape}>", _RAREST]


def _shape(word: str) -> str:
    """The form of a word: Xx capitalised, X all capitals, x lower case, 0 digits; and a hyphen or sign that it has."""
    if re.fullmatch(r"[\d.,:/]*\d[\d.,:/]*", word):
        return "0"
    if not any(c.isalnum() for c in word):
        return "."
    letters = [c for c in word if c.isalpha()]
    case = "0" if not letters else "x" if not any(c.isupper() for c in letters) else "Xx"
    if case == "Xx" and len(letters) > 1 and all(c.isupper() for c in letters):
        case = "X"
    elif case == "Xx" and not word[0].isupper():
        case = "xX"
    sign = "-" if "-" in word else "@" if re.search(r"@|www|://|\.\w{2,}", word) else ""
    return case + ("0" if letters and any(c.isdigit() for c in word) else "") + sign


def _word_model(words: Sequence[str]) -> bytes:
    return train_model(words, model_type="word", vocab_size=len(words) + _SPECIAL)


def _subword_model(sentences: Sequence[str], symbols: Sequence[str], size: int) -> bytes:
    return train_model(
        sentences,
        model_type="bpe",
        vocab_size=size,
        byte_fallback=True,
        user_defined_symbols=[f"▁{symbol}" for symbol in symbols],
    )
