"""Marian's YAML is read as PyYAML and CTranslate2 read it, where they can."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ctranslate2.converters.marian import load_vocab

from dragoman.importing.marian_text import read_pieces, read_settings
from support.marian_archives import SETTINGS, as_yaml, odd_pieces

ODD = odd_pieces(3000, seed=4)


@pytest.mark.parametrize("settings", [{"allow_unicode": True}, {}, {"default_style": '"'}, {"default_style": "'"}])
def test_vocabularies_as_opus_mt_writes_them(settings: dict[str, Any]) -> None:
    ids = {piece: index for index, piece in enumerate(ODD)}
    written = yaml.dump(ids, width=10**6, **settings)
    written = re.sub(r"""!!int ["'](\d+)["']$""", r"\1", written, flags=re.MULTILINE)
    assert read_pieces("vocab.yml", (written + "\n").encode()) == ids
    windows = written.replace("\n", "\r\n")
    assert read_pieces("vocab.yml", windows.encode()) == ids


def test_vocabularies_as_marian_writes_them(tmp_path: Path) -> None:
    """It leaves most characters as they are, and quotes with few escapes; CTranslate2's reader is for that."""
    path = tmp_path / "vocab.yml"
    path.write_text(
        '</s>: 0\n<unk>: 1\n",": 2\n▁the: 3\n"#": 4\n"\\"": 5\n"\\\\": 6\na\u2028b: 7\n:: 8\n1: 9\n"\\x80": 10\n'
        '? ' + "y" * 200 + "\n: 11\n'it''s': 12\n\"~\": 13\na:b: 14\n\"▁-\": 15\n",
        encoding="utf-8", newline="\n",
    )  # fmt: skip
    ids = read_pieces("vocab.yml", path.read_bytes())
    assert list(ids.values()) == list(range(16))
    assert list(ids) == load_vocab(str(path))


def test_settings_are_those_that_pyyaml_reads() -> None:
    text = as_yaml(SETTINGS) + "quoted: \"a\\tb\"\nsingle: 'it''s'\n# a remark\n\nunindented:\n- 1\n- 2\nempty:\n"
    expected = yaml.load(text, Loader=yaml.BaseLoader)
    assert read_settings(text.encode()) == expected | {"empty": []}


def test_a_list_of_pieces_gives_them_the_numbers_of_their_lines() -> None:
    assert read_pieces("a.src.vocab", "</s>\n<unk>\n▁a\u2028\n".encode()) == {"</s>": 0, "<unk>": 1, "▁a\u2028": 2}
    with pytest.raises(ValueError, match="a line is empty, or there twice"):
        read_pieces("a.src.vocab", b"</s>\n\n<unk>\n")
