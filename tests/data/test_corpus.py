"""Reading: every line as it is, and faults named by file and line."""

import gzip
import io
import os
import random
import re
import shlex
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config import CorpusConfig
from dragoman.data.corpus import LONGEST_LINE, OTHER_FORMATS, file_digest, raw_pairs, read_lines, read_pairs
from dragoman.data.pair_formats import has_lines
from dragoman.errors import DataError


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"))))
def test_read_lines_gives_back_what_was_written(lines: list[str]) -> None:
    for ending in ("\n", "\r\n"):
        written = "".join(line + ending for line in lines).encode()
        assert list(read_lines(io.BytesIO(written))) == lines


def test_lines_end_at_newlines_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("\ufeffone\u2028still\x0bone\x85\r\n\ntwo\r\r\n last".encode())
    assert list(read_lines(tmp_path / "a")) == ["one\u2028still\x0bone\x85", "", "two\r", " last"]


@pytest.mark.parametrize("name", ["a.gz", "a.txt"])
def test_gzip_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    with gzip.open(tmp_path / name, "wb") as file:
        file.write("\ufeffone\ntwo\n".encode())
    assert list(read_lines(tmp_path / name)) == ["one", "two"]
    with (tmp_path / name).open("rb") as stream:
        assert list(read_lines(stream)) == ["one", "two"]


def test_read_lines_is_strict(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("one\nGrüße\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"a\.txt:2: byte 3 \(0xFC\) is not UTF-8; .*iconv"):
        list(read_lines(tmp_path / "a.txt"))
    with pytest.raises(DataError, match=r"input:1: byte 1"):
        list(read_lines(io.BytesIO(b"\xfc")))


def test_read_pairs_takes_two_columns_and_is_strict(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\n c \t\tx\ty\nonly one\n", encoding="utf-8")
    pairs = read_pairs(str(tmp_path / "a.tsv"))
    assert [next(pairs), next(pairs)] == [("a", "b"), (" c ", "")]
    with pytest.raises(DataError, match=r"a\.tsv:3: one column; each line must be"):
        next(pairs)


def test_faults_of_a_file_are_named(tmp_path: Path) -> None:
    good = gzip.compress("".join(f"line {random.Random(i).random()}\n" for i in range(5000)).encode())
    for name, content, message in (
        ("cut.gz", good[:-3000], r"cut\.gz: the gzip data is damaged or cut off near line [1-9]"),
        ("bad.gz", good[:200] + bytes(50) + good[250:], r"bad\.gz: the gzip data is damaged"),
        ("utf16.txt", "Grüße\n".encode("utf-16"), r"utf16\.txt:1: UTF-16; .*iconv -f UTF-16"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=message):
            list(read_lines(tmp_path / name))
    with pytest.raises(DataError, match=r"none\.txt: no such file; check the path"):
        list(read_lines(tmp_path / "none.txt"))
    with pytest.raises(DataError, match="a directory; give a text file"):
        list(read_lines(tmp_path))
    with pytest.raises(DataError, match=r"cannot be read \(Not a directory\); check the path and its permissions"):
        list(read_lines(tmp_path / "cut.gz" / "a.txt"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"not a regular file; .* save it to a file first"):
        file_digest(str(tmp_path / "pipe"))


def test_a_file_of_another_format_is_called_what_it_is(tmp_path: Path, cli: Callable[..., Any]) -> None:
    """And the remedy works: not iconv, which would make rubble of an archive."""
    pairs = [("the dog", "la hundo"), ("the cat", "la kato")]
    book = openpyxl.Workbook()
    for row in pairs:
        book.active.append(row)
    book.save(tmp_path / "my pairs.xlsx")
    (tmp_path / "my.csv").write_text("".join(f"{source},{target}\n" for source, target in pairs), encoding="utf-8")
    for name in ("my pairs.xlsx", "my.csv"):
        path = tmp_path / name
        remedy = f"dragoman doctor {shlex.quote(str(path))} --out pairs.tsv"
        for command in (
            ("train --out run --pairs", "lm train --out run --text") if "xlsx" in name else ("train --out run --pairs",)
        ):
            ran = cli(*command.split(), path)
            assert ran.code == 3
            assert (remedy in ran.stderr.splitlines()[-1], "iconv" in ran.stderr) == (True, False)
        with pytest.raises(DataError, match=re.escape(remedy)):
            list(read_pairs(path))
        cli(*shlex.split(remedy)[1:-1], tmp_path / "pairs.tsv")
        assert list(read_pairs(tmp_path / "pairs.tsv")) == pairs
    for ending in OTHER_FORMATS:
        assert not has_lines(Path(f"a{ending}")), ending


any_line = st.binary().map(lambda line: line.replace(b"\n", b"").removesuffix(b"\r"))


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.tuples(any_line, any_line), max_size=8), st.booleans(), st.sampled_from([b"\n", b"\r\n"]))
def test_two_files_are_read_line_by_line_whatever_their_bytes(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[bytes, bytes]], packed: bool, end: bytes
) -> None:
    directory = tmp_path_factory.mktemp("files")
    # Neither a byte order mark nor the two bytes of gzip are part of a text that begins with them.
    sides = [[b"first", *side] for side in zip(*pairs, strict=True)] if pairs else [[b"first"]] * 2
    for name, side in zip(("a", "b"), sides, strict=True):
        content = b"".join(line + end for line in side)
        (directory / name).write_bytes(gzip.compress(content) if packed else content)
    config = CorpusConfig(source=str(directory / "a"), target=str(directory / "b"))
    assert [list(pair) for pair in raw_pairs(config)] == [list(pair) for pair in zip(*sides, strict=True)]


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(any_line, max_size=8))
def test_each_line_of_a_tsv_is_cut_at_its_first_two_tabs(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("files") / "a.tsv"
    path.write_bytes(b"first\tline\n" + b"".join(line + b"\n" for line in lines))
    _, *read = raw_pairs(CorpusConfig(pairs=str(path)))
    assert len(read) == len(lines)
    for columns, line in zip(read, lines, strict=True):
        assert b"\t".join(columns) == line or (not line.strip() and columns == (b"", b""))
        assert len(columns) == min(3, line.count(b"\t") + 1) or not line.strip()


def test_a_line_without_end_takes_no_more_memory_than_it_may(tmp_path: Path) -> None:
    long = LONGEST_LINE + 1
    (tmp_path / "a").write_bytes(b"short\n" + b"x" * 20 * LONGEST_LINE + b"\nshort again\n" + b"y" * long)
    tracemalloc.start()
    lengths = [len(pair[0]) for pair in raw_pairs(CorpusConfig(pairs=str(tmp_path / "a")))]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (lengths[0], lengths[2]) == (5, 11)
    assert min(lengths[1], lengths[3]) > LONGEST_LINE  # enough to be seen as too long
    assert peak < 5 * LONGEST_LINE
    with pytest.raises(
        DataError, match=r"a:2: a line of more than 1,000,000 bytes; give text with one sentence a line"
    ):
        list(read_lines(tmp_path / "a"))
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf" + b"x" * LONGEST_LINE + b"\r\n")
    assert [len(line) for line in read_lines(tmp_path / "a")] == [LONGEST_LINE]
