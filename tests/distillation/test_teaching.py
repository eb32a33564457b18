"""What a student learns of the teacher's translations, and how many there is time for."""

import json
from pathlib import Path

import pytest

from dragoman.data.tokenizer import Tokenizer, load_tokenizer
from dragoman.distillation import teaching
from dragoman.distillation.teaching import Lesson, judged, seconds_before, teach
from dragoman.progress import discard
from dragoman.quickstart.budget import TimeBudget
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator


@pytest.fixture(scope="module")
def tokenizer(teacher: Path) -> Tokenizer:
    return load_tokenizer(teacher)


def test_the_nearest_to_the_reference_is_learned_and_without_one_the_first(tokenizer: Tokenizer) -> None:
    candidates = ["la malgranda domo", "la ruĝa domo", "ruĝa domo"]
    found = judged(
        [
            Lesson("the red house", "la ruĝa domo", candidates),
            Lesson("the red house", "", candidates),
            Lesson("the small house", "la malgranda domo", candidates),
        ],
        tokenizer,
    )
    assert [target for _, target in found.pairs] == [candidates[1], candidates[0], candidates[0]]
    assert (found.others, found.dropped.total()) == (1, 0)


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        ("the dog sees the cat", "la hundo la hundo la hundo la hundo la hundo", "loop"),
        ("the dog", "", "empty"),
        ("the dog sees the cat near the tree", "the dog sees the cat near the tree", "copy"),
        ("dog", "la hundo vidas katon apud arbo en ĝardeno sub ruĝa domo de infano kaj rivero", "runaway"),
        ("the dog at 12 the cat", "la hundo je la kato", "lost"),
        ("write to a@example.org", "skribu al la hundo", "lost"),
    ],
)  # fmt: skip
def test_what_is_no_translation_is_left_out_and_counted(
    source: str, target: str, why: str, tokenizer: Tokenizer
) -> None:
    found = judged([Lesson(source, "", [target])], tokenizer)
    assert (found.pairs, dict(found.dropped)) == ([], {why: 1})
    sound = judged([Lesson(source, "", [target, "la hundo 12 a@example.org"])], tokenizer)
    assert sound.others == len(sound.pairs)


def test_another_translation_is_taken_where_the_first_is_not_sound(tokenizer: Tokenizer) -> None:
    found = judged([Lesson("the dog", "la hundo", ["", "hundo hundo hundo hundo hundo hundo", "hundo"])], tokenizer)
    assert (found.pairs, found.others) == ([("the dog", "hundo")], 1)
    # A name may be a copy: it is, in the reference.
    assert judged([Lesson("Tom.", "Tom.", ["Tom."])], tokenizer).pairs == [("Tom.", "Tom.")]
    assert judged([Lesson("Tom.", "", ["Tom."])], tokenizer).dropped == {"copy": 1}


def test_only_what_there_is_time_for_is_translated(
    teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "teaching"
    directory.mkdir()
    lines = [f"the dog sees {'the cat ' * (number % 3 + 1)}near {number}" for number in range(300)]
    (directory / "sources.tsv").write_text("".join(f"{line}\t\n" for line in lines), encoding="utf-8")
    monkeypatch.setattr(teaching, "_seconds_each", lambda *_: 0.24)
    run, translator, said = RunDirectory(tmp_path), Translator.load(teacher), list[str]()
    clock = TimeBudget(1.0)
    monkeypatch.setattr(teaching, "_write_pairs", lambda *_: teaching.Taught(300, 99, 99, {}, 0, 0, 0.24))
    taught = teach([RunDirectory(teacher)], translator, run, 1, clock, said.append)
    count = len((directory / "chosen.txt").read_text(encoding="utf-8").splitlines())
    assert 90 <= count <= 100  # of 24 seconds, the clock has used some
    assert len((directory / "raw.tsv").read_text(encoding="utf-8").splitlines()) == count
    assert any("with more --minutes than 1 it would be more" in line for line in said)
    assert seconds_before(run) == taught.seconds > 0
    assert teach([RunDirectory(teacher)], translator, run, 1, clock, discard) == taught


def test_seconds_of_a_killed_command_count(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert seconds_before(run) == 0
    run.teaching_path.mkdir()
    (run.teaching_path / "planned.json").write_text(json.dumps({"seconds_each": 0.5}))
    assert seconds_before(run) == 0
    (run.teaching_path / "raw.tsv.progress").write_text(json.dumps({"lines": 40}))
    assert seconds_before(run) == 20
    (run.teaching_path / "planned.json").write_text("{")
    assert seconds_before(run) == 0
