"""The settings for reading and writing document formats."""

from dataclasses import dataclass, field

from dragoman.data.language_codes import language_name, same_language
from dragoman.errors import DataError


class OtherLanguageError(DataError):
    """A document says that it is filled with another language than the target."""


@dataclass(frozen=True)
class FormatSettings:
    """What the user asks of a format.

    `protect`: names of styles and fonts (HTML, Markdown: of tags and classes) whose text is not translated. `columns`:
    of a table, by their names or numbers; none is all. `fuzzy`: what is filled in a PO or XLIFF file is marked for a
    person to look at. `target`: code of the target language, where it is known. `met`: the protected names that the
    document had so far. `unchecked`: what the document says of its language, while the target language is not known.
    `left`: kinds of text that it has and that stay. `xhtml`: HTML is XML, in which characters have few names.
    """

    protect: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    fuzzy: bool = True
    target: str | None = None
    xhtml: bool = False
    met: set[str] = field(default_factory=set, compare=False)
    unchecked: set[str] = field(default_factory=set, compare=False)
    left: set[str] = field(default_factory=set, compare=False)

    def protects(self, *names: str | None) -> bool:
        """Whether one of the names is protected. Capitals do not matter."""
        if not self.protect:
            return False
        given = {name.casefold() for name in names if name is not None}
        found = [name for name in self.protect if name.casefold() in given]
        self.met.update(found)
        return bool(found)

    def check_language(self, language: str | None, says: str, remedy: str) -> None:
        """Refuses a document that is to be filled with another language than the target. `says`: in the words of the
        format, with {} for the language."""
        if language and self.target is None:
            self.unchecked.add(says.format(language))
        elif language and self.target is not None and not same_language(language, self.target):
            raise OtherLanguageError(
                f"{says.format(language)}, but the target language is {language_name(self.target)} ({self.target}); "
                f"take a run into that language, or {remedy}"
            )

    @property
    def not_met(self) -> list[str]:
        """The protected names that the document did not have."""
        return [name for name in self.protect if name not in self.met]


DEFAULTS = FormatSettings()
