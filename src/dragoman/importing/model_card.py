"""Reads the card of a public model: the README.md that came with it, which begins with values in YAML."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.data.language_codes import NAMES
from dragoman.data.language_names import MORE_NAMES, TWO_LETTERS
from dragoman.importing.imported_model import ImportedModel
from dragoman.run_directory import ORIGINAL_CARD, ORIGINAL_LICENCE

LICENCE_FILES = ("LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE")
# How the cards of OPUS-MT name the languages; `*  source languages: fr,fr_BE,wa` is no single one.
_LINES = tuple(
    tuple(re.compile(rf"^[ \t]*[-*][ \t]+{side}:[ \t]*([a-zA-Z]+)[ \t]*$", re.MULTILINE) for side in sides)
    for sides in (("src_alpha2", "tgt_alpha2"), (r"source language(?:s|\(s\))", r"target language(?:s|\(s\))"))
)
_OPUS_NAME = re.compile(r"opus-mt-(?:tc-[a-z]+-)?([a-z]{2,3})-([a-z]{2,3})")


@dataclass(frozen=True)
class ModelCard:
    """What a card says of its model; empty where it says nothing."""

    licence: str = ""
    languages: tuple[str, ...] = ()  # in no order that means something
    tags: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    text: str = ""  # the whole card

    def direction(self, name: str) -> tuple[str, str] | None:
        """The source and the target language of a model of this name, if it has one of each: as the text of the card
        says, or else the name of an OPUS-MT model, unless the card lists other languages."""
        for source, target in _LINES:
            found = source.search(self.text), target.search(self.text)
            if found[0] and found[1] and (pair := _pair(found[0][1], found[1][1])):
                return pair
        named = _OPUS_NAME.fullmatch(name)
        pair = _pair(*named.groups()) if named else None
        listed = {_usual(code) for code in self.languages}
        return pair if pair and (not listed or listed >= {*pair}) else None


def read_card(directory: Path) -> ModelCard:
    """The card in a directory; an empty one where there is none."""
    path = directory / ORIGINAL_CARD
    if not path.is_file():
        return ModelCard()
    text = path.read_bytes().decode(errors="replace")
    values = front_matter(text)
    licence = values.get("license", ())
    if licence == ("other",):
        licence = values.get("license_name", licence)
    return ModelCard(
        ", ".join(licence), values.get("language", ()), values.get("tags", ()), values.get("datasets", ()), text
    )


def front_matter(text: str) -> dict[str, tuple[str, ...]]:
    """The values between the two lines of --- that a card begins with: each key with its plain values, as they are
    written (`no` is Norwegian). What is nested deeper is passed over."""
    first, *lines = text.removeprefix("\ufeff").splitlines() or [""]
    found: dict[str, tuple[str, ...]] = {}
    key = ""
    for line in lines if first.strip() == "---" else ():
        if line.strip() == "---":
            return found
        if begun := re.fullmatch(r"([\w-]+):(?:\s+(.*))?", line.rstrip()):
            key, value = begun[1], re.sub(r"(^|\s+)#.*", "", begun[2] or "")
            listed = value[1:-1].split(",") if re.fullmatch(r"\[.*\]", value) else [value]
            found[key] = tuple(_plain(one) for one in listed if one.strip())
        elif (item := re.fullmatch(r"\s*-\s+(.+)", line)) and key and not re.search(r":(\s|$)", item[1]):
            found[key] = (*found[key], _plain(re.sub(r"\s+#.*", "", item[1])))
    return {}  # it does not end: these are no such values


def with_card(model: ImportedModel, directory: Path, name: str) -> ImportedModel:
    """The model with what the card and the licence in its directory add. `name`: what the model is called."""
    documents = {
        kept: path.read_bytes()
        for kept, names in ((ORIGINAL_CARD, (ORIGINAL_CARD,)), (ORIGINAL_LICENCE, LICENCE_FILES))
        if (path := next((directory / one for one in names if (directory / one).is_file()), None))
    }
    languages = model.languages
    if languages is None and not model.tokenizer.languages:
        languages = read_card(directory).direction(name)
    return replace(model, languages=languages, documents=documents)


def _plain(value: str) -> str:
    return value.strip().strip("\"'")


def _usual(code: str) -> str:
    return TWO_LETTERS.get(code.lower(), code.lower())


def _pair(source: str, target: str) -> tuple[str, str] | None:
    """Both codes as the run writes them; None unless they are of two languages that are known (a group is none)."""
    pair = _usual(source), _usual(target)
    return pair if pair[0] != pair[1] and all(code in NAMES or code in MORE_NAMES for code in pair) else None
