"""Glossaries that clients keep in the service, each for those with the same key; in memory, until the service ends."""

import csv
import io
import secrets
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dragoman.data.glossary import LONGEST
from dragoman.serve.cache import BoundedCache
from dragoman.serve.texts import Terms

MOST_GLOSSARIES = 1000  # of one key
MOST_CHARACTERS = 20_000_000  # of all of them together
MOST_ENTRIES = 25_000  # of a dictionary
READY_ENTRIES = 125_000  # of the dictionaries that are kept ready to translate with, the last used ones

Languages = tuple[str, str]
Entries = dict[str, str]
OnText = Callable[[Callable[[], Terms]], Awaitable[Terms]]


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
    version: int = 0  # counts its changes

    def put(self, languages: Languages, entries: Entries) -> None:
        """Puts a dictionary in the place of the one that it has."""
        self.dictionaries[languages] = entries
        self.version += 1

    @property
    def size(self) -> int:
        return sum(len(s) + len(t) for entries in self.dictionaries.values() for s, t in entries.items())


class GlossaryStore:
    """The glossaries of all keys; each sees its own."""

    def __init__(self, most: int = MOST_GLOSSARIES, characters: int = MOST_CHARACTERS) -> None:
        self._most, self._characters = most, characters
        self._glossaries: dict[str, KeptGlossary] = {}
        self._ready: BoundedCache[tuple[Languages, tuple[tuple[str, int], ...]], Terms] = BoundedCache(READY_ENTRIES)

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

    async def terms(self, glossaries: Sequence[KeptGlossary], languages: Languages, on_text: OnText) -> Terms:
        """The terms of several glossaries, of which the first counts most. They are made once, with `on_text`, which
        runs work in a thread."""
        name = languages, tuple((glossary.id, glossary.version) for glossary in glossaries)
        dictionaries = [glossary.dictionaries[languages] for glossary in reversed(glossaries)]

        def make() -> Terms:
            together: Entries = {}
            for entries in dictionaries:
                together |= entries
            return Terms(tuple(together.items()))

        found = self._ready.get(name)
        if found is None:
            found = await on_text(make)
            self._ready.put(name, found, len(found.pairs))
        return found

    def of(self, owner: str) -> Iterator[KeptGlossary]:
        return (glossary for glossary in self._glossaries.values() if glossary.owner == owner)

    def remove(self, glossary: KeptGlossary) -> None:
        self._glossaries.pop(glossary.id, None)


def check_count(entries: Entries) -> None:
    if len(entries) > MOST_ENTRIES:
        raise EntriesError(
            f"The dictionary has {len(entries):,} entries; at most {MOST_ENTRIES:,} are kept; make several glossaries"
        )


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
    check_count(entries)
    return entries


def write_entries(entries: Entries) -> str:
    """The dictionary as TSV."""
    return "\n".join(f"{source}\t{target}" for source, target in entries.items())
