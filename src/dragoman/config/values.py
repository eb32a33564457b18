"""Builds the dataclasses of a configuration from plain values, as TOML and JSON give them: every name and every type is
checked, and an error names the file or flag that the value came from."""

import dataclasses
import difflib
import json
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dragoman.errors import ConfigError

_WORD_FOR = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}


def build(kind: type, values: Any, origin: str | Mapping[str, str], where: str) -> Any:
    """Makes a dataclass of the type `kind` from a table of plain values, each checked against its annotation.

    `origin` says where the values came from: one file, or a file or flag for each key. `where` is the path of the table
    within the configuration ("model.").
    """

    def origin_of(name: str) -> str:
        return origin if isinstance(origin, str) else origin.get(f"{where}{name}", "configuration")

    if not isinstance(values, dict):
        raise ConfigError(
            f"{origin_of('')}: {where.rstrip('.') or 'the top level'} must be a table, found {quoted(values)}"
        )
    fields = {f.name: f.type for f in dataclasses.fields(kind)}
    arguments = {}
    for name, value in values.items():
        if name not in fields:
            inside = f" in [{where.rstrip('.')}]" if where else ""
            meant = did_you_mean(name, list(fields))
            raise ConfigError(f"{origin_of(name)}: unknown key {quoted(name)}{inside}{meant}")
        arguments[name] = convert(value, fields[name], origin, f"{where}{name}", origin_of(name))
    try:
        return kind(**arguments)
    except ConfigError as error:
        # A limit may depend on several values, from several layers: the message names the origin of each.
        words = set(re.findall(r"\w+", str(error)))
        origins = sorted({origin_of(name) for name in values if name in words})
        raise ConfigError(f"{', '.join(origins) or 'configuration'}: {error}") from None


def convert(value: Any, kind: Any, origin: str | Mapping[str, str], key: str, value_origin: str) -> Any:
    """Converts one value to the type of its annotation, or raises a ConfigError that begins with `value_origin`."""
    if dataclasses.is_dataclass(kind):
        return build(typing.cast(type, kind), value, origin, f"{key}.")
    form, arguments = typing.get_origin(kind), typing.get_args(kind)
    if form in (types.UnionType, typing.Union):  # Python 3.14 made them one
        if value is None and type(None) in arguments:
            return None
        return convert(value, next(a for a in arguments if a is not type(None)), origin, key, value_origin)
    if form is Literal:
        if value in arguments:
            return value
        if type(value) is int and str(value) in arguments:  # `--set model.attention_scale=1` reads as a number
            return str(value)
        meant = did_you_mean(str(value), [str(a) for a in arguments])
        allowed = ", ".join(map(quoted, arguments))
        raise ConfigError(f"{value_origin}: {key} = {quoted(value)}; allowed: {allowed}{meant}")
    if form is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{value_origin}: {key} must be a list, found {quoted(value)}")
        if dataclasses.is_dataclass(arguments[0]):
            return tuple(build(typing.cast(type, arguments[0]), item, value_origin, f"{key}.") for item in value)
        return tuple(convert(item, arguments[0], origin, key, value_origin) for item in value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{value_origin}: {key} must be {_WORD_FOR[kind]}, found {quoted(value)}")
    return value


def quoted(value: Any) -> str:
    """Writes a value as messages show it: as JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Gives the end of a message that names the known word most like this one; nothing where none is like it."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {quoted(close[0])}?" if close else ""
