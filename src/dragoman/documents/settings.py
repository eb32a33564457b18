"""What is asked of a format beside the document itself."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class FormatSettings:
    """protect: names of styles and fonts (HTML, Markdown: of tags and classes) whose text is not translated.
    fuzzy: what is filled in a PO file is marked as not looked at by a person. target: code of the language that is
    translated into, where it is known. met: those of the protected names that the document had so far."""

    protect: tuple[str, ...] = ()
    fuzzy: bool = True
    target: str | None = None
    met: set[str] = field(default_factory=set, compare=False)

    def protects(self, *names: str | None) -> bool:
        """Whether one of the names is protected. Capitals do not matter."""
        if not self.protect:
            return False
        given = {name.casefold() for name in names if name is not None}
        found = [name for name in self.protect if name.casefold() in given]
        self.met.update(found)
        return bool(found)

    @property
    def not_met(self) -> list[str]:
        return [name for name in self.protect if name not in self.met]


DEFAULTS = FormatSettings()
