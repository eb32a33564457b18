"""What is written as TMX is read again as it was, by this program and by another reader."""

from pathlib import Path

from lxml import etree

from dragoman.data.pair_formats import read_any
from dragoman.data.tmx_writer import tmx_lines

PAIRS = [('a <b> & "c"', "ĉ 'd' ]]>"), ("two\nlines", "du\tvortoj"), ("🙂", "\x01x")]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    units = [(source, target, "2026-11-19T22:18:16+00:00") for source, target in PAIRS]
    path.write_text("\n".join(tmx_lines(units, "en", "eo", "0.1.0")), encoding="utf-8")
    found = read_any([path], ("en", "eo"))
    assert [(" ".join(s.split()), " ".join(t.split())) for s, t in found.pairs] == [
        ('a <b> & "c"', "ĉ 'd' ]]>"), ("two lines", "du vortoj"), ("🙂", "x"),
    ]  # fmt: skip
    tree = etree.parse(path)
    assert tree.getroot().get("version") == "1.4"
    assert [unit.get("creationdate") for unit in tree.iter("tu")] == ["20261119T221816Z"] * 3
    assert tree.find("header").get("srclang") == "en"


def test_an_unknown_time_is_left_out() -> None:
    assert "creationdate" not in "".join(tmx_lines([("a", "b", "")], "en", "eo", "1"))
