"""Options by the names that they once had: still understood, and no longer shown."""

from collections.abc import Iterator, Sequence

from dragoman.errors import UsageError

_OUT = {"--output": "--out"}
_TARGET = {"--to": "--target-language"}
_SCORED = {"--language": "--target-language"}  # the language that scores are computed for
_PAIR = {"--pair": "--source-language --target-language"}
_LANGUAGES = {"--languages": "--source-language --target-language"}

# Command: old name: new name. Of two new names each takes its part of a value like en-de.
RENAMED: dict[str, dict[str, str]] = {
    "train": {"--both": "--both-directions --source-language --target-language"},
    "translate": _OUT | _TARGET,
    "translate-file": _TARGET | {"--language": "--source-language"},
    "evaluate": _OUT | _TARGET | _SCORED,
    "compare": _SCORED,
    "score": _TARGET,
    "quantize": _SCORED | {"--to": "--compute-type"},
    "calibrate": {"--plots": "--drawings"},
    "stress": _TARGET,
    "finetune": _TARGET | _SCORED,
    "backtranslate": _TARGET,
    "export": _LANGUAGES | {"--to": "--format"},
    "import": _LANGUAGES,
    "reproduce": _SCORED,
    "tasks": {"--source-name": "--source-language", "--target-name": "--target-language"},
    "parse train": {"--limit": "--sentences"},
    "parse run": {"--form": "--format", "--svg": "--drawings"},
    "parse evaluate": _OUT | {"--limit": "--sentences"},
    "lm generate": {"--count": "--n-best"},
    "mlm fill": {"--best": "--n-best"},
    "vit show": {"--svg": "--out"},
    "corrections export": _PAIR,
    "corrections train": _PAIR | _SCORED,
    "corrections promote": _SCORED,
}


def with_new_names(command: str, arguments: Sequence[str]) -> list[str]:
    """A command's arguments with each old name of an option replaced by its new one."""
    return list(_renamed(RENAMED.get(command, {}), arguments))


def _renamed(names: dict[str, str], arguments: Sequence[str]) -> Iterator[str]:
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":  # from here on nothing is an option
            yield argument
            yield from rest
            return
        old, equals, value = argument.partition("=")
        if old not in names:
            yield argument
            continue
        *flags, last = names[old].split()
        if not flags:
            yield f"{last}{equals}{value}"
            continue
        source, dash, target = (value if equals else next(rest, "")).partition("-")
        if not (source and dash and target):
            raise UsageError(f"{old} takes two languages, for example en-de; better: {names[old]}")
        *flags, first = flags
        yield from (*flags, first, source, last, target)
