"""What is asked of a format beside the document itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FormatSettings:
    """protect: names of styles and fonts (HTML, Markdown: of tags and classes) whose text is not translated.
    fuzzy: what is filled in a PO file is marked as not looked at by a person. target: code of the language that is
    translated into, where it is known."""

    protect: tuple[str, ...] = ()
    fuzzy: bool = True
    target: str | None = None

    def protects(self, *names: str | None) -> bool:
        """Whether one of the names is protected. Capitals do not matter."""
        wanted = {name.casefold() for name in self.protect}
        return bool(wanted) and any(name is not None and name.casefold() in wanted for name in names)


DEFAULTS = FormatSettings()
