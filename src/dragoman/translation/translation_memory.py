"""The translation memory: corrections that people made, kept in SQLite.

A sentence that was corrected is answered with its correction from then on. For a similar sentence the correction can be
shown as a fuzzy match, with a score. Spaces do not matter, capitals do.
"""

import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dragoman.errors import DataError, UsageError

LIKE_ENOUGH = 0.6  # the share of characters that two sentences have in common, in order
_LOOKED_AT = 25  # sentences that are compared: those that share the rarest words
_WORDS = 40  # words of a sentence that are looked for
_LONGEST = 1000  # characters of a sentence that is compared with others: a longer one is a whole text

_TABLES = """
CREATE TABLE IF NOT EXISTS corrections (
    id INTEGER PRIMARY KEY, pair TEXT NOT NULL, key TEXT NOT NULL, target TEXT NOT NULL, machine TEXT NOT NULL,
    made_at TEXT NOT NULL, UNIQUE (pair, key)
);
CREATE VIRTUAL TABLE IF NOT EXISTS corrected_words USING fts5(key, content='corrections', content_rowid='id');
CREATE TRIGGER IF NOT EXISTS corrected AFTER INSERT ON corrections BEGIN
    INSERT INTO corrected_words (rowid, key) VALUES (new.id, new.key);
END;
CREATE TRIGGER IF NOT EXISTS forgotten AFTER DELETE ON corrections BEGIN
    INSERT INTO corrected_words (corrected_words, rowid, key) VALUES ('delete', old.id, old.key);
END;
"""


@dataclass(frozen=True)
class Correction:
    """A translation that a person made of a sentence, in place of the machine's."""

    pair: str  # en-fr
    source: str
    target: str
    machine: str  # the translation that was corrected
    made_at: str


@dataclass(frozen=True)
class Suggestion:
    """A fuzzy match: the correction of a similar sentence."""

    source: str
    target: str
    score: float  # 1: the same sentence


class TranslationMemory:
    """Corrections in one file. Several processes may share the file, and several threads this object."""

    def __init__(self, path: str | Path, must_exist: bool = False) -> None:
        if must_exist and not Path(path).is_file():
            raise UsageError(f"{path}: no such file of corrections; dragoman serve --corrections {path} keeps one")
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(path, check_same_thread=False, timeout=30.0)
            self._database.executescript(_TABLES)
        except sqlite3.Error as error:
            raise DataError(f"{path}: no file of corrections ({error}); name another one") from None

    def close(self) -> None:
        self._database.close()

    def store(self, pair: str, source: str, target: str, machine: str = "") -> None:
        """Keeps a correction, in place of an older one of the same sentence."""
        self.store_all(pair, [(source, target)], machine)

    def store_all(self, pair: str, corrections: Iterable[tuple[str, str]], machine: str = "") -> int:
        """Keeps sources with their translations, in place of older ones of the same sentences; how many there were.
        All of them, or none where it is interrupted."""
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        count = 0
        with self._lock, self._database as database:
            for source, target in corrections:
                database.execute("DELETE FROM corrections WHERE pair = ? AND key = ?", (pair, _key(source)))
                database.execute(
                    "INSERT INTO corrections (pair, key, target, machine, made_at) VALUES (?, ?, ?, ?, ?)",
                    (pair, _key(source), _key(target), _key(machine), made_at),
                )
                count += 1
        return count

    def forget(self, pair: str, source: str) -> bool:
        """Deletes the correction of a sentence; False: there was none."""
        with self._lock, self._database as database:
            gone = database.execute("DELETE FROM corrections WHERE pair = ? AND key = ?", (pair, _key(source)))
            return gone.rowcount > 0

    def exact(self, pair: str, source: str) -> str | None:
        """The correction of this very sentence; None: there is none."""
        with self._lock:
            found = self._database.execute(
                "SELECT target FROM corrections WHERE pair = ? AND key = ?", (pair, _key(source))
            ).fetchone()
        return None if found is None else str(found[0])

    def similar(self, pair: str, source: str, least: float = LIKE_ENOUGH) -> Suggestion | None:
        """The correction of the most similar other sentence, if that is similar enough."""
        key = _key(source)
        words = list(dict.fromkeys(re.findall(r"\w+", key)))[:_WORDS] if len(key) <= _LONGEST else []
        if not words:
            return None
        query = " OR ".join(f'"{word}"' for word in words)
        with self._lock:
            rows = self._database.execute(
                "SELECT c.key, c.target FROM corrected_words JOIN corrections c ON c.id = corrected_words.rowid "
                "WHERE corrected_words MATCH ? AND c.pair = ? AND c.key != ? ORDER BY rank LIMIT ?",
                (query, pair, key, _LOOKED_AT),
            ).fetchall()
        short = [(other, target) for other, target in rows if len(other) <= _LONGEST]
        found = [Suggestion(other, target, similarity(key, other)) for other, target in short]
        best = max(found, key=lambda suggestion: suggestion.score, default=None)
        return best if best is not None and best.score >= least else None

    def __iter__(self) -> Iterator[Correction]:
        """In the order in which they were made."""
        with self._lock:
            rows = self._database.execute(
                "SELECT pair, key, target, machine, made_at FROM corrections ORDER BY id"
            ).fetchall()
        return (Correction(*row) for row in rows)

    def __len__(self) -> int:
        with self._lock:
            return int(self._database.execute("SELECT count(*) FROM corrections").fetchone()[0])


def similarity(one: str, other: str) -> float:
    """The share of characters that both texts have in common, in order; 1 where they are the same."""
    from rapidfuzz.distance import Indel

    return Indel.normalized_similarity(one, other)


def _key(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())
