"""CSV and TSV: the cells of the columns that were asked for; Python's reader finds the same table."""

import csv
import io

import pytest

from dragoman.documents.pipeline import translate_bytes
from dragoman.documents.settings import FormatSettings
from dragoman.errors import UsageError
from support.scripted_translator import Scripted, careful

TABLE = 'id,title,note\r\n1,the dog,"a ""big"", cat"\r\n2,"one\ntwo",\r\n"3",a cat,x_y\r\n'


def through(content: str, columns: tuple[str, ...] = (), translator: Scripted | None = None) -> str:
    settings = FormatSettings(columns=columns)
    return translate_bytes(content.encode(), "csv", "x", translator or Scripted(careful), settings)[0].decode()


def rows(content: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content, newline="")))


def test_all_columns_but_their_names() -> None:
    assert through(TABLE) == ('id,title,note\r\n1,THE DOG,"A ""BIG"", CAT"\r\n2,"ONE\nTWO",\r\n"3",A CAT,x_y\r\n')


@pytest.mark.parametrize("column", ["title", "2"])
def test_the_columns_that_were_asked_for(column: str) -> None:
    wanted = [row if number == 0 else [row[0], row[1].upper(), row[2]] for number, row in enumerate(rows(TABLE))]
    assert rows(through(TABLE, (column,))) == wanted
    assert through(TABLE, ("title", "note")) == through(TABLE)


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(
        UsageError, match="--column text: no such column; the table has id, title, note, or their numbers"
    ):
        through(TABLE, ("text",))


def test_other_signs_and_what_a_translation_brings() -> None:
    assert through("a;b\nthe dog;a, cat\n") == "a;b\nTHE DOG;A, CAT\n"
    assert rows(through("a,b\nthe dog,x\n", translator=Scripted(lambda _: 'one, "two"'))) == [
        ["a", "b"],
        ['one, "two"', 'one, "two"'],
    ]
    found, _ = translate_bytes(b"a\tb\nthe dog\t1\n", "tsv", "x", Scripted(careful))
    assert found == b"a\tb\nTHE DOG\t1\n"


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_quoted_cells_across_the_borders_of_chunks(delimiter: str) -> None:
    cell = '"Hello world, this is a ""long"" line\nwith the dog"'
    content = f"id{delimiter}text\n" + "".join(f"{n}{delimiter}{cell}\n" for n in range(3000))
    said = through(content)
    read = list(csv.reader(io.StringIO(said, newline=""), delimiter=delimiter))
    text = 'HELLO WORLD, THIS IS A "LONG" LINE\nWITH THE DOG'
    assert read == [["id", "text"], *([str(n), text] for n in range(3000))]


@pytest.mark.parametrize("cell", ['"Hello," he said', '"Yes" she said', '"Yes" or "no"', '"a dog'])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_quote_that_is_part_of_the_text(cell: str, delimiter: str) -> None:
    content = f"id{delimiter}text\n1{delimiter}a dog\n2{delimiter}{cell}\n"
    assert through(content) == content.replace(cell, cell.upper()).replace("a dog", "A DOG")


@pytest.mark.parametrize(
    ("says", "after"),
    [("one; two", '"one; two"'), ('"one; two" x', '"one; two" x'), ('one "two"', 'one "two"')],
)
def test_quotes_go_around_a_text_only_where_it_would_be_read_otherwise(says: str, after: str) -> None:
    said = through('a;b\n"Yes; no" she said;x_y\n', translator=Scripted(lambda _: says))
    assert said == f"a;b\n{after};x_y\n"
