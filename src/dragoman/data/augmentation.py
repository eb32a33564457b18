"""Data augmentation: writes a training pair in another way. It is cut into other subwords (BPE dropout), or its text is
changed (text_changes.py).

A view is a version of the whole training text; of several, view 0 is the text as it is. What becomes of a pair in
another view depends on (seed, view, row) alone, and on the rows that follow where it is joined with them; so views can
be made once, before training, and on any number of cores. The tags before a source are not part of the sentence, and
stay the same in every view.
"""

import math
import random
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from dragoman.config import DataConfig, language_tag
from dragoman.data.corpus import SentencePair
from dragoman.data.phrase_pairs import Lexicon
from dragoman.data.text_changes import rewrite
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError

_VARIANTS = 16  # ways in which a view may cut each word into subwords
_ROWS_AHEAD = 16  # among which a pair finds others to be joined with


@dataclass(frozen=True)
class Chunk:
    """Consecutive pairs of the training set."""

    first_row: int
    pairs: Sequence[SentencePair]
    following: Sequence[SentencePair] = ()  # the rows after these, so that a pair at the end has neighbours too


def chunks_of(pairs: Iterator[SentencePair], size: int) -> Iterator[Chunk]:
    """Cuts the training set into chunks of this many pairs."""
    first_row, rows = 0, list(islice(pairs, size + _ROWS_AHEAD))
    while rows:
        yield Chunk(first_row, rows[:size], rows[size : size + _ROWS_AHEAD])
        first_row += size
        rows = [*rows[size:], *islice(pairs, size)]


def known_tags(tokenizer: Tokenizer, config: DataConfig) -> frozenset[str]:
    """Collects the tags that the corpora are given, and those of the vocabulary: the text of a fine-tuned run may have
    them in it.

    Our vocabularies have each tag as a piece with a score of zero. So have the marks of inline case, and of the learned
    pieces only the first; these are at most two characters long.
    """
    ranks = {} if tokenizer.is_imported else tokenizer.merge_ranks()
    vocabulary_tags = (
        piece[1:] for piece, (rank, _) in ranks.items() if rank == 0 and piece.startswith("▁") and len(piece) > 2
    )
    languages = [] if tokenizer.has_language_tokens else tokenizer.languages
    return frozenset((*config.tags, *map(language_tag, languages), *vocabulary_tags))


def split_tags(source: str, tags: Collection[str]) -> tuple[str, str]:
    """Splits a source into the tags that it begins with, and the sentence itself."""
    sentence = source
    while (word := sentence.partition(" ")[0]) in tags:
        sentence = sentence[len(word) + 1 :]
    return source[: len(source) - len(sentence)], sentence


def encode_chunk(
    chunk: Chunk,
    tokenizer: Tokenizer,
    lexicon: Lexicon,
    tags: Collection[str],
    config: DataConfig,
    seed: int,
    view: int,
) -> list[list[int]]:
    """Encodes a chunk as this view has it: source and target ids in turn. A pair that would become too long or empty is
    left as it is."""
    draws = [
        random.Random(f"{seed} {view} {row}") for row in range(chunk.first_row, chunk.first_row + len(chunk.pairs))
    ]
    split = [(*split_tags(source, tags), target) for source, target in (*chunk.pairs, *chunk.following)]
    texts = []
    for row, draw in enumerate(draws):
        source_tags, sentence, target = split[row]
        ahead = split[row + 1 : row + 1 + _ROWS_AHEAD]
        alike = [(other, its_target) for its_tags, other, its_target in ahead if its_tags == source_tags]
        sentence, target = rewrite((sentence, target), lexicon, config, draw, alike)
        texts += [source_tags + sentence, target]
    if config.bpe_dropout:
        subwords = BpeDropout(tokenizer, tags, config.bpe_dropout, f"{seed} {view}")
        words = map(words_of, tokenizer.normalised_batch(texts))
        ids = [subwords.encode(side, draws[place // 2]) for place, side in enumerate(words)]
    else:
        ids = _in_turn(tokenizer, list(zip(texts[::2], texts[1::2], strict=True)))
    unfit = [
        row
        for row, sides in enumerate(zip(ids[::2], ids[1::2], strict=True))
        if not all(0 < len(side) <= config.max_length for side in sides)
    ]
    plain = _in_turn(tokenizer, [chunk.pairs[row] for row in unfit])
    for place, row in enumerate(unfit):
        ids[2 * row : 2 * row + 2] = plain[2 * place : 2 * place + 2]
    return ids


def _in_turn(tokenizer: Tokenizer, pairs: Sequence[SentencePair]) -> list[list[int]]:
    return [side for pair in tokenizer.encode_pairs(pairs) for side in pair]


class BpeDropout:
    """Cuts words into subwords at random: at each step of merging, each merge is left out with some probability.

    This is algorithm 1 of Provilkov et al. 2020. sentencepiece can sample too, but its draws differ from process to
    process, whatever the seed. Each word has up to _VARIANTS variants, which are drawn when first needed and then kept.
    Tags and the marks of inline case stay whole: merging cannot give a piece that was not learned.
    """

    def __init__(self, tokenizer: Tokenizer, tags: Collection[str], probability: float, key: str) -> None:
        self._tokenizer, self._probability, self._key = tokenizer, probability, key
        self._ranks = tokenizer.merge_ranks()
        self._whole = {tokenizer.normalised_batch([tag])[0]: tokenizer.encode(tag) for tag in tags}
        self._whole |= {mark: [token] for mark, token in tokenizer.case_marks.items()}
        self._variants: dict[tuple[str, int], list[int]] = {}

    def encode(self, words: Sequence[str], draw: random.Random) -> list[int]:
        """Encodes words, each by one of its variants, chosen with `draw`."""
        ids: list[int] = []
        for word in words:
            if (whole := self._whole.get(word)) is not None:
                ids += whole
                continue
            wanted = (word, int(draw.random() * _VARIANTS))
            if (variant := self._variants.get(wanted)) is None:
                variant = self._variants[wanted] = self._merge(word, random.Random(f"{self._key} {wanted[1]} {word}"))
            ids += variant
        return ids

    def _merge(self, word: str, draw: random.Random) -> list[int]:
        """Merges the characters of a word to subwords, and leaves merges out at random."""
        parts, ranks, probability = list(word), self._ranks, self._probability
        while True:
            best, at = math.inf, 0
            for place in range(1, len(parts)):
                found = ranks.get(parts[place - 1] + parts[place])
                if found is not None and found[0] < best and (not probability or draw.random() >= probability):
                    best, at = found[0], place
            if not at:
                break
            parts[at - 1 : at + 1] = [parts[at - 1] + parts[at]]
        ids: list[int] = []
        for part in parts:
            ids += [ranks[part][1]] if part in ranks else self._tokenizer.spelt(part)
        return ids


def words_of(normalised: str) -> list[str]:
    """Splits a normalised text into words, each with the ▁ before it. No piece spans two of them."""
    return re.findall("▁[^▁]*|^[^▁]+", normalised)


def require_bpe(tokenizer: Tokenizer, texts: Sequence[str], tags: Collection[str] = ()) -> None:
    """Raises a DataError unless merging as above, with no merge left out, encodes the texts as the tokenizer does."""
    if tokenizer.is_imported:
        raise DataError(
            "data.bpe_dropout: an imported model has its own tokenizer, which cuts words in one way only; "
            "leave bpe_dropout out"
        )
    merging = BpeDropout(tokenizer, tags, 0.0, "")
    draw = random.Random(0)
    merged = [merging.encode(words_of(text), draw) for text in tokenizer.normalised_batch(texts)]
    if merged != tokenizer.encode_batch(texts):
        raise DataError(
            "data.bpe_dropout: this tokenizer does not merge within words, as BPE does; leave bpe_dropout out, or "
            "leave data.tokenizer out, so that one is learned"
        )
