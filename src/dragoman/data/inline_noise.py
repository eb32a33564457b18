"""Makes up what has no translation and is copied: emoji, symbols, words of other scripts, codes and numbers.

Characters are drawn from fixed ranges, not by what Python's version knows of Unicode, so that the same draws give the
same text everywhere.
"""

import random
import string
from collections.abc import Sequence

_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_AS_PICTURE = "\ufe0f"
_JOINER = "\u200d"
# Wide ranges, because a model learns to copy bytes: that takes many characters rather than the most frequent ones.
_PICTURES = (
    range(0x1F300, 0x1F3FB),  # weather, food, sport, buildings
    range(0x1F400, 0x1F650),  # animals, people, things, clocks, faces
    range(0x1F680, 0x1F6C6),  # transport
    range(0x1F7E0, 0x1F7EC),  # coloured shapes
    range(0x1F90D, 0x1FA00),  # hands, faces, animals
    range(0x1FA70, 0x1FA75),
    range(0x1FA90, 0x1FAA9),
)
_OLD_PICTURES = (range(0x2600, 0x2700), range(0x2701, 0x27C0), range(0x231A, 0x231C), range(0x23E9, 0x23F4))
_SYMBOLS = (
    range(0x20A0, 0x20C0),  # currencies
    range(0x2100, 0x214C),  # letter-like: № ℃ ™
    range(0x2150, 0x2180),  # fractions, Roman numbers
    range(0x2190, 0x2200),  # arrows
    range(0x2200, 0x2300),  # mathematics
    range(0x2460, 0x24F0),  # numbers in circles
    range(0x2500, 0x2600),  # lines, blocks, shapes
    range(0xA2, 0xAA),  # ¢ £ ¤ ¥ ¦ § ¨ ©
    range(0xAC, 0xB7),  # ¬ ® ° ± ² ³
)
FIRST_EMOJI = "\U0001f1e6"  # only flags and pictures are made of characters from here on
_ASCII_SYMBOLS = "*=~#-_/|\\+^<>$&@"
SCRIPTS = (
    range(0x03B1, 0x03C2),  # Greek
    range(0x0430, 0x0450),  # Cyrillic
    range(0x0561, 0x0587),  # Armenian
    range(0x05D0, 0x05EB),  # Hebrew
    range(0x0627, 0x063B),  # Arabic
    range(0x0905, 0x093A),  # Devanagari
    range(0x0E01, 0x0E2F),  # Thai
    range(0x10D0, 0x10F1),  # Georgian
    range(0x1200, 0x1249),  # Ethiopic
    range(0x3041, 0x3097),  # Hiragana
    range(0x30A1, 0x30FB),  # Katakana
    range(0x4E00, 0x9FA6),  # Chinese
    range(0xAC00, 0xD7A4),  # Korean
)
# In these, A stands for a capital, a for a small letter and 9 for a digit. There are no decimal points and no
# separators of thousands: these are not copied, but written as the target language does.
_CODES = (
    "AA-9999", "A9", "a9A9a9", "AAA", "AAAA", "aaaa_aaa", "AAA_99", "aaaAaaa()", "v9.9.9", "0x99Aa", "9aa9-a9a9",
    "aaa-9", "@aaaaaa", "#aaaaa", "aaaaa.py", "/aaa/aaaa/",
    "aaaa@aaaaa.org", "https://www.aaaaaa.com/aa9", "www.aaaaa.net",
)  # fmt: skip
_NUMBERS = (
    "9", "99", "999", "9999", "99999", "9999999", "99:99", "99%", "#99", "(9)", "99/99/9999", "9999-99-99", "999-9999",
)  # fmt: skip
_SHAPES = ("{name}", "{name}", "{9}", "{}", "{{ name }}", "${name}", "%s", "%d", "%(name)s", "%9$s", "__name__")
_NAMES = ("name", "user", "count", "file", "date", "title", "value", "id", "item", "link")
_TAGS = ("b", "i", "u", "em", "strong", "a", "span", "g", "code", "small")


def noise(others: str, draw: random.Random) -> str:
    """Makes up one to four things to copy. `others`: the text that they are put into; the scripts that it is written
    in are no foreign ones."""
    several = 1 if draw.random() < 0.6 else draw.randint(2, 4)
    return " ".join(_one(others, draw) for _ in range(several))


def _one(others: str, draw: random.Random) -> str:
    kind = draw.choices(("emoji", "words", "symbols", "code", "number"), (40, 25, 10, 15, 10))[0]
    match kind:
        case "emoji":
            return "".join(emoji(draw) for _ in range(1 if draw.random() < 0.7 else draw.randint(2, 4)))
        case "words":
            return _foreign_words(others, draw)
        case "symbols" if draw.random() < 0.3:
            return draw.choice(_ASCII_SYMBOLS) * draw.randint(1, 4)
        case "symbols":
            return "".join(_character(_SYMBOLS, draw) for _ in range(draw.randint(1, 3)))
        case "code":
            return _filled(draw.choice(_CODES), draw)
        case _:
            return _with_digits(draw.choice(_NUMBERS), draw)


def emoji(draw: random.Random) -> str:
    """Draws an emoji: most are one character, others have a colour, are joined of two, or are a flag."""
    lot = draw.random()
    if lot < 0.1:
        return _character(_OLD_PICTURES, draw) + _AS_PICTURE
    if lot < 0.15:
        return "".join(_character((_FLAG_LETTERS,), draw) for _ in range(2))
    picture = _character(_PICTURES, draw)
    if lot < 0.22:
        return picture + _character((_SKIN_TONES,), draw)
    if lot < 0.26:
        return picture + _JOINER + _character(_PICTURES, draw)
    return picture


def placeholder(draw: random.Random) -> str:
    """Draws a placeholder as programs have them in their messages: {name}, %s."""
    return _with_digits(draw.choice(_SHAPES).replace("name", draw.choice(_NAMES)), draw)


def tag_pair(draw: random.Random) -> tuple[str, str]:
    """Draws an opening and a closing tag."""
    name = draw.choice(_TAGS)
    attribute = _with_digits(draw.choice(("", "", ' id="9"', ' class="n9"', ' href="/9"')), draw)
    return f"<{name}{attribute}>", f"</{name}>"


def _foreign_words(others: str, draw: random.Random) -> str:
    """Makes up one to three words of a script in which nothing of `others` is written."""
    there = {ord(character) for character in others.lower() if character > "\x7f"}
    foreign = [script for script in SCRIPTS if there.isdisjoint(script)]
    if not foreign:
        return emoji(draw)
    script = draw.choice(foreign)
    words = (
        "".join(_character((script,), draw) for _ in range(draw.randint(1, 8)))
        for _ in range(1 if draw.random() < 0.6 else draw.randint(2, 3))
    )
    return " ".join(word[:1].upper() + word[1:] if draw.random() < 0.5 else word for word in words)


def _character(ranges: Sequence[range], draw: random.Random) -> str:
    """Draws a character of some ranges, each with the same chance."""
    place = draw.randrange(sum(map(len, ranges)))
    for characters in ranges:
        if place < len(characters):
            return chr(characters[place])
        place -= len(characters)
    raise AssertionError("the ranges have fewer characters than was drawn from")


def _filled(shape: str, draw: random.Random) -> str:
    """Draws a capital for each A of a shape, a small letter for each a, and a digit for each 9."""
    letters = {"A": string.ascii_uppercase, "a": string.ascii_lowercase}
    filled = "".join(draw.choice(letters[sign]) if sign in letters else sign for sign in shape)
    return _with_digits(filled, draw)


def _with_digits(shape: str, draw: random.Random) -> str:
    """Draws a digit for each 9 of a shape."""
    return "".join(draw.choice(string.digits) if sign == "9" else sign for sign in shape)
