"""Places the inline tags of a sentence in its translation, at the words that come from those they stood at.

An element goes around the stretch of target words that come from its source words more than from elsewhere; a tag that
stands alone goes to the gap that best divides what comes from before it from what comes from after it. Elements keep
their nesting, and each tag comes once: that is by construction, only the place is a guess.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from dragoman.documents.flow import Flow, Sentence, TextOrTag, merged
from dragoman.documents.word_alignment import AlignedWords, Shares, WordSpan, places_in, prepared


@dataclass
class _Node:
    """An element in the sentence, or the sentence itself."""

    start: int  # in characters of the sentence's text
    end: int
    opening: int | None = None  # number of its start tag; None: in another sentence
    closing: int | None = None  # number of its end tag; the same as `opening`: a tag that stands alone
    from_before: bool = False  # opened in a sentence before
    to_after: bool = False  # closed in a sentence after
    children: "list[_Node]" = field(default_factory=list)

    @property
    def is_point(self) -> bool:
        return self.opening is not None and self.opening == self.closing


@dataclass(frozen=True)
class Placement:
    """A translation with the tags of its sentence in it."""

    items: tuple[TextOrTag, ...]
    empty: int  # elements that had words and found none


class _TooFewWordsError(Exception):
    """There is no word left on one side of a tag that must have text on both."""


def place_tags(flow: Flow, sentence: Sentence, target: str, words: AlignedWords) -> Placement | None:
    """Puts the tags of a sentence into its translation; None: there are too few words to divide."""
    root = _tree(flow, sentence)
    words = prepared(flow, sentence, target, words)
    placer = _Placer(flow, Shares(sentence, target, words))
    try:
        empty = placer.place_children(root, 0, len(words.target))
    except _TooFewWordsError:
        return None
    writer = _Writer(flow, target, words.target, placer.intervals)
    return Placement(tuple(merged(list(writer.write(root, 0, len(target))))), empty)


class _Placer:
    """Gives each element a stretch of target words, and each tag that stands alone a gap between two."""

    def __init__(self, flow: Flow, shares: Shares) -> None:
        self.flow, self.shares = flow, shares
        self.intervals: dict[int, tuple[int, int]] = {}  # of each node: its first word, and the one after its last
        self.spoken_before = [0, *accumulate(shares.spoken)]  # words with letters or digits before each gap

    def place_children(self, node: _Node, first: int, last: int) -> int:
        """Places what an element holds among its own words, from `first` to `last`; how many elements got no word."""
        points = [child for child in node.children if child.is_point or child.start == child.end]
        elements = [child for child in node.children if not (child.is_point or child.start == child.end)]
        self._give_words(elements, first, last)
        # What comes from before or goes on after holds all that would be beyond it.
        lowest = max((self.intervals[id(child)][1] for child in elements if child.from_before), default=first)
        highest = min((self.intervals[id(child)][0] for child in elements if child.to_after), default=last)
        empty = 0
        for child in elements:
            begin, end = self.intervals[id(child)]
            if begin == end and not child.from_before and not child.to_after:
                begin = end = min(max(begin, lowest), highest)
                self.intervals[id(child)] = (begin, end)
            empty += self.place_children(child, begin, end) + (begin == end)
        intervals = [self.intervals[id(child)] for child in elements]
        taken = {gap for begin, end in intervals for gap in range(begin + 1, end)}
        self._place_points(points, _Reach(first, last, lowest, highest, taken))
        return empty

    def _give_words(self, elements: Sequence[_Node], first: int, last: int) -> None:
        """The element that has the best stretch takes it first; no word is in two elements."""
        free = [True] * (last - first)
        values = {id(child): self.shares.surplus(child.start, child.end)[first:last] for child in elements}
        for child in sorted(elements, key=lambda one: -_stretch(one, values[id(one)], free)[0]):
            _, begin, end = _stretch(child, values[id(child)], free)
            for index in range(begin, end):
                free[index] = False
            self.intervals[id(child)] = (first + begin, first + end)

    def _place_points(self, points: Sequence[_Node], reach: "_Reach") -> None:
        """In their order, in gaps that no element of this level has taken."""
        open_gaps = [gap for gap in range(reach.first, reach.last + 1) if gap not in reach.taken]
        dividers_left = sum(self._divides(point) for point in points)
        lowest = reach.lowest
        before: _Node | None = None
        for point in points:
            divides = self._divides(point)
            if before is not None and not divides and self._same_place(before, point):
                gap = lowest  # where the one before it went: so many may stand at one place
            else:
                highest = min(reach.highest, reach.last - dividers_left)
                allowed = [gap for gap in open_gaps if lowest + divides <= gap <= highest]
                if divides:
                    gap = self._gap_of_divider(point, allowed, lowest, dividers_left, reach)
                else:
                    gap = self._gap_of_point(point, allowed or [lowest], reach)
            self.intervals[id(point)] = (gap, gap)
            self.place_children(point, gap, gap)  # an element that holds no words may hold others
            lowest = gap
            dividers_left -= divides
            before = point

    def _gap_of_divider(
        self, point: _Node, allowed: Sequence[int], lowest: int, dividers_left: int, reach: "_Reach"
    ) -> int:
        """With a word since the last divider, and words enough for those that follow."""
        spoken = self.spoken_before
        allowed = [
            gap for gap in allowed if spoken[gap] > spoken[lowest] and spoken[reach.last] - spoken[gap] >= dividers_left
        ]
        if not allowed:
            raise _TooFewWordsError
        return self.shares.cheapest(point.start, allowed, reach.first, reach.last)

    def _gap_of_point(self, point: _Node, allowed: Sequence[int], reach: "_Reach") -> int:
        near = self.shares.nearest(point.start, allowed, reach.first, reach.last, self._is_glued(point))
        return self.shares.cheapest(point.start, near or allowed, reach.first, reach.last)

    def _same_place(self, one: _Node, other: _Node) -> bool:
        same_start = one.start == other.start
        return same_start and not self._divides(one) and self._is_glued(one) == self._is_glued(other)

    def _is_glued(self, point: _Node) -> bool:
        return point.opening is not None and self.flow.tags[point.opening].glued

    def _divides(self, point: _Node) -> bool:
        return point.opening is not None and self.flow.tags[point.opening].divides


@dataclass(frozen=True)
class _Reach:
    """The gaps, counted in words before them, among which the tags of one element are placed."""

    first: int
    last: int
    lowest: int  # those before it, and after `highest`, are in elements that go on beyond the sentence
    highest: int
    taken: set[int]  # inside other elements


def _stretch(child: _Node, values: Sequence[float], free: Sequence[bool]) -> tuple[float, int, int]:
    """The best free words for an element: score, begin, end. An element that goes on beyond the sentence reaches its
    edge."""
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
    """Writes a translation as text and tags, once every tag has its place."""

    def __init__(
        self, flow: Flow, target: str, words: Sequence[WordSpan], intervals: dict[int, tuple[int, int]]
    ) -> None:
        self.flow, self.target, self.words, self.intervals = flow, target, words, intervals

    def write(self, node: _Node, start: int, end: int) -> Iterator[TextOrTag]:
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
    """The elements of a sentence as a tree. Of one that is open where the sentence begins or ends, the other tag is in
    another sentence."""
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
