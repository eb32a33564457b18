"""Search settings with some of them replaced, by name."""

from dataclasses import replace
from typing import Any

from dragoman.config import SearchConfig
from dragoman.config.values import convert
from dragoman.errors import UsageError


def with_changes(search: SearchConfig, **changes: Any) -> SearchConfig:
    """A copy of the settings with these values in place of its own; an unknown name is a UsageError, a value of another
    type a ConfigError."""
    known = search.__dataclass_fields__
    if unknown := ", ".join(changes.keys() - known.keys()):
        raise UsageError(f"unknown search setting {unknown}; known: {', '.join(known)}")
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in changes.items()}  # of numpy
    return replace(
        search,
        **{
            name: convert(value, known[name].type, "search", f"search.{name}", "search settings")
            for name, value in plain.items()
        },
    )
