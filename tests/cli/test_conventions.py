"""All commands keep the same conventions: one idea has one name, and help is whole at 80 columns."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from dragoman.cli.main import COMMANDS, command_line
from dragoman.cli.old_names import RENAMED, with_new_names
from dragoman.errors import UsageError
from dragoman.translation.translation_memory import TranslationMemory
from support.commands import Ran

Cli = Callable[..., Ran]


def commands(command: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its full name: `lab run`."""
    command = command or typer.main.get_command(command_line())
    if not hasattr(command, "commands"):
        yield name, command
        return
    for own, below in command.commands.items():
        yield from commands(below, f"{name} {own}".strip())


EVERY = dict(commands())
NAMES = sorted(EVERY)
# Of people alone: one is a tour, the other runs until it is stopped.
NOT_FOR_PROGRAMS = {"demo", "serve"}
# Names that say the same as one that is agreed on, and so are no option of any command.
DISAGREED = {
    "--output": "--out", "--output-file": "--out", "--svg": "--drawings", "--plots": "--drawings",
    "--language": "--target-language", "--languages": "--source-language and --target-language",
    "--to": "--target-language or --format", "--both": "--both-directions", "--lang": "--target-language",
    "--form": "--format", "--best": "--n-best", "--nbest": "--n-best", "--count": "--n-best",
    "--as-json": "--json", "--silent": "--quiet", "--debug": "--verbose", "--file": "--input",
    "--references": "--reference", "--sources": "--source", "--beam-size": "--beam", "--length-penalty": "--alpha",
}  # fmt: skip
SHORT = {
    "-o": "--out", "-i": "--input", "-n": "--n-best", "-q": "--quiet", "-v": "--verbose", "-h": "--help",
}  # fmt: skip


# These change a run or print a few lines about it; all others write text or a directory.
WITHOUT_OUT = {
    "average", "verify", "calibrate", "quantize", "serve", "stress", "config show", "corrections list",
    "corrections import",
    "corrections promote", "lm generate", "lm evaluate", "mlm fill", "mlm classify", "vit evaluate",
}  # fmt: skip


def options_of(name: str) -> list[list[str]]:
    """The spellings of each option of a command."""
    context = EVERY[name].make_context(name, [], resilient_parsing=True, help_option_names=["-h", "--help"])
    found = [[*parameter.opts, *parameter.secondary_opts] for parameter in EVERY[name].get_params(context)]
    return [spellings for spellings in found if spellings[0].startswith("-")]


def test_there_are_all_the_commands() -> None:
    assert len(NAMES) == 46


@pytest.mark.parametrize("name", NAMES)
def test_an_option_has_the_name_that_is_agreed_on(name: str) -> None:
    spellings = {spelling for option in options_of(name) for spelling in option}
    assert {"-h", "-q", "-v", "--help", "--quiet", "--verbose"} <= spellings
    assert {bad: better for bad, better in DISAGREED.items() if bad in spellings} == {}
    for short, long in SHORT.items():
        assert (short in spellings) == (long in spellings)
    assert [option for option in options_of(name) if len(option[0]) == 2 and option[0] not in SHORT] == []
    assert ("--json" in spellings) == (name not in NOT_FOR_PROGRAMS)
    assert ("--out" in spellings) == (name not in WITHOUT_OUT)
    # `serve` may be told the languages of its runs one by one, by --pair.
    assert "--pair" not in spellings or name == "serve"
    if "--source-language" in spellings:
        assert "--target-language" in spellings


@pytest.mark.parametrize("name", NAMES)
def test_help_is_whole_at_80_columns(name: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short, long = cli(*name.split(), "-h"), cli(*name.split(), "--help")
    assert (short.code, short.stderr) == (0, "")
    assert short == long
    lines = short.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.endswith("...") and not line.startswith("Usage:")]
    assert "[[" not in short.stdout
    assert "list[" not in short.stdout  # no type as Python writes it


def summaries() -> dict[str, str]:
    found = {name: command.help for name, command in EVERY.items()}
    root: Any = typer.main.get_command(command_line())
    found |= {name: command.help for name, command in root.commands.items()}
    return {name: (text or "").partition("\n\n")[0] for name, text in found.items()}


@pytest.mark.parametrize(("name", "summary"), sorted(summaries().items()))
def test_a_summary_is_one_sentence(name: str, summary: str) -> None:
    assert re.fullmatch(r"[A-Z][-a-z]+ .*\.", " ".join(summary.split())), name


def test_the_help_stands_under_headings_with_whole_sentences(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli("-h").stdout
    assert max(map(len, shown.splitlines())) <= 80
    flat = " ".join(shown.split())
    places = []
    for heading, below in COMMANDS.items():
        places.append(shown.index(f"\n{heading}:\n"))
        assert [name for name in below if f"\n  {name} " not in shown[places[-1] :]] == []
    assert places == sorted(places)
    root: Any = typer.main.get_command(command_line())
    missing = [name for name in root.commands if " ".join(summaries()[name].split()) not in flat]
    assert missing == []


CHECKS = ["doctor", "stress", "quantize", "verify", "reproduce", "corrections promote"]


@pytest.mark.parametrize("name", CHECKS)
def test_a_command_that_checks_says_its_exit_code(name: str) -> None:
    assert "exit code is 4" in " ".join(EVERY[name].help.split())


def test_only_what_checks_speaks_of_exit_code_4() -> None:
    assert sorted(name for name, command in EVERY.items() if "exit code is" in command.help) == sorted(CHECKS)


# Old names.


def test_every_old_name_is_of_a_command_and_leads_to_options_that_it_has() -> None:
    for name, renamed in RENAMED.items():
        spellings = {spelling for option in options_of(name) for spelling in option}
        for old, new in renamed.items():
            assert old not in spellings
            assert set(new.split()) <= spellings


@pytest.mark.parametrize(
    ("command", "given", "meant"),
    [
        ("translate", "RUN --output a --to de", "RUN --out a --target-language de"),
        ("translate", "RUN --output=a -- --to", "RUN --out=a -- --to"),
        ("train", "--both en-de -o x", "--both-directions --source-language en --target-language de -o x"),
        ("export", "RUN --to argos --languages=en-de", "RUN --format argos --source-language en --target-language de"),
        ("serve", "--pair en-de=RUN", "--pair en-de=RUN"),
        ("evaluate", "--outputs", "--outputs"),
    ],
)
def test_an_old_name_means_the_new_one(command: str, given: str, meant: str) -> None:
    assert with_new_names(command, given.split()) == meant.split()


@pytest.mark.parametrize("given", ["--languages", "--languages en", "--languages=en-"])
def test_an_old_name_of_two_languages_needs_two(given: str) -> None:
    with pytest.raises(UsageError, match="--languages takes two languages, for example en-de"):
        with_new_names("export", given.split())


def test_the_command_line_understands_an_old_name(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("one two three four\n", encoding="utf-8")
    both = ["--hypotheses", tmp_path / "text", "--reference", tmp_path / "text"]
    ran = cli("evaluate", *both, "--output", tmp_path / "old", "--language", "en")
    assert ran.code == 0, ran.stderr
    assert (tmp_path / "old").read_text(encoding="utf-8") == "one two three four\n"


# Quiet, verbose, standard streams.


def test_quiet_leaves_the_result_and_what_went_wrong(tiny_run: Path, cli: Cli, tmp_path: Path) -> None:
    export = ["export", tiny_run, "--format", "ctranslate2", "--out", tmp_path / "out"]
    assert cli("average", tiny_run, "--last", "9", "-q").stderr.startswith("dragoman: average: --last 9")
    ran = cli(*export, "--quiet", "--json")
    assert (ran.code, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == {"path": str(tmp_path / "out"), "format": "ctranslate2"}
    assert cli("doctor", "-q", "-v").code == 2


def test_quiet_silences_the_progress(cli: Cli, tiny_text: Path, tiny_settings: list[str], tmp_path: Path) -> None:
    data = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
    ran = cli("train", *data, "-o", tmp_path / "run", "--steps", "2", *tiny_settings, "--json", "-q")
    assert (ran.code, ran.stderr) == (0, "")
    trained = json.loads(ran.stdout)
    assert (trained["run"], trained["step"], trained["kind"]) == (str(tmp_path / "run"), 2, "last")


def test_verbose_says_the_version_and_where_it_failed(cli: Cli) -> None:
    ran = cli("config", "show", "nothing", "--verbose")
    assert ran.code == 3
    first, *_, last = ran.stderr.splitlines()
    assert first.startswith("dragoman ")
    assert "Traceback (most recent call last):" in ran.stderr
    assert last.startswith("dragoman: recipe nothing: no such file")


def test_a_dash_is_standard_input_and_output(tiny_run: Path, cli: Cli, tmp_path: Path) -> None:
    text = "the dog sees the old house near the river\nthe cat hears the small child\n"
    plain = cli("translate", tiny_run, stdin=text)
    assert plain.stdout.count("\n") == 2
    assert cli("translate", tiny_run, "-i", "-", "-o", "-", stdin=text) == plain
    (tmp_path / "right").write_text(plain.stdout, encoding="utf-8")
    scored = cli("evaluate", "--hypotheses", "-", "--reference", tmp_path / "right", "--json", stdin=plain.stdout)
    assert json.loads(scored.stdout)["bleu"]["value"] == pytest.approx(100)
    written = cli("evaluate", tiny_run, "--source", "-", "--reference", tmp_path / "right", "-o", "-", stdin=text)
    assert written.stdout.startswith(plain.stdout)
    pairs = "".join(map("{}\t{}\n".format, text.splitlines(), plain.stdout.splitlines()))
    assert len(cli("score", tiny_run, "--pairs", "-", stdin=pairs).stdout.splitlines()) == 2
    shown = cli("inspect", tiny_run, "--format", "pharaoh", "-o", "-", stdin=text)
    assert (shown.code, shown.stdout.count("\n")) == (0, 2)
    assert len(cli("tasks", "--pairs", "-", "--task", "forward", stdin=pairs).stdout.splitlines()) == 2
    assert not Path("-").exists()


def test_references_may_come_from_standard_input(tiny_run: Path, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("the dog sees\nthe cat hears\n", encoding="utf-8")
    right = "la hundo vidas\nla kato aŭdas\n"
    (tmp_path / "right").write_text(right, encoding="utf-8")
    scored = cli("evaluate", "--hypotheses", tmp_path / "right", "--reference", "-", "--json", stdin=right)
    assert json.loads(scored.stdout)["chrf"]["value"] == pytest.approx(100)
    compared = ["compare", tiny_run, tiny_run, "--source", tmp_path / "text", "--json"]
    named, piped = cli(*compared, "--reference", tmp_path / "right"), cli(*compared, "--reference", "-", stdin=right)
    assert (piped.code, piped.stdout) == (0, named.stdout)
    short = cli(*compared, "--reference", "-", stdin="la hundo\n")
    assert (short.code, short.stderr.splitlines()[-1]) == (
        3, f"dragoman: {tmp_path / 'text'}: 2 lines, input: 1; they must be aligned"
    )  # fmt: skip


@pytest.mark.parametrize(
    "command", ["train --pairs - -o new --steps 1", "doctor -", "quickstart - -o new", "stress RUN --pairs -"]
)
def test_what_is_no_lines_to_be_read_once_is_no_standard_input(tiny_run: Path, cli: Cli, command: str) -> None:
    ran = cli(*command.replace("RUN", str(tiny_run)).split(), stdin="one\ttwo\n")
    assert (ran.code, ran.stderr.splitlines()[-1]) == (
        3, "dragoman: -: this is not read from standard input; save it to a file, and give that"
    )  # fmt: skip


def test_a_result_in_a_file_is_what_is_printed_else(tiny_run: Path, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text("the dog sees\tla hundo vidas\nthe cat\tla kato\n", encoding="utf-8")
    kept = TranslationMemory(tmp_path / "kept")
    kept.store("en-eo", "the dog", "la hundo", "la kato")
    kept.close()
    for command in (
        ["tasks", "--pairs", tmp_path / "pairs"],
        ["score", tiny_run, "--pairs", tmp_path / "pairs", "--json"],
        ["corrections", "export", tmp_path / "kept", "--source-language", "en", "--target-language", "eo"],
    ):
        shown = cli(*command)
        assert (shown.code, shown.stdout != "") == (0, True), shown.stderr
        written = cli(*command, "-o", tmp_path / "out")
        assert (written.code, written.stdout) == (0, "")
        assert (tmp_path / "out").read_text(encoding="utf-8") == shown.stdout
    (tmp_path / "pairs").write_text("the dog\tla hundo\nno tab\n", encoding="utf-8")
    assert cli("tasks", "--pairs", tmp_path / "pairs", "-o", tmp_path / "out").code == 3
    assert (tmp_path / "out").read_text(encoding="utf-8") == shown.stdout  # not a part of the new one


def test_verify_as_json_and_its_exit_code(tiny_run: Path, cli: Cli, tmp_path: Path) -> None:
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    good = cli("verify", run, "--steps", "0", "--json")
    assert (good.code, json.loads(good.stdout)["passed"]) == (0, True)
    averaged = cli("average", run, "--last", "2", "--json")
    assert json.loads(averaged.stdout)["steps"] == [60, 90]
    (run / "model.safetensors").write_bytes((tiny_run / "model.safetensors").read_bytes())
    bad = cli("verify", run, "--steps", "0", "--json")
    assert (bad.code, json.loads(bad.stdout)["passed"]) == (4, False)
    assert bad.stderr == f"dragoman: {json.loads(bad.stdout)['fault']}\n"
    assert cli("verify", tmp_path, "--steps", "0").code == 3  # there is nothing to check: not the same


# Completion.


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell: str, tmp_path: Path) -> None:
    def complete(words: str) -> str:
        asked = {
            "_DRAGOMAN_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": words,
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        command = [sys.executable, "-m", "dragoman"]
        ran = subprocess.run(
            command, env={**os.environ, **asked}, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path
        )
        assert "Traceback" not in ran.stderr
        return ran.stdout

    assert "translate-file" in complete("dragoman trans")
    assert "--target-language" in complete("dragoman translate --targ")
    assert "--output" not in complete("dragoman translate --out")  # what is old is not shown
    assert "ctranslate2" in complete("dragoman translate --engine ")


def test_completion_is_offered(cli: Cli) -> None:
    assert "--install-completion" in cli("--help").stdout


def test_the_start_imports_nothing_heavy() -> None:
    program = "import sys, dragoman.cli.main; print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    heavy = {"torch", "numpy", "rich", "ctranslate2", "sentencepiece", "safetensors", "fastapi", "lxml", "sacrebleu"}
    assert heavy & set(ran.stdout.split()) == set()
