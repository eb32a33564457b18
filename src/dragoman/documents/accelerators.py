"""Takes the accelerator marker out of a label (&File, Save _As, For~mat) and puts it into the translation, once, on a
letter of its own.
"""

import re
from typing import NamedTuple

from dragoman.data.glossary import is_spaceless
from dragoman.data.protected_spans import protected_spans

MARKS = "&_~"
_SINGLE = {mark: re.compile(rf"(?<!{mark}){mark}(?!{mark})(?=[^\W_])") for mark in MARKS}
DOUBLED = re.compile("|".join(rf"(?<!{mark}){mark}{mark}(?!{mark})" for mark in MARKS))
# In scripts in which no key writes, the key stands behind the label, before what ends it: 開く(&O)...
_BEHIND = re.compile(rf"\s*\([{MARKS}](\w)\)")
_TAIL = re.compile(r"\s*(?:\.\.\.|…|[:：])?\s*\Z")
_END_OF_SENTENCE = re.compile(r"(?<!\.)\.\s*\Z")


class Accelerator(NamedTuple):
    """The marker of a label and the key that it stands before."""

    mark: str
    key: str


def accelerator_in(text: str, used: str | None = None) -> tuple[Accelerator, str] | None:
    """The accelerator of a label, and the label without it. `used`: the marker that the file names, if it names one.
    None: there is none, or more than one, so that the character means something else."""
    for mark in used or MARKS:
        places = _places(text, mark, sure=bool(used))
        if len(places) == 1:
            (at,) = places
            behind = next((found for found in _BEHIND.finditer(text) if found.start(1) == at + 1), None)
            first, last = behind.span() if behind and behind.start() else (at, at + 1)
            return Accelerator(mark, text[at + 1]), text[:first] + text[last:]
    return None


def with_accelerator(text: str, accelerator: Accelerator) -> str:
    """Puts the marker on the same letter, at the beginning of a word if possible; else on the first letter."""
    mark, key = accelerator
    for at in reversed(_places(text, mark, sure=False)):  # one that came from elsewhere
        text = text[:at] + text[at + 1 :]
    taken = _protected(text)
    free = [at for at, character in enumerate(text) if character.isalnum() and at not in taken]
    same = [at for at in free if text[at].casefold() == key.casefold()]
    begins = [at for at in same if at == 0 or not text[at - 1].isalnum()]
    letters = [at for at in free if text[at].isalpha()]
    if not same and letters and is_spaceless(text[letters[0]]):
        tail = _TAIL.search(text)
        at = tail.start() if tail else len(text)
        return f"{text[:at]}({mark}{key.upper()}){text[at:]}"
    place = next(iter(begins or same or letters), None)
    return text if place is None else text[:place] + mark + text[place:]


def _places(text: str, mark: str, sure: bool) -> list[int]:
    """Where the character may be an accelerator marker: before a letter, and in no address, placeholder or code."""
    found = [match.start() for match in _SINGLE[mark].finditer(text)]
    if not found:
        return []
    taken = _protected(text)
    return [at for at in found if at not in taken and (sure or _in_a_label(text, at, mark))]


def _in_a_label(text: str, at: int, mark: str) -> bool:
    """Whether the character marks an accelerator here: not in AT&T or file_name, but in E_xit or E&xit. A sentence that
    ends in a full stop is no label, unless it has & before a word."""
    before, after = text[max(0, at - 1) : at], text[at + 1]
    if mark == "&" and not before.isalnum():
        return True
    if _END_OF_SENTENCE.search(text):
        return False
    if not before.isalnum():
        return mark == "_" or after.isalpha()
    if mark == "_":
        word = re.search(r"\w*\Z", text[:at])
        return word is not None and word[0][:1].isupper() and word[0].isalpha() and after.islower()
    return before.isalpha() and after.islower()


def _protected(text: str) -> set[int]:
    spans = [span for span in protected_spans(text) if span.kind != "number"]
    return {at for span in spans for at in range(span.start, span.end)}
