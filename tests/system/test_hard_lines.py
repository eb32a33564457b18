"""The hundred hard lines of docs/guides/trust.md in every way to translate: the same answers, no silent loss."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.segmentation import sentences
from support.benches import load

hard = load("hard_lines")


def test_they_are_a_hundred_in_more_than_ten_languages() -> None:
    lines = hard.hard_lines()
    assert len({line.text for line in lines}) == len(lines) == 100
    assert len({line.language for line in lines}) > 10


@pytest.mark.parametrize("line", hard.hard_lines(), ids=lambda line: f"{line.language}: {line.text}")
def test_they_are_cut_where_their_sentences_end(line: Any) -> None:
    found = [line.text[start:end] for start, end in sentences(line.text, 0, len(line.text), line.language)]
    assert len([one for one in found if any(map(str.isalnum, one))] or found) == line.sentences, found


def test_every_way_gives_the_same_and_loses_nothing_in_silence(
    tiny_run: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    def command(arguments: Sequence[str | Path], stdin: str) -> str:
        ran = cli(*arguments, stdin=stdin)
        assert ran.code == 0, ran.stderr
        return str(ran.stdout)

    found = hard.translated(tiny_run, hard.hard_lines(), command, tmp_path)
    assert [one.answers for one in found if len(set(one.answers.values())) != 1] == []
    assert [(one.line.text, one.text) for one in found if one.in_silence] == []
    assert {one.said["how"] for one in found} >= {"plain", "pieces", "source"}


def test_a_line_without_letters_comes_back_as_it_is_in_every_way(
    tiny_run: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    def command(arguments: Sequence[str | Path], stdin: str) -> str:
        ran = cli(*arguments, stdin=stdin)
        assert ran.code == 0, ran.stderr
        return str(ran.stdout)

    texts = ["12", "3.50 + 7 = 10.50", "😀😀", "…", "$ 1,000.00!", "2024-03-15 12:30", "⇧ 5 → 6", "+33 1 23 45"]
    found = hard.translated(tiny_run, [hard.HardLine("en", 1, text) for text in texts], command, tmp_path)
    assert [set(one.answers.values()) for one in found] == [{text} for text in texts]
    assert all(len(one.answers) == len(hard.WAYS) for one in found)
