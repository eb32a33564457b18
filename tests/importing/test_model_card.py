"""What the card of a public model says is read, kept, and used in the card of a bundle."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.importing.model_card import ModelCard, front_matter, read_card
from support.commands import Ran
from support.model_directories import marian_directory

CARD = """---
language:
- en
- "fr"
tags:
  - translation   # a task
  - opus-mt-tc
license: 'cc-by-4.0'
datasets: [opus, "Tatoeba"]
model-index:
- name: opus-mt-tc-big-en-fr
  results:
  - task:
      type: translation
      args: eng-fra
---

# opus-mt-tc-big-en-fr

* source language(s): eng
* target language(s): fra
"""


def test_the_values_before_the_text_are_read(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(CARD, encoding="utf-8")
    assert read_card(tmp_path) == ModelCard(
        "cc-by-4.0", ("en", "fr"), ("translation", "opus-mt-tc"), ("opus", "Tatoeba"), CARD
    )
    assert read_card(tmp_path / "nothing") == ModelCard()


def test_values_are_as_they_are_written() -> None:
    assert front_matter("---\nlanguage: no\n---\n") == {"language": ("no",)}
    assert front_matter("---\nlanguage: \n- en\n---\n") == {"language": ("en",)}
    assert front_matter("---\nlanguage: # of both sides\n- en # here\n---\n") == {"language": ("en",)}
    assert front_matter("---\nlicense:\n- mit\n- apache-2.0\n---") == {"license": ("mit", "apache-2.0")}
    assert front_matter("\ufeff---\r\nlicense: mit\r\n---\r\n") == {"license": ("mit",)}
    for nothing in ("", "# A card\n", "---\nlicense: mit\n", "---", "- a\n", "---\n- a\n---\n"):
        assert front_matter(nothing) == {}


def test_a_licence_with_a_name_of_its_own_has_that_name(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\nlicense: other\nlicense_name: hippocratic-2.1\n---\n")
    assert read_card(tmp_path).licence == "hippocratic-2.1"
    (tmp_path / "README.md").write_bytes(b"---\nlicense: other\n---\n\xff\xfe")
    assert read_card(tmp_path).licence == "other"


DIRECTIONS = [
    # in the text of the card
    ("x", "* source languages: en\n* target languages: mt\n", (), ("en", "mt")),
    ("x", "* source language(s): eng\n* target language(s): hun\n", (), ("en", "hu")),
    ("x", "- src_alpha2: en\n- tgt_alpha2: rn\n", (), ("en", "rn")),
    ("opus-mt-en-de", "* source languages: de\n* target languages: en\n", (), ("de", "en")),
    ("x", "* source languages: en\n* target languages: fr,fr_BE,wa\n", (), None),
    ("x", "* source language(s): eng\n* target language(s): vie vie_Hani\n", (), None),
    ("x", "* source language(s): eng\n", (), None),
    ("x", "- src_alpha2: en\n- tgt_alpha2: zls\n", (), None),  # the South Slavic languages
    # in the name
    ("opus-mt-en-de", "", (), ("en", "de")),
    ("opus-mt-tc-big-en-fr", "", ("en", "fr"), ("en", "fr")),
    ("opus-mt-de-en", "", ("en", "de"), ("de", "en")),
    ("opus-mt-en-de", "", ("en", "fr"), None),
    ("opus-mt-en-mul", "", (), None),
    ("opus-mt-en-ROMANCE", "", (), None),
    ("opus-mt-en-zls", "", (), None),
    ("opus-mt-en-en", "", (), None),
    ("my-opus-mt-en-de", "", (), None),
    ("opus-mt-en-de-2", "", (), None),
    ("nllb-200-distilled-600M", "", ("en", "de"), None),
]


@pytest.mark.parametrize(("name", "text", "listed", "direction"), DIRECTIONS)
def test_both_languages_are_known_or_none(
    name: str, text: str, listed: tuple[str, ...], direction: tuple[str, str] | None
) -> None:
    assert ModelCard(languages=listed, text=text).direction(name) == direction


def test_card_and_licence_go_into_a_bundle(tmp_path: Path, cli: Callable[..., Ran]) -> None:
    directory = marian_directory(tmp_path / "model")
    (directory / "README.md").write_text(CARD, encoding="utf-8")
    (directory / "LICENSE.txt").write_text("as you like\n")
    ran = cli("import", directory, "--out", tmp_path / "run")
    assert ran.code == 0, ran.stderr
    assert json.loads((tmp_path / "run" / "languages.json").read_text()) == {"source": "en", "target": "fr"}
    given: list[tuple[str, list[str], str]] = [("a.zip", [], "cc-by-4.0"), ("b.zip", ["--licence", "MIT"], "MIT")]
    for name, options, licence in given:
        ran = cli("bundle", tmp_path / "run", "--out", tmp_path / name, *options)
        assert ran.code == 0, ran.stderr
        with zipfile.ZipFile(tmp_path / name) as archive:
            card, page = json.loads(archive.read("card.json")), archive.read("README.md").decode()
            assert archive.read("run/README.md").decode() == CARD
            assert archive.read("run/LICENSE") == b"as you like\n"
        assert card["about"]["licence"] == licence
        assert card["original"] == {
            "from": "model", "licence": "cc-by-4.0", "languages": ["en", "fr"], "tags": ["translation", "opus-mt-tc"],
            "datasets": ["opus", "Tatoeba"],
        }  # fmt: skip
        for row in (f"| licence of the weights | {licence} |", "| trained on | opus, Tatoeba |", "run/README.md"):
            assert row in page
    assert cli("unbundle", tmp_path / "a.zip", "--out", tmp_path / "again").code == 0
    assert (tmp_path / "again" / "LICENSE").read_text() == "as you like\n"
    # What the user says of the languages counts more.
    languages = ("--source-language", "fr", "--target-language", "en")
    assert cli("import", directory, "--out", tmp_path / "other", *languages).code == 0
    assert json.loads((tmp_path / "other" / "languages.json").read_text()) == {"source": "fr", "target": "en"}
