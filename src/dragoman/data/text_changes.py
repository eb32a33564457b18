"""Changes the text of training pairs: capitals, phrases, typos, what stands between words, several sentences as one.

What a change makes of a pair depends on the pair, the rows that follow it, and the draws alone.
"""

import random
import re
from collections.abc import Sequence

from dragoman.config import TEXT_CHANGES, DataConfig, TextChange
from dragoman.data.corpus import SentencePair
from dragoman.data.glossary import is_spaceless
from dragoman.data.inline_noise import FIRST_EMOJI, noise, placeholder, tag_pair
from dragoman.data.phrase_pairs import Lexicon, linked_phrases, phrase_of, places_between_words

NEED_LEXICON: tuple[TextChange, ...] = ("short_phrases", "inline_noise", "inline_tags")
_LETTERS_TO_ERR_IN = 4  # a typo in a shorter word too easily makes another word of it
_ERR_IN_ONE_OF = 5  # words of a sentence that gets typos
_MOST_JOINED = 4
_END_MARK = re.compile(r"\s*[.!?…‽。！？｡．।॥؟۔։።]+\s*$")
_OPENED = re.compile(r"[¿¡](?=[^¿¡?!]*$)")  # Spanish: a mark that now has no other half


def rewrite(
    pair: SentencePair,
    lexicon: Lexicon,
    config: DataConfig,
    draw: random.Random,
    following: Sequence[SentencePair] = (),
) -> SentencePair:
    """Makes at most one change to a pair. The configuration says how large the share of each change is."""
    lot = draw.random()
    for change in TEXT_CHANGES:
        if (lot := lot - getattr(config, change)) < 0:
            return changed(change, pair, lexicon, draw, following)
    return pair


def changed(
    change: TextChange, pair: SentencePair, lexicon: Lexicon, draw: random.Random, following: Sequence[SentencePair]
) -> SentencePair:
    """Makes one change to a pair; where it cannot be made, the pair is returned as it is."""
    source, target = pair
    match change:
        case "upper_case":
            return source.upper(), target.upper()
        case "title_case":
            return title_case(source), title_case(target)
        case "short_phrases":
            return phrase_of(pair, lexicon, draw)
        case "typos":
            return with_typos(source, draw), target  # the model learns to read typos, not to write them
        case "lower_case":
            return source.lower(), target  # who types no capitals wants them in the translation all the same
        case "no_end_punctuation":
            return without_end_punctuation(pair)
        case "inline_noise":
            return with_noise(pair, lexicon, draw)
        case "inline_tags":
            return with_tags(pair, lexicon, draw)
        case "joined":
            return joined(pair, following, draw)


def title_case(text: str) -> str:
    """Writes a text Like This. (str.title would write Don'T.)"""
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))


def with_typos(text: str, draw: random.Random) -> str:
    """Puts a typo into one of five words that are long enough, and at least into one if there is one."""
    words = text.split(" ")
    long_enough = [place for place, word in enumerate(words) if sum(map(str.isalpha, word)) >= _LETTERS_TO_ERR_IN]
    for place in draw.sample(long_enough, -(-len(long_enough) // _ERR_IN_ONE_OF)):
        words[place] = misspelt(words[place], draw)
    return " ".join(words)


def misspelt(word: str, draw: random.Random) -> str:
    """Misspells a word: two letters exchanged, one left out, one doubled, or a wrong one."""
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


def without_end_punctuation(pair: SentencePair) -> SentencePair:
    """Leaves out the mark at the end, where both sides have one and more than it."""
    bare = [_END_MARK.sub("", side) for side in pair]
    if any(not words or words == side for words, side in zip(bare, pair, strict=True)):
        return pair
    source, target = (_OPENED.sub("", words) for words in bare)
    return source, target


def with_noise(pair: SentencePair, lexicon: Lexicon, draw: random.Random) -> SentencePair:
    """Puts the same made-up text at the same place of both sides: between words that are linked, at the start, at the
    end, or before the mark at the end."""
    added = noise("".join(pair), draw)
    between = places_between_words(pair, lexicon)
    lot = draw.random()
    if between and lot < 0.5:
        places = draw.choice(between)
        before, after = " ", ""  # a space stands behind these places
    elif lot < 0.65:
        places, before, after = (0, 0), "", " "
    else:
        marks = [_END_MARK.search(side) for side in pair]
        inside = lot < 0.75 and all(mark is not None and mark.start() for mark in marks)
        source_end, target_end = (
            mark.start() if inside and mark else len(side) for mark, side in zip(marks, pair, strict=True)
        )
        glued = lot > 0.9 and added >= FIRST_EMOJI  # it is often typed right behind a sentence
        places, before, after = (source_end, target_end), "" if glued else " ", ""
    source, target = (
        side[:place] + before + added + after + side[place:] for side, place in zip(pair, places, strict=True)
    )
    return source, target


def with_tags(pair: SentencePair, lexicon: Lexicon, draw: random.Random) -> SentencePair:
    """Puts the same pair of tags around a phrase on both sides, or the same placeholder in its place. A pair without
    linked words gets tags around all of it."""
    phrases = linked_phrases(pair, lexicon)
    opening, closing = tag_pair(draw)
    if not phrases:
        return f"{opening}{pair[0]}{closing}", f"{opening}{pair[1]}{closing}"
    stands_in = placeholder(draw) if draw.random() < 0.4 else None
    source, target = (
        side[:start] + (stands_in or opening + side[start:end] + closing) + side[end:]
        for side, (start, end) in zip(pair, draw.choice(phrases), strict=True)
    )
    return source, target


def joined(pair: SentencePair, following: Sequence[SentencePair], draw: random.Random) -> SentencePair:
    """Joins a pair and up to three of those that follow to one line. What repeats a side is left out: a model must not
    learn to say things twice."""
    wanted = draw.randint(2, _MOST_JOINED)
    sources, targets = [pair[0]], [pair[1]]
    for source, target in following:
        if len(sources) == wanted:
            break
        if source not in sources and target not in targets:
            sources.append(source)
            targets.append(target)
    return _as_one_line(sources), _as_one_line(targets)


def _as_one_line(sentences: Sequence[str]) -> str:
    """Joins sentences by a space, which scripts without spaces between words do not have between sentences either."""
    line = sentences[0]
    for sentence in sentences[1:]:
        line += sentence if is_spaceless(sentence[0]) else f" {sentence}"
    return line
