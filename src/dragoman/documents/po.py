"""Reads the messages of programs in gettext's PO files. Empty translations are filled; all else is copied."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dragoman.documents.accelerators import DOUBLED, MARKS, accelerator_in, with_accelerator
from dragoman.documents.flow import Flow, InlineTag
from dragoman.documents.lexer import scan
from dragoman.documents.plain_text import BLOCK, string_flow
from dragoman.documents.settings import DEFAULTS, FormatSettings

_FIELD = re.compile(
    r"^(?P<key>msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)[ \t]+"
    r'(?P<value>"(?:[^"\\]|\\.)*"(?:\s*\n[ \t]*"(?:[^"\\]|\\.)*")*)',
    re.MULTILINE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_FLAGS = re.compile(r"^#,[ \t]*(?P<flags>.*)$", re.MULTILINE)
_COPIED_QT = re.compile(rf"{DOUBLED.pattern}|%L?\d{{1,2}}|%n\b")
_BEFORE_MESSAGE = re.compile(r"^(?:#\||msg)", re.MULTILINE)


def po_pieces(chunks: Iterable[str], settings: FormatSettings = DEFAULTS) -> Iterator[str | Flow]:
    """Each message with an empty msgstr is a flow made from its msgid. What was translated before is copied, and so are
    comments."""
    used: str | None = None  # the mark of accelerators, where the file says it
    for block in scan(chunks, BLOCK):
        for entry in _entries(block[0]):
            fields = list(_FIELD.finditer(entry))
            values = {found["key"]: _po_unescape(found["value"]) for found in fields}
            if values.get("msgid") == "" and "msgctxt" not in values:
                header = _header(values.get("msgstr", ""))
                settings.check_language(header.get("language"), "its header says Language: {}", "correct the header")
                used = header.get("x-accelerator-marker")
                used = used if used in tuple(MARKS) else None
            yield _entry_flow(entry, fields, values, used, settings.fuzzy) or entry


def _entries(block: str) -> Iterator[str]:
    """Divides a block into its messages, between which there need not be an empty line."""
    start = end = 0
    translated = False
    for found in _FIELD.finditer(block):
        is_translation = found["key"].startswith("msgstr")
        if translated and not is_translation:
            yield block[start:end]
            start, translated = end, False
        translated = translated or is_translation
        end = found.end()
    yield block[start:]


def _entry_flow(
    entry: str, fields: list[re.Match[str]], values: dict[str, str], used: str | None, fuzzy: bool
) -> Flow | None:
    """A message with its empty translations as flows; None: there is nothing to fill."""
    pieces: list[str | Flow] = []
    filled = set()
    position = 0
    for found in fields:
        key = found["key"]
        if not key.startswith("msgstr") or values[key] or not values.get("msgid"):
            continue
        plural = key not in ("msgstr", "msgstr[0]")
        source = values.get("msgid_plural", values["msgid"]) if plural else values["msgid"]
        if any(map(str.isalpha, source)):
            pieces += [entry[position : found.start("value")], _string_flow(source, used, _of_format(entry))]
            position = found.end("value")
            filled.add(key)
    if not pieces:
        return None

    def finish(written: str) -> str:
        is_filled = any(found["key"] in filled and found["value"] != '""' for found in _FIELD.finditer(written))
        return _marked_fuzzy(written) if fuzzy and is_filled else written

    return Flow("", entry, (InlineTag(0, (*pieces, entry[position:])),), finish=finish)


def _of_format(entry: str) -> re.Pattern[str]:
    """What else is copied in a message of this format: %1 only in those of Qt and KDE, as it may be a percentage (in
    Turkish it is)."""
    flags = _FLAGS.search(entry)
    return _COPIED_QT if flags is not None and re.search(r"\b(?:qt|kde)(?:-plural)?-format\b", flags[0]) else DOUBLED


def _string_flow(source: str, used: str | None, copied: re.Pattern[str]) -> Flow:
    """The flow of one msgstr. Where it is left untranslated it stays empty: programs then show the msgid, and
    translators see what is left to do."""
    found = accelerator_in(source, used)
    flow = replace(string_flow(source if found is None else found[1], '""'), fills=True)
    kept = tuple(match.span() for match in copied.finditer(flow.text))
    if found is None:
        return replace(flow, kept=kept, finish=_po_string)
    accelerator = found[0]
    return replace(flow, kept=kept, finish=lambda text: _po_string(with_accelerator(text, accelerator)))


def _marked_fuzzy(entry: str) -> str:
    flags = _FLAGS.search(entry)
    if flags is not None:
        names = [name.strip() for name in flags["flags"].split(",")]
        at = flags.start("flags")
        return entry if "fuzzy" in names else f"{entry[:at]}fuzzy, {entry[at:]}"
    before = _BEFORE_MESSAGE.search(entry)
    at = before.start() if before else 0
    newline = "\r\n" if "\r\n" in entry else "\n"
    return f"{entry[:at]}#, fuzzy{newline}{entry[at:]}"


def _header(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.split("\n"))
    return {name.strip().lower(): value.strip() for name, _, value in lines if value.strip()}


def _po_unescape(value: str) -> str:
    inner = "".join(found[1] for found in re.finditer(r'"((?:[^"\\]|\\.)*)"', value))
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), inner)


def _po_string(text: str) -> str:
    lines = re.findall(r".*?\n|.+", text, re.DOTALL)
    written = [f'"{_po_escape(line)}"' for line in lines] or ['""']
    return written[0] if len(written) == 1 else "\n".join(['""', *written])


def _po_escape(text: str) -> str:
    back = {character: f"\\{letter}" for letter, character in _ESCAPES.items()}
    return "".join(back.get(character, character) for character in text)
