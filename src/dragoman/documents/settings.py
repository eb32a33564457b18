"""The settings for reading and writing document formats."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class FormatSettings:
    """What the user asks of a format.

    `protect`: names of styles and fonts (HTML, Markdown: of tags and classes) whose text is not translated. `fuzzy`:
    messages filled in a PO file are marked fuzzy, for a person to look at. `target`: code of the target language, where
    it is known. `met`: the protected names that the document had so far. `unchecked`: languages that the document says
    it is in, while the target language is not known.
    """

    protect: tuple[str, ...] = ()
    fuzzy: bool = True
    target: str | None = None
    met: set[str] = field(default_factory=set, compare=False)
    unchecked: set[str] = field(default_factory=set, compare=False)

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
        """The protected names that the document did not have."""
        return [name for name in self.protect if name not in self.met]


DEFAULTS = FormatSettings()
