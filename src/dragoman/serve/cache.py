"""Two stores in memory: recent answers, bounded by their size, and files for download, bounded by size and age."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class BoundedCache(Generic[KeyT, ValueT]):
    """A cache that drops the least recently used entries when their sizes add up to more than its limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[KeyT, tuple[ValueT, int]] = OrderedDict()
        self.size = 0

    def get(self, key: KeyT) -> ValueT | None:
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def put(self, key: KeyT, value: ValueT, size: int) -> None:
        if size > self._limit:
            return
        if key in self._entries:
            self.size -= self._entries.pop(key)[1]
        self._entries[key] = value, size
        self.size += size
        while self.size > self._limit:
            _, (_, dropped) = self._entries.popitem(last=False)
            self.size -= dropped

    def __len__(self) -> int:
        return len(self._entries)


class FileStore:
    """Translated files under random names, until they are too old or too large together."""

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._files: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    def put(self, content: bytes) -> str:
        name = secrets.token_urlsafe(24)
        self._files[name] = time.monotonic(), content
        self._forget()
        return name

    def get(self, name: str) -> bytes | None:
        self._forget()
        stored = self._files.get(name)
        return None if stored is None else stored[1]

    def take(self, name: str) -> bytes | None:
        """A file, which is not kept any longer."""
        content = self.get(name)
        self._files.pop(name, None)
        return content

    def _forget(self) -> None:
        oldest_allowed = time.monotonic() - self._seconds
        while self._files and (
            next(iter(self._files.values()))[0] < oldest_allowed
            or sum(len(content) for _, content in self._files.values()) > self._limit
        ):
            self._files.popitem(last=False)
