"""The old domain of a run that left no text: general sentences with its own translations, kept and measured."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import dragoman
from dragoman.config import DataConfig, TrainConfig
from dragoman.errors import DataError
from dragoman.run_directory import RunDirectory
from dragoman.training import self_distillation
from dragoman.training.self_distillation import own_translations
from support.commands import Ran
from support.lexicon import lexicon_pairs

STEPS = [("train.steps", 2, "test")]


@pytest.fixture(scope="module")
def imported(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with weights, tokenizer and configuration alone, as an import leaves it."""
    out = tmp_path_factory.mktemp("imported") / "run"
    out.mkdir()
    for name in ("model.safetensors", "model.json", "tokenizer.model"):
        shutil.copy(tiny_run / name, out / name)
    config = RunDirectory(tiny_run).read_config()
    RunDirectory(out).write_config(replace(config, data=DataConfig(), train=TrainConfig()))
    return out


@pytest.fixture(scope="module")
def new_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("new") / "new.tsv"
    lines = (f"near near {source}\tapud apud {target}\n" for source, target in lexicon_pairs(60, seed=7))
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def general(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("general") / "general.txt"
    sentences = [source for source, _ in lexicon_pairs(80, seed=3)]
    path.write_text("".join(f"{sentence}\n" for sentence in [*sentences, "", sentences[0]]), encoding="utf-8")
    return path


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_without_general_text_the_old_domain_is_said_to_be_neither_kept_nor_measured(
    cli: Callable[..., Ran], imported: Path, new_pairs: Path, tmp_path: Path
) -> None:
    ran = cli("finetune", imported, "--pairs", new_pairs, "--out", tmp_path / "out", "--steps", "2")
    assert ran.code == 0, ran.stderr
    assert "the old domain is neither kept nor measured" in ran.stderr
    assert "give --general FILE" in ran.stderr
    assert "not measured" in ran.stdout
    config = RunDirectory(tmp_path / "out").read_config().train
    assert (config.batch_tokens, config.micro_batch_tokens, config.peak_rate) == (2048, 1024, 5e-5)


def test_general_text_is_kept_and_measured_as_agreement(
    imported: Path, new_pairs: Path, general: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    out = tmp_path / "out"
    result = dragoman.finetune(imported, new_pairs, out, general=general, overrides=STEPS, say=said.append)
    learned, measured = (
        set(
            zip(
                lines_of(out / "finetune" / f"{name}.source"),
                lines_of(out / "finetune" / f"{name}.target"),
                strict=True,
            )
        )
        for name in ("old-0", "old-test")
    )
    raw = {tuple(line.split("\t")[:2]) for line in lines_of(out / "general" / "raw.tsv")}
    assert learned
    assert measured
    assert learned | measured <= raw
    assert {source for source, _ in raw} == {line for line in lines_of(general) if line}
    assert {side for pair in measured for side in pair}.isdisjoint(side for pair in learned for side in pair)
    assert len(RunDirectory(out).read_config().data.train) == 2
    assert result.old is not None
    assert result.old.bleu.a == pytest.approx(100)  # it agrees with itself
    assert result.old_is_agreement
    assert "old: agreement with what the run itself said before; not quality" in result.lines()
    assert any("translates 80 sentences" in line for line in said)
    # The same call again finds all of it; other general text is another run.
    again = dragoman.finetune(imported, new_pairs, out, general=general, overrides=STEPS)
    assert again.to_dict() == result.to_dict()
    with pytest.raises(DataError, match="was begun with other general"):
        dragoman.finetune(imported, new_pairs, out, overrides=STEPS)


def test_a_stopped_translation_goes_on(
    imported: Path, new_pairs: Path, general: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StoppedError(Exception):
        pass

    def stop(*_: object, **__: object) -> None:
        raise StoppedError

    with monkeypatch.context() as patched:
        patched.setattr(self_distillation, "sound_pairs", stop)  # all is translated then
        with pytest.raises(StoppedError):
            dragoman.finetune(imported, new_pairs, tmp_path / "out", general=general, overrides=STEPS)
    said: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(self_distillation, "translate_file", stop)
        dragoman.finetune(imported, new_pairs, tmp_path / "out", general=general, overrides=STEPS, say=said.append)
    assert not any("translates" in line for line in said)


def test_defects_are_left_out_and_counted(tmp_path: Path) -> None:
    raw = tmp_path / "raw.tsv"
    raw.write_text("a b\tc d\t\nsame\tsame\t\ne f\t\tempty\ng h\tx x x\tloop copy\n", encoding="utf-8")
    pairs, dropped = self_distillation.sound_pairs(raw)
    assert pairs == [("a b", "c d")]
    assert dropped == {"copy": 1, "empty": 1, "loop": 1}


def test_too_little_general_text_is_said(imported: Path, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("the dog\n", encoding="utf-8")
    with pytest.raises(DataError, match="at least 10 are needed; give more text"):
        own_translations(RunDirectory(imported), tmp_path / "few.txt", tmp_path / "general", 50, None, None, 1, print)


def test_the_plan_names_the_general_text(imported: Path, new_pairs: Path, general: Path, tmp_path: Path) -> None:
    dragoman.finetune(imported, new_pairs, tmp_path / "out", general=general, old=0, overrides=STEPS)
    plan = json.loads((tmp_path / "out" / "finetune" / "plan.json").read_text(encoding="utf-8"))
    assert plan["made_from"]["general"]
    assert plan["text"]["old"] == []  # with --old 0 it only measures
    assert plan["text"]["old_test"] is not None
