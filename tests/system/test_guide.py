"""The guide is true: every command and every piece of Python in it runs, on a tiny corpus."""

import re
import shlex
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from support.commands import Ran
from support.lexicon import lexicon_pairs

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
NAMES = ["train", "translate", "evaluate", "finetune", "export", "serving", "python"]  # as docs/guides/README.md says
PAGES = [GUIDES / f"{name}.md" for name in NAMES]
NOT_HERE = {"curl", "podman"}  # what a shell block may hold that is not ours

RECIPE = """
[model]
vocab_size = 400
encoder_layers = 1
decoder_layers = 1
d_model = 32
d_ff = 32
num_heads = 2
[train]
steps = 3
batch_tokens = 500
micro_batch_tokens = 500
warmup_steps = 10
threads = 1
"""


@pytest.fixture
def workspace(tmp_path: Path, tiny_run: Path, tiny_text: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the guide speaks of, and a `small` recipe that is done in a moment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "small.toml").write_text(RECIPE, encoding="utf-8")
    monkeypatch.setattr("dragoman.config.recipes.recipes_dir", lambda: tmp_path / "known")
    for name in ("runs/my", "runs/back"):
        shutil.copytree(tiny_run, name)
    for name, pairs in (("my", lexicon_pairs(120, 5)), ("new", lexicon_pairs(60, 6)), ("valid", lexicon_pairs(5, 8))):
        Path(f"{name}.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    for name in ("train", "valid"):
        shutil.copy(tiny_text / f"{name}.source", f"{name}.en")
        shutil.copy(tiny_text / f"{name}.target", f"{name}.de")
    shutil.copy("valid.en", "test.en")
    for name in ("test.de", "other.txt", "mono.de"):
        shutil.copy("valid.de", name)
    shutil.copy("valid.en", "big.en")
    Path("letter.md").write_text("# the dog\n\nthe **cat** sees the dog\n", encoding="utf-8")
    return tmp_path


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of each fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run_shell(text: str, cli: Callable[..., Ran]) -> None:
    for line in text.replace("\\\n", " ").splitlines():
        *before, last = line.split(" | ")
        words = shlex.split(last, comments=True)
        if not words or words[0] in NOT_HERE or words[:2] == ["dragoman", "serve"]:
            continue
        assert words[0] == "dragoman", line
        assert [shlex.split(part)[0] for part in before] in ([], ["echo"])
        ran = cli(*words[1:], stdin=f"{shlex.split(before[0])[1]}\n" if before else "")
        assert ran.code == 0, f"{line}\n{ran.stderr}"


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_everything_on_the_page_runs(page: Path, cli: Callable[..., Ran]) -> None:
    names: dict[str, object] = {"__name__": page.stem}
    for language, text in blocks(page):
        if language == "sh":
            run_shell(text, cli)
        elif language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of other libraries, about themselves
                exec(compile(text, str(page), "exec"), names)


def test_the_guides_are_listed_on_one_page_which_names_those_that_are_run() -> None:
    index = (GUIDES / "README.md").read_text(encoding="utf-8")
    linked = dict(re.findall(r"^- \[([^\]]+)\]\(([\w-]+)\.md\): ", index, re.MULTILINE))
    assert set(linked.values()) == {page.stem for page in GUIDES.glob("*.md")} - {"README"}
    run = re.search(r"on the pages (.*?)\s+is run by the tests", index, re.DOTALL)
    assert run
    assert [linked[name] for name in re.split(r",\s+|\s+and\s+", run[1])] == NAMES
