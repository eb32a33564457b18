"""What measures a fine-tuning is unknown to both trainings and did not choose the weights; and a kill loses nothing."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman.errors import DataError, DragomanError
from dragoman.run_directory import RunDirectory
from dragoman.training import finetune_text
from support.lexicon import lexicon_pairs

ONE_STEP = [("train.steps", 1, "test")]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def sides(run: Path, *names: str) -> set[str]:
    files = [run / "finetune" / f"{name}.{side}" for name in names for side in ("source", "target")]
    return {line for file in files for line in file.read_text(encoding="utf-8").splitlines()}


def unlike_the_old(count: int) -> list[tuple[str, str]]:
    return [(f"near near {source}", f"apud apud {target}") for source, target in lexicon_pairs(count, seed=7)]


@pytest.fixture(scope="module")
def new_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("new") / "new.tsv", unlike_the_old(160))


def without_its_data(run: Path, copy: Path) -> Path:
    return Path(shutil.copytree(run, copy, ignore=shutil.ignore_patterns("data", "checkpoints")))


@pytest.mark.parametrize("bare", [False, True])
def test_what_the_old_run_learned_measures_nothing_with_no_old_text_mixed_in(
    tiny_run: Path, tiny_text: Path, tmp_path: Path, bare: bool
) -> None:
    old = [tuple(line.split("\t")) for line in (tiny_text / "train.tsv").read_text(encoding="utf-8").splitlines()]
    pairs = write_pairs(tmp_path / "both.tsv", [*old, *unlike_the_old(160)])  # type: ignore[list-item]
    run = without_its_data(tiny_run, tmp_path / "bare") if bare else tiny_run
    result = dragoman.finetune(run, pairs, tmp_path / "out", old=0, overrides=ONE_STEP)
    assert result.new.sentences == 36
    assert result.old is not None
    assert sides(tmp_path / "out", "new-test", "new-valid").isdisjoint(side for pair in old for side in pair)
    assert len(RunDirectory(tmp_path / "out").read_config().data.train) == 1
    assert not list((tmp_path / "out" / "finetune").glob("old-0.*"))
    # Nor do old sentences choose the weights.
    assert sides(tmp_path / "out", "valid") == sides(tmp_path / "out", "new-valid")


def test_old_text_that_is_gone_is_said_and_missed_only_where_it_is_mixed_in(
    tiny_run: Path, new_pairs: Path, tmp_path: Path
) -> None:
    run = without_its_data(tiny_run, tmp_path / "bare")
    config = (run / "config.json").read_text(encoding="utf-8")
    (run / "config.json").write_text(config.replace("train.tsv", "gone.tsv"), encoding="utf-8")
    with pytest.raises(DataError, match="or fine-tune without the old text: --old 0"):
        dragoman.finetune(run, new_pairs, tmp_path / "out", overrides=ONE_STEP)
    result = dragoman.finetune(run, new_pairs, tmp_path / "out", old=0, overrides=ONE_STEP)
    (caveat,) = result.caveats
    assert "may have learned sentences that are measured with" in caveat
    assert "gone.tsv: no such file" in caveat
    assert result.lines()[-1] == f"but {caveat}"


KILLED_WHEN_ITS_PAIRS_ARE_WRITTEN = """
import os, signal
from dragoman.cli import main
from dragoman.training import finetune_text
write_pairs = finetune_text.write_pairs
def write_and_die(*arguments):
    write_pairs(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
finetune_text.write_pairs = write_and_die
main.main()
"""


def test_one_that_was_killed_while_it_prepared_its_text_goes_on(
    tiny_run: Path, new_pairs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ["finetune", tiny_run, "--pairs", new_pairs, "--out", out]
    program = [sys.executable, "-c", KILLED_WHEN_ITS_PAIRS_ARE_WRITTEN, *map(str, command)]
    killed = subprocess.run(program, capture_output=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (out / ".finetune.partial" / "new.source").is_file()
    with RunDirectory(out).lock(), pytest.raises(DragomanError, match="is training in it"):
        dragoman.finetune(tiny_run, new_pairs, out, overrides=ONE_STEP)  # it was not killed, but is at work
    assert (out / ".finetune.partial").is_dir()
    dragoman.finetune(tiny_run, new_pairs, out, overrides=ONE_STEP)
    assert not (out / ".finetune.partial").exists()
    assert (out / "finetune" / "result.json").is_file()


def test_files_of_something_else_are_not_taken_for_a_killed_one(
    tiny_run: Path, new_pairs: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    with pytest.raises(DataError, match="has files, and none of a fine-tuning"):
        dragoman.finetune(tiny_run, new_pairs, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_what_is_measured_with_did_not_choose_the_weights(
    tiny_run: Path, new_pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finetune_text, "FEWEST_DIVIDED", 20)  # as many as the old run was validated with
    out = tmp_path / "out"
    result = dragoman.finetune(tiny_run, new_pairs, out, overrides=ONE_STEP)
    (chosen_by,) = RunDirectory(out).read_config().data.valid
    assert chosen_by.source == str(out / "finetune" / "valid.source")
    assert sides(out, "valid") == sides(out, "new-valid", "old-valid")
    assert sides(out, "valid").isdisjoint(sides(out, "new-test", "old-test"))
    assert sides(out, "new", "old-0").isdisjoint(sides(out, "valid", "new-test", "old-test"))
    assert result.old is not None
    assert (result.new.sentences, result.old.sentences) == (16, 10)
    assert result.caveats == ()
    assert dragoman.finetune(tiny_run, new_pairs, out, overrides=ONE_STEP) == result  # as its plan has it


def test_with_pairs_to_measure_with_the_weights_are_chosen_by_others(
    tiny_run: Path, tiny_text: Path, new_pairs: Path, tmp_path: Path
) -> None:
    """Even if they are those that the old run was validated with: then these choose nothing."""
    out = tmp_path / "out"
    result = dragoman.finetune(tiny_run, new_pairs, out, valid=tiny_text / "valid.tsv", overrides=ONE_STEP)
    given = (tiny_text / "valid.source").read_text(encoding="utf-8").splitlines()
    assert (out / "finetune" / "new-test.source").read_text(encoding="utf-8").splitlines() == given
    assert len((out / "finetune" / "valid.source").read_text(encoding="utf-8").splitlines()) == 16
    assert sides(out, "valid").isdisjoint(sides(out, "new-test", "old-test", "new"))
    assert result.caveats == ()


def test_too_few_pairs_do_both_and_the_table_says_so(tiny_run: Path, tmp_path: Path) -> None:
    pairs = unlike_the_old(20)
    new, valid = write_pairs(tmp_path / "new.tsv", pairs[:9]), write_pairs(tmp_path / "valid.tsv", pairs[9:])
    result = dragoman.finetune(tiny_run, new, tmp_path / "out", valid=valid, overrides=ONE_STEP)
    assert result.new.sentences == 11
    assert sides(tmp_path / "out", "new-valid") == sides(tmp_path / "out", "new-test")
    assert [line.partition(", as too few")[0] for line in result.lines()[-2:]] == [
        f"but the {domain} sentences also chose the weights" for domain in ("new", "old")
    ]
    written = json.loads((tmp_path / "out" / "finetune" / "result.json").read_text(encoding="utf-8"))
    assert written["caveats"] == list(result.caveats)


def test_the_halves_of_old_text_share_no_sentence_and_have_both_directions() -> None:
    forth = [(f">>eo<< word {number}", f"vorto {max(number, 9)}") for number in range(100)]  # ten with one target
    back = [(f">>en<< {target}", source.removeprefix(">>eo<< ")) for source, target in forth]
    chosen_by, measured = finetune_text.divided([pair for line in zip(forth, back, strict=True) for pair in line])
    assert finetune_text._sides(chosen_by).isdisjoint(finetune_text._sides(measured))
    for half, each_way in ((chosen_by, 45), (measured, 50)):
        tags = [source.partition(" ")[0] for source, _ in half]
        assert (tags.count(">>eo<<"), tags.count(">>en<<")) == (each_way, each_way)


def test_one_that_another_version_began_does_not_go_on(tiny_run: Path, new_pairs: Path, tmp_path: Path) -> None:
    dragoman.finetune(tiny_run, new_pairs, tmp_path / "out", overrides=ONE_STEP)
    path = tmp_path / "out" / "finetune" / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    del plan["format"]
    path.write_text(json.dumps(plan), encoding="utf-8")
    with pytest.raises(DataError, match="format 1, of another version"):
        dragoman.finetune(tiny_run, new_pairs, tmp_path / "out", overrides=ONE_STEP)
