"""Finds what must be the same in a translation (addresses, placeholders, numbers, emoji, code), and compares a source
with its translation: which of these are there, and how often.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dragoman.data.code_spans import code_spans, is_plain
from dragoman.data.glossary import KEPT_PATTERNS, inside_a_word, is_word_character

SpanKind = Literal["url", "e-mail", "placeholder", "number", "symbol", "code"]

_EXACT: tuple[tuple[SpanKind, re.Pattern[str]], ...] = (
    ("url", re.compile(KEPT_PATTERNS["urls"])),
    # Names of hosts and of accounts: example.com, @anna.
    ("url", re.compile(r"(?<![\w.@/-])(?:(?:[\w-]++\.)+(?:com|org|net|edu|gov)(?![\w-])|@[A-Za-z_]\w+(?!@))")),
    ("e-mail", re.compile(KEPT_PATTERNS["emails"])),
    ("placeholder", re.compile(KEPT_PATTERNS["placeholders"])),
    # Text in the tags for code: it is not made of words of the language.
    ("code", re.compile(r"<(kbd|code|samp|var|tt)>[^<>]*</\1>")),
    # Code between backticks, outside of Markdown too; not ``a quotation'', nor `one' beside `another'.
    ("code", re.compile(r"(?<!`)`(?![\s`])[^`\n]{1,100}(?<!\s)`(?!`)")),
)
_SIGN = "[$¢£¤¥֏؋৲৳฿៛\u20a0-\u20cf]"  # of a currency
_SIGNS = re.compile(_SIGN)
_FRACTION = "[¼-¾⅐-⅞]"
_NUMBER = re.compile(rf"(?:\d+(?:[.,'’\u00a0\u202f]\d+| \d{{3}}(?!\d))*+{_FRACTION}?|{_FRACTION})")
# A minus or plus of the number, not a hyphen of the word before it or a dash between two numbers.
_PLUS_OR_MINUS = r"(?<![^\s(\[\"“„«=<>≈~])[-−+]"
# One span each: a price with its sign, which languages write on either side; a date, a time, a telephone number.
_NUMBERS = re.compile(
    rf"\+?\d+(?:[ \-./]\d+){{3,}}+"
    rf"|(?:{_PLUS_OR_MINUS})?(?:{_SIGN}\s?)?{_NUMBER.pattern}(?:[-–/:]{_NUMBER.pattern})*+(?:\s?{_SIGN})?"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,'’\s]\d{3})+")
# Pictures, dingbats, arrows, flags and keycaps, with what joins or colours them; © ® ™ and the like stay letters.
_PICTURE = "[\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff]"
_JOINED = "(?:\ufe0f|\u20e3|[\U0001f3fb-\U0001f3ff]|[\U000e0020-\U000e007f])"
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
SYMBOL = re.compile(f"{_FLAG}|{_PICTURE}{_JOINED}*(?:\u200d{_PICTURE}{_JOINED}*)*|[0-9#*]\ufe0f?\u20e3")
# Characters of markup and placeholders. A translation must not have any that its source has not.
_STRUCTURE = re.compile(r"[{}\[\]<>\\|]|(?<!\d)(?<!\d[ \u00a0\u202f])%")


@dataclass(frozen=True)
class ProtectedSpan:
    """A part of a text that must be the same in its translation."""

    kind: SpanKind
    text: str
    start: int
    end: int

    @property
    def values(self) -> list[tuple[SpanKind, str]]:
        """What has to be equal in the translation. Of numbers only the values: 9:05 may become 9 h 05, but -5 not 5."""
        if self.kind != "number":
            return [(self.kind, self.text)]
        first, *others = (number_value(number) for number in _NUMBER.findall(_spelled_out(self.text)))
        minus = "-" if self.text[0] in "-−" else ""
        return [(self.kind, minus + first), *((self.kind, value) for value in others)]


class Difference(NamedTuple):
    """What a translation has lost of its source's protected spans, and what it has added; counts matter."""

    lost: list[str]
    added: list[str]
    numbers_added: list[str]
    signs_lost: list[str]  # of currencies: "$5" may have become "5 dollars"


_NO_DIFFERENCE = Difference([], [], [], [])


def protected_spans(text: str, also: Sequence[str] = (), source: str | None = None) -> list[ProtectedSpan]:
    """Finds the protected spans of a text, in its order and without overlaps. `also`: further strings that must be
    copied, as the document's format says.

    `source`: the text's source, if it is a translation. A string of `also` that is a whole word in the source must be a
    whole word here too."""
    return [] if not also and is_plain(text) else _found(text, also, source)


def _found(text: str, also: Sequence[str], source: str | None) -> list[ProtectedSpan]:
    found: list[ProtectedSpan] = []
    free = list(text)

    def take(kind: SpanKind, start: int, end: int) -> None:
        if start < end and "\0" not in free[start:end]:
            found.append(ProtectedSpan(kind, text[start:end], start, end))
            free[start:end] = "\0" * (end - start)

    if also:
        original = text if source is None else source
        here, there = _places(text, also), _places(original, also)
        for string in sorted(here, key=len, reverse=True):
            whole_word = any(not _goes_on(original, *place) for place in there.get(string, ()))
            for place in here[string]:
                if not (whole_word and _goes_on(text, *place)):
                    take("code", *place)
    # Of overlapping ones, the one that begins first: a path in a tag is the tag's, {1} in a formula the formula's.
    exact = [(*match.span(), kind) for kind, pattern in _EXACT for match in pattern.finditer(text)]
    exact += [(start, end, "code") for start, end in code_spans(text)]
    for start, end, kind in sorted(exact, key=lambda span: (span[0], -span[1])):
        take(kind, start, end)
    for match in SYMBOL.finditer(text):
        take("symbol", match.start(), match.end())
    for match in _NUMBERS.finditer("".join(free)):
        take("number", match.start(), match.end())
    return sorted(found, key=lambda span: span.start)


def has_words(text: str, also: Sequence[str] = ()) -> bool:
    """Tells whether there is anything to translate: a letter outside of all protected spans."""
    if not any(map(str.isalpha, text)):
        return False
    position = 0
    for span in protected_spans(text, also):
        if any(map(str.isalpha, text[position : span.start])):
            return True
        position = span.end
    return any(map(str.isalpha, text[position:]))


def difference(source: str, target: str, also: Sequence[str] = ()) -> Difference:
    """Compares the protected spans of a source and its translation, with their counts, and the characters of markup
    outside of them."""
    if not also and is_plain(source) and is_plain(target):  # nearly always
        return _NO_DIFFERENCE
    expected, found = protected_spans(source, also), protected_spans(target, also, source)
    expected_values, values = (Counter(value for span in spans for value in span.values) for spans in (expected, found))
    extra = _beyond(found, values - expected_values)
    marks = Counter(_marks_outside(target, found)) - Counter(_marks_outside(source, expected))
    return Difference(
        lost=[span.text for span in _beyond(expected, expected_values - values)],
        added=[span.text for span in extra if span.kind != "number"] + list(marks.elements()),
        numbers_added=[span.text for span in extra if span.kind == "number"],
        signs_lost=list((_signs(expected) - _signs(found)).elements()),
    )


def _spelled_out(text: str) -> str:
    """Writes the fractions that are one character as two numbers: 1½ as 1 1⁄2."""
    return re.sub(_FRACTION, lambda found: " " + unicodedata.normalize("NFKD", found[0]), text)


def number_value(number: str) -> str:
    """Normalises a number, so that equal ones are equal strings: 1,234.50 and 1.234,50 and 1 234,50 are the same, 4.5
    and 45 are not. Separators of thousands are removed, and the decimal separator is always a point."""
    plain = "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in number)
    thousands = _THOUSANDS.match(plain)
    if thousands:
        whole, rest = thousands[0], plain[thousands.end() :]
        if not rest or (rest[0] not in whole and re.fullmatch(r"\D\d+", rest)):
            plain = re.sub(r"\D", "", whole) + rest
    return re.sub(r"\D", ".", plain.lstrip("0") or "0")


def _signs(spans: Sequence[ProtectedSpan]) -> Counter[str]:
    """Counts the currency signs."""
    return Counter(sign for span in spans if span.kind == "number" for sign in _SIGNS.findall(span.text))


def _beyond(spans: Sequence[ProtectedSpan], excess: Counter[tuple[SpanKind, str]]) -> list[ProtectedSpan]:
    """Picks the spans that make up the excess: of each value the last ones, as many as the excess says."""
    left = Counter(excess)
    found = []
    for span in reversed(spans):
        if any(left[value] > 0 for value in span.values):
            left.subtract(span.values)
            found.append(span)
    return found[::-1]


def _marks_outside(text: str, spans: Sequence[ProtectedSpan]) -> list[str]:
    """Finds characters of markup outside of the protected spans, such as a bracket without its other half."""
    if _STRUCTURE.search(text) is None:
        return []
    rest, position = [], 0
    for span in spans:
        rest.append(text[position : span.start])
        # A number is kept, so that the % after it is seen to be a percentage and not a placeholder.
        rest.append(span.text if span.kind == "number" else " ")
        position = span.end
    return _STRUCTURE.findall("".join([*rest, text[position:]]))


def _places(text: str, strings: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Finds the places of each string in a text; those of one string do not overlap. The text is read once for all
    strings, which are looked up in a trie."""
    tree: dict[str, Any] = {}
    for string in strings:
        node = tree
        for character in string:
            node = node.setdefault(character, {})
        node[""] = string
    found: dict[str, list[tuple[int, int]]] = {}
    for start in range(len(text)):
        node, end = tree, start
        while end < len(text) and (below := node.get(text[end])) is not None:
            node, end = below, end + 1
            if "" in node and ((places := found.setdefault(node[""], [])) == [] or places[-1][1] <= start):
                places.append((start, end))
    return found


def _goes_on(text: str, start: int, end: int) -> bool:
    """Tells whether the span is only a part of a word, which goes on before or after it, also after an apostrophe: the
    C of "Cat" or "C'est" is not the key C."""
    after = end + 1 if text[end : end + 1] in ("'", "’") else end
    return inside_a_word(text, start) or (
        is_word_character(text[end - 1]) and after < len(text) and is_word_character(text[after])
    )
