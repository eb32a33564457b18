"""What became of a document's sentences: how many went which way, and each that did not go the plain way."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from dragoman.translation.result import How


@dataclass(frozen=True)
class ReportEntry:
    """A sentence to look at."""

    sentence: int  # its number in the document
    how: How
    notes: tuple[str, ...]
    source: str
    output: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "sentence": self.sentence,
            "how": self.how,
            "notes": list(self.notes),
            "source": self.source,
            "output": self.output,
        }


@dataclass
class DocumentReport:
    """Counts, and where to send what is listed: the list itself may be long."""

    list_one: Callable[[ReportEntry], None] = lambda _: None
    sentences: int = 0
    how: Counter[str] = field(default_factory=Counter)
    listed: int = 0
    tagged: int = 0  # sentences with marks inside

    def add(self, how: How, notes: tuple[str, ...], source: str, output: str, tagged: bool) -> None:
        self.sentences += 1
        self.how[how] += 1
        self.tagged += tagged
        if how != "plain" or notes:
            self.listed += 1
            self.list_one(ReportEntry(self.sentences, how, notes, source, output))

    def to_dict(self) -> dict[str, Any]:
        ways = {way: self.how[way] for way in get_args(How)}
        return {"sentences": self.sentences, "with_tags": self.tagged, "how": ways, "listed": self.listed}

    def line(self) -> str:
        if not self.sentences:
            return "nothing to translate: what is code, protected or without letters stays"
        said = f"{self.sentences:,} sentences"
        words = {
            "other": "by a next best translation",
            "stand-in": "with words standing in",
            "required": "with required words",
            "pieces": "in pieces",
            "source": "left as they were",
        }
        ways = [f"{self.how[way]:,} {text}" for way, text in words.items() if self.how[way]]
        return f"{said}: {', '.join(ways)}" if ways else said


def as_json_line(listed: ReportEntry) -> str:
    return json.dumps(listed.to_dict(), ensure_ascii=False)
