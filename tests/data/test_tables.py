"""Headings are no pairs, ids are no text, and XLSX is read, unless it is a trap."""

import random
import zipfile
from pathlib import Path

import openpyxl
import pytest

from dragoman.data.pair_formats import has_lines, read_any
from dragoman.data.tables import Layout, is_heading, layout_of
from dragoman.errors import DataError

PAIRS = [("The dog sleeps.", "Der Hund schläft."), ("Good morning", "Guten Morgen"), ("Yes", "Ja")]


@pytest.mark.parametrize(
    "row",
    [
        ("source", "target"),
        ("Source text", "Target text"),
        ("en", "de"),
        ("English", "Deutsch"),
        ("en-GB", "de_DE"),
        ("Source (EN)", "Translation (DE)"),
        ("ID", "English", "German", "Comment"),
        ("Quelltext", "Übersetzung"),
        ("Français", "Anglais"),
    ],
)
def test_headings_are_known(row: tuple[str, ...]) -> None:
    assert is_heading(row)


@pytest.mark.parametrize(
    "row",
    [
        ("The dog", "Der Hund"),
        ("English", "anglais"),  # two names of one language: a pair
        ("Source code is text.", "Quelltext ist Text."),
        ("Hello", "Target"),
        ("17", "18"),
        ("", ""),
    ],
)
def test_pairs_are_no_headings(row: tuple[str, ...]) -> None:
    assert not is_heading(row)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([*PAIRS], Layout(0, 1, False, None)),
        ([("English", "Deutsch"), *PAIRS], Layout(0, 1, True, ("en", "de"))),
        ([(str(i), *pair) for i, pair in enumerate(PAIRS)], Layout(1, 2, False, None)),
        ([(f"menu.file.{i}x", *pair) for i, pair in enumerate(PAIRS)], Layout(1, 2, False, None)),
        ([("1276", pair[0], "77123", pair[1]) for pair in PAIRS], Layout(1, 3, False, None)),
        ([("id", "de", "en"), *((f"a-{i}", t, s) for i, (s, t) in enumerate(PAIRS))], Layout(1, 2, True, ("de", "en"))),
        ([("target", "source"), *((t, s) for s, t in PAIRS)], Layout(1, 0, True, None)),
        ([("dog", "chien"), ("cat", "chat")], Layout(0, 1, False, None)),
        ([("1", "2"), ("3", "4")], Layout(0, 1, False, None)),  # there is nothing better
        ([], Layout(0, 1, False, None)),
    ],
)
def test_columns_are_told_by_what_is_in_them(rows: list[tuple[str, ...]], expected: Layout) -> None:
    assert layout_of(rows) == expected


def test_a_column_of_one_value_is_no_text() -> None:
    draw = random.Random(1)
    words = ["dog", "cat", "house", "tree", "river", "garden", "child"]
    rows = [("en", " ".join(draw.choices(words, k=5)), "done", " ".join(draw.choices(words, k=5))) for _ in range(40)]
    assert layout_of(rows) == Layout(1, 3, False, None)


def test_the_languages_asked_for_are_columns() -> None:
    rows = [("key", "en", "fr", "de"), *((f"k_{i}", s, "oui", t) for i, (s, t) in enumerate(PAIRS))]
    assert layout_of(rows, ("de", "en")) == Layout(3, 1, True, ("de", "en"))


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_table_is_read_without_its_heading_and_ids(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    tab = {"csv": ",", "tsv": "\t"}[ending]
    lines = [("ID", "English", "German"), *((str(i), *pair) for i, pair in enumerate(PAIRS))]
    path.write_text("".join(tab.join(line) + "\n" for line in lines), encoding="utf-8-sig")
    found = read_any([path])
    assert (found.pairs, found.languages) == (PAIRS, ("en", "de"))
    assert found.notes == [
        f"{path}: the first row is a heading (ID, English, German)",
        f"{path}: the texts are taken from columns 2 and 3",
    ]


def book(path: Path, sheets: dict[str, list[tuple[object, ...]]]) -> Path:
    found = openpyxl.Workbook()
    found.remove(found.active)
    for name, rows in sheets.items():
        sheet = found.create_sheet(name)
        for row in rows:
            sheet.append(row)
        sheet.sheet_state = "hidden" if name == "hidden" else "visible"
    found.save(path)
    return path


def test_xlsx_is_read(tmp_path: Path) -> None:
    more = ("One more", "Noch eins")
    path = book(
        tmp_path / "a.xlsx",
        {
            "first": [("No.", "English", "Deutsch"), *((i, *pair) for i, pair in enumerate(PAIRS)), (9, "open", None)],
            "second": [("English", "Deutsch"), more, (None, None)],
            "hidden": [("not", "this")],
        },
    )
    found = read_any([path])
    assert (found.pairs, found.languages, found.skipped) == ([*PAIRS, more], ("en", "de"), {"not translated": 1})
    assert f"{path}: the first row is a heading (No., English, Deutsch)" in found.notes
    assert [has_lines(tmp_path / name) for name in ("a.xlsx", "a.tmx", "a.tsv", "a.txt")] == [False, False, True, True]


def test_xlsx_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    sound = book(tmp_path / "sound.xlsx", {"a": [*PAIRS]})
    for name, content, message in (
        ("xl/worksheets/sheet1.xml", b"<x>" + bytes(30_000_000), "unpacks to far more"),
        ("xl/sharedStrings.xml", b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aa">]><x>&a;</x>', "document type"),
    ):
        trap = tmp_path / "trap.xlsx"
        with zipfile.ZipFile(sound) as old, zipfile.ZipFile(trap, "w", zipfile.ZIP_DEFLATED) as new:
            for part in old.namelist():
                new.writestr(part, content if part == name else old.read(part))
            if name not in old.namelist():
                new.writestr(name, content)
        with pytest.raises(DataError, match=message):
            read_any([trap])
