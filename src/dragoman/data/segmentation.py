"""A text as the sentences that are translated one by one; what stands between them stays as it is.

Everything here is a span of the text given, never a copy that was cleaned: no character can be lost. A cut in the wrong
place costs more than one that is missing, so where marks are ambiguous the sentence goes on.
"""

import itertools
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.data.abbreviations import Abbreviations, abbreviations, likely
from dragoman.data.code_spans import code_spans
from dragoman.data.protected_spans import SYMBOL

# After a mark that ends a sentence, what belongs to it (closing quotes, a reference, a smiley) and a space; scripts
# without spaces need none. A French closing quote stands apart, which a German opening one does too: only before a
# space is it a closing one. Greek asks with a semicolon; Armenian ends with a mark for which many type a colon. No
# quantifier gives back what it took, and a mark begins where no mark stands before it: every character is looked at
# once.
_MARKS = ".!?…‽؟۔։"
_WIDE = "。！？｡．।॥።፧។။"
_END = re.compile(
    rf"""(?=[{_MARKS}{_WIDE};\u037e:])(?:"""  # what no mark begins with is soon passed over
    rf"""(?P<mark>(?<![{_MARKS}])[{_MARKS}]++|(?<=[Ͱ-Ͽἀ-῿])[;\u037e]|(?:(?<=[Ա-և])|(?<=[Ա-և][»”")])):)"""
    r"""(?P<closed>(?:["'”“’»«›‹)\]】]|\[\d{1,4}\]|\s(?:»|''|\[\d{1,4}\])(?=\s|$)|\s?[:;]-?[()](?=\s|$))*+)(?=\s)"""
    # A Japanese or Chinese text may have the marks of others; "３．２" is a number, and a title in 《》 is one word.
    rf"""|(?P<wide>(?!．\d)[{_WIDE}]++|(?<=[ぁ-ヿ㐀-鿿])[!?]++)["'”’»」』）】]*+(?![^《》。]{{0,40}}》))"""
)
_OPENERS = " \t\r\n  \"'„“”‚‘’«»‹›([{¿¡*_–—-"
_OPENING = re.compile(rf"(?:[\s{re.escape(_OPENERS)}]|,,)*+")  # Dutch newspapers type ,, for „
_GOES_ON = ",;:.!?…)]。！？，、；：」』）》"  # after a mark and a space: it was not the last of its sentence
_WORD = re.compile(r"[^\s.,;:!?…)\]]*+")
_LONGEST = 40  # characters of a word that may be an abbreviation: what stands further back is not looked at
_INITIALS = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")
_LIST_MARK = re.compile(r"[ \t]*+(?:[-*+•‣◦▪⁃–—·][ \t]+|\(?\d{1,3}[.)][ \t]+|\(?[a-z]\)[ \t]+|#{1,6}[ \t]+)")
_PREFIX = re.compile(r"[ \t]*+(?:>[ \t]?)*+[ \t]*+")  # indentation, and the marks of quoted mail
_LINE = re.compile(r"[^\r\n]+")
_BREAK = re.compile(r"(?<![ \t])[ \t]*+(?:\r\n|\r|\n)[ \t]*+(?:>[ \t]?)*+[ \t]*+")
_SYMBOLS_BEFORE = re.compile(rf"(?:(?:{SYMBOL.pattern})\s*+)++")
_SYMBOL_AFTER = re.compile(rf"\s*(?:{SYMBOL.pattern})\Z")
_ROMAN = re.compile(r"[IVXLCDM]{2,}")
_NUMBERING = re.compile(r"\d+(?:\.\d+)*|\w|[IVXLCDM]+")  # "3.2.1. Scope"
NARROWEST = 50  # characters: shorter lines are verses, items or addresses rather than a paragraph that was wrapped

# Where a sentence that is too long may be cut, best first: after a sentence, after a clause, between words, between
# letters with what is written on them, anywhere.
_CUTS = (
    re.compile(r"(?<=[.!?…。！？])\s++"),
    re.compile(r"(?<=[,;:—])\s++|(?<=[、，；：])"),
    re.compile(r"(?<!\s)\s++"),
    re.compile(r"(?=\w)"),
    re.compile(r"(?s)(?=.)"),
)

Fits = Callable[[str], bool]


@dataclass(frozen=True)
class Wrap:
    """How the lines of a paragraph were broken: no longer than this, each begun with that."""

    width: int
    prefix: str
    newline: str


@dataclass(frozen=True)
class Paragraph:
    start: int  # in characters of the text
    end: int
    wrap: Wrap | None = None  # None: it is one line


@dataclass(frozen=True)
class Segment:
    start: int
    end: int
    text: str  # on one line
    wrap: Wrap | None = None


def segments(text: str, fits: Fits, language: str | None = None) -> list[Segment]:
    """Sentences of a text in paragraphs, lists and lines; one that does not fit is cut at the best places there are."""
    return [
        Segment(start, end, unwrapped(text[start:end]), paragraph.wrap)
        for paragraph in paragraphs(text)
        for start, end in fitting_sentences(text, paragraph.start, paragraph.end, fits, language)
    ]


def join(text: str, parts: Sequence[Segment], translations: Sequence[str]) -> str:
    """The translations in their places, wrapped where the text was; everything between them as it was."""
    pieces: list[str] = []
    position = column = 0
    for part, translation in zip(parts, translations, strict=True):
        between = text[position : part.start]
        column = _column(column, between)
        if translation == part.text:
            translation = text[part.start : part.end]
        elif part.wrap is not None:
            translation = wrapped(translation, column, part.wrap)
        column = _column(column, translation)
        pieces += [between, translation]
        position = part.end
    return "".join([*pieces, text[position:]])


def unwrapped(text: str) -> str:
    return _BREAK.sub(" ", text)


def wrapped(text: str, column: int, wrap: Wrap) -> str:
    """A text that begins at this column, broken between words as the paragraph was."""
    pieces: list[str] = []
    space = ""
    for part in re.findall(r" +|[^ ]+", text):
        if part.startswith(" "):
            space = part
            continue
        if space and column + len(space) + len(part) > wrap.width and column > len(wrap.prefix):
            pieces.append(wrap.newline + wrap.prefix)
            column = len(wrap.prefix)
        else:
            pieces.append(space)
            column += len(space)
        pieces.append(part)
        column += len(part)
        space = ""
    return "".join([*pieces, space])


def paragraphs(text: str) -> list[Paragraph]:
    """Lines, and lines that were one paragraph until it was wrapped. Marks of lists and quotations are left out."""
    found: list[Paragraph] = []
    group: list[re.Match[str]] = []
    for line in _LINE.finditer(text):
        if group and _is_blank_between(text, group[-1].end(), line.start()):
            found += _of_group(text, group)
            group = []
        if line[0].strip(" \t>"):
            group.append(line)
    return [*found, *_of_group(text, group)]


def sentences(text: str, start: int, end: int, language: str | None = None) -> Iterator[tuple[int, int]]:
    """Spans without the space around them. Line feeds inside count as spaces. None ends inside a formula or a path."""
    known = abbreviations(language)
    part = text[start:end]  # what stands around it says nothing about it
    position = first = 0
    code = deque(code_spans(part))
    for mark in _END.finditer(part):
        while code and code[0][1] <= mark.start():
            code.popleft()
        if code and code[0][0] < mark.start() and mark.end() < code[0][1]:
            continue
        if position == first:
            first = _OPENING.match(part, position).end()  # type: ignore[union-attr]  # it matches anything
        if _ends_a_sentence(part, first, mark, known):
            yield from _trimmed(text, start + position, start + mark.end())
            position = first = mark.end()
    yield from _trimmed(text, start + position, end)


def fitting_sentences(
    text: str, start: int, end: int, fits: Fits, language: str | None = None
) -> Iterator[tuple[int, int]]:
    """Without the emoji and arrows before and after them, too: no words, and models that never saw them stumble."""
    for first, last in sentences(text, start, end, language):
        symbols = _SYMBOLS_BEFORE.match(text, first, last)
        first = first if symbols is None else symbols.end()
        while last > first and (symbols := _SYMBOL_AFTER.search(text, max(first, last - _LONGEST), last)) is not None:
            last = symbols.start()
        if first < last:
            yield from cut_to_fit(text, first, last, fits)


def cut_to_fit(text: str, start: int, end: int, fits: Fits) -> Iterator[tuple[int, int]]:
    """Spans that fit, cut at the best places there are; a character that does not fit stays as it is."""
    if fits(unwrapped(text[start:end])):
        yield start, end
    else:
        yield from _cut(text, start, end, fits, 0)


def _cut(text: str, start: int, end: int, fits: Fits, kind: int) -> Iterator[tuple[int, int]]:
    """Spans of a text that does not fit, cut at places of this kind and where that is not enough of the next ones."""
    if kind == len(_CUTS):
        yield start, end
        return
    cuts = [found.span() for found in _CUTS[kind].finditer(text, start, end)]
    cuts = [(first, last) for first, last in cuts if start < first and last < end]
    starts, ends = [start, *(last for _, last in cuts)], [*(first for first, _ in cuts), end]
    at = 0
    while at < len(starts):
        count = _how_many_fit(text, starts[at], ends, at, fits) if cuts else 0
        if count:
            yield starts[at], ends[at + count - 1]
        else:
            yield from _cut(text, starts[at], ends[at], fits, kind + 1)
        at += count or 1


def _how_many_fit(text: str, start: int, ends: Sequence[int], at: int, fits: Fits) -> int:
    """How many pieces fit together, from this one on: by doubling, then by halving what is in doubt.

    So what is tried is at most about twice as long as what fits, and one piece more, however long the text is.
    """
    count, step = 0, 1
    limit = len(ends) - at
    too_many = limit + 1
    while count < limit and count + step < too_many:
        if fits(unwrapped(text[start : ends[at + count + step - 1]])):
            count += step
            step = min(2 * step, limit - count)
        else:
            too_many = count + step
            break
    while too_many - count > 1:
        middle = (count + too_many) // 2
        if fits(unwrapped(text[start : ends[at + middle - 1]])):
            count = middle
        else:
            too_many = middle
    return count


def _ends_a_sentence(text: str, first: int, mark: re.Match[str], known: Abbreviations) -> bool:
    """Whether a sentence that begins with the character at `first` ends here, and something follows it."""
    after = _OPENING.match(text, mark.end()).end()  # type: ignore[union-attr]  # it matches anything
    following = text[after : after + 1]
    if not following:
        return False
    if mark["wide"]:
        quoted = mark[0][-1] in "」』）”’" and following in "とっ"  # a quotation inside its sentence
        return not quoted and following not in _GOES_ON
    before = text[mark.start() - 1 : mark.start()]
    if following.islower() or following in _GOES_ON or before in ("(", "["):  # "[...]" and "(?)" are no ends
        return False
    if mark["mark"] != ".":
        return True
    # The Armenian full stop is another mark; this one is what a colon is elsewhere.
    return not "Ա" <= before <= "և" and _full_stop_ends(text, first, mark.start(), after, known)


def _full_stop_ends(text: str, first: int, stop: int, after: int, known: Abbreviations) -> bool:
    """Whether a full stop before something that could begin a sentence is more than the end of an abbreviation."""
    *previous, before = text[max(first, stop - 2 * _LONGEST) : stop].split() or [""]
    before = before[-_LONGEST:].lstrip(_OPENERS)
    if stop - len(before) <= first and (not before or _NUMBERING.fullmatch(before)):
        return False  # the mark of a list item
    words = _as_listed(before, previous, known.elides or known.guess)
    may_end = _INITIALS.fullmatch(before) is not None
    for one in (known, *likely(previous)) if known.guess else (known,):
        if not words.isdisjoint(one.never_end):
            return False
        if text[after].isdecimal() and not words.isdisjoint(one.before_numbers):
            return False
        may_end |= not words.isdisjoint(one.may_end)
    starts = _starts(text, after, known)
    if may_end:
        return starts
    if (len(before) == 1 and before.isalpha()) or (known.ordinals and _ROMAN.fullmatch(before)):
        # An initial; but also "vitamin C. It".
        return starts and bool(previous) and previous[-1][0].islower()
    if before.isdecimal():
        return starts or not (known.ordinals and len(before) <= 2)
    return True


def _starts(text: str, after: int, known: Abbreviations) -> bool:
    """Whether the word here is one that sentences like to begin with, and no initial: "A. I. Rabin"."""
    word = _WORD.match(text, after, after + _LONGEST)[0]  # type: ignore[index]  # it matches anything
    if len(word) == 1 and text[after + 1 : after + 2] == ".":
        return False
    word = word.replace("’", "'").lower()
    return word in known.starters or word.partition("'")[0] in known.starters


def _as_listed(word: str, previous: Sequence[str], elides: bool) -> set[str]:
    """A word in the forms that lists of abbreviations may have it in."""
    forms = {word}
    if elides:
        forms.add(word.replace("’", "'").rpartition("'")[2])
    # "p. ex." is "p.ex.", and "d. v. s." is "d.v.s.".
    together = word
    for part in reversed(previous[-2:]):
        if part[-1] != ".":
            break
        together = part.lstrip(_OPENERS) + together
        forms.add(together)
    if len(word) > 3:
        forms.add(f"-{word[-3:]}")  # of a compound: "Hauptstr. 5"
    # "OL." and "ST." are no "ol." and "st."; "I.E." is "i.e.".
    return forms | {form.lower() for form in forms if len(form) < 2 or not form.isupper() or "." in form}


def _is_blank_between(text: str, end: int, start: int) -> bool:
    return len(re.findall(r"\r\n|\r|\n", text[end:start])) > 1


def _of_group(text: str, group: Sequence[re.Match[str]]) -> Iterator[Paragraph]:
    """Lines that follow each other: those that were wrapped are one paragraph, all others are one each."""
    blocks: list[list[re.Match[str]]] = []
    for line in group:
        if not blocks or _LIST_MARK.match(line[0]) or _quotation(line[0]) != _quotation(blocks[-1][-1][0]):
            blocks.append([])
        blocks[-1].append(line)
    for block in blocks:
        if _was_wrapped(block):
            first, last = block[0], block[-1]
            width = max(len(line[0].rstrip()) for line in block)
            newline = text[first.end() : block[1].start()].lstrip(" \t")
            wrap = Wrap(width, _prefix(block[1][0]), newline)
            yield Paragraph(first.start() + _content(first[0]), last.start() + len(last[0].rstrip()), wrap)
        else:
            for line in block:
                yield Paragraph(line.start() + _content(line[0]), line.end())


def _was_wrapped(block: Sequence[re.Match[str]]) -> bool:
    """Whether no line but the last had room for the first word of the next."""
    width = max(len(line[0].rstrip()) for line in block)
    if len(block) < 2 or width < NARROWEST:
        return False
    for line, following in itertools.pairwise(block):
        words = following[0][len(_prefix(following[0])) :].split()
        if not words or len(line[0].rstrip()) + 1 + len(words[0]) <= width:
            return False
    indents = {_prefix(line[0]) for line in block[1:]}
    first_words = [line[0].strip(" \t>") for line in block[1:]]
    # Two lines of which the first is the longer are wrapped or not: a small letter says that the sentence goes on.
    return len(indents) == 1 and (len(block) > 2 or first_words[0][:1].islower())


def _quotation(line: str) -> int:
    return _prefix(line).count(">")


def _prefix(line: str) -> str:
    found = _PREFIX.match(line)
    assert found is not None
    return found[0]


def _content(line: str) -> int:
    """Where the text of a line begins, after its indentation and the mark of an item."""
    at = len(_prefix(line))
    mark = _LIST_MARK.match(line, at)
    return mark.end() if mark and mark.end() < len(line.rstrip()) else at


def _column(column: int, text: str) -> int:
    *_, last = re.split(r"\r\n|\r|\n", text)
    return len(last) if len(last) < len(text) else column + len(text)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    end = start + len(part.strip())
    if start < end:
        yield start, end
