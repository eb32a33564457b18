"""How a function becomes a command: groups of options spelled out, old names of options understood, help in groups."""

import dataclasses
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from dragoman.cli.old_names import with_new_names
from dragoman.cli.options import Quiet, TextOptions, Verbose
from dragoman.cli.terminal import say, speaking

HelpRecord = Callable[[Any], tuple[str, str] | None]
LIST_TYPE = re.compile(r"<list\[(\w+)\]>")
FROM_ENVIRONMENT = ("serve",)  # commands whose options may also stand in the environment, as DRAGOMAN_PORT=80


class Command(TyperCommand):
    """A command that knows its options by their old names too, and shows their types without Python's brackets."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            parameter.get_help_record = _in_plain_words(parameter.get_help_record)  # type: ignore[assignment, method-assign]
            parameter.process_value = _without_pydantic(parameter)  # type: ignore[assignment, method-assign]
            if self.name in FROM_ENVIRONMENT:
                parameter.envvar = f"DRAGOMAN_{str(parameter.name).upper()}"
                parameter.show_envvar = False  # type: ignore[attr-defined]  # the text of the command says it once

    def get_help_option(self, ctx: Any) -> Any:
        return _converting(super().get_help_option(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        name = ctx.command_path.partition(" ")[2]  # without the name of the program
        return super().parse_args(ctx, with_new_names(name, args))


def _in_plain_words(get_help_record: HelpRecord) -> HelpRecord:
    """Typer writes `--text <list[Path]>` of an option that may be given several times: `--text <path>` here."""

    def record(context: Any) -> tuple[str, str] | None:
        found = get_help_record(context)
        return found and (LIST_TYPE.sub(lambda match: f"<{match[1].lower()}>", found[0]), found[1])

    return record


def _converting(option: Any) -> Any:
    """The option of the help, which typer makes when it is first asked for it."""
    if option is not None and "process_value" not in vars(option):
        option.process_value = _without_pydantic(option)
    return option


def _without_pydantic(parameter: Any) -> Callable[[Any, Any], Any]:
    """How a value of the command line becomes that of a parameter. Typer asks pydantic, whose import takes longer than
    all else of a command's start; what is not given, text, paths and what has a parser of its own do without it."""
    descriptor = parameter.type_descriptor
    each = get_args(descriptor.annotation)[0] if get_origin(descriptor.annotation) is list else descriptor.annotation
    convert = descriptor.parameter_info.parser or {str: str, Path: Path}.get(each)
    many = parameter.multiple or parameter.nargs == -1
    by_typer = parameter.process_value

    def process(context: Any, value: Any) -> Any:
        if parameter.required and not value:
            return by_typer(context, value)  # which complains
        if value is None:
            found: Any = () if many else None
        elif many and convert is not None and isinstance(value, list | tuple):
            found = [convert(item) if isinstance(item, str) else item for item in value]
        elif not many and convert is not None and isinstance(value, str):
            found = convert(value)
        elif not many and (type(value) is each or (get_origin(each) is Literal and value in get_args(each))):
            found = value
        else:
            return by_typer(context, value)
        return found if parameter.callback is None else parameter.callback(context, parameter, found)

    return process


class Group(TyperGroup):
    """A group of commands, whose help has what they do in whole sentences, by the headings that they stand under.

    Called without a command, it shows its help on stderr: nothing was done, so the exit code is 2.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            found: Any = self.get_command(ctx, name)
            summary = " ".join((found.help or "").partition("\n\n")[0].split())
            heading = found.rich_help_panel if isinstance(found.rich_help_panel, str) else "Commands"
            rows.setdefault(heading, []).append((name, summary))
        for heading, commands in rows.items():
            with formatter.section(heading):
                formatter.write_dl(commands)

    def get_help_option(self, ctx: Any) -> Any:
        return _converting(super().get_help_option(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            say(ctx.get_help())
            raise typer.Exit(2)
        return super().parse_args(ctx, args)


def group(text: str) -> typer.Typer:
    """A group of commands with this help text."""
    return typer.Typer(cls=Group, help=text, rich_markup_mode=None)


def command(
    app: typer.Typer, name: str | None = None, heading: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a command of `app`, under a heading of its help.

    A parameter whose type is a dataclass of options stands for all of its fields: the command has an option for each,
    and the function gets the dataclass.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name, cls=Command, rich_help_panel=heading)(_spelled_out(function))
        return function

    return register


def _spelled_out(function: Callable[..., None]) -> Callable[..., None]:
    """The function as typer reads it: every option a parameter, with --quiet and --verbose, which all commands have."""
    first: list[inspect.Parameter] = []
    own: list[inspect.Parameter] = []
    last: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    types = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        options = types[parameter.name]
        if not dataclasses.is_dataclass(options):
            own.append(_named(parameter.name, options, parameter.default))
            continue
        groups[parameter.name] = options
        fields = get_type_hints(options, include_extras=True)
        for field in dataclasses.fields(options):
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            (first if options is TextOptions else last).append(_named(field.name, fields[field.name], default))
    as_json = [parameter for parameter in own if parameter.name == "as_json"]
    own = [parameter for parameter in own if parameter.name != "as_json"]
    spoken = [_named("quiet", Quiet, False), _named("verbose", Verbose, False)]
    parameters = [*first, *own, *last, *as_json, *spoken]  # in the order of the help

    def run(quiet: bool, verbose: bool, **values: Any) -> None:
        for name, options in groups.items():
            values[name] = options(**{field.name: values.pop(field.name) for field in dataclasses.fields(options)})
        with speaking(quiet, verbose):
            function(**values)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _named(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
