"""The commands as a user meets them: results on stdout, everything else on stderr, one line for what went wrong."""

import gzip
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import RunConfig
from dragoman.config.recipes import load
from dragoman.data.tokenizer import Tokenizer
from dragoman.run_directory import RunDirectory
from dragoman.translation.translator import Translator
from support.signalling import program_that_signals

Cli = Callable[..., Any]
LINES = ["the dog sees the old house", "", "cat", "small child finds the red tree near the river", "", "garden"]
TEXT = "".join(f"{line}\n" for line in LINES)


def process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """A real process: for exit codes, signals, pipes and locales."""
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    settings: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    if "input" not in options:
        settings["stdin"] = subprocess.DEVNULL
    return subprocess.run(command, check=False, **{**settings, **options})


def the_complaint(ran: Any, code: int) -> str:
    """The one line that says what is wrong, after any progress."""
    assert ran.stdout == ""
    *progress, last = ran.stderr.splitlines()
    assert last.startswith("dragoman: "), ran.stderr
    assert not [line for line in progress if line.startswith("dragoman: ")]
    assert "Traceback" not in ran.stderr
    assert "\x1b" not in ran.stderr
    assert getattr(ran, "code", None) == code or getattr(ran, "returncode", None) == code, ran.stderr
    return str(last).removeprefix("dragoman: ")


@pytest.fixture
def copied(tiny_run: Path, here: Path) -> Path:
    """A run to damage: the directory `run`."""
    return shutil.copytree(tiny_run, here / "run").relative_to(here)


# Train.


def test_train_tells_its_way_in_plain_lines(tiny_text: Path, tiny_settings: list[str], here: Path, cli: Cli) -> None:
    data = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
    ran = cli("train", *data, "--out", "my run", "--steps", "3", "--seed", "7", *tiny_settings)
    assert (ran.code, ran.stdout) == (0, "")
    assert "\x1b" not in ran.stderr
    assert "200 pairs, vocabulary 400, 3 steps, 1 thread" in ran.stderr
    assert "BLEU" in ran.stderr
    assert ran.stderr.endswith("try it: echo \"...\" | dragoman translate 'my run'\n")
    config = RunDirectory(here / "my run").read_config()
    assert (config.train.seed, config.train.steps, config.model.d_model) == (7, 3, 32)
    assert cli("translate", "my run", "--beam", "1", stdin=TEXT).stdout.count("\n") == len(LINES)


def test_train_on_two_files_compressed_or_not(tiny_text: Path, tiny_settings: list[str], here: Path, cli: Cli) -> None:
    for side in ("source", "target"):
        packed = gzip.compress((tiny_text / f"train.{side}").read_bytes())
        (here / f"train.{side}.gz").write_bytes(packed)
    valid = ["--valid-source", tiny_text / "valid.source", "--valid-target", tiny_text / "valid.target"]
    data = ["--source", "train.source.gz", "--target", "train.target.gz", *valid]
    ran = cli("train", *data, "--out", "packed", "--steps", "2", *tiny_settings)
    assert ran.code == 0, ran.stderr
    pairs = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
    assert cli("train", *pairs, "--out", "plain", "--steps", "2", *tiny_settings).code == 0
    # The same sentences, however they are kept, make the same model.
    packed, plain = ((here / name / "model.safetensors").read_bytes() for name in ("packed", "plain"))
    assert packed == plain


def test_train_with_a_given_tokenizer(tiny_run: Path, tiny_text: Path, here: Path, cli: Cli) -> None:
    recipe = here / "mine.toml"
    recipe.write_text(
        'extends = "small"\n[model]\nd_model = 16\nd_ff = 16\nnum_heads = 2\nencoder_layers = 1\ndecoder_layers = 1\n'
        f'[data]\ntrain = [{{pairs = "{tiny_text / "train.tsv"}"}}]\nhold_out = 5\n[train]\nsteps = 1\nthreads = 1\n'
        "[search]\nmax_extra_length = 5\n",
        encoding="utf-8",
    )
    ran = cli("train", "mine.toml", "--tokenizer", tiny_run / "tokenizer.model")
    assert ran.code == 0, ran.stderr
    run = here / "runs" / "mine"  # named after the recipe where no --out is given
    assert (run / "tokenizer.model").read_bytes() == (tiny_run / "tokenizer.model").read_bytes()
    assert RunDirectory(run).read_config().model.vocab_size == 400
    assert "5 held out for validation" in ran.stderr


INTERRUPTED = program_that_signals("dragoman.training.loop.loss_of", 10, "SIGINT")


def test_ctrl_c_saves_and_the_command_it_prints_goes_on(tiny_text: Path, tiny_settings: list[str], here: Path) -> None:
    data = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
    arguments = ["train", *data, "--out", "my run", "--steps", "80", "--set", "train.valid_steps=80", *tiny_settings]
    command = [sys.executable, "-c", INTERRUPTED, *map(str, arguments)]
    training = subprocess.run(command, cwd=here, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert training.returncode == 130, training.stderr
    assert "Traceback" not in training.stderr
    told = training.stderr.splitlines()
    assert "everything saved; go on with:" in told[-2]
    run = RunDirectory(here / "my run")
    stopped = json.loads((run.checkpoints()[-1] / "progress.json").read_bytes())["step"]
    assert 0 < stopped < 80
    name, *again = shlex.split(told[-1])
    assert (name, again) == ("dragoman", list(map(str, arguments)))

    resumed = process(*again, cwd=here)
    assert resumed.returncode == 0, resumed.stderr
    assert f"going on from step {stopped}\n" in resumed.stderr
    assert "finished after 80 steps" in resumed.stderr
    assert RunDirectory(here / "my run").checkpoints()[-1].name == "step-00000080"


# Translate.


def test_translate_from_stdin_line_for_line(tiny_run: Path, cli: Cli) -> None:
    ran = cli("translate", tiny_run, stdin=TEXT)
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == "".join(f"{line}\n" for line in Translator.load(tiny_run).translate(LINES))
    assert [not line for line in ran.stdout.splitlines()] == [not line for line in LINES]


@pytest.mark.parametrize(
    ("stdin", "lines"), [("", 0), ("\n", 1), ("cat", 1), ("cat\r\n\r\ndog\r\n", 3), ("\n\n\ncat\n\n", 5)]
)
def test_as_many_lines_come_out_as_went_in(tiny_run: Path, cli: Cli, stdin: str, lines: int) -> None:
    ran = cli("translate", tiny_run, "--beam", "1", stdin=stdin)
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout.count("\n") == lines
    assert "\r" not in ran.stdout


def test_lines_are_cut_into_sentences_unless_they_are_to_stay_whole(tiny_run: Path, cli: Callable[..., Any]) -> None:
    first, second = "the old dog sees the cat.", "The king has a red house."
    both = f"{first} {second}"
    *parts, cut = cli("translate", tiny_run, stdin=f"{first}\n{second}\n{both}\n").stdout.splitlines()
    assert cut == " ".join(parts)
    (whole,) = cli("translate", tiny_run, "--whole-lines", stdin=f"{both}\n").stdout.splitlines()
    assert whole != cut
    (alone,) = cli("translate", tiny_run, "--whole-lines", stdin=f"{first}\n").stdout.splitlines()
    assert alone == parts[0]


def test_translate_a_file_and_its_compressed_twin(tiny_run: Path, here: Path, cli: Cli) -> None:
    (here / "in.txt").write_text(TEXT, encoding="utf-8")
    (here / "in.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    plain, packed, streamed = (
        cli("translate", tiny_run, "--input", "in.txt"),
        cli("translate", tiny_run, "--input", "in.txt.gz"),
        cli("translate", tiny_run, stdin=gzip.compress(TEXT.encode())),
    )
    assert plain.stdout == packed.stdout == streamed.stdout == cli("translate", tiny_run, stdin=TEXT).stdout


def test_translate_as_json(tiny_run: Path, cli: Cli) -> None:
    ran = cli("translate", tiny_run, "--json", "--n-best", "3", stdin="ĝardeno cat\n\n")
    first, second = map(json.loads, ran.stdout.splitlines())
    assert first["source"] == "ĝardeno cat"
    assert "ĝardeno" in ran.stdout  # as itself, not as \u011d
    scores = [candidate["score"] for candidate in first["translations"]]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert all(candidate["log_probability"] <= candidate["score"] for candidate in first["translations"])
    nothing = {"text": "", "score": 0.0, "log_probability": 0.0}
    assert second == {"source": "", "translations": [nothing], "faults": [], "repaired": []} | {
        "how": "plain",
        "notes": [],
        "corrected": False,
    }


def test_translate_n_best_with_scores(tiny_run: Path, cli: Cli) -> None:
    rows = [
        line.split("\t")
        for line in cli("translate", tiny_run, "--n-best", "2", stdin="red house\n").stdout.splitlines()
    ]
    assert len(rows) == 2
    assert float(rows[0][0]) > float(rows[1][0])
    assert rows[0][1] == cli("translate", tiny_run, stdin="red house\n").stdout.rstrip("\n")


def test_greedy_wide_and_sampled_translations(tiny_run: Path, cli: Cli) -> None:
    def run(*flags: str) -> str:
        ran = cli("translate", tiny_run, *flags, stdin=TEXT)
        assert (ran.code, ran.stderr) == (0, "")
        assert ran.stdout.count("\n") == len(LINES)
        return str(ran.stdout)

    expected = Translator.load(tiny_run, beam=1).translate(LINES)
    assert run("--beam", "1").splitlines() == expected
    assert run("--beam", "8", "--alpha", "2").splitlines() == Translator.load(tiny_run, beam=8, alpha=2).translate(
        LINES
    )
    sampled = ["--sample", "--temperature", "3"]
    assert run(*sampled, "--seed", "1") == run(*sampled, "--seed", "1") != run(*sampled, "--seed", "2")
    assert run("--sample", "--top-k", "1") == run("--sample", "--top-p", "1e-9")


def test_translate_with_an_ensemble_or_a_checkpoint(tiny_run: Path, cli: Cli) -> None:
    alone = cli("translate", tiny_run, stdin=TEXT).stdout
    assert cli("translate", tiny_run, tiny_run, stdin=TEXT).stdout == alone
    early = cli("translate", tiny_run, "--checkpoint", "step-00000030", stdin=TEXT).stdout
    assert early == "".join(f"{t}\n" for t in Translator.load(tiny_run, checkpoint="step-00000030").translate(LINES))
    assert early != alone


def test_a_line_over_the_limit_is_split_and_named(copied: Path, cli: Cli) -> None:
    values = json.loads((copied / "config.json").read_bytes())
    values["search"]["max_source_length"] = 5
    (copied / "config.json").write_text(json.dumps(values), encoding="utf-8")
    ran = cli("translate", copied, stdin="cat\nthe dog sees the cat. the child hears the old river.\ndog\n")
    assert (ran.code, ran.stdout.count("\n")) == (0, 3)
    (warning,) = ran.stderr.splitlines()
    assert warning.startswith("line 2: ")
    assert "more than 5 (search.max_source_length): translated in " in warning


def test_a_warning_is_one_line_to_a_person(copied: Path, here: Path, cli: Cli) -> None:
    values = json.loads((copied / "config.json").read_bytes())
    values["search"]["max_source_length"] = 5
    (copied / "config.json").write_text(json.dumps(values), encoding="utf-8")
    (here / "source").write_text("the dog sees the cat. the child hears the old river.\n", encoding="utf-8")
    (here / "target").write_text("la hundo vidas la kato\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as for a user: here they are errors
        ran = cli("quantize", copied, "--source", "source", "--reference", "target", "--limit", "100", "--rounds", "1")
    assert ran.code == 0, ran.stderr
    assert "Warning" not in ran.stderr
    assert ran.stderr.startswith("line 1: ")
    assert re.search(r": translated in \d parts$", ran.stderr.splitlines()[0])


# Evaluate, score, average.


def test_evaluate_a_run(tiny_run: Path, tiny_text: Path, here: Path, cli: Cli) -> None:
    asked = ["--source", tiny_text / "valid.source", "--reference", tiny_text / "valid.target"]
    ran = cli("evaluate", tiny_run, *asked, "--out", "out.txt")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout.startswith("BLEU (cased, raw text): ")
    assert "version:" in ran.stdout.splitlines()[0]
    source = (tiny_text / "valid.source").read_text(encoding="utf-8")
    assert (here / "out.txt").read_text(encoding="utf-8") == cli("translate", tiny_run, stdin=source).stdout
    report = json.loads(cli("evaluate", tiny_run, *asked, "--json").stdout)
    again = json.loads(cli("evaluate", "--hypotheses", "out.txt", *asked[2:], "--json").stdout)
    assert report == again
    assert 5 < report["bleu"]["value"] < 100
    scores = [score for score in report.values() if isinstance(score, dict)]
    assert len(scores) == 5
    for score in scores:  # each with its 95 % interval
        assert abs(score["interval"]["mean"] - score["value"]) < score["interval"]["half_width"] < 50
    greedy = json.loads(cli("evaluate", tiny_run, *asked, "--beam", "1", "--json").stdout)
    assert greedy["bleu"]["value"] != report["bleu"]["value"]


def test_evaluate_translations_against_several_references(here: Path, cli: Cli) -> None:
    (here / "out").write_text("a b c d e\nf g h i j\n", encoding="utf-8")
    (here / "one").write_text("a b c d e\nx y z x y\n", encoding="utf-8")
    (here / "two").write_text("x y z x y\nf g h i j\n", encoding="utf-8")
    asked = ["evaluate", "--hypotheses", "out", "--json", "--reference", "one"]
    alone, both = (json.loads(cli(*asked, *more).stdout) for more in ([], ["--reference", "two"]))
    assert alone["bleu"]["value"] < 99
    assert both["bleu"]["value"] == pytest.approx(100)


def test_evaluate_against_a_baseline(tiny_text: Path, cli: Cli) -> None:
    right, wrong = tiny_text / "valid.target", tiny_text / "valid.source"
    ran = cli("evaluate", "--hypotheses", right, "--reference", right, "--baseline", wrong, "--target-language", "eo")
    assert ran.code == 0
    assert "paired bootstrap, 1000 resamples of 20 sentences:" in ran.stdout.splitlines()
    assert "a significant difference" in ran.stdout
    flags = ["--hypotheses", right, "--reference", right, "--baseline", right, "--json"]
    comparison = json.loads(cli("evaluate", *flags).stdout)["comparison"]
    assert not comparison["bleu"]["significant"]


def test_score_given_translations(tiny_run: Path, here: Path, cli: Cli) -> None:
    pairs = [("the dog", "la hundo"), ("the dog", "la kato"), ("ĝ", "")]
    (here / "pairs.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    ran = cli("score", tiny_run, "--pairs", "pairs.tsv")
    assert (ran.code, ran.stderr) == (0, "")
    rows = [line.split("\t") for line in ran.stdout.splitlines()]
    assert [tuple(row[2:]) for row in rows] == pairs
    assert float(rows[0][0]) > float(rows[1][0])
    found = [json.loads(line) for line in cli("score", tiny_run, "--pairs", "pairs.tsv", "--json").stdout.splitlines()]
    for row, values, (source, target) in zip(rows, found, pairs, strict=True):
        assert (values["source"], values["target"]) == (source, target)
        assert math.isclose(values["log_probability"], sum(values["tokens"]))
        assert float(row[0]) == pytest.approx(values["log_probability"], abs=1e-4)
        assert float(row[1]) == pytest.approx(values["log_probability"] / len(values["tokens"]), abs=1e-4)


def test_average_takes_the_place_of_the_weights(copied: Path, cli: Cli) -> None:
    before = (copied / "model.safetensors").read_bytes()
    ran = cli("average", copied, "--last", "2")
    assert (ran.code, ran.stdout) == (0, "")
    assert ran.stderr == "run/model.safetensors is now the average of step-00000060, step-00000090\n"
    assert json.loads((copied / "model.json").read_bytes()) == {"kind": "average", "steps": [60, 90]}
    assert (copied / "model.safetensors").read_bytes() != before
    assert cli("translate", copied, stdin=TEXT).code == 0
    # Of one checkpoint, the average is that checkpoint.
    assert cli("average", copied, "--last", "1").code == 0
    assert (
        cli("translate", copied, stdin=TEXT).stdout
        == cli("translate", copied, "--checkpoint", "step-00000090", stdin=TEXT).stdout
    )


# Config, version, help.


def test_config_shows_each_value_and_where_it_is_from(cli: Cli) -> None:
    ran = cli("config", "show", "table3-A1", "--set", "train.minutes=30")
    assert (ran.code, ran.stderr) == (0, "")
    rows = {line.split()[0]: line for line in ran.stdout.splitlines()}
    assert len(rows) == len(ran.stdout.splitlines()) > 40
    assert rows["model.num_heads"].endswith("table3-A1.toml")
    assert rows["train.minutes"].split()[1:] == ["30.0", "--set", "train.minutes"]
    assert rows["data.drop_duplicates"].split()[1:] == ["true", "default"]
    shown = cli("config", "show", "table3-A1", "--set", "train.minutes=30", "--json").stdout
    assert RunConfig.from_json(shown, "shown").train.minutes == 30
    assert RunConfig.from_json(shown, "shown").model == load("table3-A1").config.model


def test_config_of_a_run(tiny_run: Path, cli: Cli) -> None:
    shown = cli("config", "show", tiny_run)
    assert all(line.endswith(str(tiny_run / "config.json")) for line in shown.stdout.splitlines())
    config = RunDirectory(tiny_run).read_config()
    assert RunConfig.from_json(cli("config", "show", tiny_run, "--json").stdout, "shown") == config
    assert "pairs=" in next(line for line in shown.stdout.splitlines() if line.startswith("data.train "))


def test_the_version_is_the_packages(cli: Cli) -> None:
    ran = cli("--version")
    assert (ran.code, ran.stdout, ran.stderr) == (0, f"{version('dragoman')}\n", "")


def test_a_bare_command_shows_the_way(cli: Cli) -> None:
    for asked in ([], ["config"]):
        ran = cli(*asked)
        assert (ran.code, ran.stdout) == (2, "")
        assert "Options:" in ran.stderr
        assert f"\n  {'show' if asked else 'train'} " in ran.stderr
    ran = cli("--help")
    assert ran.code == 0
    for command in ("train", "translate", "evaluate", "score", "average", "demo", "config"):
        assert f"\n  {command} " in ran.stdout
        assert cli(command, "--help").code == 0


# The world around it: pipes, locales, colours.


def light(**options: Any) -> subprocess.CompletedProcess[str]:
    """A command that needs no torch."""
    return process("config", "show", "base", **options)


def closed_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def test_whoever_reads_may_stop_reading(tiny_run: Path) -> None:
    writing = closed_pipe()
    try:
        shown = light(stdout=writing)
        translated = process("translate", tiny_run, "--beam", "1", input=TEXT, stdout=writing)
    finally:
        os.close(writing)
    for ran in (shown, translated):
        assert (ran.returncode, ran.stderr) == (0, "")


def test_a_full_disk_behind_stdout_is_told() -> None:
    with Path("/dev/full").open("wb") as full:
        ran = light(stdout=full)
    assert (ran.returncode, ran.stderr) == (1, "dragoman: stdout: cannot be written (No space left on device)\n")


def test_closed_streams_are_told(tiny_run: Path) -> None:
    shell = f'exec {shlex.quote(sys.executable)} -m dragoman "$@"'
    shown = subprocess.run(
        ["sh", "-c", f"{shell} >&-", "sh", "config", "show", "base"], stderr=subprocess.PIPE, check=False
    )
    assert (shown.returncode, shown.stderr) == (1, b"dragoman: stdout is closed; the result has nowhere to go\n")
    asked = subprocess.run(["sh", "-c", f"{shell} <&-", "sh", "translate", tiny_run], capture_output=True, check=False)
    assert (asked.returncode, asked.stderr) == (2, b"dragoman: translate: stdin is closed; give a file\n")


def test_text_is_utf8_whatever_the_locale(tiny_run: Path, here: Path) -> None:
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONIOENCODING", "LANG")}
    ascii_only = plain | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    program = [sys.executable, "-c", "import sys; print(sys.stdout.encoding)"]
    assert "utf" not in subprocess.check_output(program, env=ascii_only, encoding="ascii").lower()
    (here / "ĝardeno.txt").write_text("ĝardeno\n日本 cat\n", encoding="utf-8")
    ran = process("translate", tiny_run, "--json", "--input", "ĝardeno.txt", env=ascii_only, cwd=here)
    assert (ran.returncode, ran.stderr) == (0, "")
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line["source"] for line in found] == ["ĝardeno", "日本 cat"]
    assert [line["translations"][0]["text"] for line in found] == Translator.load(tiny_run).translate(
        ["ĝardeno", "日本 cat"]
    )


def test_complaints_are_utf8_whatever_the_locale(here: Path) -> None:
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = process("config", "show", "base", "--set", "model.größe=1", env=ascii_only, cwd=here)
    # An argument in the C locale is bytes without an encoding: they are shown, and nothing falls over them.
    assert "unknown key" in the_complaint(ran, 3)
    assert "größe" in the_complaint(process("config", "show", "base", "--set", "model.größe=1"), 3)


# Bad input: one line, a code that tells whose fault it was.


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("fly", "No such command 'fly'; see: dragoman --help"),
        ("--fly", "No such option: --fly; see: dragoman --help"),
        ("train --fly", "No such option: --fly; see: dragoman train --help"),
        ("train --pairs train.tsv", "train: --out is missing; name the run's directory, for example --out runs/my"),
        ("train --pairs train.tsv --out o --steps many", "Invalid value for '--steps'"),
        ("train --source a --out o", "train: give --pairs, or both --source and --target"),
        ("train --target a --out o", "train: give --pairs, or both --source and --target"),
        ("train --pairs a --source b --target c --out o", "train: give --pairs, or both --source and --target"),
        ("train --pairs a --valid-source b --out o", "train: give --valid-pairs, or both --valid-source"),
        ("translate", "Missing argument 'RUN'; see: dragoman translate --help"),
        ("translate RUN --beam wide", "Invalid value for '--beam'"),
        ("translate RUN --n-best 0", "Invalid value for '--n-best'"),
        ("translate RUN --top-k 3", "translate: --temperature, --top-k and --top-p go with --sample; add it"),
        ("translate RUN --checkpoint step-7", "RUN has no checkpoint step-7; kept: step-00000030, step-00000060"),
        ("evaluate RUN --source a", "evaluate: --reference is missing"),
        ("evaluate --reference train.tsv", "evaluate: give RUN and --source to translate, or --hypotheses"),
        ("evaluate RUN --reference train.tsv", "evaluate: give RUN and --source to translate, or --hypotheses"),
        ("evaluate RUN --source a --hypotheses b --reference train.tsv", "evaluate: give RUN and --source"),
        ("evaluate --hypotheses a --beam 2 --reference train.tsv", "evaluate: --source, --beam, --alpha and"),
        ("score RUN", "Missing option '--pairs'; see: dragoman score --help"),
        ("translate RUN --keep urns", "keep: 'urns' is not known; known: placeholders, urls, emails, numbers"),
        ("export RUN --format fly", "Invalid value for '--format': 'fly' is not one of 'ctranslate2', 'argos'"),
        ("average RUN --last 0", "Invalid value for '--last'"),
        ("average RUN --last 4", "average: --last 4, but RUN keeps 3 checkpoints; ask for as many at most"),
        ("config show RUN --set model.d_ff=1", "config show: --set goes with a recipe"),
    ],
)
def test_wrong_usage(arguments: str, complaint: str, tiny_run: Path, here: Path, cli: Cli) -> None:
    (here / "train.tsv").write_text("a\tb\n", encoding="utf-8")
    ran = cli(*arguments.replace("RUN", str(tiny_run)).split())
    assert the_complaint(ran, 2).replace(str(tiny_run), "RUN").startswith(complaint)
    assert ran.stderr.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["train.tsv"]  # nothing half-made


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("model.d_modle=3", '--set model.d_modle: unknown key "d_modle" in [model]; did you mean "d_model"?'),
        ("modle.d_model=3", '--set modle.d_model: unknown section "modle"; did you mean "model"?'),
        ("d_model=3", '--set d_model: unknown key "d_model"; did you mean "model.d_model"?'),
        ("d_model", "--set d_model: expected section.key=value, for example train.minutes=30"),
        ("model.d_model=wide", '--set model.d_model: model.d_model must be a whole number, found "wide"'),
        ("model.d_model=64.5", "--set model.d_model: model.d_model must be a whole number, found 64.5"),
        ("model.residual=1", "--set model.residual: model.residual must be true or false, found 1"),
        ("train.minutes=true", "--set train.minutes: train.minutes must be a number, found true"),
        ("model.dropout=1.5", "--set model.dropout: model.dropout = 1.5; must be at least 0 and below 1"),
        ("model.norm_order=prE", '"prE"; allowed: "post", "pre"'),
        ("data.valid=text.tsv", '--set data.valid: data.valid must be a list, found "text.tsv"'),
    ],
)
def test_bad_settings(setting: str, complaint: str, here: Path, cli: Cli) -> None:
    for command in (["train", "--pairs", "none.tsv", "--out", "o"], ["config", "show", "base"]):
        ran = cli(*command, "--set", setting)
        assert complaint in the_complaint(ran, 3)
        assert ran.stderr.count("\n") == 1
    assert list(here.iterdir()) == []


@pytest.fixture
def bad_files(here: Path) -> Path:
    (here / "folder").mkdir()
    (here / "empty").write_bytes(b"")
    (here / "latin1").write_bytes(b"garden\ncat\ncaf\xe9\n")
    (here / "short").write_text("one\ntwo\n", encoding="utf-8")
    (here / "long").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (here / "cut.gz").write_bytes(gzip.compress(b"one\ttwo\n" * 100)[:-12])
    return here


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("train --pairs none --out o", "none: no such file; check the path, which is taken from "),
        ("train --pairs folder --out o", "folder: a directory; give a text file"),
        (
            "train --pairs empty --out o",
            "empty: no lines; give a file with a sentence, or a pair of them, on each line",
        ),
        ("train --pairs short --out o", "short: 2 of 2 lines have no tab, the first being line 1"),
        ("train --pairs cut.gz --out o", "cut.gz: the gzip data is damaged or cut off"),
        ("train --source short --target long --out o", "short has 2 lines, long 3: line n of one must translate"),
        ("train --source short --target latin1 --out o", "short has 2 lines, latin1 3: line n of"),
        ("train --source long --target latin1 --out o", "long or latin1: 1 of 3 lines are not UTF-8, the first"),
        ("train --source long --target long --tokenizer none --out o", "none: the tokenizer cannot be read"),
        ("train --source long --target long --tokenizer short --out o", "short: not a sentencepiece model; give"),
        ("train nonesuch --out o", "recipe nonesuch: no such file; known recipes: base, "),
        ("train multi30k-tyni --out o", 'recipe multi30k-tyni: no such file; did you mean "multi30k-tiny"?'),
        ("train small --out o", "no training data: give --pairs my.tsv, or --source and --target"),
        ("train short --out o", "short: not valid TOML: "),
        ("train latin1 --out o", "latin1: not UTF-8; save the recipe as UTF-8"),
        ("translate none", "none: no such run directory; make one: dragoman train --pairs my.tsv --out none"),
        ("translate short", "short: a file, and no whole bundle of a run"),
        ("translate folder", "folder: not a run directory (config.json is missing); give the --out of a training"),
        ("translate RUN --input none", "none: no such file"),
        ("translate RUN --input folder", "folder: a directory; give a text file"),
        ("translate RUN --input cut.gz", "cut.gz: the gzip data is damaged or cut off"),
        ("translate RUN --input latin1", "latin1:3: byte 4 (0xE9) is not UTF-8; convert the text with: iconv"),
        ("evaluate --hypotheses none --reference short", "none: no such file"),
        ("evaluate --hypotheses short --reference none", "none: "),
        ("evaluate --hypotheses folder --reference short", "folder: a directory; give a text file"),
        ("evaluate --hypotheses short --reference folder", "folder: "),
        ("evaluate --hypotheses latin1 --reference long", "latin1:3: "),
        ("evaluate --hypotheses long --reference latin1", "latin1:3: "),
        ("evaluate --hypotheses cut.gz --reference long", "cut.gz: "),
        ("evaluate --hypotheses long --reference cut.gz", "cut.gz: "),
        ("evaluate --hypotheses empty --reference empty", "0 sentences to evaluate; give at least 1"),
        ("evaluate --hypotheses short --reference long", "2 translations but references for 3 sentences; both must be"),
        ("evaluate RUN --source short --reference long", "2 translations but references for 3 sentences; both must be"),
        (
            "evaluate --hypotheses long --reference long --baseline short",
            "2 translations but references for 3 sentences",
        ),
        ("evaluate --hypotheses long --reference long --reference short", "short: 2 lines, but long has 3"),
        ("evaluate none --source short --reference short", "none: no such run directory"),
        ("score RUN --pairs none", "none: no such file"),
        ("score RUN --pairs folder", "folder: a directory; give a text file"),
        ("score RUN --pairs short", "short:1: one column; each line must be a source, a tab and a target"),
        ("score none --pairs empty", "none: no such run directory"),
        ("average none", "none: no such run directory"),
        ("average folder", "folder: not a run directory"),
        ("config show none", "recipe none: no such file; known recipes: base, "),
        ("config show folder", "recipe folder: no such file; known recipes: base, "),
    ],
)
def test_bad_files(arguments: str, complaint: str, tiny_run: Path, bad_files: Path, cli: Cli) -> None:
    before = sorted(bad_files.iterdir())
    ran = cli(*arguments.replace("RUN", str(tiny_run)).split(), stdin="dog\n")
    assert the_complaint(ran, 3).startswith(complaint)
    assert len(ran.stderr.splitlines()) <= 2  # `train` says what it reads before it finds the fault
    assert sorted(bad_files.iterdir()) == before


def test_text_on_stdin_that_is_not_utf8(tiny_run: Path, cli: Cli) -> None:
    ran = cli("translate", tiny_run, stdin=b"dog\ncaf\xe9\n")
    assert ":2: byte 4 (0xE9) is not UTF-8; convert the text with: iconv" in the_complaint(ran, 3)


def test_nul_bytes_and_odd_characters_go_through(tiny_run: Path, cli: Cli) -> None:
    ran = cli("translate", tiny_run, "--beam", "1", stdin="\0\n\0dog\0\n\u2028\n▁␛\n\ufeff\n")
    assert (ran.code, ran.stderr, ran.stdout.count("\n")) == (0, "", 5)


def rewrite_config(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    values = json.loads((run / "config.json").read_bytes())
    change(values)
    (run / "config.json").write_text(json.dumps(values), encoding="utf-8")


def without_weights(run: Path) -> None:
    (run / "model.safetensors").unlink()
    shutil.rmtree(run / "checkpoints")


def truncated(run: Path) -> None:
    os.truncate(run / "model.safetensors", 5000)


def with_a_tampered_header(run: Path) -> None:
    weights = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").write_bytes(b"\xff" * 7 + b"\x7f" + weights[8:])


def config_not_json(run: Path) -> None:
    (run / "config.json").write_text('{"format": 1', encoding="utf-8")


def another_tokenizer(run: Path) -> None:
    Tokenizer.learn(["aa bb cc dd"] * 3, 290).save(run / "tokenizer.model")


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (without_weights, "run/model.safetensors: no such file; is the training finished"),
    (truncated, "run/model.safetensors: not a readable safetensors file ("),
    (with_a_tampered_header, "run/model.safetensors: not a readable safetensors file ("),
    (config_not_json, "run/config.json: not valid JSON ("),
    (
        lambda run: rewrite_config(run, lambda values: values.update(format=99)),
        "run/config.json: written by another version of dragoman (this one reads format 1)",
    ),
    (
        lambda run: rewrite_config(run, lambda values: values["model"].update(d_ff=128)),
        "run/model.safetensors: encoder.0.feed_forward.",
    ),
    (
        lambda run: rewrite_config(run, lambda values: values["model"].update(d_fff=128)),
        'run/config.json: unknown key "d_fff" in [model]; did you mean "d_ff"?',
    ),
    (
        lambda run: rewrite_config(run, lambda values: values["search"].update(beam="wide")),
        'run/config.json: search.beam must be a whole number, found "wide"',
    ),
    (lambda run: (run / "config.json").unlink(), "run: not a run directory (config.json is missing)"),
    (lambda run: (run / "tokenizer.model").unlink(), "run: not a run directory (tokenizer.model is missing)"),
    (lambda run: (run / "tokenizer.model").write_bytes(b"x"), "run/tokenizer.model: not a sentencepiece model"),
    (another_tokenizer, "run/tokenizer.model: not the tokenizer that this run was begun with"),
]


@pytest.mark.parametrize(("damage", "complaint"), DAMAGES)
def test_a_damaged_run(damage: Callable[[Path], object], complaint: str, copied: Path, cli: Cli) -> None:
    damage(copied)
    Path("pairs.tsv").write_text("dog\thundo\n", encoding="utf-8")
    for command in (["translate", copied], ["score", copied, "--pairs", "pairs.tsv"]):
        ran = cli(*command, stdin="dog\n")
        assert the_complaint(ran, 3).startswith(complaint)
        assert ran.stderr.count("\n") == 1


def test_a_complaint_in_a_real_process(here: Path) -> None:
    ran = process("translate", "none", cwd=here, input="dog\n")
    assert the_complaint(ran, 3).startswith("none: no such run directory; make one: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("damage", [config_not_json, lambda run: rewrite_config(run, lambda v: v.update(format=99))])
def test_training_does_not_go_on_with_a_run_it_cannot_read(
    damage: Callable[[Path], object], copied: Path, tiny_text: Path, cli: Cli
) -> None:
    damage(copied)
    content = (copied / "config.json").read_bytes()
    assert the_complaint(cli("train", "--pairs", tiny_text / "train.tsv", "--out", copied), 3).startswith("run/config")
    assert (copied / "config.json").read_bytes() == content


def test_a_checkpoint_that_cannot_be_read_is_named(copied: Path, cli: Cli) -> None:
    os.truncate(copied / "checkpoints" / "step-00000060" / "model.safetensors", 100)
    before = (copied / "model.safetensors").read_bytes()
    ran = cli("average", copied, "--last", "2")
    assert the_complaint(ran, 3).startswith("run/checkpoints/step-00000060/model.safetensors: not a readable")
    assert (copied / "model.safetensors").read_bytes() == before


# Where nothing can be written.


def test_a_run_below_a_file_cannot_be_made(tiny_text: Path, tiny_settings: list[str], here: Path, cli: Cli) -> None:
    (here / "file").write_bytes(b"precious")
    for out in ("file/run", "file"):
        ran = cli("train", "--pairs", tiny_text / "train.tsv", "--out", out, "--steps", "1", *tiny_settings)
        assert the_complaint(ran, 1).startswith("file")
        assert (here / "file").read_bytes() == b"precious"


def test_output_that_cannot_be_written(here: Path, cli: Cli) -> None:
    (here / "text").write_text("one\n", encoding="utf-8")
    (here / "folder").mkdir()
    (here / "folder" / "work").write_bytes(b"precious")
    for output in ("text/below", "folder"):
        ran = cli("evaluate", "--hypotheses", "text", "--reference", "text", "--out", output)
        assert the_complaint(ran, 1).startswith(f"{output}: cannot be written (")
    assert (here / "folder" / "work").read_bytes() == b"precious"
    assert sorted(path.name for path in here.iterdir()) == ["folder", "text"]


# The unforeseen.


@pytest.fixture
def surprise(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("of two\nlines")

    monkeypatch.setattr("dragoman.config.recipes.load", fail)


@pytest.mark.usefixtures("surprise")
def test_what_nobody_thought_of_is_one_line_too(cli: Cli) -> None:
    said = the_complaint(cli("config", "show", "base"), 1)
    assert said == "ZeroDivisionError: of two lines; to see where, add --verbose"


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("[enforce fail] can't allocate memory: 68719476736")])
def test_a_lack_of_memory_is_one_line_anywhere(error: Exception, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("dragoman.config.recipes.load", fail)
    assert the_complaint(cli("config", "show", "base"), 1).startswith("not enough memory; free some, or give less")


@pytest.mark.usefixtures("surprise")
def test_the_traceback_is_there_for_whoever_asks(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_TRACEBACK", "1")
    ran = cli("config", "show", "base")
    assert ran.stderr.startswith("Traceback (most recent call last):")
    assert ran.stderr.splitlines()[-1].startswith("dragoman: ZeroDivisionError")
    assert ran.code == 1


@pytest.mark.parametrize(("engine", "told"), [("reference", 1), ("ctranslate2", 0)])
def test_the_allocator_is_told_where_it_pays(
    tiny_run: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, engine: str, told: int
) -> None:
    calls: list[int] = []
    monkeypatch.setattr("dragoman.processes.keep_freed_memory", lambda: calls.append(1))
    assert cli("translate", tiny_run, "--engine", engine, "--beam", "1", stdin="the dog\n").code == 0
    assert len(calls) == told
