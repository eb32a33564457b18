"""Short phrases out of sentence pairs: words that translate each other, and what stands between them.

A model that has only seen whole sentences makes a sentence of a single word. The pairs themselves hold the remedy.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from dragoman.data.corpus import SentencePair

Lexicon = Mapping[str, str]  # a source word's one translation

_LINKS = 8_000_000  # a source word and a target word in one pair: what is looked at, some 200 MB
_LEAST_COUNT = 3  # sentences that a word is in
_LEAST_DICE = 0.4
_MOST_WORDS = 4


def learn_lexicon(pairs: Iterable[SentencePair]) -> Lexicon:
    """Words that are each other's best translation by Dice's coefficient of the sentences they are in."""
    numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
    counts: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    links: list[np.ndarray] = []
    seen = 0
    for pair in pairs:
        sides = []
        for side, text in enumerate(pair):
            known = numbers[side]
            of_side = {known.setdefault(word, len(known)) for word in words_of(text)}
            counts[side].update(of_side)
            sides.append(np.fromiter(of_side, np.int64, len(of_side)))
        links.append((sides[0][:, None] * 2**32 + sides[1]).ravel())
        seen += len(links[-1])
        if seen > _LINKS:
            break
    if not links:
        return {}
    both, together = np.unique(np.concatenate(links), return_counts=True)
    frequent = together >= _LEAST_COUNT
    sources, targets = np.divmod(both[frequent], 2**32)
    of_source, of_target = (
        np.fromiter((count[i] for i in range(len(known))), np.int64, len(known))
        for count, known in zip(counts, numbers, strict=True)
    )
    dice = 2 * together[frequent] / (of_source[sources] + of_target[targets])
    best_of_source, best_of_target = np.zeros(len(of_source)), np.zeros(len(of_target))
    np.maximum.at(best_of_source, sources, dice)
    np.maximum.at(best_of_target, targets, dice)
    mutual = (dice >= _LEAST_DICE) & (dice == best_of_source[sources]) & (dice == best_of_target[targets])
    names = [list(known) for known in numbers]
    return {names[0][s]: names[1][t] for s, t in zip(sources[mutual].tolist(), targets[mutual].tolist(), strict=True)}


def phrase_of(pair: SentencePair, lexicon: Lexicon, draw: random.Random) -> SentencePair:
    """Up to four words of the source that follow each other and whose translations do too; else the pair itself."""
    source, target = (list(re.finditer(r"\w+", text)) for text in pair)
    targets: dict[str, int | None] = {}
    for place, word in enumerate(target):
        name = word[0].casefold()
        targets[name] = None if name in targets else place  # one that is there twice says nothing
    linked = [targets.get(lexicon.get(word[0].casefold(), "")) for word in source]
    phrases = []
    for first in range(len(linked)):
        places: list[int] = []
        for last in range(first, min(first + _MOST_WORDS, len(linked))):
            translated = linked[last]
            if translated is None or translated in places:
                break
            places.append(translated)
            if max(places) - min(places) == last - first:
                phrases.append((first, last, min(places), max(places)))
    if not phrases:
        return pair
    first, last, low, high = draw.choice(phrases)
    return (
        pair[0][source[first].start() : source[last].end()],
        pair[1][target[low].start() : target[high].end()],
    )


def words_of(text: str) -> list[str]:
    return [word.casefold() for word in re.findall(r"\w+", text)]
