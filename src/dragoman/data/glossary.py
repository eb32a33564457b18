"""Finds the words that a translation must contain: a glossary's terms, and what is copied unchanged (placeholders,
addresses).

A glossary is a TSV file: the source term, a tab, the target term. Several allowed forms of the target are separated by
|, and an empty target means "do not translate". Empty lines, and lines that begin with "# ", are ignored. CSV and TBX
are read as well (data/terminology.py).

A source term matches whole words. In lower case it matches any case; with a capital it matches only as written, so that
US is not us. Of overlapping terms the one that begins first counts, and of those the longest. A target form appears in
the output as written, or with a capital where a sentence begins. Nothing is inflected: a form that the grammar needs
must be in the file.
"""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from dragoman.data.terminology import terms_in
from dragoman.errors import DataError, UsageError

CopiedKind = Literal["placeholders", "urls", "emails", "numbers"]


@dataclass(frozen=True)
class Required:
    """A requirement on the output: it must contain one of the forms. Required twice, it must contain them twice."""

    forms: tuple[str, ...]


LONGEST = 500  # characters of a term or of a form: the search goes through them one by one

Requirements = Callable[[str], Sequence[Required]]  # gives what the translation of a line must contain

# Scripts without spaces between words, where the text does not show where a word ends.
_SPACELESS = "぀-ヿ㐀-鿿豈-﫿฀-๿"

_ADDRESS = r"[^\s<>\"«»“”()]"  # brackets only in pairs, as in .../Mercury_(planet)
KEPT_PATTERNS: dict[CopiedKind, str] = {
    "urls": rf"(?:https?://|ftp://|\bwww\.)(?:{_ADDRESS}|\({_ADDRESS}*\))*(?:(?![.,;:!?'’\]}}…]){_ADDRESS}|\({_ADDRESS}*\))",
    "emails": r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    # {{ name }}, {% tag %}, ${name}, %{name}, {0}, %(name)s, %1$s, %s, %.2f, %H:%M, %%, <%= name %>, <x id="1"/>,
    # &nbsp;, $NAME$, $name, @@NAME@@, __NAME__, and \n where it is two characters
    "placeholders": r"\{\{[^{}]*\}\}|\{%[^{}]*%\}|[$%#]\{[^{}]*\}|\{[^{}\s]*\}"
    r"|%\([\w.]+\)[-#0 +]*+\d*+(?:\.\d+)?[a-zA-Z]|%\d+\$[a-zA-Z@]"
    r"|(?<![\d%])%[-#0+]*+\d*+(?:\.\d+)?(?:hh|h|ll|l|z)?[a-zA-Z@](?![a-zA-Z])|%%"
    r"|<%[^<>]*%>|</?[A-Za-z][^<>]*>|&(?:\w+|#\d+|#x[\da-fA-F]+);"
    r"|\$\w+\$|(?<![\w$])\$[A-Za-z_]\w+|(?<!\w)__\w+__|@@\w+@@|(?<!\\)\\[nrt](?![a-z])",
    "numbers": r"(?<![\w.,])\d+(?:[.,:/]\d+)*(?!\w)",
}


def kept_as_is(kinds: Sequence[str] = ("placeholders", "urls", "emails")) -> Requirements:
    """Requires that what these kinds match is copied unchanged, as often as a line has it."""
    if unknown := sorted(set(kinds) - set(get_args(CopiedKind))):
        raise UsageError(f"keep: {unknown[0]!r} is not known; known: {', '.join(get_args(CopiedKind))}")
    pattern = re.compile("|".join(f"(?:{KEPT_PATTERNS[kind]})" for kind in KEPT_PATTERNS if kind in kinds) or r"(?!)")
    return lambda text: [Required((found[0],)) for found in pattern.finditer(text)]


def requirements(glossary: "Glossary | None", keep: Sequence[str] = ()) -> Requirements | None:
    """Combines the requirements of a glossary and of the kinds to keep; None where there are neither."""
    rules: list[Requirements] = [glossary.required] if glossary is not None and glossary.entries else []
    rules += [kept_as_is(keep)] if keep else []
    return all_required(*rules) if rules else None


def all_required(*rules: Requirements) -> Requirements:
    """Combines several requirements. What two of them require in the same words is required as often as in the one that
    requires it more often, not as often as in both: a glossary may list a name that is kept anyway."""

    def required(text: str) -> list[Required]:
        counts: dict[Required, int] = {}
        for rule in rules:
            rule_counts = Counter(rule(text))
            counts |= {term: max(counts.get(term, 0), count) for term, count in rule_counts.items()}
        return [term for term, count in counts.items() for _ in range(count)]

    return required


@dataclass(frozen=True)
class Entry:
    """A term of a glossary."""

    source: str
    forms: tuple[str, ...]  # allowed translations; none: the term is not translated

    @property
    def any_case(self) -> bool:
        """Whether the term matches in any case."""
        return self.source == self.source.lower()


@dataclass(frozen=True)
class Match:
    """A place in a line at which a term stands."""

    entry: Entry
    start: int
    end: int
    required: Required


@dataclass(frozen=True)
class Glossary:
    """The terms of a glossary. Each word of a line is looked up in an index, so that many terms cost no more time."""

    entries: tuple[Entry, ...]
    # By the first word of the term, then by its length (the longest first), then by its text.
    _by_first_unit: dict[str, dict[int, dict[str, Entry]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index: dict[str, dict[int, dict[str, Entry]]] = {}
        for entry in sorted(self.entries, key=lambda entry: -len(entry.source)):
            lengths = index.setdefault(_units().findall(entry.source.lower())[0], {})
            lengths.setdefault(len(entry.source), {})[entry.source] = entry
        object.__setattr__(self, "_by_first_unit", index)

    @classmethod
    def of(cls, terms: Sequence[tuple[str, str]]) -> "Glossary":
        """Makes a glossary from pairs of a source term and its forms, written as in the file."""
        merged: dict[str, tuple[str, ...]] = {}
        for number, (source, target) in enumerate(terms, start=1):
            source = source.strip()
            forms = tuple(form.strip() for form in target.split("|") if form.strip())
            if not source:
                raise DataError(f"term {number}: no source term; write source, tab, target")
            if (most := max(map(len, (source, *forms)))) > LONGEST:
                raise DataError(f"term {number}: {most:,} characters in {source[:20]!r}; a term has at most {LONGEST}")
            if source in merged and bool(merged[source]) != bool(forms):
                raise DataError(f"term {number}: {source!r} is both translated and not; keep one of them")
            merged[source] = tuple(dict.fromkeys((*merged.get(source, ()), *forms)))
        return cls(tuple(Entry(source, forms) for source, forms in merged.items()))

    @classmethod
    def load(cls, path: str | Path, languages: tuple[str, str] | None = None) -> "Glossary":
        """Reads a glossary from its file; `languages`: source and target, which TBX may have more of."""
        try:
            return cls.of(terms_in(Path(path), languages))
        except DataError as error:
            raise error if str(error).startswith(str(path)) else DataError(f"{path}: {error}") from None

    def matches(self, text: str) -> Iterator[Match]:
        """Finds the terms in a line, from left to right and without overlaps."""
        free = 0
        for unit in _units().finditer(text):
            start = unit.start()
            if start < free:
                continue
            for length, entries in self._by_first_unit.get(unit[0].lower(), {}).items():
                entry = _entry_at(text, start, length, entries)
                if entry is not None:
                    free = start + length
                    yield Match(entry, start, free, Required(entry.forms or (text[start:free],)))
                    break

    def required(self, text: str) -> list[Required]:
        """What the translation of a line must contain."""
        return [match.required for match in self.matches(text)]


def _entry_at(text: str, start: int, length: int, entries: dict[str, Entry]) -> Entry | None:
    """Finds the term of this length at this place: one written just so, or else one that matches in any case."""
    here = text[start : start + length]
    entry = entries.get(here)
    if entry is None and (lower := entries.get(here.lower())) is not None and lower.any_case:
        entry = lower
    if entry is None or inside_a_word(text, start) or inside_a_word(text, start + length):
        return None
    return entry


def is_word_character(character: str) -> bool:
    """Tells whether a character can be part of a word: a letter, a digit, a mark on one, or _, in a script that puts
    spaces between words."""
    is_one = character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
    return is_one and not is_spaceless(character)


@functools.cache
def _units() -> re.Pattern[str]:
    """What a text is searched by: words, and each character of scripts without spaces. Compiling it takes time, which a
    translation without a glossary need not wait for."""
    return re.compile(rf"[{_SPACELESS}]|[^\W{_SPACELESS}]+|\S")


def is_spaceless(character: str) -> bool:
    """Tells whether a character is of a script without spaces between words."""
    return any(low <= character <= high for low, high in zip(_SPACELESS[::3], _SPACELESS[2::3], strict=True))


def inside_a_word(text: str, place: int) -> bool:
    """Tells whether the characters before and after this place belong to the same word."""
    return 0 < place < len(text) and is_word_character(text[place - 1]) and is_word_character(text[place])


def occurrences(text: str, form: str) -> int:
    """Counts how often a text contains a form as whole words, as written or with a capital first letter."""
    count, place = 0, 0
    either = re.compile("|".join(map(re.escape, {form, capitalised(form)})))
    while found := either.search(text, place):
        fits = not (inside_a_word(text, found.start()) or inside_a_word(text, found.end()))
        count += fits
        place = found.end() if fits else found.start() + 1
    return count


def capitalised(form: str) -> str:
    """Gives a form a capital first letter, where that is one letter (not so for ß)."""
    return form[:1].upper() + form[1:] if len(form[:1].upper()) == 1 else form


def unmet(text: str, required: Sequence[Required]) -> list[Required]:
    """Lists what is required more often than the text contains it."""
    counts: dict[Required, int] = {}
    for term in required:
        counts[term] = counts.get(term, 0) + 1
    return [term for term, count in counts.items() if sum(occurrences(text, form) for form in term.forms) < count]
