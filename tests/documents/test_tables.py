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
