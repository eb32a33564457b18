"""From teachers to a student and its report; the same after a stop; and what cannot be done, in a line."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.data.splitting import identity_of
from dragoman.distillation import pipeline, stages, teaching
from dragoman.distillation.stages import Stage
from dragoman.errors import DataError
from dragoman.quickstart.text import QuickstartText
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator
from support.commands import Ran, started

Cli = Callable[..., Ran]
Distilled = tuple[Path, list[str | Path], Ran]  # the student, the command, and what it said
STAGES = ["teacher float32", "teacher int8", "student float32", "student int8", "student int8 + map"]


@pytest.fixture(scope="module")
def distilled(
    teacher: Path, more_text: Path, student_settings: list[str], tmp_path_factory: pytest.TempPathFactory, cli: Cli
) -> Distilled:
    out = tmp_path_factory.mktemp("students") / "student"
    command: list[str | Path] = [
        "distill",
        teacher,
        "--text",
        more_text,
        "--out",
        out,
        "--minutes",
        "5",
        "--noise",
        "0.2",
    ]
    ran = cli(*command, *student_settings)
    assert ran.code == 0, ran.stderr
    return out, [*command, *student_settings], ran


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_the_student_translates_greedily_and_the_report_says_what_was_lost(distilled: Distilled, cli: Cli) -> None:
    out, _, ran = distilled
    assert RunDirectory(out).read_config().search.beam == 1
    assert len(cli("translate", out, stdin="the dog\n").stdout.splitlines()) == 1
    first = " ".join(ran.stdout.split("\n\n")[0].split())
    figures = (
        r"(loses|gains) (no|\d+\.\d\d) BLEU \(\d+\.\d\d after \d+\.\d\d\) (to|over) the teacher \(float32, beam 4\); "
    )
    assert re.match(
        r"The student \(1 \+ 1 layers, d_model 32, \w+( with a vocabulary map)?, greedy\) " + figures, first
    )
    assert re.search(r"it translates \d+\.\d × as many sentences a second as the teacher \(float32, beam 4\)", first)
    values = json.loads((out / "outcome.json").read_text())["values"]
    found = {stage["name"]: stage for stage in values["stages"]}
    assert list(found) == STAGES
    assert found["teacher float32"]["agreement"] == pytest.approx(100)
    assert found["student float32"]["megabytes"] > found["student int8"]["megabytes"] > 0
    assert values["student"] in STAGES[2:]
    assert values["summary"] == first
    assert [name for name, _ in values["stress"].items()] == ["teacher float32", values["student"]]


def test_the_report_is_one_page_with_a_figure(distilled: Distilled) -> None:
    out, _, _ = distilled
    text, html = (out / "report.md").read_text(), (out / "report.html").read_text()
    for said in (*STAGES, "changed before the teacher translated", "left out", "all capitals", "seed 1"):
        assert said in text
        assert said in html
    assert html.count("<svg") == 1
    names_only = html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"(src|href)=|url\(|https?://", names_only)


def test_what_measures_was_never_taught(distilled: Distilled) -> None:
    teaching_path = distilled[0] / "teaching"
    measured = {identity_of(line) for part in ("valid", "test") for line in lines_of(teaching_path / f"{part}.source")}
    assert len(measured) == 20
    taught = {identity_of(line.split("\t")[0]) for line in lines_of(teaching_path / "sources.tsv")}
    assert len(taught) > 200
    assert not taught & measured


def test_the_same_command_again_does_nothing(distilled: Distilled, cli: Cli) -> None:
    out, command, ran = distilled
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    again = cli(*command)
    assert (again.code, again.stdout) == (0, ran.stdout)
    assert "measured already: nothing is left to do" in again.stderr
    changed = [path.name for path, when in before.items() if path.stat().st_mtime_ns != when]
    assert set(changed) <= {"quickstart.json"}
    other = cli(*command, "--noise", "0.3")
    assert (other.code, other.stderr) == (3, f"dragoman: {out}: was begun with other noise; give another --out\n")


class StoppedError(Exception):
    """What ends a command in the middle."""


def test_a_stop_between_two_stages_translates_nothing_twice(
    teacher: Path, more_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise StoppedError

    out, said = tmp_path / "student", list[str]()
    with monkeypatch.context() as patched:
        patched.setattr(teaching, "_write_pairs", stop)  # all is translated then
        with pytest.raises(StoppedError):
            dragoman.distill(teacher, out, text=[more_text], minutes=5)
    raw = (out / "teaching" / "raw.tsv").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(teaching, "translate_file", stop)
        patched.setattr(pipeline, "plan_training", stop)
        with pytest.raises(StoppedError):
            dragoman.distill(teacher, out, text=[more_text], minutes=5, say=said.append)
    assert (out / "teaching" / "raw.tsv").read_bytes() == raw
    assert not any("teacher translates" in line for line in said)
    taught = json.loads((out / "teaching" / "taught.json").read_text())
    assert taught["kept"] + sum(taught["dropped"].values()) == taught["translated"] == taught["sources"]
    assert len(lines_of(out / "teaching" / "train.tsv")) == taught["kept"]


def test_several_teachers_teach_as_an_ensemble(
    teacher: Path, distilled: Distilled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    shutil.copytree(teacher, other)
    weights = RunDirectory(other).checkpoints()[0] / "model.safetensors"  # of 30 steps, where the other has 90
    shutil.copy(weights, other / "model.safetensors")
    teachers = [RunDirectory(teacher), RunDirectory(other)]

    def planned(*_: object, **__: object) -> None:
        raise StoppedError

    with monkeypatch.context() as patched:  # all is taught then
        patched.setattr(pipeline, "plan_training", planned)
        with pytest.raises(StoppedError):
            dragoman.Run(teacher).distill(tmp_path / "student", beside=[other], n_best=1, noise=0, minutes=5, say=None)
    taught = lines_of(tmp_path / "student" / "teaching" / "raw.tsv")
    together = Translator.load(teacher, other)
    sources = lines_of(tmp_path / "student" / "teaching" / "chosen.txt")[:20]
    assert together.engine.name == "reference"
    assert taught[:20] == together.translate(sources, protect=False)

    student = RunDirectory(shutil.copytree(distilled[0], tmp_path / "copy"))
    data = QuickstartText(student.teaching_path, json.loads((student.teaching_path / "about.json").read_text()))
    monkeypatch.setattr(stages, "STRESSED", 3)

    def ask(*runs: RunDirectory, **options: Any) -> Translator:
        return Translator.load(*(run.path for run in runs), **options)

    found = stages.measure(teachers, student, data, 1.0, 0.01, ask)
    assert [stage.name for stage in found.stages] == ["ensemble", *STAGES]
    assert found.stage("ensemble").engine == "reference"
    assert found.stage("ensemble").agreement == pytest.approx(100)
    assert found.stage("teacher float32").agreement < 100
    assert found.alone[str(teacher)] > found.alone[str(other)]
    assert [name for name, _ in found.stress] == ["teacher float32", found.student]


def test_a_stage_is_beaten_by_what_is_as_good_and_quicker() -> None:
    def stage(speed: float, bleu: float) -> Stage:
        return Stage("", "student", 1, "ctranslate2 int8", bleu, 0.0, 0.0, speed, 1.0)

    measured = [stage(100, 40), stage(200, 40), stage(300, 39), stage(250, 38.5), stage(300, 39)]
    assert [one.dominated(measured) for one in measured] == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--minutes", "0"], 2, "0 is not in the range; allowed: from 0.1 to 1e+06"),
        (["--begin", "teacher"], 2, "--begin teacher with a vocabulary of its own; add --vocabulary teacher"),
        (["--text", "empty.txt"], 3, "empty.txt: no sentence in it; give text, one sentence a line"),
        (["--text", "nowhere.txt"], 3, "nowhere.txt"),
        (["--valid-pairs", "few.tsv"], 3, "sentences to measure with, at least 20 are needed"),
        (["--pairs", "few.tsv"], 3, "sentences to teach with, at least 50 are needed; give more"),
        (["--noise", "2"], 2, "2 is not in the range; allowed: from 0 to 1"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    more: list[str], code: int, said: str, teacher: Path, here: Path, cli: Cli
) -> None:
    (here / "empty.txt").write_text("\n \n", encoding="utf-8")
    (here / "few.tsv").write_text("the dog\tla hundo\nthe cat\tla kato\n", encoding="utf-8")
    ran = cli("distill", teacher, "--out", "student", *more)
    last = ran.stderr.splitlines()[-1]
    assert ran.code == code
    assert last.startswith("dragoman: ")
    assert said in last
    assert not (here / "student" / "config.json").exists()


def test_teachers_of_different_vocabularies_are_refused(
    teacher: Path, cased_run: Path, tmp_path: Path, cli: Cli
) -> None:
    ran = cli("distill", teacher, cased_run, "--out", tmp_path / "student")
    assert (ran.code, len(ran.stderr.splitlines())) == (3, 1)
    assert "vocabular" in ran.stderr
    twice = cli("distill", teacher, teacher, "--out", tmp_path / "student")
    assert (twice.code, twice.stderr) == (2, "dragoman: distill: one of the teachers is named twice; name each once\n")
    itself = cli("distill", teacher, "--out", teacher)
    assert itself.code == 2
    assert "is a teacher; give another --out" in itself.stderr
    with pytest.raises(DataError, match="holds a run, and none of a distillation"):
        dragoman.distill(teacher, cased_run)


@pytest.mark.full
def test_a_command_that_is_killed_at_every_stage_comes_to_the_same_end(
    teacher: Path, more_text: Path, student_settings: list[str], distilled: Distilled, tmp_path: Path
) -> None:
    out = tmp_path / "student"
    arguments = ["-m", "dragoman", "distill", str(teacher), "--text", str(more_text), "--out", str(out)]
    arguments += ["--minutes", "5", "--noise", "0.2", *student_settings]
    signs = ["teaching/about.json", "teaching/planned.json", "teaching/raw.tsv", "teaching/taught.json", "data"]
    signs += ["quickstart.json", "checkpoints", "model.json", "ctranslate2"]
    for sign in signs:
        with started(arguments, 300, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and not (out / sign).exists():
                time.sleep(0.02)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait(30)
        assert process.returncode == -signal.SIGKILL, sign
    with started(arguments, 300, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        said, _ = process.communicate()
    assert process.returncode == 0
    assert said.startswith("The student (1 + 1 layers")
    for name in ("sources.tsv", "raw.tsv", "train.tsv"):
        assert (out / "teaching" / name).read_bytes() == (distilled[0] / "teaching" / name).read_bytes()
    assert (out / "report.html").is_file()
