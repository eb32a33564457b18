"""A plain install translates, serves and takes documents without torch; what needs it says which extra to install."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import venv
from pathlib import Path

import pytest

from dragoman.errors import EXTRAS, missing_package, require_torch
from dragoman.translation.translator import Translator

TEXT = ["the old dog sees the cat", "the small house"]
NEEDS_TORCH = "needs torch, which is not installed; pip install 'dragoman[train]'\n"


def test_a_missing_package_is_one_line_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    complaint = "this needs torch, which is not installed; pip install 'dragoman[train]'"
    assert str(missing_package(ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn"))) == complaint
    assert missing_package(ModuleNotFoundError("No module named 'xyz'", name="xyz")) is None
    assert set(EXTRAS.values()) >= {"train", "formats", "inspect", "export"}
    require_torch("this")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(Exception, match=re.escape(complaint)):
        require_torch("this")


def test_what_cannot_be_imported_is_told_in_one_line(tiny_run: Path) -> None:
    """Without a second environment: torch is hidden from this process."""
    program = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "from dragoman.cli.main import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program, "inspect", str(tiny_run), "dog"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"dragoman: this {NEEDS_TORCH}")


@pytest.fixture(scope="module")
def plain(wheel: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of programs of an environment with `pip install dragoman`, and no checkout."""
    environment = tmp_path_factory.mktemp("plain") / "environment"
    venv.create(environment, with_pip=True)
    install: list[str | Path] = [
        environment / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    install += ["--constraint", repository / "constraints.txt", wheel]
    subprocess.run(install, check=True, timeout=900)
    return environment / "bin"


@pytest.fixture
def bare(tiny_run: Path, tmp_path: Path) -> Path:
    """A run that is not yet converted for CTranslate2."""
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    shutil.rmtree(run / "ctranslate2", ignore_errors=True)
    return run


def outside() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def ran(plain: Path, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [plain / "dragoman", *arguments]
    return subprocess.run(
        command, input=stdin, cwd="/", env=outside(), capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.full
def test_a_plain_install_has_no_torch_and_shows_its_recipes(plain: Path) -> None:
    listed = json.loads(
        subprocess.check_output([plain / "python", "-m", "pip", "list", "--format", "json"], env=outside(), timeout=120)
    )
    names = {package["name"].lower() for package in listed}
    assert {"dragoman", "ctranslate2", "fastapi"} <= names
    assert [name for name in names if name.startswith(("torch", "nvidia", "transformers", "scikit"))] == []
    shown = ran(plain, "config", "show", "table3-A1")  # from the wheel: there is no checkout to find it in
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "model.d_k" in shown.stdout


@pytest.mark.full
def test_a_plain_install_converts_and_translates(plain: Path, bare: Path, tmp_path: Path, tiny_run: Path) -> None:
    expected = Translator.load(tiny_run, engine="ctranslate2").translate(TEXT)
    lines = "".join(f"{line}\n" for line in TEXT)
    for _ in range(2):  # converted now, and before
        translated = ran(plain, "translate", bare, stdin=lines)
        assert (translated.returncode, translated.stderr) == (0, "")
        assert translated.stdout.splitlines() == expected
    (tmp_path / "page.html").write_text("<p>the <b>old</b> dog</p>", encoding="utf-8")
    document = ran(plain, "translate-file", bare, tmp_path / "page.html", "-o", tmp_path / "out.html", "-q")
    assert (document.returncode, document.stderr) == (0, "")
    written = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert re.fullmatch(r"<p>.*<b>.*</b>.*</p>", written)
    assert ran(plain, "doctor", "--environment").stdout.startswith("versions  Python ")


@pytest.mark.full
def test_a_plain_install_says_what_needs_torch(plain: Path, bare: Path, tmp_path: Path, tiny_text: Path) -> None:
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("dog\tkato\n", encoding="utf-8")
    commands: list[list[str | Path]] = [
        ["train", "--pairs", tiny_text / "train.tsv", "-o", tmp_path / "new", "--steps", "1"],
        ["quickstart", tiny_text / "train.tsv", "-o", tmp_path / "new"],
        ["demo", "-o", tmp_path / "new"],
        ["inspect", bare, "the dog"],
        ["translate", bare, "--engine", "reference"],
        ["translate", bare, "--glossary", glossary],
    ]
    for command in commands:
        refused = ran(plain, *command, stdin="the dog\n")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.endswith(NEEDS_TORCH)
        assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.full
def test_a_plain_install_serves(plain: Path, bare: Path, tiny_run: Path) -> None:
    command: list[str | Path] = [plain / "dragoman", "serve", "--pair", f"en-eo={bare}", "--port", "0"]
    server = subprocess.Popen(command, cwd="/", env=outside(), stderr=subprocess.PIPE, text=True)
    stop = threading.Timer(240, server.kill)  # so that no line below waits for ever
    stop.start()
    try:
        assert server.stderr is not None
        found = re.search(r"http://\S+?(?=/?\s)", server.stderr.readline())
        assert found

        def ask(path: str, **values: str) -> tuple[int, str]:
            content = json.dumps({"source": "en", "target": "eo", **values}).encode()
            request = urllib.request.Request(f"{found[0]}{path}", content, {"content-type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as refused:
                return refused.code, refused.read().decode()

        status, text = ask("/translate", q=TEXT[0])
        expected = Translator.load(tiny_run, engine="ctranslate2").translate(TEXT[:1])
        assert (status, json.loads(text)["translatedText"]) == (200, expected[0])
        status, text = ask("/translate", q="<p>the <b>dog</b></p>", format="html")
        assert (status, text.count("b>")) == (200, 2)
        status, text = ask("/api/v1/explain", text=TEXT[0])
        assert (status, NEEDS_TORCH.strip() in text) == (501, True)
    finally:
        stop.cancel()
        server.terminate()
        server.communicate(timeout=60)
