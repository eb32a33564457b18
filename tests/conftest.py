"""What every test stands on: the same examples each time, no network, the same terminal everywhere."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from support.commands import Ran, run_in_process
from support.lexicon import lexicon_pairs

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.serving import Running

# A test that fails fails again: examples are drawn from the test itself, and a busy machine is not a failure.
hypothesis.settings.register_profile(
    "dragoman", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("dragoman")

# Before anything reads them: libraries look at these when they are imported.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["NO_COLOR"] = "1"
os.environ["COLUMNS"] = "120"
for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "GITHUB_ACTIONS"):
    os.environ.pop(name, None)


FULL_SECONDS = 3600  # for a test that is marked full: those with fifty kills take some minutes on two cores


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives full tests more time than the others, whose limit is in pyproject.toml."""
    for item in items:
        if item.get_closest_marker("full") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(FULL_SECONDS))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout that the tests run in."""
    return Path(__file__).parents[1]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, which is the working directory during the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def cli() -> Callable[..., Ran]:
    """`cli("translate", run, stdin="...")` as if from a shell."""

    def command(*arguments: str | Path, stdin: str | bytes = b"") -> Ran:
        return run_in_process(arguments, stdin.encode() if isinstance(stdin, str) else stdin)

    return command


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The package as it is installed."""
    directory = tmp_path_factory.mktemp("wheel")
    # Without isolation, so that building needs no network: hatchling is among the test tools.
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(directory), str(repository)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = directory.glob("dragoman-*.whl")
    return path


@pytest.fixture(scope="session")
def tiny_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of train and valid: each a .tsv, and the same as two files, .source and .target. Do not change it."""
    directory = tmp_path_factory.mktemp("text")
    pairs = lexicon_pairs(220, seed=1)
    for name, part in (("train", pairs[:200]), ("valid", pairs[200:])):
        (directory / f"{name}.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in part), encoding="utf-8")
        (directory / f"{name}.source").write_text("".join(f"{s}\n" for s, _ in part), encoding="utf-8")
        (directory / f"{name}.target").write_text("".join(f"{t}\n" for _, t in part), encoding="utf-8")
    return directory


@pytest.fixture(scope="session")
def tiny_settings() -> list[str]:
    """Flags of `train` for a model that runs through a step in 20 milliseconds."""
    from dragoman.config import TEXT_CHANGES

    values: dict[str, float | str] = {
        "data.casing": "plain",  # which every export can take; `cased_run` is in inline case
        "data.split_digits": "false",
        "data.views": 1,
        **dict.fromkeys((f"data.{change}" for change in TEXT_CHANGES), 0.0),
        "model.vocab_size": 400,
        "train.optimizer": "adam",  # Muon would know the grammar too, and leave nothing to be corrected
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "model.d_model": 32,
        "model.d_ff": 64,
        "model.num_heads": 2,
        "model.dropout": 0.0,
        "train.batch_tokens": 800,
        "train.micro_batch_tokens": 800,
        "train.warmup_steps": 20,
        "train.peak_rate": 0.02,
        "train.threads": 1,
    }
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


@pytest.fixture(scope="session")
def tiny_run(tiny_text: Path, tiny_settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 90 steps with checkpoints at 30, 60 and 90: knows words, not grammar. Copy it before changing it."""
    out = tmp_path_factory.mktemp("runs") / "tiny"
    data: list[str | Path] = ["--pairs", tiny_text / "train.tsv", "--valid-pairs", tiny_text / "valid.tsv"]
    ran = run_in_process(
        ["train", *data, "--out", out, "--steps", "90", "--set", "train.valid_steps=30", *tiny_settings]
    )
    assert ran.code == 0, ran.stderr
    return out


@pytest.fixture(scope="session")
def cased_run(tiny_settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 60 steps with inline case and single digits, trained on sentences in every casing. Do not change it."""
    directory = tmp_path_factory.mktemp("cased")
    draw = random.Random(1)

    def cased(pair: tuple[str, str]) -> tuple[str, str]:
        ways: list[Callable[[str], str]] = [str, str.capitalize, str.capitalize, str.title, str.upper]
        way = draw.choice(ways)
        return way(pair[0]) + " 12.", way(pair[1]) + " 12."

    pairs = [cased(pair) for pair in lexicon_pairs(220, seed=1)]
    for name, part in (("train", pairs[:200]), ("valid", pairs[200:])):
        (directory / f"{name}.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in part), encoding="utf-8")
    data: list[str | Path] = ["--pairs", directory / "train.tsv", "--valid-pairs", directory / "valid.tsv"]
    changes = ["data.casing=inline", "data.split_digits=true", "train.valid_steps=60"]
    flags = [part for change in changes for part in ("--set", change)]
    ran = run_in_process(["train", *data, "--out", directory / "run", "--steps", "60", *tiny_settings, *flags])
    assert ran.code == 0, ran.stderr
    return directory / "run"


@pytest.fixture(scope="session")
def tiny_parser(tiny_settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parser of 60 steps: left free it writes hardly any tree. Do not change it."""
    directory = tmp_path_factory.mktemp("trees")
    draw = random.Random(1)

    def noun() -> str:
        middle = draw.choice(["", "(JJ red) ", "(JJ old) "])
        return f"(NP (DT the) {middle}(NN {draw.choice(['dog', 'cat', 'king'])}))"

    trees = [f"(TOP (S {noun()} (VP (VBZ {draw.choice(['sees', 'likes'])}) {noun()}) (. .)))" for _ in range(120)]
    for name, part in (("train", trees[:110]), ("valid", trees[110:])):
        (directory / f"{name}.mrg").write_text("\n".join(part), encoding="utf-8")
    files: list[str | Path] = [
        "--trees",
        directory / "train.mrg",
        "--valid-trees",
        directory / "valid.mrg",
        "--out",
        directory / "parser",
    ]
    changes = ["train.valid_steps=60", "search.beam=2", "search.max_extra_length=40", "model.decoder_layers=2"]
    flags = [part for change in changes for part in ("--set", change)]
    ran = run_in_process(["parse", "train", *files, "--steps", "60", *tiny_settings, *flags])
    assert ran.code == 0, ran.stderr
    return directory / "parser"


@pytest.fixture(scope="session")
def served_parser(tiny_parser: Path) -> "Iterator[Running]":
    """The tiny parser, and nothing that translates."""
    from dragoman.serve.service import Service
    from dragoman.serve.settings import Settings
    from support.serving import running

    with running(Service([], Settings(port=0, rate_limit=0), parsers=[tiny_parser])) as server:
        yield server


@pytest.fixture(scope="session")
def served_run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tiny run to serve from: it grows a converted model."""
    return Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("served") / "tiny"))


@pytest.fixture(scope="session")
def served(served_run: Path) -> "Iterator[Running]":
    """The tiny run, served by a real server as English to Esperanto."""
    from support.serving import running, service_of

    with running(service_of(served_run)) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Of a module: while it is open, no other test can run an event loop."""
    from support.browsing import chromium

    with chromium() as opened:
        yield opened
