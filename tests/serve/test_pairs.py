"""Which run serves which languages, what the settings refuse, and what is said when there is nothing to serve."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.language_codes import languages_of
from dragoman.data.language_id import LanguageDetector
from dragoman.errors import DataError, UsageError
from dragoman.run_directory import RunDirectory
from dragoman.serve.pairs import ServedPair, pair_of, pairs_to_serve
from dragoman.serve.settings import RANGES, Settings, read_keys


def test_a_named_pair() -> None:
    assert pair_of("en-DE=runs/my") == ServedPair("en", "de", Path("runs/my"))
    for wrong in ("en-de", "runs/my", "en=runs/my", "en-de=", "e-de=x", "auto-de=x"):
        with pytest.raises(UsageError):
            pair_of(wrong)


@pytest.mark.parametrize(
    ("train", "languages"),
    [
        ({"source": "data/train.en.gz", "target": "data/train.de.gz"}, ("en", "de")),
        ({"source": "a.fr", "target": "a.en"}, ("fr", "en")),
        ({"pairs": "tatoeba/eng-fra/train.tsv"}, ("en", "fr")),
        ({"pairs": "my.en-de.tsv"}, ("en", "de")),
    ],
)
def test_training_files_tell_their_languages(
    tiny_run: Path, tmp_path: Path, train: dict[str, str], languages: tuple[str, str]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    config = json.loads((tiny_run / "config.json").read_text())
    config["data"]["train"] = [{"pairs": None, "source": None, "target": None, "weight": 1.0, **train}]
    (run / "config.json").write_text(json.dumps(config))
    assert languages_of(RunDirectory(run)) == languages


def test_a_run_may_say_its_languages_itself(tiny_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    assert languages_of(RunDirectory(run)) is None
    with pytest.raises(UsageError, match=f"does not say its languages; name them: dragoman serve --pair en-de={run}"):
        pairs_to_serve([run], [], None, None)
    (run / "languages.json").write_text('{"source": "en", "target": "eo"}')
    assert pairs_to_serve([run], [], None, None) == [ServedPair("en", "eo", run)]
    (run / "languages.json").write_text('{"source": "en"}')
    with pytest.raises(DataError, match="'target' is missing"):
        languages_of(RunDirectory(run))


def test_pairs_are_told_apart(tiny_run: Path) -> None:
    one = pairs_to_serve([tiny_run], ["eo-en=other"], "en", "eo")
    assert [pair.name for pair in one] == ["eo-en", "en-eo"]
    both = pairs_to_serve([], ["en-eo=a", "en-eo=b"], None, None)  # the second to compare the first with
    assert [(pair.name, pair.run.name) for pair in both] == [("en-eo", "a"), ("en-eo", "b")]
    with pytest.raises(UsageError, match="a is given twice for en-eo"):
        pairs_to_serve([], ["en-eo=a", "en-eo=a"], None, None)
    with pytest.raises(UsageError, match="give two languages"):
        pairs_to_serve([], ["en-en=a"], None, None)
    with pytest.raises(UsageError, match="go together"):
        pairs_to_serve([tiny_run], [], "en", None)


def test_without_a_model_it_says_how_to_get_one(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cli("serve")
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert "dragoman demo" in ran.stderr
    assert "dragoman serve runs/demo" in ran.stderr
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "config.json").write_text("{}")
    assert cli("serve").stderr == "dragoman: serve: which run? dragoman serve runs/mine\n"
    assert "no such run directory" in cli("serve", "nowhere").stderr


def test_languages_are_detected_among_those_served() -> None:
    detector = LanguageDetector(["de", "en", "fr", "xq"])
    german = detector.detect(["Die Katze schläft heute auf dem Sofa im Wohnzimmer."])
    assert german[0].language == "de"
    assert 50 < german[0].confidence <= 100
    mixed = detector.detect(["the cat is sleeping on the sofa, as it does every day", "ja"])
    assert mixed[0].language == "en"
    assert [d.confidence for d in mixed] == sorted((d.confidence for d in mixed), reverse=True)
    assert detector.detect(["123 ..."])[0].confidence == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "example.org"])
def test_a_network_needs_a_key_or_a_word(host: str) -> None:
    with pytest.raises(UsageError, match="--api-key-file FILE, or --without-key"):
        Settings(host=host)
    assert not Settings(host=host, api_keys=("secret",)).is_loopback
    assert Settings(host=host, without_key=True).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_this_machine_needs_none(host: str) -> None:
    assert Settings(host=host).is_loopback


@pytest.mark.parametrize(
    ("header", "here", "network", "named"),
    [
        ("localhost", True, True, True),
        ("127.0.0.1:5000", True, True, True),
        ("[::1]:5000", True, True, True),
        ("LOCALHOST:80", True, True, True),
        ("192.0.2.1:5000", False, True, True),
        ("evil.example", False, False, False),
        ("my.example:5000", False, False, True),
        ("localhost.evil.example", False, False, False),
        ("", False, False, False),
        ("localhost:80@evil.example", False, False, False),
    ],
)
def test_hosts(header: str, here: bool, network: bool, named: bool) -> None:
    assert Settings().allows_host(header) is here
    assert Settings(host="0.0.0.0", without_key=True).allows_host(header) is network
    wide = Settings(host="0.0.0.0", without_key=True, allowed_hosts=("my.example",))
    assert wide.allows_host(header) is named


@pytest.mark.parametrize("name", RANGES)
def test_every_limit_has_its_range(name: str) -> None:
    least, most = RANGES[name]
    Settings(**{name: least})  # type: ignore[arg-type]
    Settings(**{name: most})  # type: ignore[arg-type]
    for wrong in (least - 1, most + 1, float("nan"), float("inf"), float("-inf")):
        with pytest.raises(UsageError, match=r"must be [\d.,]+ to [\d.,]+") as refused:
            Settings(**{name: wrong})  # type: ignore[arg-type]
        assert "\n" not in str(refused.value)


def test_no_limit_is_without_a_range() -> None:
    numbers = {field.name for field in dataclasses.fields(Settings) if field.type in (int, float, "int", "float")}
    assert numbers == RANGES.keys()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "100000"], "workers 100000; must be 1 to 1,024"),
        (["--workers", "-1"], "workers -1; must be 1 to 1,024"),
        (["--batch-wait", "nan"], "nan is not in the range"),
        (["--batch-wait", "inf"], "inf is not in the range"),
        (["--port", "70000"], "port 70000; must be 0 to 65,535"),
        (["--queue-limit", str(10**30)], "must be 1 to 10,000,000"),
        (["--sentence-limit", "0"], "sentence limit 0; must be"),
        (["--allowed-host", ""], "--allowed-host '' is no name of a host"),
        (["--allowed-host", "http://my.example/"], "is no name of a host"),
        (["--allowed-host", "my.example:5000"], "is no name of a host"),
        (["--host", ""], "--host is empty"),
    ],
)
def test_a_setting_out_of_its_range_is_one_line(
    arguments: list[str], said: str, tiny_run: Path, cli: Callable[..., Any]
) -> None:
    ran = cli("serve", "--pair", f"en-eo={tiny_run}", *arguments)
    assert (ran.code, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert said in line


def test_keys_come_from_a_file_and_are_long(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("0123456789abcdef\n\n fedcba9876543210 \n")
    assert read_keys(file) == ("0123456789abcdef", "fedcba9876543210")
    file.write_text("short\n")
    with pytest.raises(UsageError, match="holds a key of 5 characters"):
        read_keys(file)
    file.write_text("\n")
    with pytest.raises(UsageError, match="holds no key"):
        read_keys(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_keys(tmp_path / "none")


def test_a_run_that_is_not_there_is_one_line(tmp_path: Path, cli: Callable[..., Any]) -> None:
    for run, said in ((tmp_path / "nowhere", "no such run directory"), (tmp_path, "not a run directory")):
        ran = cli("serve", "--pair", f"en-fr={run}", "--port", "0")
        assert (ran.code, said in ran.stderr, ran.stderr.count("\n")) == (3, True, 1)
