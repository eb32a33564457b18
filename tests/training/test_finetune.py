"""`dragoman finetune`: new text is learned, nothing that measures is learned from, and a stop changes nothing."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import dragoman
from dragoman.errors import DataError, UsageError
from dragoman.files import sha256
from dragoman.model.checkpoint import read_tensors
from dragoman.run_directory import RunDirectory
from support.commands import Ran
from support.lexicon import LEXICON, lexicon_pairs

# The new domain says the same words otherwise.
JARGON = dict(zip(LEXICON, [*list(LEXICON.values())[1:], LEXICON["the"]], strict=True))
SHORT = [("train.steps", 60, "test"), ("train.valid_steps", 20, "test"), ("train.peak_rate", 0.02, "test")]


@pytest.fixture(scope="module")
def new_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences that begin with a word of the old text and are then of the new domain."""
    path = tmp_path_factory.mktemp("new") / "new.tsv"
    sentences = [source for source, _ in lexicon_pairs(160, seed=7)]
    lines = (f"near near {s}\t{' '.join(JARGON[word] for word in ('near', 'near', *s.split()))}\n" for s in sentences)
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fine_tuned(tiny_run: Path, new_pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned") / "run"
    dragoman.finetune(tiny_run, new_pairs, out, overrides=SHORT)
    return out


def test_the_new_domain_is_learned_and_both_are_measured(fine_tuned: Path) -> None:
    result = json.loads((fine_tuned / "finetune" / "result.json").read_text())
    new, old = result["new"], result["old"]
    assert new["chrf"]["b"] > new["chrf"]["a"] + 5
    assert new["chrf"]["significant"]
    assert (new["sentences"], old["sentences"]) == (16, 20)


def test_the_vocabulary_and_the_beginning_are_the_old_runs(tiny_run: Path, fine_tuned: Path) -> None:
    assert sha256(fine_tuned / "tokenizer.model") == sha256(tiny_run / "tokenizer.model")
    first = RunDirectory(fine_tuned).checkpoints_path / "step-00000000" / "model.safetensors"
    began, old = read_tensors(first), read_tensors(tiny_run / "model.safetensors")
    assert all(began[name].equal(old[name]) for name in old)
    card = json.loads((fine_tuned / "model.json").read_text())
    assert 0 not in card["steps"]  # what it began with is not averaged in


def test_nothing_that_measures_is_learned_from(tiny_text: Path, fine_tuned: Path) -> None:
    text = fine_tuned / "finetune"
    lines = {path.name: path.read_text(encoding="utf-8").splitlines() for path in text.glob("*.*e*")}
    for side in ("source", "target"):
        learned = set(lines[f"new.{side}"]) | set(lines[f"old-0.{side}"])
        measured = set(lines[f"new-valid.{side}"]) | set(lines[f"old-valid.{side}"])
        assert measured.isdisjoint(learned)
        assert set(lines[f"valid.{side}"]) == measured
    assert lines["old-valid.source"] == (tiny_text / "valid.source").read_text(encoding="utf-8").splitlines()
    assert set(lines["old-0.source"]) <= set((tiny_text / "train.source").read_text(encoding="utf-8").splitlines())
    config = RunDirectory(fine_tuned).read_config()
    new, old = config.data.train
    assert new.weight == 1.0
    assert old.weight == pytest.approx(len(lines["new.source"]) / len(lines["old-0.source"]))


def test_a_stopped_one_goes_on_to_the_same_bits(
    tiny_run: Path, new_pairs: Path, fine_tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.training import loop
    from dragoman.training.saving import validate_and_save
    from dragoman.training.setup import Training

    class StoppedError(Exception):
        pass

    def stop_at_40(training: Training) -> None:
        if training.progress.step == 40:
            raise StoppedError
        validate_and_save(training)

    monkeypatch.setattr(loop, "validate_and_save", stop_at_40)
    with pytest.raises(StoppedError):
        dragoman.finetune(tiny_run, new_pairs, tmp_path / "run", overrides=SHORT)
    monkeypatch.setattr(loop, "validate_and_save", validate_and_save)
    dragoman.finetune(tiny_run, new_pairs, tmp_path / "run", overrides=SHORT)
    assert sha256(tmp_path / "run" / "model.safetensors") == sha256(fine_tuned / "model.safetensors")


def test_the_command_prints_a_table_and_again_says_it_is_finished(
    cli: Callable[..., Ran], tiny_run: Path, new_pairs: Path, fine_tuned: Path
) -> None:
    command = ["finetune", tiny_run, "--pairs", new_pairs, "--out", fine_tuned, "--steps", "60"]
    ran = cli(*command, "--set", "train.valid_steps=20", "--set", "train.peak_rate=0.02")
    assert ran.code == 0, ran.stderr
    assert "is finished (60 steps)" in ran.stderr
    table = [line.split() for line in ran.stdout.splitlines()]
    assert table[0] == ["domain", "metric", "before", "after", "change", "p"]
    assert [row[:2] for row in table[1:5]] == [["new", "BLEU"], ["new", "chrF2"], ["old", "BLEU"], ["old", "chrF2"]]


def test_a_run_without_its_data_reads_the_files_again(tiny_run: Path, new_pairs: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(tiny_run, tmp_path / "bare", ignore=shutil.ignore_patterns("data", "checkpoints"))
    dragoman.finetune(bare, new_pairs, tmp_path / "out", overrides=[("train.steps", 1, "test")])
    old = (tmp_path / "out" / "finetune" / "old-0.source").read_text(encoding="utf-8").splitlines()
    assert len(old) > 150


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"old": -1.0}, UsageError, "ask for 0 or more"),
        ({"pairs": "missing.tsv"}, DataError, "no such file"),
    ],
)
def test_what_cannot_work_is_said(
    tiny_run: Path, new_pairs: Path, tmp_path: Path, arguments: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        dragoman.finetune(**{"run": tiny_run, "pairs": new_pairs, "out": tmp_path / "out", **arguments})  # type: ignore[arg-type]
    assert not (tmp_path / "out" / "config.json").exists()


def test_another_text_is_another_run(tiny_run: Path, tiny_text: Path, fine_tuned: Path) -> None:
    with pytest.raises(DataError, match="was begun with other new"):
        dragoman.finetune(tiny_run, tiny_text / "valid.tsv", fine_tuned)
    with pytest.raises(UsageError, match="is the run to begin with"):
        dragoman.finetune(tiny_run, tiny_text / "valid.tsv", tiny_run)
