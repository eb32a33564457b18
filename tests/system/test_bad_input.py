"""Every command against what people, disks and terminals do to it: one line, the right exit code, nothing half-made."""

import contextlib
import ctypes
import gzip
import json
import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.tokenizer import Tokenizer

Cli = Callable[..., Any]
Damage = Callable[[Path], object]


@pytest.fixture
def run(tiny_run: Path, here: Path) -> Path:
    """A run to damage, and text to try it with."""
    (here / "pairs.tsv").write_text("dog\thundo\n", encoding="utf-8")
    (here / "source").write_text("dog\n", encoding="utf-8")
    (here / "target").write_text("hundo\n", encoding="utf-8")
    return shutil.copytree(tiny_run, here / "run").relative_to(here)


def everything_below(directory: Path) -> dict[str, int]:
    """All there is, and how large: what is half-written shows here."""
    return {
        str(path.relative_to(directory)): path.lstat().st_size if path.is_file() else -1
        for path in sorted(directory.rglob("*"))
    }


def the_complaint(ran: Any, code: int) -> str:
    lines = ran.stderr.splitlines()
    assert ran.code == code, ran.stderr
    assert "Traceback" not in ran.stderr
    assert [line for line in lines if line.startswith("dragoman: ")] == lines[-1:], ran.stderr
    assert "DRAGOMAN_TRACEBACK" not in lines[-1]  # which is what is said of the unforeseen
    return str(lines[-1].removeprefix("dragoman: "))


# Files that are not what they should be.

FAULTS: dict[str, bytes | None] = {
    "missing": None,
    "empty": b"",
    "latin1": b"caf\xe9\tcaf\xe9\n",
    "surrogates": b"\xed\xa0\x80\xed\xb0\x80\t\xed\xa0\x80\n",
    "nul": b"a\0b\tc\0d\n",
    "columns": b"a\tb\nc\td\te\nf\n",
    "cut.gz": gzip.compress(b"one\ttwo\n" * 3000)[:-12],
    "bad.gz": gzip.compress(b"one\ttwo\n" * 3000)[:20] + b"garbage",
    "tail.gz": gzip.compress(b"one\ttwo\n") + b"garbage",
    "head.gz": b"\x1f\x8b",
}
TOO_LONG_A_NAME = "n" * 300
MADE_OTHERWISE = ["folder", "socket", "huge", "unreadable", TOO_LONG_A_NAME]

# {} is the faulty file, RUN a good run. Each: the commands, and the faults that it has no fault to find with.
COMMANDS: dict[str, set[str]] = {
    "train --pairs {} --out out": set(),
    "train --source {} --target good --out out": set(),
    "train --source good --target {} --out out": set(),
    "train --pairs TRAIN --valid-pairs {} --out out --set model.vocab_size=400": {"tail", "nul"},
    "train --pairs TRAIN --tokenizer {} --out out": set(),
    "train {} --pairs TRAIN --out out": {"empty"},
    "translate RUN --input {}": {"empty", "nul", "columns"},
    "translate {}": set(),
    "evaluate --hypotheses {} --reference good": {"nul"},
    "evaluate --hypotheses good --reference {}": {"nul"},
    "evaluate --hypotheses good --reference good --baseline {}": {"nul"},
    "evaluate RUN --source {} --reference good": {"nul"},
    "score RUN --pairs {}": {"empty", "nul"},
    "quantize RUN --source {} --reference good": {"nul"},
    "quantize RUN --source good --reference {}": {"nul"},
    "quantize {} --source good --reference good": set(),
    "average {}": set(),
    "config show {}": {"empty"},
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("faulty")
    for name, content in FAULTS.items():
        if content is not None:
            (directory / name).write_bytes(content)
    (directory / "good").write_text("one\n", encoding="utf-8")
    (directory / "text.txt").write_text("one\n", encoding="utf-8")
    (directory / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(directory / "socket"))
    with (directory / "huge").open("wb") as file:  # one line of 100 MB
        for _ in range(100):
            file.write(b"x" * 1_000_000)
    (directory / "unreadable").write_bytes(b"one\ttwo\n")
    (directory / "unreadable").chmod(0)
    return directory


@pytest.mark.parametrize("fault", [*FAULTS, *MADE_OTHERWISE], ids=lambda fault: fault[:20])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_faulty_file_is_one_line(
    command: str, fault: str, faulty: Path, tiny_run: Path, tiny_text: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(faulty)
    if fault in COMMANDS[command]:
        return  # no fault of this command's: those have tests of their own
    words = command.format(fault).replace("RUN", str(tiny_run)).replace("TRAIN", str(tiny_text / "train.tsv")).split()
    before = everything_below(faulty)
    with without_the_right_to_ignore_permissions():
        ran = cli(*words, stdin="dog\n")
    said = the_complaint(ran, 1 if fault == TOO_LONG_A_NAME and ran.code == 1 else 3)
    assert fault in said or "references for" in said or "sentences to evaluate" in said
    assert ran.stdout == "" or command.startswith("translate RUN")  # a stream: what came before the fault is translated
    assert len(ran.stderr.splitlines()) <= 2  # `train` says what it reads
    assert everything_below(faulty) == before


# The rest of the commands, each with all faults: what it says may be of the kind of file, and its code is any of those
# that are documented.
FURTHER_COMMANDS: dict[str, set[str]] = {
    "quickstart {} --out out": set(),
    "quickstart good {} --out out": set(),
    "doctor {}": {"nul", "columns"},
    "finetune RUN --pairs {} --out out": set(),
    "finetune {} --pairs TRAIN --out out": set(),
    "backtranslate RUN --mono {} --pairs TRAIN --out out": {"empty", "nul", "columns"},
    "backtranslate RUN --mono good --pairs {} --out out": {"latin1", "surrogates", "nul", "columns"},
    "parse train --trees {} --valid-trees TREES --out out": set(),
    "parse train --trees TREES --valid-trees {} --out out": set(),
    "parse run {}": set(),
    "parse evaluate --trees {} --hypotheses TREES": set(),
    "lm train --text {} --out out": {"columns"},
    "lm generate {}": set(),
    "mlm train --labelled {} --out out": set(),
    "mlm fill {}": set(),
    "vit evaluate {}": set(),
    "serve {}": set(),
    "serve RUN --source-language en --target-language eo --api-key-file {}": {"huge"},  # a long key is a key
    "translate RUN --glossary {}": {"empty", "nul"},
    "translate-file {} text.txt --out out.txt": set(),
    "export {} --format onnx --out out": set(),
    "import {} --out out": set(),
    "bundle {} --out out.zip": set(),
    "unbundle {} --out out": set(),
    "reproduce {} --out out": set(),
    "calibrate {} --source good --reference good": set(),
    "compare RUN {}": set(),
    "inspect {} hello": set(),
    "stress {}": set(),
    "stress RUN --pairs {}": set(),
    "tasks --pairs {}": {"empty", "nul"},
    "corrections list {}": {"empty"},
    "corrections import kept.db {} --source-language en --target-language eo": {"columns", "nul", "huge"},
    "verify {}": set(),
}


@pytest.mark.parametrize("command", FURTHER_COMMANDS)
def test_a_faulty_file_is_one_line_to_every_other_command(
    command: str, faulty: Path, run: Path, tiny_parser: Path, tiny_text: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"RUN": run.resolve(), "TRAIN": tiny_text / "train.tsv", "TREES": tiny_parser.parent / "valid.mrg"}
    monkeypatch.chdir(faulty)
    before = everything_below(faulty)
    for fault in {*FAULTS, *MADE_OTHERWISE} - FURTHER_COMMANDS[command]:
        words = [places.get(word, word) for word in command.format(fault).split()]
        with without_the_right_to_ignore_permissions():
            ran = cli(*words, stdin="dog\n")
        assert ran.code in (1, 2, 3), (fault, ran)
        said = the_complaint(ran, ran.code)
        assert fault in said or "gold trees" in said
        assert everything_below(faulty) == before, fault


@contextlib.contextmanager
def without_the_right_to_ignore_permissions() -> Iterator[None]:
    """Root reads files that nobody may read, unless its thread gives up the capabilities to."""
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this thread
    held = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    assert libc.capget(header, held) == 0
    fewer = (ctypes.c_uint32 * 6)(*held)
    fewer[0] &= ~(1 << 1 | 1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, fewer) == 0
    try:
        yield
    finally:
        assert libc.capset(header, held) == 0


def test_a_line_of_100_mb_among_good_ones_is_dropped(
    faulty: Path, tiny_text: Path, tiny_settings: list[str], here: Path, cli: Cli
) -> None:
    with (here / "long.tsv").open("wb") as file:
        good = (tiny_text / "train.tsv").read_bytes()
        file.write(good)
        file.write((faulty / "huge").read_bytes() + b"\n")
        file.write(b"dog" + b"\t" + b"hundo" * 20_000_000 + b"\n")
        file.write(b"last\tlasta\n")
    ran = cli("train", "--pairs", "long.tsv", "--out", "out", "--steps", "1", *tiny_settings)
    assert ran.code == 0, ran.stderr
    assert "203 lines, 181 kept for train, 20 held out" in ran.stderr
    assert "dropped 2: too long" in ran.stderr


# Runs that are not what they should be.


def rewritten(name: str, change: Callable[[dict[str, Any]], object]) -> Damage:
    def damage(run: Path) -> None:
        values = json.loads((run / name).read_bytes())
        change(values)
        (run / name).write_text(json.dumps(values), encoding="utf-8")

    return damage


def written(name: str, content: bytes) -> Damage:
    return lambda run: (run / name).write_bytes(content)


def cut(name: str) -> Damage:
    return lambda run: os.truncate(run / name, (run / name).stat().st_size - 7)


def a_directory(name: str) -> Damage:
    def damage(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        (run / name).mkdir()

    return damage


def another_tokenizer_of_the_same_size(run: Path) -> None:
    own = Tokenizer.load(run / "tokenizer.model")
    other = Tokenizer.learn([f"otra cosa {i} totalmente distinta" for i in range(500)], own.vocab_size)
    content = own.model_bytes.replace(own.piece(own.vocab_size - 1).encode(), b"!", 1)
    if other.vocab_size == own.vocab_size:
        content = other.model_bytes
    assert content != own.model_bytes
    (run / "tokenizer.model").write_bytes(content)


def with_a_tampered_header(run: Path) -> None:
    content = (run / "model.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    name = next(name for name in header if name != "__metadata__")
    header[name]["shape"] = [2**40, 2**40]
    changed = json.dumps(header).encode()
    (run / "model.safetensors").write_bytes(len(changed).to_bytes(8, "little") + changed + content[8 + size :])


USES = ["translate run", "score run --pairs pairs.tsv", "evaluate run --source source --reference target"]
PACKS = ["bundle run --out run.zip", "export run --format marian-hf --out out", "inspect run dog"]
DAMAGED_RUNS: list[tuple[Damage, list[str], str]] = [
    (rewritten("config.json", lambda v: v.update(format=2)), [*USES, "config show run"], "run/config.json: written by"),
    (rewritten("config.json", lambda v: v.pop("format")), USES, "run/config.json: written by another version"),
    (rewritten("config.json", lambda v: v["model"].update(new=1)), USES, 'run/config.json: unknown key "new"'),
    (written("config.json", b"[]"), [*USES, "config show run"], "run/config.json: expected a JSON object"),
    (a_directory("config.json"), [*USES, "average run"], "run: not a run directory (config.json is missing)"),
    (with_a_tampered_header, [*USES, *PACKS], "run/model.safetensors: not a readable safetensors file ("),
    (cut("model.safetensors"), [*USES, *PACKS], "run/model.safetensors: not a readable safetensors file ("),
    (
        another_tokenizer_of_the_same_size,
        [*USES, *PACKS, "TRAIN"],
        "run/tokenizer.model: not the tokenizer that this run",
    ),
    (written("tokenizer.model", b"\0" * 99), [*USES, "TRAIN"], "run/tokenizer.model: not a sentencepiece model"),
    (a_directory("tokenizer.model"), [*USES, "TRAIN"], "run: not a run directory (tokenizer.model is missing)"),
    (written("cleaning.json", b"{}"), [*USES, "TRAIN"], "run/cleaning.json: damaged; restore it"),
    (written("cleaning.json", b"[" * 9000), [*USES, "TRAIN"], "run/cleaning.json: damaged; restore it"),
    (written("engine.json", b"null"), USES, "run/engine.json: expected a JSON object"),
    (cut("checkpoints/step-00000090/model.safetensors"), ["average run --last 2"], "run/checkpoints/step-00000090/"),
    (a_directory("model.json"), ["average run --last 2"], "run/model.json: cannot be written"),
]


@pytest.mark.parametrize(("damage", "commands", "complaint"), DAMAGED_RUNS, ids=[case[2] for case in DAMAGED_RUNS])
def test_a_damaged_run_is_one_line(
    damage: Damage, commands: list[str], complaint: str, run: Path, tiny_text: Path, tiny_settings: list[str], cli: Cli
) -> None:
    damage(run)
    before = everything_below(run)
    for command in commands:
        words: list[Any] = command.split()
        if command == "TRAIN":
            data = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
            words = ["train", *data, "--out", "run", "--steps", "91", "--set", "train.valid_steps=30", *tiny_settings]
        ran = cli(*words, stdin="dog\n")
        assert the_complaint(ran, 1 if "cannot be written" in complaint else 3).startswith(complaint)
        assert ran.stdout == ""
        if "average" not in command:  # whose first file is whole before its second cannot be
            assert everything_below(run) == before


@pytest.mark.parametrize("name", ["about.json", "source.ids", "target.lengths", "source.offsets"])
def test_damaged_ids_are_one_line(name: str, run: Path, tiny_text: Path, tiny_settings: list[str], cli: Cli) -> None:
    (data,) = (run / "data").iterdir()
    os.truncate(data / "train" / name, 11)
    inputs = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
    again = ["train", *inputs, "--out", "run", "--steps", "91", "--set", "train.valid_steps=30", *tiny_settings]
    said = the_complaint(cli(*again), 3)
    assert said.startswith(f"{data / 'train'}: damaged (")
    assert said.endswith("; delete it and start again to encode the text anew")
    shutil.rmtree(data)  # as it says
    assert cli(*again).code == 0


@pytest.mark.parametrize("name", ["model.bin", "config.json", "shared_vocabulary.json"])
def test_a_damaged_conversion_is_made_anew_or_named(name: str, run: Path, cli: Cli) -> None:
    expected = cli("translate", run, stdin="dog\n").stdout
    (converted,) = (run / "ctranslate2").iterdir()
    (converted / name).write_bytes(b"\xff\0")
    ran = cli("translate", run, stdin="dog\n")
    if ran.code != 0:
        assert the_complaint(ran, 3).startswith(f"{converted}: damaged (")
        shutil.rmtree(converted)
        ran = cli("translate", run, stdin="dog\n")
    assert (ran.code, ran.stdout) == (0, expected)


def test_a_pair_too_long_to_score(run: Path, here: Path, cli: Cli) -> None:
    (here / "pairs.tsv").write_text("dog\thundo\ncat\t" + "kato " * 5000 + "\n", encoding="utf-8")
    said = the_complaint(cli("score", run, "--pairs", "pairs.tsv"), 3)
    assert said.startswith("pair 2: a side of ")
    assert "at most 4,096 are scored" in said


# Where nothing can be written.


@contextlib.contextmanager
def disk_full_after(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: as a full disk, but for the number of the error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_up_while_text_is_prepared(
    tiny_text: Path, tiny_settings: list[str], here: Path, cli: Cli
) -> None:
    data = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
    words = ["train", *data, "--out", "out", "--steps", "1", *tiny_settings]
    for size in (100, 1000, 4000):
        with disk_full_after(size):
            ran = cli(*words)
        assert the_complaint(ran, 1).startswith("out: cannot be written (")
        assert [name for name in everything_below(here) if "partial" in name] == []
    assert cli(*words).code == 0


def test_a_disk_that_fills_up_under_the_other_commands(run: Path, here: Path, cli: Cli) -> None:
    (here / "source").write_text("dog\n" * 300, encoding="utf-8")
    (here / "target").write_text("hundo\n" * 300, encoding="utf-8")
    shutil.rmtree(run / "ctranslate2", ignore_errors=True)
    before = everything_below(here)
    for command in (
        "evaluate run --source source --reference target --engine reference --out out.txt",
        "average run --last 2",
        "quantize run --source source --reference target",
        "translate run --engine ctranslate2 --input source",
    ):
        with disk_full_after(1000):
            ran = cli(*command.split())
        assert "cannot be written (" in the_complaint(ran, 1)
        left = {name: size for name, size in everything_below(here).items() if name != "run/ctranslate2"}
        assert left == before


@pytest.mark.parametrize("output", ["missing/parent", "readonly/out.txt", "folder", "full"])
def test_output_that_cannot_be_written(output: str, here: Path, cli: Cli) -> None:
    (here / "good").write_text("one\n", encoding="utf-8")
    (here / "folder").mkdir()
    (here / "readonly").mkdir(mode=0o555)
    (here / "missing").write_bytes(b"a file")
    (here / "full").symlink_to("/dev/full")
    with without_the_right_to_ignore_permissions():
        ran = cli("evaluate", "--hypotheses", "good", "--reference", "good", "--out", output)
    assert the_complaint(ran, 1).startswith(f"{output}: cannot be written (")
    assert ran.stdout == ""
    assert (here / "full").is_symlink()
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_a_pipe_is_written_to_and_not_replaced(here: Path, cli: Cli) -> None:
    (here / "good").write_text("one\n", encoding="utf-8")
    os.mkfifo(here / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((here / "pipe").read_bytes()), daemon=True)
    reader.start()
    assert cli("evaluate", "--hypotheses", "good", "--reference", "good", "--out", "pipe").code == 0
    reader.join(60)
    assert read == [b"one\n"]
    assert stat.S_ISFIFO((here / "pipe").stat().st_mode)


@pytest.mark.parametrize("out", ["file/run", "readonly/run", "readonly", "/dev/null", "/proc/none/run"])
def test_a_run_that_cannot_be_made(out: str, tiny_text: Path, here: Path, cli: Cli) -> None:
    (here / "file").write_bytes(b"precious")
    (here / "readonly").mkdir(mode=0o555)
    before = everything_below(here)
    with without_the_right_to_ignore_permissions():
        ran = cli("train", "--pairs", tiny_text / "train.tsv", "--out", out, "--steps", "1")
    assert out.split("/run")[0] in the_complaint(ran, 1)
    assert everything_below(here) == before


def test_the_demo_without_a_place_for_its_data(here: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "file"))
    said = the_complaint(cli("demo", "--out", "out"), 1)
    assert said.startswith(f"{here / 'file' / 'dragoman'}: cannot hold the demo's data (")
    assert not (here / "out").exists()


# Terminals, pipes and locales.


@contextlib.contextmanager
def stdout_is(descriptor: int) -> Iterator[None]:
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield


PRINTERS = [*USES, "config show base", "quantize run --source source --reference target --rounds 1 --limit 100"]


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("command", PRINTERS)
def test_results_that_nobody_reads_or_that_have_no_room(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from dragoman.cli.main import main

    for kind in ("closed pipe", "full disk"):
        monkeypatch.setattr(sys, "argv", ["dragoman", *command.split()])
        with Path("source").open(encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            if kind == "full disk":
                descriptor = os.open("/dev/full", os.O_WRONLY)
            else:
                reading, descriptor = os.pipe()
                os.close(reading)
            with stdout_is(descriptor), pytest.raises(SystemExit) as left:
                main()
        said = capfd.readouterr().err
        if kind == "closed pipe":  # as of `dragoman ... | head`
            assert left.value.code == 0
            assert "dragoman:" not in said
        else:
            assert left.value.code == 1
            assert said == "dragoman: stdout: cannot be written (No space left on device)\n"


LOCALES = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
]
IN_ONE_PROCESS = """
import json, os, sys
from dragoman.cli.main import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["dragoman", *(os.fsdecode(word.encode()) for word in words)]  # as the shell's bytes come in
    try:
        main()
    except SystemExit as left:
        if left.code:
            raise
"""


@pytest.mark.parametrize("locale", LOCALES, ids=["C", "ascii"])
def test_text_and_names_are_utf8_in_any_locale(
    locale: dict[str, str], tiny_text: Path, tiny_settings: list[str], here: Path
) -> None:
    text = (tiny_text / "train.tsv").read_bytes()
    (here / "Sätze.tsv").write_bytes(text)
    (here / "Quelle").write_text("ĝardeno\n", encoding="utf-8")
    (here / "Ziel").write_text("ĝardeno\n", encoding="utf-8")
    commands = [
        ["train", "--pairs", "Sätze.tsv", "--out", "run", "--steps", "1", *tiny_settings],
        ["translate", "run", "--input", "Quelle", "--beam", "1"],
        ["evaluate", "--hypotheses", "Ziel", "--reference", "Ziel", "--out", "gleich", "--json"],
        ["score", "run", "--pairs", "Sätze.tsv"],
        ["config", "show", "run"],
    ]
    # Whatever opens a file without saying its encoding is an error here.
    strict = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning:dragoman"]
    ran = subprocess.run(
        [sys.executable, *strict, "-c", IN_ONE_PROCESS, json.dumps(commands, ensure_ascii=True)],
        env={**os.environ, **locale},
        cwd=here,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    shown = ran.stdout.decode()
    assert "ĝardeno" in shown
    assert (here / "gleich").read_text(encoding="utf-8") == "ĝardeno\n"
    assert "Traceback" not in ran.stderr.decode()
