"""A name on a hub is imported as its directory is, from a hub on loopback; what goes wrong is a line."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.files import sha256
from dragoman.importing.read import import_model
from dragoman.run_directory import RunDirectory
from support.commands import Ran
from support.loopback_hub import LoopbackHub, environment, loopback_hub, run_dragoman
from support.model_directories import marian_directory

NAME = "Helsinki-NLP/opus-mt-en-fr"
CARD = "---\nlanguage:\n- en\n- fr\ntags:\n- translation\nlicense: apache-2.0\n---\n\n### opus-mt-en-fr\n"
TESTS = str(Path(__file__).parents[1])
NOWHERE = "http://127.0.0.1:9"  # the port of `discard`, where nothing answers


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as OPUS-MT's are on the hub: its languages stand in the card and the name alone."""
    directory = marian_directory(tmp_path_factory.mktemp("published") / "opus-mt-en-fr")
    (directory / "README.md").write_text(CARD, encoding="utf-8")
    (directory / "LICENSE").write_text("as you like\n", encoding="utf-8")
    for other in ("pytorch_model.bin", "tf_model.h5", "flax_model.msgpack", "rust_model.ot", "benchmark.zip"):
        (directory / other).write_bytes(b"another's")
    return directory


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with loopback_hub() as running:
        yield running


OneByOne = Callable[..., list[Ran]]


@pytest.fixture
def ask_one_by_one(hub: LoopbackHub, tmp_path: Path) -> OneByOne:
    """Several commands in one process, which is quicker; each may have a token of its own."""

    def commands(given: list[list[str]], tokens: list[dict[str, str]] | None = None, **variables: str) -> list[Ran]:
        program = (
            "import json, os, sys; from support.commands import run_in_process\n"
            "for arguments, token in zip(*json.loads(sys.argv[1])):\n"
            "    os.environ.update(token); ran = run_in_process(arguments)\n"
            "    print(json.dumps([ran.code, ran.stdout, ran.stderr]))"
        )
        env = {**environment(hub.address, tmp_path / "home"), **variables}
        env["PYTHONPATH"] = os.pathsep.join([TESTS, env.get("PYTHONPATH", "")])
        ran = run_dragoman(json.dumps([given, tokens or [{}] * len(given)]), env=env, cwd=tmp_path, program=program)
        assert (ran.code, ran.stderr) == (0, "")
        return [Ran(*json.loads(line)) for line in ran.stdout.splitlines()]

    return commands


@pytest.fixture
def ask(hub: LoopbackHub, tmp_path: Path) -> Callable[..., Ran]:
    """`ask("import", NAME, "--out", "run", HF_TOKEN="...")`, with a cache that is empty at first."""

    def command(*arguments: str | Path, program: str = "", **variables: str) -> Ran:
        env = {**environment(hub.address, tmp_path / "home"), **variables}
        return run_dragoman(*arguments, env=env, cwd=tmp_path, program=program)

    return command


def files_of(run: Path) -> dict[str, str]:
    """The hashes of a run's files, but for its record."""
    return {path.name: sha256(path) for path in run.iterdir() if path.name != "model.json"}


def one_line(ran: Ran, code: int) -> str:
    """What a command that failed said: one line and nothing else."""
    assert (ran.code, ran.stdout, ran.stderr.count("\n")) == (code, "", 1), ran.stderr
    return ran.stderr


def test_a_name_is_imported_as_its_directory_is(
    published: Path, hub: LoopbackHub, ask: Callable[..., Ran], tmp_path: Path
) -> None:
    commit = hub.publish(NAME, published)
    program = (
        "import sys; from dragoman.cli.main import main\ntry:\n    main()\nfinally:\n    print(*sys.modules, sep='\\n')"
    )
    ran = ask("import", NAME, "--out", "run", program=program)
    assert ran.code == 0, ran.stderr
    path, *modules = ran.stdout.splitlines()
    assert path == "run"
    assert {"torch", "transformers"} & {*modules} == set()
    assert re.fullmatch(rf"fetching {NAME}, 0\.\d MB\n", ran.stderr)
    import_model(published, tmp_path / "same")
    assert files_of(tmp_path / "run") == files_of(tmp_path / "same")
    assert {"README.md", "LICENSE", "languages.json"} < files_of(tmp_path / "run").keys()
    record = json.loads((tmp_path / "run" / "model.json").read_text())
    assert record.pop("files").keys() == {"model.safetensors", "tokenizer.model"}
    assert record == {
        "kind": "imported", "steps": [], "from": NAME, "hub": hub.address, "revision": "main", "commit": commit,
    }  # fmt: skip
    assert json.loads((tmp_path / "run" / "languages.json").read_text()) == {"source": "en", "target": "fr"}
    assert hub.fetched() == {
        "config.json", "generation_config.json", "tokenizer_config.json", "source.spm", "target.spm", "vocab.json",
        "README.md", "LICENSE", "model.safetensors",
    }  # fmt: skip


def test_what_is_in_the_cache_is_not_fetched_again(
    published: Path, hub: LoopbackHub, ask: Callable[..., Ran], tmp_path: Path
) -> None:
    commit = hub.publish(NAME, published)
    assert ask("import", NAME, "--out", "first", "-q").stderr == ""
    hub.asked.clear()
    again = ask("import", NAME, "--out", "again")
    assert (again.code, again.stderr, hub.fetched()) == (0, "", set())
    hub.asked.clear()
    offline = ask("import", NAME, "--out", "offline", HF_HUB_OFFLINE="1")
    assert (offline.code, offline.stderr, hub.asked) == (0, "", [])
    unreachable = ask("import", NAME, "--out", "unreachable", HF_ENDPOINT=NOWHERE)
    assert unreachable.code == 0
    assert re.fullmatch(rf"{NAME}: {NOWHERE} cannot be reached \(.+\); commit {commit[:8]} is .+\n", unreachable.stderr)
    for run in ("again", "offline", "unreachable"):
        assert files_of(tmp_path / run) == files_of(tmp_path / "first")
        assert json.loads((tmp_path / run / "model.json").read_text())["commit"] == commit


def test_a_revision_is_imported_and_pinned(
    published: Path, hub: LoopbackHub, ask_one_by_one: OneByOne, tmp_path: Path
) -> None:
    older = Path(shutil.copytree(published, tmp_path / "older"))
    (older / "README.md").write_text(CARD.replace("apache-2.0", "cc-by-4.0"), encoding="utf-8")
    first, newest = hub.publish(NAME, older, "v1.0"), hub.publish(NAME, published)
    of = {"v1.0": (first, "cc-by-4.0"), first: (first, "cc-by-4.0"), "main": (newest, "apache-2.0")}

    def command(revision: str, out: str) -> list[str]:
        return ["import", NAME, "--revision", revision, "--out", f"{out}-{revision}"]

    *online, unknown = ask_one_by_one([command(revision, "online") for revision in (*of, "v9")])
    offline = ask_one_by_one([command(revision, "offline") for revision in of], HF_HUB_OFFLINE="1")
    assert [ran.code for ran in online + offline] == [0] * 6, online + offline
    for revision, (commit, licence) in of.items():
        for name in ("online", "offline"):
            out = tmp_path / f"{name}-{revision}"
            record = json.loads((out / "model.json").read_text())
            assert (record["revision"], record["commit"]) == (revision, commit)
            assert f"license: {licence}\n" in (out / "README.md").read_text(encoding="utf-8")
    line = one_line(unknown, 3)
    assert f"{NAME}: no revision v9; give a branch, a tag or a commit, as {hub.address}/{NAME}/commits/main" in line


def test_weights_in_parts_and_pickled_weights_are_imported(
    published: Path, hub: LoopbackHub, ask_one_by_one: OneByOne, tmp_path: Path
) -> None:
    import torch
    from transformers import MarianMTModel

    model = MarianMTModel.from_pretrained(published)
    parts, pickled = (tmp_path / "published" / name for name in ("parts", "pickled"))
    for directory in (parts, pickled):
        shutil.copytree(published, directory, ignore=shutil.ignore_patterns("model.safetensors", "*.bin"))
    model.save_pretrained(parts, max_shard_size="60KB")
    torch.save(model.state_dict(), pickled / "pytorch_model.bin")
    import_model(published, tmp_path / "whole")
    # An index that names what is not beside it is not followed.
    index = shutil.copytree(parts, tmp_path / "published" / "index") / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"model.shared.weight": "../model.safetensors"}}))
    for directory in (parts, pickled, index.parent):
        hub.publish(f"someone/{directory.name}", directory)
    *ran, refused = ask_one_by_one(
        [["import", f"someone/{name}", "--out", name] for name in ("parts", "pickled", "index")]
    )
    assert [one.code for one in ran] == [0, 0], ran
    for name in ("parts", "pickled"):
        assert sha256(tmp_path / name / "model.safetensors") == sha256(tmp_path / "whole" / "model.safetensors")
    names = {path.name for path in parts.glob("*.safetensors")}
    assert len(names) > 2
    assert names < hub.fetched()
    assert "names no files of weights beside it" in one_line(refused, 3)


def test_what_cannot_be_imported_is_refused_before_its_weights_are_fetched(
    published: Path, hub: LoopbackHub, ask: Callable[..., Ran], ask_one_by_one: OneByOne, tmp_path: Path
) -> None:
    other, pickled, empty = (tmp_path / "published" / name for name in ("other", "pickled", "empty"))
    for directory, left_out in ((other, "no"), (pickled, "*.safetensors"), (empty, "*model.*")):
        shutil.copytree(published, directory, ignore=shutil.ignore_patterns(left_out))
        hub.publish(f"someone/{directory.name}", directory)
    (other / "config.json").write_text(json.dumps({"model_type": "t5"}))
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    refused = ask_one_by_one([["import", f"someone/{name}", "--out", "run"] for name in ("other", "empty")])
    assert "someone/other/config.json: model_type = t5; marian, " in one_line(refused[0], 3)
    assert "no model.safetensors or pytorch_model.bin among its files" in one_line(refused[1], 3)
    program = (
        "import importlib.util as util; find = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'torch' else find(name, *more)\n"
        "from dragoman.cli.main import main; main()"
    )
    line = one_line(ask("import", "someone/pickled", "--out", "run", program=program), 1)
    assert "pytorch_model.bin and no model.safetensors, needs torch, which is not installed; pip install" in line
    assert hub.fetched() == {"config.json"}
    hub.asked.clear()
    assert "used is there already" in one_line(ask("import", "someone/other", "--out", "used"), 2)
    assert hub.asked == []


def test_what_the_hub_refuses_is_a_line(published: Path, hub: LoopbackHub, ask_one_by_one: OneByOne) -> None:
    hub.token = "hf_right"
    hub.publish("someone/gated", published, gated=True)
    hub.publish("someone/private", published, private=True)
    asked = [
        ("someone/nothing", ""), ("someone/private", ""), ("someone/gated", ""), ("someone/gated", "hf_wrong"),
        ("someone/no--name", ""), ("someone/gated", "hf_right"), ("someone/private", "hf_right"),
    ]  # fmt: skip
    ran = ask_one_by_one(
        [["import", name, "--out", f"{number}"] for number, (name, _) in enumerate(asked)],
        [{"HF_TOKEN": token} for _, token in asked],
    )
    nothing, private, gated, wrong, no_name = (one_line(refused, 3) for refused in ran[:5])
    missing = f"no such path here, and no such model on {hub.address}; check the name, or give your token in HF_TOKEN"
    assert missing in nothing
    assert missing in private
    for line in (gated, wrong):
        assert f"accept it on {hub.address}/someone/gated, and give your token in HF_TOKEN" in line
        assert "hf_wrong" not in line
    assert "no name that a model can have on the hub" in no_name
    assert [accepted.code for accepted in ran[5:]] == [0, 0], ran[5:]
    hub.page = 403, "not for you"
    (refused,) = ask_one_by_one([["import", "someone/gated", "--out", "run"]])
    assert "answers 403; check the token in HF_TOKEN" in one_line(refused, 3)


def test_without_a_network_a_line_says_how_to_bring_the_files_by_hand(
    hub: LoopbackHub, ask_one_by_one: OneByOne, tmp_path: Path
) -> None:
    by_hand = (
        f"on a machine with a network: hf download {NAME} --local-dir opus-mt-en-fr and then here: dragoman import "
        f"opus-mt-en-fr --out runs/en-fr\n"
    )
    command = ["import", NAME, "--out", "runs/en-fr"]
    (unreachable,) = ask_one_by_one([command], HF_ENDPOINT="http://user:secret@127.0.0.1:9")
    offline, at_revision = ask_one_by_one([command, [*command, "--revision", "v1"]], HF_HUB_OFFLINE="1")
    not_cached = f"dragoman: {NAME}: not in the cache ({tmp_path / 'home' / 'hub'}), and "
    for ran, why in (
        (unreachable, f"{NOWHERE} cannot be reached (Connection refused)"),
        (offline, "HF_HUB_OFFLINE lets nothing be fetched"),
    ):
        assert one_line(ran, 1) == f"{not_cached}{why}; {by_hand}"
    assert f"hf download {NAME} --revision v1 --local-dir opus-mt-en-fr" in one_line(at_revision, 1)
    for page, why in (((503, "later"), "answers 503"), ((200, "<html>log in</html>"), "does not answer as a hub does")):
        hub.page = page
        (ran,) = ask_one_by_one([command])
        assert f"{hub.address} {why}" in one_line(ran, 1)
    assert not (tmp_path / "runs").exists()


def test_a_download_that_broke_off_goes_on(
    published: Path, hub: LoopbackHub, ask: Callable[..., Ran], tmp_path: Path
) -> None:
    hub.publish(NAME, published)
    hub.short.add("model.safetensors")
    ran = ask("import", NAME, "--out", "run", "-q")
    assert "did not arrive whole (" in one_line(ran, 1)
    assert "the same command fetches what is missing, or on a machine with a network: hf download" in ran.stderr
    line = one_line(ask("import", NAME, "--out", "run", HF_HUB_OFFLINE="1"), 1)
    assert f"{NAME}: only a part of it is in the cache" in line
    assert not (tmp_path / "run").exists()
    (tmp_path / "file").touch()
    line = one_line(ask("import", NAME, "--out", "run", HF_HUB_CACHE=str(tmp_path / "file")), 1)
    assert f"{tmp_path / 'file'}: cannot be written (Not a directory); make room, or give another " in line
    hub.short.clear()
    hub.asked.clear()
    assert ask("import", NAME, "--out", "run").code == 0
    assert hub.fetched() == {"model.safetensors"}
    import_model(published, tmp_path / "same")
    assert files_of(tmp_path / "run") == files_of(tmp_path / "same")


@pytest.mark.usefixtures("here")
def test_a_path_wins_and_what_is_neither_is_said_in_a_line(published: Path, cli: Callable[..., Ran]) -> None:
    shutil.copytree(published, NAME)
    assert cli("import", NAME, "--out", "run").code == 0
    assert json.loads(Path("run", "model.json").read_text())["from"] == "opus-mt-en-fr"
    line = one_line(cli("import", NAME, "--revision", "v1", "--out", "new"), 2)
    assert "is a path on this machine and has none; leave it out" in line
    for neither in ("opus-mt-en-fr", "./a/b", "a/b/c", "/a/b"):
        line = one_line(cli("import", neither, "--out", "new"), 3)
        assert line.startswith(f"dragoman: {neither}: no such file or directory; give a model's directory or archive, ")
        assert "its whole name on the Hugging Face hub, for example Helsinki-NLP/" in line
    line = one_line(cli("import", "someone/model@v1", "--out", "new"), 2)
    assert "someone/model --revision v1" in line


def test_without_huggingface_hub_a_line_names_the_extra(
    cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    line = one_line(cli("import", NAME, "--out", tmp_path / "run"), 1)
    assert line.endswith("needs huggingface_hub, which is not installed; pip install 'dragoman[hub]'\n")


def test_a_packed_directory_is_told_apart(published: Path, cli: Callable[..., Ran], tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "packed"), "zip", published.parent, published.name)
    line = one_line(cli("import", tmp_path / "packed.zip", "--out", tmp_path / "run"), 3)
    assert "a zip of a directory that transformers loads; unpack it and give that directory" in line


def test_what_the_guide_shows_runs(
    published: Path, hub: LoopbackHub, ask: Callable[..., Ran], repository: Path, tmp_path: Path
) -> None:
    guide = (repository / "docs" / "guides" / "public-models.md").read_text(encoding="utf-8")
    section = re.search(r"^## By name, from a hub\n(.*?)(?=^## |\Z)", guide, re.DOTALL | re.MULTILINE)
    assert section
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", section[1], re.DOTALL | re.MULTILINE))
    commands = [shlex.split(line, comments=True) for line in blocks.splitlines()]
    assert [words[:2] for words in commands].count(["dragoman", "import"]) >= 3
    for words in commands:
        name = words[2]
        if "/" in name:
            hub.publish(name, published, "refs/pr/1")
        if words[0] == "dragoman":
            ran = ask(*words[1:])
        else:  # the other program that huggingface_hub brings
            assert words[0] == "hf"
            ran = ask(*words[1:], program="from huggingface_hub.cli.hf import main; main()")
        assert ran.code == 0, ran.stderr
    assert RunDirectory.open(tmp_path / "runs" / "de-en").has_model()
