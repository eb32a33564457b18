"""Makes the sentences of the stress tests: each is changed in one way, and knows whether an output is right.

What is added to a sentence stands before the mark at its end, so that it is translated with it and not by itself.
"""

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from dragoman.data.corpus import SentencePair
from dragoman.data.phrase_pairs import Lexicon, words_of
from dragoman.data.protected_spans import difference
from dragoman.data.scripts import script_of
from dragoman.diagnosis.output_checks import loops

EMOJI = ("🙂", "🎉", "🐶", "❤️")
FOREIGN_NAMES = ("Дмитрий", "Αλέξανδρος", "東京", "서울", "محمد", "ירושלים", "გიორგი", "Երևան")
# Digits are drawn for each 9. Languages write these in their own ways, and all of them keep the numbers.
_MEASURES = (
    "$9.99", "€9,999", "99.99 €", "£99", "99/99/9999", "9999-99-99", "9:99", "99:99", "99 km", "9.9 kg", "99%", "-9 °C",
)  # fmt: skip
_ADDRESSES = (
    "https://www.example.org/p99?id=9999", "http://example.net/a_b/9.html", "www.example.com/99", "info99@example.com",
    "first.last+9@mail.example.org",
)  # fmt: skip
# Words that negate, looked for in a source and in its translation. Other languages are not tested.
NEGATIONS: Mapping[str, tuple[str, ...]] = {
    "en": ("not", "n't", "never", "no", "nothing", "nobody", "none", "cannot", "without", "neither", "nor", "nowhere"),
    "fr": ("ne", "n'", "pas", "jamais", "rien", "personne", "aucun", "aucune", "sans", "non", "ni", "impossible"),
    "de": ("nicht", "kein", "keine", "keinen", "keinem", "keiner", "nie", "nichts", "niemand", "ohne", "nein"),
    "es": ("no", "nunca", "nada", "nadie", "ningún", "ninguna", "ninguno", "sin", "tampoco", "jamás", "ni"),
    "it": ("non", "mai", "niente", "nulla", "nessun", "nessuno", "nessuna", "senza", "no", "né"),
    "pt": ("não", "nunca", "nada", "ninguém", "nenhum", "nenhuma", "sem", "nem", "jamais"),
    "nl": ("niet", "geen", "nooit", "niets", "niemand", "zonder", "nee", "noch"),
    "eo": ("ne", "neniam", "nenio", "nenion", "neniu", "neniun", "sen", "nek"),
    "pl": ("nie", "nigdy", "nic", "nikt", "żaden", "żadna", "bez", "ani"),
    "ru": ("не", "нет", "никогда", "ничего", "никто", "без", "ни", "нельзя"),
}  # fmt: skip
_SURE = {"en": ("not", "n't", "never", "nothing", "nobody", "cannot")}  # in a source, where "no" alone is ambiguous
_FEW = 20
_MOST_WORDS = 200
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_END = re.compile(r"\s*[.!?…。！？]*\s*$")
# For each way to enclose words: how it is typed, and the marks by which languages write its two halves.
_ENCLOSED = (('"', '"', '"“„«»”‟「『', '"”“»«「」』'), ("(", ")", "(（", ")）"))
_ENCLOSING = re.compile('["“”„«»‟「」『』()（）]')


@dataclass(frozen=True)
class Case:
    """A changed sentence, and the test that its translation must pass."""

    source: str
    holds: Callable[[str], bool]


def single_words(words: Iterable[str]) -> list[Case]:
    """A word becomes a word or three, and no sentence."""
    return [Case(word, _is_short) for word in words][:_MOST_WORDS]


def numbers(sources: Sequence[str], draw: random.Random) -> list[Case]:
    """Other numbers in the place of those that are there, so that numbers learned by heart do not help."""
    numbered = [_with_other_digits(source, draw) for source in sources if _NUMBER.search(source)]
    if len(numbered) < _FEW:  # as in a numbered list
        numbered += [f"{draw.randrange(10, 2000)}. {source}" for source in sources[:_FEW]]
    return [_kept(source, partial(_has_the_same_digits, source)) for source in numbered]


def measures(sources: Sequence[str], draw: random.Random) -> list[Case]:
    """A price, a date, a time or a quantity in brackets: no number may be lost, but 3.50 may become 3,50."""
    shapes = (_MEASURES[number % len(_MEASURES)] for number in range(len(sources)))
    changed = [_with(source, f" ({_drawn(shape, draw)})") for source, shape in zip(sources, shapes, strict=True)]
    return [_kept(source, partial(has_the_numbers, source)) for source in changed]


def addresses(sources: Sequence[str], draw: random.Random) -> list[Case]:
    """A URL or an e-mail address in brackets: with one other character it leads nowhere."""
    drawn = [_drawn(_ADDRESSES[number % len(_ADDRESSES)], draw) for number in range(len(sources))]
    return [
        _kept(_with(source, f" ({address})"), partial(_contains, address))
        for source, address in zip(sources, drawn, strict=True)
    ]


def emoji(sources: Sequence[str], draw: random.Random) -> list[Case]:
    """An emoji at the end, as in messages."""
    drawn = [draw.choice(EMOJI) for _ in sources]
    return [_kept(f"{source} {one}", partial(_contains, one)) for source, one in zip(sources, drawn, strict=True)]


def foreign_names(pairs: Sequence[SentencePair]) -> list[Case]:
    """A name in a script that neither language is written in."""
    known = {script_of(character) for character in set("".join(map("".join, pairs)))}
    names = [name for name in FOREIGN_NAMES if script_of(name[0]) not in known]
    return [
        _kept(_with(source, f", {name}"), partial(_contains, name))
        for (source, _), name in zip(pairs, itertools.cycle(names), strict=False)
    ]


def capital_words(sources: Sequence[str], plain: Sequence[str], lexicon: Lexicon) -> list[Case]:
    """One word in capitals, the longest of those that were translated when it was not: it must be so again, or stay."""
    found = []
    for source, output in zip(sources, plain, strict=True):
        there = set(words_of(output))
        words = [word for word in re.findall(r"[^\W\d_]{3,}", source) if not word.isupper()]
        linked = [(word, lexicon[word.casefold()]) for word in words if lexicon.get(word.casefold()) in there]
        if linked:
            word, translation = max(linked, key=lambda link: len(link[0]))
            changed = re.sub(rf"\b{word}\b", word.upper(), source, count=1)
            found.append(Case(changed, partial(_has, (word.casefold(), translation))))
    return found


def enclosed(sources: Sequence[str], draw: random.Random) -> list[Case]:
    """Quotes or brackets around the sentence or around a word: in the translation they are around all of it too, or
    around a few words, and there are no others."""
    found = []
    for number, source in enumerate(source for source in sources if not _ENCLOSING.search(source)):
        opening, closing, openings, closings = _ENCLOSED[number % 2]
        words = list(re.finditer(r"[^\W\d_]+(?= )", source))[1:]
        one_word = number % 4 >= 2 and bool(words)
        place = slice(*draw.choice(words).span()) if one_word else slice(0, len(source))
        changed = source[: place.start] + opening + source[place] + closing + source[place.stop :]
        found.append(_kept(changed, partial(_is_enclosed, openings, closings, 4 if one_word else None)))
    return found


def negated(pairs: Sequence[SentencePair], languages: tuple[str, str]) -> list[Case]:
    """Negated sentences whose references are negated with a known word."""
    source_language, target_language = languages
    sure = _SURE.get(source_language, NEGATIONS[source_language])
    words = NEGATIONS[target_language]
    return [Case(s, partial(_has, words)) for s, t in pairs if _has(sure, s) and _has(words, t)]


def nothing() -> list[Case]:
    """Lines without words: nothing comes from nothing."""
    lines = ["", " ", "   ", "...", "?!", "-"]
    return [Case(line, partial(_is_as_short, line)) for line in lines]


def long_lines(sources: Sequence[str], least_words: int = 100) -> list[range]:
    """Groups consecutive sentences to lines of so many words; a rest that is shorter is left out."""
    found, first, words = [], 0, 0
    for number, source in enumerate(sources):
        words += len(source.split())
        if words >= least_words:
            found.append(range(first, number + 1))
            first, words = number + 1, 0
    return found


def missing(line: str, sentences: Sequence[str]) -> tuple[int, int]:
    """Counts the sentences that are missing in a line, and all that can be looked for. A sentence is there if at least
    half of the words are that no other of the sentences has; one without such words cannot be looked for."""
    there = set(words_of(line))
    words = [set(words_of(sentence)) for sentence in sentences]
    counts = Counter(word for one in words for word in one)
    own = [{word for word in one if counts[word] == 1} for one in words]
    own = [one for one in own if one]
    return sum(2 * len(one & there) < len(one) for one in own), len(own)


def _kept(source: str, holds: Callable[[str], bool]) -> Case:
    """A case of which a copy is never right: all would be kept in it, and nothing translated."""
    return Case(source, lambda output: output != source and holds(output))


def _with(source: str, added: str) -> str:
    """Puts a text before the mark at the end of a sentence."""
    end = _END.search(source)
    place = len(source) if end is None else end.start()
    return source[:place] + added + source[place:].rstrip()


def _drawn(shape: str, draw: random.Random) -> str:
    """Draws a digit for each 9, none of them zero."""
    return re.sub("9", lambda _: str(draw.randrange(1, 10)), shape)


def _with_other_digits(source: str, draw: random.Random) -> str:
    return re.sub(r"\d", lambda _: str(draw.randrange(1, 10)), source)


def _digits(text: str) -> list[str]:
    return sorted("".join(re.findall(r"\d", number)) for number in _NUMBER.findall(text))


def _contains(part: str, output: str) -> bool:
    return part in output


def _is_short(output: str) -> bool:
    return 0 < len(output.split()) <= 3 and not loops(output)


def _is_as_short(source: str, output: str) -> bool:
    return len(output) <= 2 * len(source.strip())


def _has_the_same_digits(source: str, output: str) -> bool:
    return _digits(source) == _digits(output)


def has_the_numbers(source: str, output: str) -> bool:
    """Whether the numbers of a source are in an output: as equal numbers (1,250 = 1250), or digit for digit with other
    signs between them (12/05/2023 and 12.05.2023)."""
    wanted, found = (Counter(number.lstrip("0") for number in re.findall(r"\d+", text)) for text in (source, output))
    return not wanted - found or not difference(source, output).lost


def _is_enclosed(openings: str, closings: str, most_words: int | None, output: str) -> bool:
    """Whether an output has one pair of marks: around few words, or (None) around all of it."""
    text = output.strip()
    marks = [place for place, character in enumerate(text) if character in openings or character in closings]
    if len(marks) != 2 or text[marks[0]] not in openings or text[marks[1]] not in closings:
        return False
    words = len(text[marks[0] + 1 : marks[1]].split())
    if most_words is not None:
        return 0 < words <= most_words
    return words > 0 and marks[0] == 0 and _END.sub("", text[marks[1] + 1 :]) == ""


def _has(words: Sequence[str], text: str) -> bool:
    plain = text.lower().replace("’", "'")
    found = set(words_of(plain))
    return any(plain.find(word) >= 0 if "'" in word else word in found for word in words)
