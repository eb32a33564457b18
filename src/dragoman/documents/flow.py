"""The parts that every format is made of: strings that are copied, and flows of text to translate with inline tags.

A flow is a paragraph, a cell, a caption, a string: its plain text, and the inline tags (in whatever form the format has
them) at places of that text. A flow is divided into sentences; a tag belongs to the sentence inside which it stands, or
to the gap between two. The translation of a sentence is text and tags again: each tag once.
"""

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dragoman.data.protected_spans import has_words
from dragoman.data.segmentation import Fits, Wrap, fitting_sentences, wrapped

# A part of a translated sentence: text, or a tag by its number in the flow.
TextOrTag = str | int

DEEPEST = 100  # elements open in a flow at a time; one more and the outermost counts as never closed
_SPACES = re.compile(r"[ \t\r\n]+")
_QUOTE_SIGNS = re.compile(r"(?<=[\r\n])[ \t>]+")


@dataclass(frozen=True)
class InlineTag:
    """A tag, or anything else between two characters, that the translation must have too."""

    at: int  # in characters of the flow's text
    raw: "tuple[str | Flow, ...]"  # how it is written; what a tag holds (a title, a note) may be text to translate
    element: int | None = None  # which element it opens or closes; None: it stands alone
    opens: bool = False
    breaks: bool = False  # no sentence goes across it
    divides: bool = False  # there must be text on both sides of it
    glued: bool = False  # to the word before it, as a note's number is


@dataclass(frozen=True)
class Flow:
    """A stretch of text that is translated: a paragraph, a cell, a caption, a message of a program."""

    text: str
    raw: str  # the same as it is written in the document
    tags: tuple[InlineTag, ...] = ()  # in the order of the document
    kept: tuple[tuple[int, int], ...] = ()  # stretches to be copied: code, fields
    escape: Callable[[str], str] = str
    styles: dict[int | None, tuple[str, str]] = field(default_factory=dict)  # what to write around text in an element
    verbatim: frozenset[int] = frozenset()  # elements in which nothing is escaped
    wrap: Wrap | None = None
    sound: Callable[[str], bool] = lambda _: True  # whether a reader of the format finds the same structure in it
    whole_lines: bool = False  # no sentence goes across the end of a line
    finish: Callable[[str], str] = str  # applied to the whole flow as written
    fills: bool = False  # an empty place with the translation: `raw` is what stays there without one
    strict_escape: Callable[[str], str] | None = None  # used where the usual escapes are not sound


@dataclass(frozen=True)
class Sentence:
    """A part of a flow that is translated as one segment."""

    text: str  # on one line, single spaces
    start: int  # in characters of the flow
    end: int
    origin: tuple[int, ...]  # of each character of the text, and of its end: its place in the flow
    tags: tuple[int, ...]  # those inside it, by number
    kept: tuple[str, ...]


def sentences_of(flow: Flow, fits: Fits, language: str | None = None) -> list[Sentence]:
    """Divides a flow into sentences, and gives those with words in them: all else is the same in every language."""
    breaks = sorted({tag.at for tag in flow.tags if tag.breaks})
    if flow.whole_lines:
        breaks = sorted({*breaks, *(found.start() for found in re.finditer(r"[\r\n\t]", flow.text))})
    plain = flow.text
    if flow.wrap is not None and ">" in flow.wrap.prefix:  # the signs before a quotation's lines are no words
        plain = _QUOTE_SIGNS.sub(lambda signs: " " * len(signs[0]), plain)
    edges = [0, *breaks, len(plain)]
    spans = [
        span
        for first, last in itertools.pairwise(edges)
        for span in _around_kept(list(fitting_sentences(plain, first, last, fits, language)), flow.kept)
    ]
    ranges = element_ranges(flow.tags)
    found = []
    for start, end in spans:
        text, origin = _on_one_line(plain, start, end)
        near = flow.kept[bisect_left(flow.kept, (start, 0)) : bisect_left(flow.kept, (end, 0))]
        kept = tuple(flow.text[first:last] for first, last in near if last <= end)
        if has_words(text, kept):
            inner = _inside(flow.tags, ranges, start, end)
            found.append(Sentence(text, start, end, origin, inner, kept))
    return found


def _around_kept(spans: Sequence[tuple[int, int]], kept: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Joins sentences that were divided inside text that must be copied: a full stop in it ends no sentence."""
    begun: tuple[int, int] | None = None
    number = 0
    for start, end in spans:
        while number < len(kept) and kept[number][1] <= start:
            number += 1
        if begun is not None and number < len(kept) and kept[number][0] < start:
            begun = (begun[0], end)
            continue
        if begun is not None:
            yield begun
        begun = (start, end)
    if begun is not None:
        yield begun


def untranslated(flow: Flow, sentence: Sentence) -> list[TextOrTag]:
    """The source sentence with its tags in their places."""
    return _with_tags(flow, sentence.start, sentence.end, sentence.tags)


def assemble(flow: Flow, sentences: Sequence[Sentence], translations: Sequence[Sequence[TextOrTag]]) -> list[TextOrTag]:
    """The whole flow as text and tags: the translations of its sentences, and between them what was there."""
    inner = {tag for sentence in sentences for tag in sentence.tags}
    outer = [number for number in range(len(flow.tags)) if number not in inner]
    items: list[TextOrTag] = []
    position = done = 0
    for sentence, translation in zip(sentences, translations, strict=True):
        begin = done
        while done < len(outer) and flow.tags[outer[done]].at <= sentence.start:
            done += 1
        items += _with_tags(flow, position, sentence.start, outer[begin:done])
        items += translation
        position = sentence.end
    return [*items, *_with_tags(flow, position, len(flow.text), outer[done:])]


def merged(items: Sequence[TextOrTag]) -> list[TextOrTag]:
    """Joins text that follows text."""
    found: list[TextOrTag] = []
    for is_text, run in itertools.groupby(items, lambda item: isinstance(item, str)):
        if not is_text:
            found += run
        elif text := "".join(map(str, run)):
            found.append(text)
    return found


def render(flow: Flow, items: Sequence[TextOrTag], column: int = 0, wrap: bool = True) -> "Iterator[str | Flow]":
    """Writes text and tags as the format does. Flows in tags are given as they are, to be rendered in their turn."""
    open_elements: list[int | None] = [None]
    divided = False
    for number, item in enumerate(items):
        if isinstance(item, int):
            tag = flow.tags[item]
            yield from tag.raw
            if tag.element is not None and tag.opens:
                open_elements.append(tag.element)
            elif tag.element in open_elements:
                open_elements.remove(tag.element)
            column += sum(len(raw) for raw in tag.raw if isinstance(raw, str))
            divided = tag.divides
            continue
        if divided:
            item, column = item.lstrip(" "), 0
        following = items[number + 1] if number + 1 < len(items) else None
        if isinstance(following, int) and flow.tags[following].divides:
            item = item.rstrip(" ")
        divided = divided and not item
        if item:
            styled = (element for element in reversed(open_elements) if element in flow.styles)
            before, after = flow.styles.get(next(styled, None), ("", ""))
            verbatim = any(element in flow.verbatim for element in open_elements)
            text = item if verbatim else flow.escape(item)
            if flow.wrap is not None and wrap and not verbatim and "\n" not in text:
                text = wrapped(text, column, flow.wrap)
            column = len(text) - text.rfind("\n") - 1 if "\n" in text else column + len(text)
            yield before + text + after


def nested(flow: Flow) -> "Iterator[Flow]":
    """The flows in the flow's tags, in their order."""
    for tag in flow.tags:
        yield from (raw for raw in tag.raw if isinstance(raw, Flow))


def element_ranges(tags: Sequence[InlineTag]) -> dict[int, tuple[int | None, int | None]]:
    """Where each element opens and closes in the text; None: outside this flow."""
    ranges: dict[int, tuple[int | None, int | None]] = {}
    for tag in tags:
        if tag.element is not None:
            opened, closed = ranges.get(tag.element, (None, None))
            ranges[tag.element] = (tag.at, closed) if tag.opens else (opened, tag.at)
    return ranges


def _inside(
    tags: Sequence[InlineTag], ranges: dict[int, tuple[int | None, int | None]], start: int, end: int
) -> tuple[int, ...]:
    """The numbers of the tags of a sentence: those that belong to it, and all that stand among them."""
    near = range(bisect_left(tags, start, key=_place), bisect_right(tags, end, key=_place))
    first = max((i + 1 for i in near if tags[i].breaks and tags[i].at <= start), default=near.start)
    last = min((i for i in near if tags[i].breaks and tags[i].at >= end), default=near.stop)
    own = [i for i in range(first, last) if _belongs(tags[i], ranges, start, end)]
    return tuple(range(own[0], own[-1] + 1)) if own else ()


def _place(tag: InlineTag) -> int:
    return tag.at


def _belongs(tag: InlineTag, ranges: dict[int, tuple[int | None, int | None]], start: int, end: int) -> bool:
    """Whether a tag is inside a sentence. One around the whole sentence is not, nor one that only touches it."""
    if start < tag.at < end:
        return True
    if tag.element is None or not start <= tag.at <= end:
        return False
    opened, closed = ranges[tag.element]
    if opened is None or closed is None or opened == closed:
        return False
    return (tag.opens and opened == start and closed < end) or (not tag.opens and closed == end and opened > start)


def _with_tags(flow: Flow, start: int, end: int, numbers: Sequence[int]) -> list[TextOrTag]:
    items: list[TextOrTag] = []
    position = start
    for number in numbers:
        at = min(max(flow.tags[number].at, position), end)
        items += [flow.text[position:at], number]
        position = at
    return [item for item in [*items, flow.text[position:end]] if item != ""]


def _on_one_line(text: str, start: int, end: int) -> tuple[str, tuple[int, ...]]:
    characters: list[str] = []
    origin: list[int] = []
    position = start
    for gap in _SPACES.finditer(text, start, end):
        characters += [*text[position : gap.start()], " "]
        origin += [*range(position, gap.start()), gap.start()]
        position = gap.end()
    characters += text[position:end]
    return "".join(characters), (*origin, *range(position, end), end)


class FlowBuilder:
    """Makes a flow from text and tags, added in the order of the document."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.raw: list[str] = []
        self.tags: list[InlineTag] = []
        self.kept: list[tuple[int, int]] = []
        self.styles: dict[int | None, tuple[str, str]] = {}
        self.verbatim: set[int] = set()
        self.length = 0
        self._last = " "  # character
        self._elements = 0
        self._open: list[tuple[str, int]] = []
        self._never_closed: set[int] = set()

    def add_text(self, text: str, raw: str, keep: bool = False) -> None:
        if keep and text:
            self.kept.append((self.length, self.length + len(text)))
        self.text.append(text)
        self.raw.append(raw)
        self.length += len(text)
        self._last = text[-1:] or self._last

    def add_point(self, raw: "Sequence[str | Flow]", breaks: bool = False, divides: bool = False) -> None:
        """Adds a tag that stands alone."""
        glued = self._after_a_word('.,;:!?)»”’"')
        self.tags.append(InlineTag(self.length, tuple(raw), breaks=breaks, divides=divides, glued=glued))
        self.raw.append(raw_of(raw))

    def open(self, name: str, raw: "Sequence[str | Flow]") -> int:
        """Adds the start tag of an element, and gives the element's number."""
        if len(self._open) >= DEEPEST:
            self._never_closed.add(self._open.pop(0)[1])
        element = self._elements
        self._elements += 1
        self._open.append((name, element))
        self.tags.append(InlineTag(self.length, tuple(raw), element, opens=True, glued=self._after_a_word()))
        self.raw.append(raw_of(raw))
        return element

    def close(self, name: str, raw: str) -> None:
        """Closes the innermost open element of this name; those open inside it were never closed. Where none is open,
        the tag stands alone."""
        at = max((i for i, (known, _) in enumerate(self._open) if known == name), default=None)
        if at is None:
            self.add_point([raw])
            return
        self._never_closed |= {element for _, element in self._open[at + 1 :]}
        self.tags.append(InlineTag(self.length, (raw,), self._open[at][1]))
        self.raw.append(raw)
        del self._open[at:]

    def flow(self, escape: Callable[[str], str] = str) -> Flow:
        unclosed = self._never_closed | {element for _, element in self._open}
        tags = tuple(self._alone(tag) if tag.element in unclosed else tag for tag in self.tags)
        return Flow(
            "".join(self.text),
            "".join(self.raw),
            tags,
            tuple(self.kept),
            escape,
            dict(self.styles),
            frozenset(self.verbatim),
        )

    def _after_a_word(self, or_one_of: str = "") -> bool:
        return self._last.isalnum() or self._last in or_one_of

    @staticmethod
    def _alone(tag: InlineTag) -> InlineTag:
        return InlineTag(tag.at, tag.raw)


def raw_of(pieces: "Sequence[str | Flow]") -> str:
    """The pieces as they are written in the document."""
    return "".join(piece if isinstance(piece, str) else piece.raw for piece in pieces)
