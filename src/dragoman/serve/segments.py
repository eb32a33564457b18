"""A text as the sentences that are translated one by one, and what stands between them, which stays as it is."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dragoman.translate import split_text

# After a mark that ends a sentence, its closing quotes and a space; scripts without spaces need none.
_END = re.compile(r"""[.!?…]+["'”“’»)\]]*(?=\s)|[。！？]+[”’»」』）]*""")
# Words after which a full stop ends nothing, in the languages that people try first.
_ABBREVIATIONS = {"mr", "mrs", "ms", "dr", "prof", "vs", "e.g", "i.e", "nr", "z.b", "bzw", "u.a", "d.h", "mme", "mlle"}


@dataclass(frozen=True)
class Segment:
    start: int  # in characters of the text
    end: int
    text: str


def segments(text: str, fits: Callable[[str], bool]) -> list[Segment]:
    """Lines are never joined; a sentence that does not fit is cut at the best places there are."""
    found = []
    for line in re.finditer(r"[^\r\n]+", text):
        for start, end in _sentences(line[0]):
            sentence = line[0][start:end]
            for part in [sentence] if fits(sentence) else split_text(sentence, fits):
                at = line[0].index(part, start)
                found.append(Segment(line.start() + at, line.start() + at + len(part), part))
                start = at + len(part)
    return found


def join(text: str, parts: list[Segment], translations: list[str]) -> str:
    """The translations in their places, everything between them as it was."""
    pieces, position = [], 0
    for part, translation in zip(parts, translations, strict=True):
        pieces += [text[position : part.start], translation]
        position = part.end
    return "".join([*pieces, text[position:]])


def _sentences(line: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark in _END.finditer(line):
        if _ends_a_sentence(line, mark):
            yield from _trimmed(line, start, mark.end())
            start = mark.end()
    yield from _trimmed(line, start, len(line))


def _ends_a_sentence(line: str, mark: re.Match[str]) -> bool:
    following = line[mark.end() :].lstrip()
    if not following or following[0].islower():
        return False
    if mark[0] != ".":
        return True
    before = line[: mark.start()].rpartition(" ")[2].lower().lstrip("(\"'„“«")
    # Neither an initial nor an abbreviation nor a number, which may be one of a list or of a day.
    return not (len(before) == 1 and before.isalpha()) and before not in _ABBREVIATIONS and not before.isdecimal()


def _trimmed(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = line[start:end]
    start += len(part) - len(part.lstrip())
    end = start + len(part.strip())
    if start < end:
        yield start, end
