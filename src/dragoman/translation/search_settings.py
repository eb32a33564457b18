"""Search settings with some of them replaced, by name."""

from dataclasses import replace

from dragoman.config import SearchConfig
from dragoman.errors import UsageError


def with_changes(search: SearchConfig, **changes: float | str) -> SearchConfig:
    """A copy of the settings with these values in place of its own; an unknown name is a UsageError."""
    known = search.__dataclass_fields__
    if unknown := ", ".join(changes.keys() - known.keys()):
        raise UsageError(f"unknown search setting {unknown}; known: {', '.join(known)}")
    return replace(search, **changes)  # type: ignore[arg-type]
