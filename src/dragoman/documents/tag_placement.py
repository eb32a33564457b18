"""Where the tags of a sentence go in its translation: to the words that look at what they stood at.

An element goes around the stretch of target words that look at its source words more than elsewhere; a tag that stands
alone goes to the gap that best parts what comes from before it from what comes from after it. Elements keep their
nesting, and each tag comes once: that is by construction, only the place is a guess.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import Protocol

from dragoman.data.protected_spans import protected_spans
from dragoman.documents.flow import Flow, Item, Sentence, merged

# So much of a word's look must go to an element for the word to count for it.
SHARE = 0.5


class WordSpan(Protocol):
    """A word of a sentence, by its characters."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


@dataclass(frozen=True)
class Span:
    start: int
    end: int


@dataclass
class _Node:
    """An element in the sentence, or the sentence itself."""

    start: int  # in characters of the sentence's text
    end: int
    opening: int | None = None  # tags; None: in another sentence
    closing: int | None = None
    from_before: bool = False
    to_after: bool = False
    children: "list[_Node]" = field(default_factory=list)

    @property
    def is_point(self) -> bool:
        return self.opening is not None and self.opening == self.closing


@dataclass(frozen=True)
class Placement:
    items: tuple[Item, ...]
    empty: int  # elements that had words and found none


def place_tags(
    flow: Flow,
    sentence: Sentence,
    target: str,
    source_words: Sequence[WordSpan],
    target_words: Sequence[WordSpan],
    weights: Sequence[Sequence[float]],
) -> Placement | None:
    """The translation with the sentence's tags in it; None: there are not words enough to part."""
    root = _tree(flow, sentence)
    target_words, rows = _whole(target, sentence, target_words, [_normalised(row) for row in weights])
    source_words, target_words, rows = _parted(flow, sentence, target, source_words, target_words, rows)
    shares = _Shares(sentence, target, source_words, target_words, rows)
    intervals: dict[int, tuple[int, int]] = {id(root): (0, len(target_words))}
    empty = _place_children(flow, root, 0, len(target_words), shares, intervals)
    if empty is None:
        return None
    writer = _Writer(flow, target, target_words, intervals)
    return Placement(tuple(merged(list(writer.write(root, 0, len(target))))), empty)


def _whole(
    target: str, sentence: Sentence, words: Sequence[WordSpan], rows: Sequence[Sequence[float]]
) -> tuple[Sequence[WordSpan], Sequence[Sequence[float]]]:
    """What is copied is one word, whatever the tokens made of it: no tag goes inside."""
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
    return [*joined, *words[done:]], [*joined_rows, *rows[done:]]


def _parted(
    flow: Flow,
    sentence: Sentence,
    target: str,
    source_words: Sequence[WordSpan],
    target_words: Sequence[WordSpan],
    rows: Sequence[Sequence[float]],
) -> tuple[Sequence[WordSpan], Sequence[WordSpan], Sequence[Sequence[float]]]:
    """A word with tags inside that is the same in both languages (H₂O, mc², 1st) is parted in both where they are."""
    place = places_in(sentence)
    marked = sorted({place(flow.tags[number].at) for number in sentence.tags})
    alike = _by_text(sentence.text, source_words), _by_text(target, target_words)
    columns: dict[int, list[tuple[int, int]]] = {}  # of source words that are parted, the parts; likewise rows
    row_of: dict[int, int] = {}
    for word, here in alike[0].items():
        there = alike[1].get(word, [])
        for column, row in zip(here, there, strict=True) if len(here) == len(there) else ():
            source = source_words[column]
            cuts = marked[bisect_right(marked, source.start) : bisect_left(marked, source.end)]
            if cuts:
                columns[column] = list(pairwise([0, *(at - source.start for at in cuts), source.end - source.start]))
                row_of[column] = row
    rows_to_part = {row: column for column, row in row_of.items()}
    return (
        _in_parts(source_words, columns),
        _in_parts(target_words, {row: columns[column] for row, column in rows_to_part.items()}),
        list(
            chain.from_iterable(
                _own_rows(len(source_words), columns, rows_to_part[row])
                if row in rows_to_part
                else [_wider(weights, columns)]
                for row, weights in enumerate(rows)
            )
        ),
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


def _wider(weights: Sequence[float], columns: dict[int, list[tuple[int, int]]]) -> list[float]:
    """A row in which the weight of a parted word is shared out among its parts by their length."""
    found: list[float] = []
    for column, weight in enumerate(weights):
        parts = columns.get(column, [(0, 1)])
        found += [weight * (end - at) / parts[-1][1] for at, end in parts]
    return found


def _own_rows(count: int, columns: dict[int, list[tuple[int, int]]], parted: int) -> list[list[float]]:
    """Of a parted target word a row for each part, which looks at its own part of the source word alone."""
    widths = [len(columns.get(column, [(0, 1)])) for column in range(count)]
    first = sum(widths[:parted])
    return [
        [1.0 if column == first + number else 0.0 for column in range(sum(widths))] for number in range(widths[parted])
    ]


def without_alignment(sentence: Sentence, target: str) -> tuple[list[Span], list[Span], list[list[float]]]:
    """Words, and weights as if both languages had one order: what is left when a model cannot be asked."""
    source_words, target_words = _words(sentence.text), _words(target)
    longest = max(len(target), 1)
    weights = []
    for word in target_words:
        first, last = (edge * len(sentence.text) / longest for edge in (word.start, word.end))
        weights.append([max(0.0, min(last, other.end) - max(first, other.start)) for other in source_words])
    return source_words, target_words, weights


class _Shares:
    """How much each target word comes from a stretch of the source."""

    def __init__(
        self,
        sentence: Sentence,
        target: str,
        source_words: Sequence[WordSpan],
        target_words: Sequence[WordSpan],
        rows: Sequence[Sequence[float]],
    ) -> None:
        self.sentence, self.target = sentence, target
        self.source_words, self.target_words, self.rows = source_words, target_words, rows
        self.sums = [[0.0, *accumulate(row)] for row in rows]
        self.spoken = [any(map(str.isalnum, target[word.start : word.end])) for word in target_words]

    def of(self, start: int, end: int) -> list[float]:
        copied = self._copied(start, end)
        if copied is not None:
            return copied
        shares = [late - early for late, early in zip(self.before(end), self.before(start), strict=True)]
        if any(map(str.isalnum, self.sentence.text[start:end])):
            # Marks between words neither make a stretch nor end one.
            return [share if spoken else min(share, SHARE) for share, spoken in zip(shares, self.spoken, strict=True)]
        return shares

    def before(self, at: int) -> list[float]:
        """How much each comes from the source up to this place."""
        whole = bisect_right(self.source_words, at, key=lambda word: word.end)
        part = _overlap(self.source_words[whole], 0, at) if whole < len(self.source_words) else 0.0
        return [
            sums[whole] + (part * row[whole] if part else 0.0) for sums, row in zip(self.sums, self.rows, strict=True)
        ]

    def nearest(self, at: int, gaps: Sequence[int], first: int, last: int, glued: bool) -> list[int]:
        """The gaps beside what came from the words on both sides of a place; glued: only the word before it counts."""
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
        """The gap that best parts what comes from before a place from what comes from after it."""
        shares = self.before(at)
        sums = [0.0, *accumulate(shares[first:last])]
        # Words before the gap that come from after the tag, and words after it that come from before.
        costs = {gap: (gap - first) - sums[gap - first] + (sums[-1] - sums[gap - first]) for gap in gaps}
        return min(gaps, key=lambda gap: (costs[gap], gap))

    def _copied(self, start: int, end: int) -> list[float] | None:
        """What is copied as it is needs no alignment: it is where it is."""
        text = self.sentence.text[start:end].strip()
        kept = protected_spans(text, self.sentence.kept)
        if not text or not (len(kept) == 1 and kept[0].text == text):
            return None
        places = [match.start() for match in re.finditer(re.escape(text), self.target)]
        if len(places) != 1 or self.sentence.text.count(text) != 1:
            return None
        return [_overlap(word, places[0], places[0] + len(text)) for word in self.target_words]


def _place_children(
    flow: Flow,
    node: _Node,
    first: int,
    last: int,
    shares: _Shares,
    intervals: dict[int, tuple[int, int]],
) -> int | None:
    """Give each child of an element its words among those of the element; the number that went without."""
    free = [True] * (last - first)
    points = [child for child in node.children if child.is_point or child.start == child.end]
    elements = [child for child in node.children if not (child.is_point or child.start == child.end)]
    values = {
        id(child): [share - SHARE for share in shares.of(child.start, child.end)[first:last]] for child in elements
    }
    for child in sorted(elements, key=lambda one: -_stretch(one, values[id(one)], free)[0]):
        _, begin, end = _stretch(child, values[id(child)], free)
        for index in range(begin, end):
            free[index] = False
        intervals[id(child)] = (first + begin, first + end)
    # What comes from before or goes on after holds all that would be beyond it.
    lowest = max((intervals[id(child)][1] for child in elements if child.from_before), default=first)
    highest = min((intervals[id(child)][0] for child in elements if child.to_after), default=last)
    empty = 0
    for child in elements:
        begin, end = intervals[id(child)]
        if begin == end and not child.from_before and not child.to_after:
            begin = end = min(max(begin, lowest), highest)
            intervals[id(child)] = (begin, end)
        inner = _place_children(flow, child, begin, end, shares, intervals)
        if inner is None:
            return None
        empty += inner + (begin == end)
    # Points in their order, in gaps that no element of this level has taken.
    return (
        None
        if not _place_points(flow, points, elements, (first, last), (lowest, highest), shares, intervals)
        else empty
    )


def _place_points(
    flow: Flow,
    points: Sequence[_Node],
    elements: Sequence[_Node],
    reach: tuple[int, int],
    allowed_reach: tuple[int, int],
    shares: _Shares,
    intervals: dict[int, tuple[int, int]],
) -> bool:
    """Give each point its gap; False: there are not words enough to part."""
    first, last = reach
    lowest, highest = allowed_reach
    taken = {gap for child in elements for gap in range(intervals[id(child)][0] + 1, intervals[id(child)][1])}
    open_gaps = [gap for gap in range(first, last + 1) if gap not in taken]
    spoken = [0, *accumulate(shares.spoken)]
    left_dividers = sum(1 for point in points if _divides(flow, point))
    before: _Node | None = None
    for point in points:
        divides = _divides(flow, point)
        if before is not None and not divides and _same_place(flow, before, point):
            gap = lowest  # where the one before it went: so many may stand at one place
        else:
            high = min(highest, last - left_dividers)
            allowed = [gap for gap in open_gaps if lowest + divides <= gap <= high]
            if divides:
                allowed = [
                    gap
                    for gap in allowed
                    if spoken[gap] > spoken[lowest] and spoken[last] - spoken[gap] >= left_dividers
                ]
            if not allowed:
                if divides:
                    return False
                allowed = [lowest]
            if not divides:
                allowed = shares.nearest(point.start, allowed, first, last, _is_glued(flow, point)) or allowed
            gap = shares.cheapest(point.start, allowed, first, last)
        intervals[id(point)] = (gap, gap)
        _place_children(flow, point, gap, gap, shares, intervals)  # an element that holds no words may hold others
        lowest = gap
        left_dividers -= divides
        before = point
    return True


def _same_place(flow: Flow, one: _Node, other: _Node) -> bool:
    return one.start == other.start and not _divides(flow, one) and _is_glued(flow, one) == _is_glued(flow, other)


def _is_glued(flow: Flow, point: _Node) -> bool:
    return point.opening is not None and flow.tags[point.opening].glued


def _divides(flow: Flow, point: _Node) -> bool:
    return point.opening is not None and flow.tags[point.opening].divides


def _stretch(child: _Node, values: Sequence[float], free: Sequence[bool]) -> tuple[float, int, int]:
    """The words of an element: score, begin, end. One that goes on beyond the sentence reaches its edge."""
    count = len(values)
    if child.to_after:
        taken = next((index for index in reversed(range(count)) if not free[index]), -1)
        sums = [0.0, *accumulate(reversed(values))][::-1]  # from each word to the last
        begin = max(range(taken + 1, count), key=lambda at: sums[at], default=count)
        return sums[begin], begin, count
    if child.from_before:
        taken = next((index for index in range(count) if not free[index]), count)
        sums = [0.0, *accumulate(values)]
        end = max(range(1, taken + 1), key=lambda at: sums[at], default=0)
        return sums[end], 0, end
    return _best_stretch(values, free)


def _best_stretch(values: Sequence[float], free: Sequence[bool]) -> tuple[float, int, int]:
    """The stretch of free words with the greatest sum; at least one word where any is free."""
    best: tuple[float, int, int] = (float("-inf"), len(values), len(values))
    total, begin = 0.0, 0
    for index, value in enumerate(values):
        if not free[index]:
            total, begin = 0.0, index + 1
            continue
        if total <= 0.0:
            total, begin = 0.0, index
        total += value
        if total > best[0]:
            best = (total, begin, index + 1)
    return best


class _Writer:
    def __init__(
        self, flow: Flow, target: str, words: Sequence[WordSpan], intervals: dict[int, tuple[int, int]]
    ) -> None:
        self.flow, self.target, self.words, self.intervals = flow, target, words, intervals

    def write(self, node: _Node, start: int, end: int) -> Iterator[Item]:
        """The characters from start to end, with the tags of the node's children among them."""
        position = start
        order = {id(child): number for number, child in enumerate(node.children)}
        for child in sorted(node.children, key=lambda one: (*self.intervals[id(one)], order[id(one)])):
            first, last = self.intervals[id(child)]
            if child.is_point:
                assert child.opening is not None
                at = min(max(self._gap(first, self.flow.tags[child.opening].glued), position), end)
                yield self.target[position:at]
                yield child.opening
                position = at
                if 0 < at < end and not self.target[at].isspace() and self._stood_alone(child.opening):
                    yield " "
                continue
            glued = child.opening is not None and self.flow.tags[child.opening].glued
            begin = self.words[first].start if first < last else self._gap(first, glued)
            begin = start if child.from_before else min(max(begin, position), end)
            stop = self.words[last - 1].end if first < last else begin
            stop = end if child.to_after else min(max(stop, begin), end)
            yield self.target[position:begin]
            if child.opening is not None:
                yield child.opening
            yield from self.write(child, begin, stop)
            if child.closing is not None:
                yield child.closing
            position = stop
        yield self.target[position:end]

    def _stood_alone(self, number: int) -> bool:
        at = self.flow.tags[number].at
        return self.flow.text[at - 1 : at].isspace() and self.flow.text[at : at + 1].isspace()

    def _gap(self, word: int, glued: bool) -> int:
        if word and (glued or word == len(self.words)):
            return self.words[word - 1].end
        return self.words[word].start if word < len(self.words) else len(self.target)


def _tree(flow: Flow, sentence: Sentence) -> _Node:
    """The elements of a sentence as they nest. Open at its begin or its end: the other half is elsewhere."""
    place = places_in(sentence)
    root = _Node(0, len(sentence.text))
    inner = set(sentence.tags)
    opened_here = {flow.tags[i].element for i in inner if flow.tags[i].opens}
    closed_here = {flow.tags[i].element for i in inner if not flow.tags[i].opens} - {None}
    stack = [root]
    # What was opened before and closes here, the last to close outermost.
    for i in reversed(sentence.tags):
        tag = flow.tags[i]
        if tag.element is not None and not tag.opens and tag.element not in opened_here:
            node = _Node(0, len(sentence.text), from_before=True)
            stack[-1].children.append(node)
            stack.append(node)
            node.closing = i
    by_element = {flow.tags[node.closing].element: node for node in stack if node.closing is not None}
    for i in sentence.tags:
        tag = flow.tags[i]
        at = place(tag.at)
        if tag.element is None:
            stack[-1].children.append(_Node(at, at, opening=i, closing=i))
        elif tag.opens:
            node = _Node(at, len(sentence.text), opening=i, to_after=tag.element not in closed_here)
            stack[-1].children.append(node)
            stack.append(node)
            by_element[tag.element] = node
        else:
            node = by_element[tag.element]
            node.end, node.closing = at, i
            del stack[stack.index(node) :]
    return root


def places_in(sentence: Sentence) -> Callable[[int], int]:
    """From a place in the flow to one in the sentence's text."""

    def place(at: int) -> int:
        """Inside a run of spaces that became one: after it."""
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
