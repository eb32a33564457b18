"""Glossaries that clients keep in the service, each for those with the same key; in memory, until the service ends."""

import csv
import io
import secrets
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dragoman.data.glossary import LONGEST

MOST_GLOSSARIES = 1000  # of one key
MOST_CHARACTERS = 20_000_000  # of all of them together

Languages = tuple[str, str]
Entries = dict[str, str]


class EntriesError(Exception):
    """Entries that cannot be read: what is wrong with which."""


class FullError(Exception):
    """There are as many glossaries as are kept."""


@dataclass
class KeptGlossary:
    """A glossary, with a dictionary for each two languages."""

    name: str
    owner: str
    dictionaries: dict[Languages, Entries]
    id: str = field(default_factory=lambda: str(uuid.UUID(bytes=secrets.token_bytes(16), version=4)))
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def size(self) -> int:
        return sum(len(s) + len(t) for entries in self.dictionaries.values() for s, t in entries.items())


class GlossaryStore:
    """The glossaries of all keys; each sees its own."""

    def __init__(self, most: int = MOST_GLOSSARIES, characters: int = MOST_CHARACTERS) -> None:
        self._most, self._characters = most, characters
        self._glossaries: dict[str, KeptGlossary] = {}

    def add(self, glossary: KeptGlossary) -> None:
        if sum(1 for _ in self.of(glossary.owner)) >= self._most:
            raise FullError
        self.check_room(glossary.size)
        self._glossaries[glossary.id] = glossary

    def check_room(self, more: int) -> None:
        """Refuses what would make all of them too large."""
        if sum(glossary.size for glossary in self._glossaries.values()) + more > self._characters:
            raise FullError

    def get(self, owner: str, name: str) -> KeptGlossary | None:
        found = self._glossaries.get(name)
        return found if found is not None and found.owner == owner else None

    def of(self, owner: str) -> Iterator[KeptGlossary]:
        return (glossary for glossary in self._glossaries.values() if glossary.owner == owner)

    def remove(self, glossary: KeptGlossary) -> None:
        self._glossaries.pop(glossary.id, None)


def read_entries(text: str, entries_format: str) -> Entries:
    """Reads a dictionary: a source and a target term in each line of TSV or CSV."""
    if entries_format == "tsv":
        rows = [line.split("\t") for line in text.splitlines()]
    else:
        try:
            rows = list(csv.reader(io.StringIO(text), strict=True))
        except csv.Error as error:
            raise EntriesError(f"Not valid CSV: {error}") from None
    entries: Entries = {}
    for index, row in enumerate(rows):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) < 2:
            raise EntriesError(f"Key with the index {index} misses tab separator")
        source, target = cells[:2]  # CSV may name the two languages after them
        if not source or not target:
            raise EntriesError(f"Key with the index {index} has no {'target' if source else 'source'} term")
        if max(len(source), len(target)) > LONGEST:
            raise EntriesError(f"Key with the index {index} is longer than {LONGEST} characters")
        if source in entries:
            raise EntriesError(f"Key with the index {index} duplicates another key")
        entries[source] = target
    if not entries:
        raise EntriesError("There are no entries")
    return entries


def write_entries(entries: Entries) -> str:
    """The dictionary as TSV."""
    return "\n".join(f"{source}\t{target}" for source, target in entries.items())
