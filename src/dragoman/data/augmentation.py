"""Other ways to write a training pair: cut into other pieces, in capitals, a phrase of it, with slips of the pen.

A view is the whole training text written anew. View 0 is the text as it is; what becomes of a pair in another view
depends on (seed, view, row) alone, so that views can be made once, before training, and on any number of cores. The
tags before a source are no part of the sentence, and the same in every view.
"""

import math
import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dragoman.config import DataConfig, language_tag
from dragoman.data.corpus import SentencePair
from dragoman.data.phrase_pairs import Lexicon, phrase_of
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError

_VARIANTS = 16  # of each word in a view
_LETTERS_TO_ERR_IN = 4  # shorter words become other words too easily
_ERR_IN_ONE_OF = 5  # words of a sentence that has typos


@dataclass(frozen=True)
class Chunk:
    """Pairs that follow each other in the training set."""

    first_row: int
    pairs: Sequence[SentencePair]


def known_tags(tokenizer: Tokenizer, config: DataConfig) -> frozenset[str]:
    """Those that corpora are given, and those of the vocabulary: the text of a fine-tuned run has them in it.

    A vocabulary of ours has each as a piece of its own, with a score of zero. Of the pieces that were learned only the
    first has that, and it is two characters long.
    """
    own = (
        piece[1:]
        for piece, (rank, _) in tokenizer.merge_ranks().items()
        if rank == 0 and piece.startswith("▁") and len(piece) > 2
    )
    return frozenset((*config.tags, *map(language_tag, tokenizer.languages), *own))


def split_tags(source: str, tags: Collection[str]) -> tuple[str, str]:
    """The tags that a source begins with, and the sentence itself."""
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
    """Source and target ids in turn. Where they would be too long or none, the pair is left as it is."""
    draws = [
        random.Random(f"{seed} {view} {row}") for row in range(chunk.first_row, chunk.first_row + len(chunk.pairs))
    ]
    texts = []
    for (source, target), draw in zip(chunk.pairs, draws, strict=True):
        before, sentence = split_tags(source, tags)
        sentence, target = rewrite((sentence, target), lexicon, config, draw)
        texts += [before + sentence, target]
    if config.bpe_dropout:
        subwords = BpeDropout(tokenizer, tags, config.bpe_dropout, f"{seed} {view}")
        words = map(words_of, tokenizer.normalised_batch(texts))
        ids = [subwords.encode(side, draws[place // 2]) for place, side in enumerate(words)]
    else:
        ids = tokenizer.encode_batch(texts)
    unfit = [
        row
        for row, sides in enumerate(zip(ids[::2], ids[1::2], strict=True))
        if not all(0 < len(side) <= config.max_length for side in sides)
    ]
    plain = tokenizer.encode_batch([side for row in unfit for side in chunk.pairs[row]])
    for place, row in enumerate(unfit):
        ids[2 * row : 2 * row + 2] = plain[2 * place : 2 * place + 2]
    return ids


class BpeDropout:
    """Words cut into other pieces: at each step of merging, each merge is left out with some probability.

    Provilkov et al. 2020, algorithm 1. sentencepiece can sample too, but what it draws differs from process to process,
    whatever the seed. Of each word there are so many variants, drawn when first asked for: a frequent word has few
    others, and a rare one is not seen more often. Tags stay whole: no merges lead to a piece that was not learned.
    """

    def __init__(self, tokenizer: Tokenizer, tags: Collection[str], probability: float, key: str) -> None:
        self._tokenizer, self._probability, self._key = tokenizer, probability, key
        self._ranks = tokenizer.merge_ranks()
        self._whole = {tokenizer.normalised_batch([tag])[0]: tokenizer.encode(tag) for tag in tags}
        self._variants: dict[tuple[str, int], list[int]] = {}

    def encode(self, words: Sequence[str], draw: random.Random) -> list[int]:
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
    """Each with the ▁ before it: no piece goes beyond one."""
    return re.findall("▁[^▁]*|^[^▁]+", normalised)


def require_bpe(tokenizer: Tokenizer, texts: Sequence[str], tags: Collection[str] = ()) -> None:
    """That merging as above gives what the tokenizer gives, where no merge is left out."""
    merging = BpeDropout(tokenizer, tags, 0.0, "")
    draw = random.Random(0)
    merged = [merging.encode(words_of(text), draw) for text in tokenizer.normalised_batch(texts)]
    if merged != tokenizer.encode_batch(texts):
        raise DataError(
            "data.bpe_dropout: this tokenizer does not merge within words, as BPE does; leave bpe_dropout out, or "
            "leave data.tokenizer out, so that one is learned"
        )


def rewrite(pair: SentencePair, lexicon: Lexicon, config: DataConfig, draw: random.Random) -> SentencePair:
    """At most one change to the text, each with the share of pairs that the configuration gives it."""
    source, target = pair
    lot = draw.random()
    if (lot := lot - config.upper_case) < 0:
        return source.upper(), target.upper()
    if (lot := lot - config.title_case) < 0:
        return title_case(source), title_case(target)
    if (lot := lot - config.short_phrases) < 0:
        return phrase_of(pair, lexicon, draw)
    if lot - config.typos < 0:
        return with_typos(source, draw), target  # read with them, written without
    return pair


def title_case(text: str) -> str:
    """Like This. str.title would write Don'T."""
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))


def with_typos(text: str, draw: random.Random) -> str:
    """One word in five, and at least one: two letters exchanged, one left out, doubled, or a wrong one."""
    words = text.split(" ")
    long_enough = [place for place, word in enumerate(words) if sum(map(str.isalpha, word)) >= _LETTERS_TO_ERR_IN]
    for place in draw.sample(long_enough, -(-len(long_enough) // _ERR_IN_ONE_OF)):
        words[place] = misspelt(words[place], draw)
    return " ".join(words)


def misspelt(word: str, draw: random.Random) -> str:
    at = draw.randrange(1, len(word))  # the first letter is seldom the wrong one
    match draw.choice(("exchange", "leave out", "double", "wrong")):
        case "exchange":
            return word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]
        case "leave out":
            return word[:at] + word[at + 1 :]
        case "double":
            return word[:at] + word[at] + word[at:]
        case _:
            return word[:at] + draw.choice([letter for letter in word if letter.isalpha()]) + word[at + 1 :]
