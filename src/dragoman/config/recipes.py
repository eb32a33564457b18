"""Puts a configuration together: the defaults, recipes, `--set` and options, and for each value where it came from."""

import dataclasses
import difflib
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.config import RunConfig, ranges
from dragoman.config.values import build, convert, did_you_mean, quoted
from dragoman.errors import ConfigError


@dataclass(frozen=True)
class LayeredConfig:
    """A configuration put together from several layers, and where each of its values (`model.d_ff`) came from."""

    config: RunConfig
    origins: Mapping[str, str]


def load(recipe: str | None, overrides: Sequence[tuple[str, Any, str]] = ()) -> LayeredConfig:
    """Puts a configuration together: the defaults, then the recipe (after the one that it extends), then the overrides,
    each of them (key, value, origin)."""
    layers: list[tuple[str, dict[str, Any]]] = [] if recipe is None else _recipe_layers(find_recipe(recipe), ())
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        for key, value in _flatten(layer):
            _check_key(key, origin)
            values[key], origins[key] = value, origin
    for key, value, origin in overrides:
        _check_key(key, origin)
        values[key], origins[key] = value, origin
    nested: dict[str, Any] = {}
    for key, value in values.items():
        section, name = key.split(".")
        nested.setdefault(section, {})[name] = value
    # The values may come from several files: `build` gets the origin of each, for its messages.
    config = build(RunConfig, nested, origins, "")
    return LayeredConfig(config, {key: origins.get(key, "default") for key, _ in flatten(config)})


def with_overrides(config: RunConfig, overrides: Sequence[tuple[str, Any, str]]) -> RunConfig:
    """Returns the configuration with some values changed, each override (key, value, origin) as for `load`."""
    return load(
        None, [*((key, value, "the run") for key, value in _flatten(dataclasses.asdict(config))), *overrides]
    ).config


def flatten(config: RunConfig) -> list[tuple[str, Any]]:
    """Lists every value with its full name (`model.d_ff`), in the order of declaration."""
    return [
        (f"{section.name}.{item.name}", getattr(getattr(config, section.name), item.name))
        for section in dataclasses.fields(config)
        for item in dataclasses.fields(getattr(config, section.name))
    ]


def parse_set(text: str) -> tuple[str, Any, str]:
    """Parses the value of `--set`, such as `train.minutes=30`, into an override. It is read as TOML, or else taken as a
    string."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set {text}: expected section.key=value, for example train.minutes=30")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value
    key = key.strip()
    # Checked at once: the configuration itself may be built only after the training text has been read.
    _check_key(key, f"--set {key}")
    _check_value(key, parsed, f"--set {key}")
    return key, parsed, f"--set {key}"


def recipes_dir() -> Path:
    """The directory of the recipes that come with Dragoman: in an installed package, or beside src/ in a checkout."""
    installed = Path(__file__).parents[1] / "recipes"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "recipes"


def find_recipe(name: str) -> Path:
    """Finds a recipe by its path, or by the name of one that comes with Dragoman (`base`, `table3-A1`)."""
    path = Path(name)
    if _is_file(path):
        return path
    bundled = recipes_dir() / f"{path.stem}.toml"
    if path.name in (path.stem, bundled.name) and path.parent in (Path(), Path("recipes")) and _is_file(bundled):
        return bundled
    known = sorted(p.stem for p in recipes_dir().glob("*.toml"))
    meant = did_you_mean(path.stem, known)
    raise ConfigError(f"recipe {name}: no such file{meant}; known recipes: {', '.join(known)}")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long to be one
        return False


def _recipe_layers(path: Path, seen: tuple[Path, ...]) -> list[tuple[str, dict[str, Any]]]:
    """Reads a recipe and those that it extends, each as (file, content), the most basic first. `seen`: the recipes that
    led to this one."""
    if path.resolve() in seen:
        raise ConfigError(f"{path}: extends itself; remove one `extends`")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8; save the recipe as UTF-8") from None
    except (ValueError, RecursionError) as error:  # also of endless numbers and nesting
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    parent = content.pop("extends", None)
    if parent is None:
        return [(str(path), content)]
    if not isinstance(parent, str):
        raise ConfigError(f"{path}: extends must be a string, found {quoted(parent)}")
    beside = path.parent / parent
    try:
        extended = find_recipe(str(beside) if _is_file(beside) else parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: extends {error}") from None
    return [*_recipe_layers(extended, (*seen, path.resolve())), (str(path), content)]


def _flatten(layer: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Lists the values of a nested table with their full names; a value outside of all sections has its name alone."""
    flat = []
    for section, values in layer.items():
        if isinstance(values, dict):
            flat += [(f"{section}.{name}", value) for name, value in values.items()]
        else:
            flat.append((section, values))
    return flat


def _check_key(key: str, origin: str) -> None:
    """Raises a ConfigError, with a suggestion, unless the key is `section.name` of a section and a name there are."""
    sections = {f.name: f.type for f in dataclasses.fields(RunConfig)}
    section, dot, name = key.partition(".")
    names = {s: [f.name for f in dataclasses.fields(typing.cast(type, kind))] for s, kind in sections.items()}
    if not dot and section in sections:
        raise ConfigError(
            f"{origin}: {quoted(section)} is a section; name one of its keys: {', '.join(names[section])}"
        )
    if not dot:
        # A key without its section: the full name is what was meant.
        full = {n: f"{s}.{n}" for s in sections for n in names[s]} | {s: s for s in sections}
        close = difflib.get_close_matches(section, list(full), n=1)
        meant = f"; did you mean {quoted(full[close[0]])}?" if close else ""
        raise ConfigError(f"{origin}: unknown key {quoted(section)}{meant}")
    if section not in sections:
        raise ConfigError(f"{origin}: unknown section {quoted(section)}{did_you_mean(section, list(sections))}")
    if name not in names[section]:
        raise ConfigError(f"{origin}: unknown key {quoted(name)} in [{section}]{did_you_mean(name, names[section])}")


def _check_value(key: str, value: Any, origin: str) -> None:
    """Checks the type and range of one value by itself. Limits that several values share are checked when the whole
    configuration is built."""
    section, name = key.split(".")
    kinds = {f.name: f.type for f in dataclasses.fields(typing.cast(type, type(getattr(RunConfig(), section))))}
    found = convert(value, kinds[name], origin, key, origin)
    allowed = {
        "model": ranges.MODEL,
        "data": ranges.DATA,
        "train": ranges.TRAIN,
        "search": ranges.SEARCH,
    }[section]
    if name in allowed and found is not None and found not in allowed[name]:
        raise ConfigError(f"{origin}: {key} = {quoted(found)}; must be {allowed[name]}")
