"""Verses of the Greek New Testament in English, and their word alignment by hand: for bench/alignment.py.

The words and links come from the package bible-alignments (https://github.com/Clear-Bible/Alignments): alignments by
Clear Bible and Biblica, CC BY 4.0; Greek text SBLGNT, CC BY 4.0, by the Society of Biblical Literature and Logos Bible
Software; English text Berean Standard Bible, public domain. Nothing of it is part of this repository. To fetch it:

    pip download --no-deps --ignore-requires-python bible-alignments==0.4.2 -d build/bible
    python -m zipfile -e build/bible/bible_alignments-0.4.2-py3-none-any.whl build/bible
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_WORDS = 40


@dataclass(frozen=True)
class Pair:
    source: list[str]
    target: list[str]
    links: frozenset[tuple[int, int]]  # (target word, source word)


def verses(data: Path) -> list[Pair]:
    """All verses of at most 40 words on either side, in lower case and without punctuation."""
    greek = _words(data / "data" / "sources" / "SBLGNT.tsv")
    english = _words(data / "data" / "eng" / "targets" / "BSB" / "nt_BSB.tsv")
    found = json.loads((data / "data" / "eng" / "alignments" / "BSB" / "SBLGNT-BSB-manual.json").read_text("utf-8"))
    source_places, target_places = _places(greek), _places(english)
    links: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for record in found["records"]:
        for source in record["source"]:
            for target in record["target"]:
                (verse, at), (other, to) = source_places[source], target_places.get(target, ("", 0))
                if verse == other:
                    links[verse].add((to, at))
    return [
        Pair([word for _, word in greek[verse]], [word for _, word in words], frozenset(links[verse]))
        for verse, words in english.items()
        if links[verse] and min(len(words), len(greek[verse])) >= 3 and max(len(words), len(greek[verse])) <= MOST_WORDS
    ]


Verses = dict[str, list[tuple[str, str]]]  # verse: its words, each with its id


def _words(path: Path) -> Verses:
    verses: Verses = defaultdict(list)
    for row in _rows(path):
        word_id = row["id"].lstrip("no")
        if row.get("exclude") != "y" and any(character.isalnum() for character in row["text"]):
            verses[word_id[:8]].append((row["id"], row["text"].lower()))
    return verses


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def _places(verses: Verses) -> dict[str, tuple[str, int]]:
    return {word_id: (verse, at) for verse, words in verses.items() for at, (word_id, _) in enumerate(words)}
