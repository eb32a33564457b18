"""A long file: stopped anywhere, even without a chance to tidy up, it goes on to the same result."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DataError, DragomanError, UsageError
from dragoman.files import open_exclusively
from dragoman.translation import file as resumable
from dragoman.translation.file import identity_of, translate_file
from dragoman.translation.result import Translation
from dragoman.translation.translator import Translator
from support.lexicon import LEXICON, lexicon_pairs
from support.signalling import program_that_signals


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, engine="ctranslate2", beam=1)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    lines = [source for source, _ in lexicon_pairs(100, seed=4)]
    lines[10:10] = ["", "  "]
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def text(translation: Translation) -> str:
    return f"{translation.text}\n"


def work(translator: Translator, source: Path, output: Path, **options: Any) -> list[str]:
    said: list[str] = []
    arguments: dict[str, Any] = {"identity": ["a model"], "say": said.append, "window": 20, "write": text} | options
    translate_file(translator, source, output, **arguments)
    return said


def left_over(output: Path) -> list[str]:
    return sorted(path.name for path in output.parent.iterdir() if path.name.startswith(f"{output.name}."))


def stopped(
    translator: Translator,
    source: Path,
    output: Path,
    after: int,
    written: Callable[[Translation], str] = text,
    **options: Any,
) -> None:
    """As if the power went after so many lines were handed over: text half written, nothing tidied up."""
    count = 0

    def write(translation: Translation) -> str:
        nonlocal count
        count += 1
        if count > after:
            with resumable._partial_path(output).open("ab") as file:
                file.write(b"half a li")
            raise RuntimeError("the power went")
        return written(translation)

    with pytest.raises(RuntimeError, match="the power went"):
        work(translator, source, output, write=write, **options)


def test_a_whole_file_in_its_order_with_its_empty_lines(translator: Translator, source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    said = work(translator, source, output)
    lines = output.read_text(encoding="utf-8").split("\n")
    assert len(lines) == 103
    assert lines[10:12] == ["", ""]
    assert lines[:10] == translator.translate(source.read_text(encoding="utf-8").split("\n")[:10])
    assert said[-1].startswith("102 of 102 lines")
    assert left_over(output) == []


@pytest.mark.parametrize("after", [0, 19, 20, 21, 70, 101])
def test_stopped_and_begun_again_is_undisturbed(
    translator: Translator, source: Path, tmp_path: Path, after: int
) -> None:
    work(translator, source, tmp_path / "whole.txt")
    output = tmp_path / "out.txt"
    stopped(translator, source, output, after)
    assert not output.exists()
    begun: list[str] = []
    said = work(translator, source, output, write=lambda t: begun.append(t.source) or text(t))  # type: ignore[func-returns-value]
    assert output.read_bytes() == (tmp_path / "whole.txt").read_bytes()
    assert len(begun) == 102 - after // 20 * 20
    assert (f"{output}: going on after line {after // 20 * 20}" in said) == (after >= 20)
    assert left_over(output) == []


def test_several_lines_for_each_line_are_not_taken_for_so_many(
    translator: Translator, source: Path, tmp_path: Path
) -> None:
    def all_of_them(translation: Translation) -> str:
        return "".join(f"{candidate.text}\n" for candidate in translation.candidates)

    work(translator, source, tmp_path / "whole.txt", n_best=3, write=all_of_them)
    stopped(translator, source, tmp_path / "out.txt", 50, all_of_them, n_best=3)
    said = work(translator, source, tmp_path / "out.txt", n_best=3, write=all_of_them)
    assert said[0].endswith("going on after line 40")
    assert (tmp_path / "out.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()


@pytest.mark.parametrize("changed", ["input", "model", "seed", "window", "search", "nothing"])
def test_what_changed_begins_again(
    translator: Translator, tiny_run: Path, source: Path, tmp_path: Path, changed: str
) -> None:
    output = tmp_path / "out.txt"
    stopped(translator, source, output, 50)
    changes: dict[str, dict[str, Any]]
    changes = {"seed": {"seed": 1}, "window": {"window": 10}, "model": {"identity": ["another"]}}
    options = changes.get(changed, {})
    if changed == "input":
        source.write_text(source.read_text(encoding="utf-8") + "the dog\n", encoding="utf-8")
    if changed == "search":
        translator = Translator.load(tiny_run, engine="ctranslate2", beam=2)
    said = work(translator, source, output, **options)
    assert any("going on" in line for line in said) == (changed == "nothing")
    work(translator, source, tmp_path / "whole.txt", **options)
    assert output.read_bytes() == (tmp_path / "whole.txt").read_bytes()


@pytest.mark.parametrize("damage", ["progress", "text"])
def test_damage_begins_again(translator: Translator, source: Path, tmp_path: Path, damage: str) -> None:
    output = tmp_path / "out.txt"
    stopped(translator, source, output, 50)
    if damage == "progress":
        resumable._progress_path(output).write_text('{"lines": 40', encoding="utf-8")
    else:
        os.truncate(resumable._partial_path(output), 5)
    assert not any("going on" in line for line in work(translator, source, output))
    work(translator, source, tmp_path / "whole.txt")
    assert output.read_bytes() == (tmp_path / "whole.txt").read_bytes()


def test_two_at_once_are_refused(translator: Translator, source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    with (
        open_exclusively(output.with_name(output.name + ".partial")),
        pytest.raises(DragomanError, match="another process is writing it"),
    ):
        work(translator, source, output)


def test_what_cannot_work_is_said_before_the_work(translator: Translator, source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a directory; name a file"):
        work(translator, source, tmp_path)
    with pytest.raises(UsageError, match="the input itself"):
        work(translator, source, source)
    with pytest.raises(DragomanError, match=r"out\.txt\.partial: cannot be written"):
        work(translator, source, tmp_path / "missing" / "out.txt")
    with pytest.raises(DataError, match="no such file"):
        work(translator, tmp_path / "none.txt", tmp_path / "out.txt")
    with pytest.raises(UsageError, match="not a regular file"):
        work(translator, Path(os.devnull), tmp_path / "out.txt")
    source.write_bytes(source.read_bytes() + b"caf\xe9\n")
    with pytest.raises(DataError, match=r"in\.txt:103: byte 4 \(0xE9\) is not UTF-8"):
        work(translator, source, tmp_path / "out.txt")
    assert left_over(tmp_path / "out.txt") == []


def test_the_identity_is_of_the_weights(tiny_run: Path) -> None:
    own, kept = identity_of([tiny_run], None), identity_of([tiny_run], "step-00000030")
    assert own == identity_of([tiny_run], None)
    assert own[1:] == kept[1:]
    assert own[0] != kept[0]


KILLED_AFTER_ITS_SECOND_WINDOW = program_that_signals("dragoman.translation.file.write_atomically", 2, "SIGKILL")


def test_killed_and_called_again_from_the_shell(tiny_run: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    """A real process and a real SIGKILL, when the text of a window is on the disk and the note of it is not."""
    source, output, whole = tmp_path / "in.txt", tmp_path / "out.txt", tmp_path / "whole.txt"
    lines = [f"{one} {other}" for one, other in itertools.product(LEXICON, LEXICON)] * 17  # short: it is about windows
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    arguments = ["translate", str(tiny_run), "--input", str(source), "--beam", "1", "--out"]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_AFTER_ITS_SECOND_WINDOW, *arguments, str(output)],
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not output.exists()
    assert resumable._partial_path(output).read_bytes().count(b"\n") == 4_000
    ran = cli(*arguments, output)
    assert (ran.code, ran.stdout) == (0, "")
    assert "going on after line 2,000" in ran.stderr
    assert cli(*arguments, whole).code == 0
    assert output.read_bytes() == whole.read_bytes()
    assert output.read_bytes().count(b"\n") == len(lines) > 4_000
    assert left_over(output) == []


def test_output_goes_with_input(tiny_run: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    ran = cli("translate", tiny_run, "--out", tmp_path / "out.txt", stdin="the dog\n")
    assert (ran.code, ran.stderr) == (
        2,
        "dragoman: translate: --out goes with --input FILE; what comes from stdin goes to stdout\n",
    )
