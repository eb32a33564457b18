"""Prepares word alignments for placing inline tags: which target words come from which source words, by attention.

Text that is copied is one word, whatever the tokens made of it, so that no tag goes inside. A word that is the same in
both languages is divided in both where tags stand inside it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Protocol

from dragoman.data.protected_spans import protected_spans
from dragoman.documents.flow import Flow, Sentence

# So much of a word's attention must go to an element for the word to count for it.
SHARE = 0.5


class WordSpan(Protocol):
    """A word of a sentence, by its characters."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


@dataclass(frozen=True)
class Span:
    """A word that is made here: joined from several, or a part of one."""

    start: int
    end: int


@dataclass(frozen=True)
class AlignedWords:
    """The words of a sentence and of its translation, and for each target word its weight on every source word."""

    source: Sequence[WordSpan]
    target: Sequence[WordSpan]
    rows: Sequence[Sequence[float]]


def prepared(flow: Flow, sentence: Sentence, target: str, words: AlignedWords) -> AlignedWords:
    """The words between which tags may go, with weights that sum to 1 for each target word."""
    rows = [_normalised(row) for row in words.rows]
    joined = _with_copies_joined(target, sentence, AlignedWords(words.source, words.target, rows))
    return _with_words_divided(flow, sentence, target, joined)


def without_alignment(sentence: Sentence, target: str) -> AlignedWords:
    """Aligns words as if both languages had the same word order, for models that give no alignment."""
    source_words, target_words = _words(sentence.text), _words(target)
    longest = max(len(target), 1)
    weights = []
    for word in target_words:
        first, last = (edge * len(sentence.text) / longest for edge in (word.start, word.end))
        weights.append([max(0.0, min(last, other.end) - max(first, other.start)) for other in source_words])
    return AlignedWords(source_words, target_words, weights)


def _with_copies_joined(target: str, sentence: Sentence, aligned: AlignedWords) -> AlignedWords:
    words, rows = aligned.target, aligned.rows
    stretches: list[tuple[int, int]] = []
    for kept in protected_spans(target, sentence.kept):
        first = bisect_right(words, kept.start, key=lambda word: word.end)
        last = bisect_left(words, kept.end, key=lambda word: word.start)
        if stretches and first < stretches[-1][1]:  # a word with some of both
            first = stretches.pop()[0]
        if last - first > 1:
            stretches.append((first, last))
    joined: list[WordSpan] = []
    joined_rows: list[Sequence[float]] = []
    done = 0
    for first, last in stretches:
        joined += [*words[done:first], Span(words[first].start, words[last - 1].end)]
        mean = [sum(column) / (last - first) for column in zip(*rows[first:last], strict=True)]
        joined_rows += [*rows[done:first], mean]
        done = last
    return AlignedWords(aligned.source, [*joined, *words[done:]], [*joined_rows, *rows[done:]])


def _with_words_divided(flow: Flow, sentence: Sentence, target: str, aligned: AlignedWords) -> AlignedWords:
    """H₂O, mc², 1st: each part of such a target word comes from the same part of the source word alone."""
    place = places_in(sentence)
    tag_places = sorted({place(flow.tags[number].at) for number in sentence.tags})
    same_source, same_target = _by_text(sentence.text, aligned.source), _by_text(target, aligned.target)
    parts_of: dict[int, list[tuple[int, int]]] = {}  # of each source word that is divided, by its number
    source_of: dict[int, int] = {}  # of each target word that is divided: the source word
    for text, numbers in same_source.items():
        others = same_target.get(text, [])
        for number, other in zip(numbers, others, strict=True) if len(numbers) == len(others) else ():
            word = aligned.source[number]
            cuts = tag_places[bisect_right(tag_places, word.start) : bisect_left(tag_places, word.end)]
            if cuts:
                parts_of[number] = list(pairwise([0, *(at - word.start for at in cuts), word.end - word.start]))
                source_of[other] = number
    rows = (
        _rows_of_parts(len(aligned.source), parts_of, source_of[number])
        if number in source_of
        else [_wider(weights, parts_of)]
        for number, weights in enumerate(aligned.rows)
    )
    return AlignedWords(
        _in_parts(aligned.source, parts_of),
        _in_parts(aligned.target, {number: parts_of[source] for number, source in source_of.items()}),
        list(chain.from_iterable(rows)),
    )


def _by_text(text: str, words: Sequence[WordSpan]) -> dict[str, list[int]]:
    """The numbers of the words that are the same but for capitals."""
    found: dict[str, list[int]] = {}
    for number, word in enumerate(words):
        found.setdefault(text[word.start : word.end].lower(), []).append(number)
    return found


def _in_parts(words: Sequence[WordSpan], parts: dict[int, list[tuple[int, int]]]) -> list[WordSpan]:
    found: list[WordSpan] = []
    for number, word in enumerate(words):
        found += [Span(word.start + at, word.start + end) for at, end in parts[number]] if number in parts else [word]
    return found


def _wider(weights: Sequence[float], parts_of: dict[int, list[tuple[int, int]]]) -> list[float]:
    """A row in which the weight of a divided word is shared out among its parts by their length."""
    found: list[float] = []
    for number, weight in enumerate(weights):
        parts = parts_of.get(number, [(0, 1)])
        found += [weight * (end - at) / parts[-1][1] for at, end in parts]
    return found


def _rows_of_parts(count: int, parts_of: dict[int, list[tuple[int, int]]], divided: int) -> list[list[float]]:
    """Of a divided target word a row for each part, with all its weight on the same part of the source word."""
    widths = [len(parts_of.get(number, [(0, 1)])) for number in range(count)]
    first = sum(widths[:divided])
    return [
        [1.0 if column == first + part else 0.0 for column in range(sum(widths))] for part in range(widths[divided])
    ]


class Shares:
    """How much each target word comes from a stretch of the source."""

    def __init__(self, sentence: Sentence, target: str, words: AlignedWords) -> None:
        self.sentence, self.target = sentence, target
        self.source_words, self.target_words, self.rows = words.source, words.target, words.rows
        self.sums = [[0.0, *accumulate(row)] for row in words.rows]
        self.spoken = [any(map(str.isalnum, target[word.start : word.end])) for word in words.target]

    def of(self, start: int, end: int) -> list[float]:
        """The share of each target word that comes from this stretch of the source."""
        copied = self._copied(start, end)
        if copied is not None:
            return copied
        shares = [late - early for late, early in zip(self.before(end), self.before(start), strict=True)]
        if any(map(str.isalnum, self.sentence.text[start:end])):
            # Punctuation alone neither makes a stretch nor ends one.
            return [share if spoken else min(share, SHARE) for share, spoken in zip(shares, self.spoken, strict=True)]
        return shares

    def surplus(self, start: int, end: int) -> list[float]:
        """How much more each comes from the stretch than it must to count for it; negative: it does not count."""
        return [share - SHARE for share in self.of(start, end)]

    def before(self, at: int) -> list[float]:
        """The share of each target word that comes from the source before this place."""
        whole = bisect_right(self.source_words, at, key=lambda word: word.end)
        part = _overlap(self.source_words[whole], 0, at) if whole < len(self.source_words) else 0.0
        return [
            sums[whole] + (part * row[whole] if part else 0.0) for sums, row in zip(self.sums, self.rows, strict=True)
        ]

    def nearest(self, at: int, gaps: Sequence[int], first: int, last: int, glued: bool) -> list[int]:
        """The gaps beside target words that come from the words around a place; `glued`: from the word before alone."""
        count = bisect_right(self.source_words, at, key=lambda word: word.end)
        previous = self.source_words[count - 1] if count else None
        after = bisect_left(self.source_words, at, key=lambda word: word.start)
        following = self.source_words[after] if after < len(self.source_words) else None
        come_from = [
            [0.0] * len(self.rows) if word is None else self.of(word.start, word.end) for word in (previous, following)
        ]
        scores = {}
        for gap in gaps:
            left, right = (
                [shares[gap - 1] if gap > first else 0.0, shares[gap] if gap < last else 0.0] for shares in come_from
            )
            scores[gap] = left[0] if glued else max(left[0] + right[1], left[1] + right[0])
        best = max(scores.values(), default=0.0)
        return [gap for gap, score in scores.items() if best >= SHARE and score >= 0.9 * best]

    def cheapest(self, at: int, gaps: Sequence[int], first: int, last: int) -> int:
        """The gap that best divides what comes from before a place from what comes from after it."""
        shares = self.before(at)
        sums = [0.0, *accumulate(shares[first:last])]
        # Words before the gap that come from after the tag, and words after it that come from before.
        costs = {gap: (gap - first) - sums[gap - first] + (sums[-1] - sums[gap - first]) for gap in gaps}
        return min(gaps, key=lambda gap: (costs[gap], gap))

    def _copied(self, start: int, end: int) -> list[float] | None:
        """The shares for text that is copied, found by its text in the target; None: the stretch is no such text."""
        text = self.sentence.text[start:end].strip()
        kept = protected_spans(text, self.sentence.kept)
        if not text or not (len(kept) == 1 and kept[0].text == text):
            return None
        places = [match.start() for match in re.finditer(re.escape(text), self.target)]
        if len(places) != 1 or self.sentence.text.count(text) != 1:
            return None
        return [_overlap(word, places[0], places[0] + len(text)) for word in self.target_words]


def places_in(sentence: Sentence) -> Callable[[int], int]:
    """Gives a function from a place in the flow to the same place in the sentence's text."""

    def place(at: int) -> int:
        # Inside several spaces that became one: after it.
        return min(bisect_left(sentence.origin, at), len(sentence.text))

    return place


def _overlap(word: WordSpan, start: int, end: int) -> float:
    """The part of a word that is in the stretch."""
    length = word.end - word.start
    return max(0, min(word.end, end) - max(word.start, start)) / length if length else 0.0


def _normalised(row: Sequence[float]) -> list[float]:
    total = sum(row)
    return [weight / total for weight in row] if total > 0 else list(row)


def _words(text: str) -> list[Span]:
    return [Span(word.start(), word.end()) for word in re.finditer(r"\w+(?:['’-]\w+)*|[^\w\s]+", text)]
