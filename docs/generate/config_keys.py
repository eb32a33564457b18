"""The reference of every key of a configuration, made of the code: type, default, range, and the comment beside it."""

import dataclasses
import html
import inspect
import io
import itertools
import re
import tokenize
import types
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

from dragoman import config
from dragoman.config import ranges

HEAD = """\
# Configuration

A run is made from a recipe: a TOML file with the sections below. What it does not name has its default, which is the
value of the paper's base model where the paper has one. `--set section.key=value` changes any of them on the command
line. `dragoman config show RECIPE` prints every value and where it came from. An unknown key is an error that says what
was meant.
"""
CORPUS = "data.train, data.valid"  # lists of tables with keys of their own
SECTIONS = {
    "model": (config.ModelConfig, ranges.MODEL),
    "data": (config.DataConfig, ranges.DATA),
    CORPUS: (config.CorpusConfig, ranges.CORPUS),
    "train": (config.TrainConfig, ranges.TRAIN),
    "search": (config.SearchConfig, ranges.SEARCH),
}


class Key(NamedTuple):
    section: str
    name: str
    type: str
    default: str
    allowed: str
    meaning: str


def every_key() -> Iterator[Key]:
    for section, (owner, allowed_ranges) in SECTIONS.items():
        comments, hints = _comments(owner), typing.get_type_hints(owner)
        for item in dataclasses.fields(owner):
            allowed = str(allowed_ranges[item.name]) if item.name in allowed_ranges else ""
            yield Key(
                section,
                item.name,
                _type_name(hints[item.name]),
                _toml(item.default),
                allowed,
                comments.get(item.name, ""),
            )


def page() -> str:
    parts = [HEAD]
    for section, (owner, _) in SECTIONS.items():
        title = "Corpora: the tables of `data.train` and `data.valid`" if section == CORPUS else f"`[{section}]`"
        about = inspect.getdoc(owner) or ""
        parts += [
            f"## {title}\n",
            f"{about}\n",
            "| key | default | allowed | meaning |",
            "|---|---|---|---|",
        ]
        parts += [_row(key) for key in every_key() if key.section == section]
        parts.append("")
    return "\n".join(parts)


def _row(key: Key) -> str:
    name = f"`{key.name}`" if key.section == CORPUS else f"`{key.section}.{key.name}`"
    default = f"`{key.default}`" if key.default else "none"
    allowed = ", ".join(filter(None, [key.type, key.allowed]))
    return f"| {name} | {default} | {_cell(allowed)} | {_cell(key.meaning)} |"


def _cell(text: str) -> str:
    text = html.escape(text, quote=False).replace("|", "&#124;")
    return re.sub(r"(`[^`]*`)|\*", lambda found: found[1] or r"\*", text)


def _comments(owner: type) -> dict[str, str]:
    """The comment beside each field of a dataclass, or at the end of its last line."""
    found: dict[str, str] = {}
    name = ""
    tokens = list(tokenize.generate_tokens(io.StringIO(inspect.getsource(owner)).readline))
    for token, after in itertools.pairwise(tokens):
        if token.type == tokenize.NAME and after.string == ":" and token.start[1] == 4:
            name = token.string
        beside = token.line.strip() != token.string  # a comment alone on its line is about what follows it
        if token.type == tokenize.COMMENT and name and beside:
            found[name] = token.string.removeprefix("#").strip()
        if token.type == tokenize.NAME and token.string == "def":
            break
    return found


def _without_none(hint: Any) -> list[Any]:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return [one for one in typing.get_args(hint) if one is not type(None)]
    return [hint]


def _type_name(hint: Any) -> str:
    (one,) = _without_none(hint)
    if typing.get_origin(one) is typing.Literal:
        return "one of " + ", ".join(f"`{value}`" for value in typing.get_args(one))
    if typing.get_origin(one) is tuple:
        inner = typing.get_args(one)[0]
        return "list of tables" if inner is config.CorpusConfig else "list of strings"
    return {int: "whole number", float: "number", bool: "true or false", str: "string"}[one]


def _toml(value: Any) -> str:
    """A default as it is written in TOML; nothing for one that is not there."""
    if value is None or value is dataclasses.MISSING:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return "[]" if value == () else f"{value}"
