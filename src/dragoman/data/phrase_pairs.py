"""Finds words and short phrases of sentence pairs that translate each other, and places that are the same on both
sides.

A model that has only seen whole sentences turns a single word into a sentence. Training on such phrases prevents that.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from dragoman.data.corpus import SentencePair

Lexicon = Mapping[str, str]  # a source word's one translation

_LINKS = 8_000_000  # combinations of a source and a target word of one pair that are counted: some 200 MB
_LEAST_COUNT = 3  # pairs that have both words
_LEAST_DICE = 0.4
_MOST_WORDS = 4  # of a phrase


def learn_lexicon(pairs: Iterable[SentencePair]) -> Lexicon:
    """Finds words that are each other's best translation, by Dice's coefficient of the sentences that they are in."""
    numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
    counts: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    links: list[np.ndarray] = []
    seen = 0
    for pair in pairs:
        sides = []
        for side, text in enumerate(pair):
            known = numbers[side]
            word_numbers = {known.setdefault(word, len(known)) for word in words_of(text)}
            counts[side].update(word_numbers)
            sides.append(np.fromiter(word_numbers, np.int64, len(word_numbers)))
        links.append((sides[0][:, None] * 2**32 + sides[1]).ravel())
        seen += len(links[-1])
        if seen > _LINKS:
            break
    if not links:
        return {}
    both, together = np.unique(np.concatenate(links), return_counts=True)
    frequent = together >= _LEAST_COUNT
    sources, targets = np.divmod(both[frequent], 2**32)
    source_counts, target_counts = (
        np.fromiter((count[i] for i in range(len(known))), np.int64, len(known))
        for count, known in zip(counts, numbers, strict=True)
    )
    dice = 2 * together[frequent] / (source_counts[sources] + target_counts[targets])
    best_of_source, best_of_target = np.zeros(len(source_counts)), np.zeros(len(target_counts))
    np.maximum.at(best_of_source, sources, dice)
    np.maximum.at(best_of_target, targets, dice)
    mutual = (dice >= _LEAST_DICE) & (dice == best_of_source[sources]) & (dice == best_of_target[targets])
    names = [list(known) for known in numbers]
    return {names[0][s]: names[1][t] for s, t in zip(sources[mutual].tolist(), targets[mutual].tolist(), strict=True)}


class Link(NamedTuple):
    """A word or phrase and its translation in a pair: the characters that they take of the source and of the target."""

    source: tuple[int, int]
    target: tuple[int, int]


def phrase_of(pair: SentencePair, lexicon: Lexicon, draw: random.Random) -> SentencePair:
    """Draws a phrase of a pair. A pair without one is returned whole."""
    if not (phrases := linked_phrases(pair, lexicon)):
        return pair
    source, target = draw.choice(phrases)
    return pair[0][slice(*source)], pair[1][slice(*target)]


def linked_phrases(pair: SentencePair, lexicon: Lexicon) -> list[Link]:
    """Finds the phrases of a pair: up to four consecutive words of the source, whose translations are so too."""
    source, target, linked = _linked_words(pair, lexicon)
    phrases = []
    for first in range(len(linked)):
        places: list[int] = []
        for last in range(first, min(first + _MOST_WORDS, len(linked))):
            translated = linked[last]
            if translated is None or translated in places:
                break
            places.append(translated)
            low, high = min(places), max(places)
            if high - low == last - first:
                in_source, in_target = (
                    (source[first].start(), source[last].end()),
                    (target[low].start(), target[high].end()),
                )
                phrases.append(Link(in_source, in_target))
    return phrases


def places_between_words(pair: SentencePair, lexicon: Lexicon) -> list[tuple[int, int]]:
    """Finds places that are the same on both sides: behind a word and its translation, if a space follows both, and all
    links before that word lead to before that translation, and all after it to after it."""
    source, target, linked = _linked_words(pair, lexicon)
    order = [(place, translated) for place, translated in enumerate(linked) if translated is not None]
    found = []
    for number, (place, translated) in enumerate(order):
        before, after = order[:number], order[number + 1 :]
        if all(t < translated for _, t in before) and all(t > translated for _, t in after):
            at = source[place].end(), target[translated].end()
            if all(text[end : end + 1].isspace() for text, end in zip(pair, at, strict=True)):
                found.append(at)
    return found


def _linked_words(
    pair: SentencePair, lexicon: Lexicon
) -> tuple[list[re.Match[str]], list[re.Match[str]], list[int | None]]:
    """Finds the words of both sides, and for each of the source the number of its translation among the target's."""
    source, target = (list(re.finditer(r"\w+", text)) for text in pair)
    targets: dict[str, int | None] = {}
    for place, word in enumerate(target):
        name = word[0].casefold()
        targets[name] = None if name in targets else place  # of a word that is there twice, neither can be chosen
    return source, target, [targets.get(lexicon.get(word[0].casefold(), "")) for word in source]


def words_of(text: str) -> list[str]:
    """The words of a text, without case."""
    return [word.casefold() for word in re.findall(r"\w+", text)]
