"""Splits text into the sentences that are translated one by one, and puts their translations back in place.

Sentences are spans of the given text, never cleaned copies, so no character can be lost: what stands between them stays
as it is. A cut in the wrong place does more harm than a missing one, so where a mark is ambiguous the sentence goes on.
"""

import itertools
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.data.abbreviations import Abbreviations, abbreviations, likely
from dragoman.data.code_spans import code_spans
from dragoman.data.protected_spans import SYMBOL

# The end of a sentence: a mark, what belongs to it (closing quotes, a reference, a smiley) and a space, which scripts
# without spaces do not need. A French closing quote has a space before it, as a German opening one has too: it closes
# only if a space follows. The Greek question mark is a semicolon; Armenian ends sentences with a mark for which many
# type a colon. All quantifiers are possessive, and a mark begins only where no mark stands before it: so every
# character is looked at once.
_MARKS = ".!?…‽؟۔։"
_WIDE = "。！？｡．।॥።፧។။"
_END = re.compile(
    rf"""(?=[{_MARKS}{_WIDE};\u037e:])(?:"""  # quickly passes over all other characters
    rf"""(?P<mark>(?<![{_MARKS}])[{_MARKS}]++|(?<=[Ͱ-Ͽἀ-῿])[;\u037e]|(?:(?<=[Ա-և])|(?<=[Ա-և][»”")])):)"""
    r"""(?P<closed>(?:["'”“’»«›‹)\]】]|\[\d{1,4}\]|\s(?:»|''|\[\d{1,4}\])(?=\s|$)|\s?[:;]-?[()](?=\s|$))*+)(?=\s)"""
    # A Japanese or Chinese text may have the marks of others; "３．２" is a number, and a title in 《》 is one word.
    rf"""|(?P<wide>(?!．\d)[{_WIDE}]++|(?<=[ぁ-ヿ㐀-鿿])[!?]++)["'”’»」』）】]*+(?![^《》。]{{0,40}}》))"""
)
_OPENERS = " \t\r\n  \"'„“”‚‘’«»‹›([{¿¡*_–—-"
_OPENING = re.compile(rf"(?:[\s{re.escape(_OPENERS)}]|,,)*+")  # Dutch newspapers type ,, for „
_GOES_ON = ",;:.!?…)]。！？，、；：」』）》"  # if one of these follows a mark and a space, the sentence goes on
_WORD = re.compile(r"[^\s.,;:!?…)\]]*+")
_LONGEST = 40  # characters of a word that may be an abbreviation: no more are looked at
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

Fits = Callable[[str], bool]  # tells whether a text is short enough for the model


@dataclass(frozen=True)
class Wrap:
    """How a paragraph was broken into lines."""

    width: int  # characters of the longest line
    prefix: str  # what each line but the first begins with: indentation, marks of quoted mail
    newline: str


@dataclass(frozen=True)
class Paragraph:
    """The span of a paragraph, without list marks and indentation."""

    start: int  # in characters of the text
    end: int
    wrap: Wrap | None = None  # None: it is one line


@dataclass(frozen=True)
class Segment:
    """A span that is translated by itself: a sentence, or a part of one that is too long."""

    start: int  # in characters of the text
    end: int
    text: str  # the span on one line
    wrap: Wrap | None = None  # of its paragraph


def segments(text: str, fits: Fits, language: str | None = None) -> list[Segment]:
    """Splits a text of paragraphs, lists and lines into sentences. One that does not fit is cut at the best places."""
    return [
        Segment(start, end, unwrapped(text[start:end]), paragraph.wrap)
        for paragraph in paragraphs(text)
        for start, end in fitting_sentences(text, paragraph.start, paragraph.end, fits, language)
    ]


def join(text: str, parts: Sequence[Segment], translations: Sequence[str]) -> str:
    """Puts the translations in the places of their segments, wrapped where the text was. What stands between them is
    unchanged."""
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
    """Joins the lines of a text with spaces."""
    return _BREAK.sub(" ", text) if "\n" in text or "\r" in text else text


def wrapped(text: str, column: int, wrap: Wrap) -> str:
    """Breaks a text that begins at this column into lines, between words, as the paragraph was broken."""
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
    """Finds the paragraphs of a text: single lines, and groups of lines that are one wrapped paragraph. The marks of
    lists and quotations are left out."""
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
    """Finds the spans of the sentences between `start` and `end`, without the space around them. Line feeds count as
    spaces. No sentence ends inside a formula or a path."""
    known = abbreviations(language)
    part = text[start:end]  # what stands around it must not matter
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
    """Finds the sentences and cuts those that do not fit. Emoji and arrows before and after a sentence are left out:
    they need no translation, and models that never saw them make mistakes there."""
    for first, last in sentences(text, start, end, language):
        symbols = _SYMBOLS_BEFORE.match(text, first, last)
        first = first if symbols is None else symbols.end()
        while last > first and (symbols := _SYMBOL_AFTER.search(text, max(first, last - _LONGEST), last)) is not None:
            last = symbols.start()
        if first < last:
            yield from cut_to_fit(text, first, last, fits)


def cut_to_fit(text: str, start: int, end: int, fits: Fits) -> Iterator[tuple[int, int]]:
    """Cuts a span into spans that fit, at the best places there are. A single character is not cut, even if it does not
    fit."""
    if fits(unwrapped(text[start:end])):
        yield start, end
    else:
        yield from _cut(text, start, end, fits, 0)


def _cut(text: str, start: int, end: int, fits: Fits, kind: int) -> Iterator[tuple[int, int]]:
    """Cuts a span that does not fit at places of the given kind (an index of _CUTS), and parts that still do not fit at
    places of the next kinds."""
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
    """Counts how many pieces fit together, from piece `at` on: doubles the count while they fit, then bisects.

    So the longest text that is tried has about twice the length of what fits, and one piece more, however long the
    whole is.
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
    """Tells whether the sentence that begins at `first` ends with this mark, and another one follows."""
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
    # In Armenian this mark is a colon; the full stop is another one.
    return not "Ա" <= before <= "և" and _full_stop_ends(text, first, mark.start(), after, known)


def _full_stop_ends(text: str, first: int, stop: int, after: int, known: Abbreviations) -> bool:
    """Tells whether a full stop ends the sentence, and not only an abbreviation, an initial or a number. What follows
    it could begin a sentence."""
    *previous, before = text[max(first, stop - 2 * _LONGEST) : stop].split() or [""]
    before = before[-_LONGEST:].lstrip(_OPENERS)
    if stop - len(before) <= first and (not before or _NUMBERING.fullmatch(before)):
        return False  # the mark of a list item
    words = _as_listed(before, previous, known.elides or known.guess)
    may_end = _INITIALS.fullmatch(before) is not None
    for language in (known, *likely(previous)) if known.guess else (known,):
        if not words.isdisjoint(language.never_end):
            return False
        if text[after].isdecimal() and not words.isdisjoint(language.before_numbers):
            return False
        may_end |= not words.isdisjoint(language.may_end)
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
    """Tells whether the word here is one that often begins a sentence, and not an initial as in "A. I. Rabin"."""
    word = _WORD.match(text, after, after + _LONGEST)[0]  # type: ignore[index]  # it matches anything
    if len(word) == 1 and text[after + 1 : after + 2] == ".":
        return False
    word = word.replace("’", "'").lower()
    return word in known.starters or word.partition("'")[0] in known.starters


def _as_listed(word: str, previous: Sequence[str], elides: bool) -> set[str]:
    """Gives the forms in which a list of abbreviations may contain this word."""
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
    """Finds the paragraphs of lines that have no blank line between them: wrapped lines make one paragraph together,
    all others one each."""
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
    """Tells whether these lines are one wrapped paragraph: no line had room for the next line's first word."""
    width = max(len(line[0].rstrip()) for line in block)
    if len(block) < 2 or width < NARROWEST:
        return False
    for line, following in itertools.pairwise(block):
        words = following[0][len(_prefix(following[0])) :].split()
        if not words or len(line[0].rstrip()) + 1 + len(words[0]) <= width:
            return False
    indents = {_prefix(line[0]) for line in block[1:]}
    first_words = [line[0].strip(" \t>") for line in block[1:]]
    # Of two lines it is not certain that they were wrapped: a small letter shows that the sentence goes on.
    return len(indents) == 1 and (len(block) > 2 or first_words[0][:1].islower())


def _quotation(line: str) -> int:
    """How many times a line of mail is quoted."""
    return _prefix(line).count(">")


def _prefix(line: str) -> str:
    """The indentation and the marks of quotation that a line begins with."""
    found = _PREFIX.match(line)
    assert found is not None
    return found[0]


def _content(line: str) -> int:
    """Where the text of a line begins, after its indentation and its list mark."""
    at = len(_prefix(line))
    mark = _LIST_MARK.match(line, at)
    return mark.end() if mark and mark.end() < len(line.rstrip()) else at


def _column(column: int, text: str) -> int:
    """The column at which a text ends that begins at this one."""
    *_, last = re.split(r"\r\n|\r|\n", text)
    return len(last) if len(last) < len(text) else column + len(text)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Gives the span without the space around it, or nothing where there is only space."""
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    end = start + len(part.strip())
    if start < end:
        yield start, end
