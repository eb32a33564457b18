"""Reports how the sentences of a document were translated: counts, and the sentences that a person should look at."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from dragoman.translation.result import How

# The ways beside the plain one, for one sentence and for a number of them.
_WAYS: dict[str, tuple[str, str]] = {
    "other": ("another candidate of the search was taken", "by another candidate of the search"),
    "stand-in": (
        "translated with stand-ins for what must be copied",
        "with stand-ins for what must be copied",
    ),
    "required": ("searched with what must be copied as a condition", "with what must be copied as a condition"),
    "pieces": ("translated piece by piece", "piece by piece"),
    "source": ("left untranslated", "left untranslated"),
}


@dataclass(frozen=True)
class ReportEntry:
    """A sentence to look at: it was not simply translated, or something is noted about it."""

    sentence: int  # its number in the document
    how: How
    notes: tuple[str, ...]
    source: str
    output: str

    def explanation(self) -> str:
        """In words for a person. The notes of a sentence that was translated another way are mostly about attempts
        before it: what they lost is in the output."""
        found = "; ".join(self.notes)
        if self.how == "plain":
            return f"translated, but look at it: {found}"
        return f"{_WAYS[self.how][0]}{f', as an attempt before failed: {found}' if found else ''}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "sentence": self.sentence,
            "how": self.how,
            "explanation": self.explanation(),
            "notes": list(self.notes),
            "source": self.source,
            "output": self.output,
        }


@dataclass
class DocumentReport:
    """Counts sentences, and passes on the entries: there may be too many to keep."""

    list_one: Callable[[ReportEntry], None] = lambda _: None
    sentences: int = 0
    characters: int = 0  # of the sentences
    how: Counter[str] = field(default_factory=Counter)
    listed: int = 0
    tagged: int = 0  # sentences with inline tags
    part: str = ""  # of an archive: the one whose sentences come now
    left: set[str] = field(default_factory=set)  # the kinds of text that the document has and that stay
    parts: Counter[str] = field(default_factory=Counter)  # sentences of each part of an archive

    def add(self, how: How, notes: tuple[str, ...], source: str, output: str, tagged: bool) -> None:
        self.sentences += 1
        self.characters += len(source)
        self.parts[self.part] += 1
        self.how[how] += 1
        self.tagged += tagged
        if how != "plain" or notes:
            self.listed += 1
            self.list_one(ReportEntry(self.sentences, how, notes, source, output))

    def to_dict(self) -> dict[str, Any]:
        ways = {way: self.how[way] for way in get_args(How)}
        found = {"sentences": self.sentences, "with_tags": self.tagged, "how": ways, "listed": self.listed}
        parts = {part: count for part, count in self.parts.items() if part}
        return found | ({"parts": parts} if parts else {}) | ({"left": sorted(self.left)} if self.left else {})

    def line(self) -> str:
        if not self.sentences:
            return "nothing to translate: what is code, protected or without letters stays"
        total = f"{self.sentences:,} sentence{'' if self.sentences == 1 else 's'}"
        ways = [f"{self.how[way]:,} {text}" for way, (_, text) in _WAYS.items() if self.how[way]]
        return f"{total}: {', '.join(ways)}" if ways else total


def as_json_line(entry: ReportEntry) -> str:
    return json.dumps(entry.to_dict(), ensure_ascii=False)
