"""Every option of `serve` may stand in the environment; the command line counts first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from support.commands import Ran


@pytest.fixture
def settings_of(
    served_run: Path, cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Settings, Service]]:
    """What `serve` would run with, given these arguments; DRAGOMAN_PAIR says which run."""
    given: list[Service] = []
    monkeypatch.setattr("dragoman.serve.app.run", lambda service, _: given.append(service))

    def settings(*arguments: str, **environment: str) -> tuple[Settings, Service]:
        for name, value in ({"pair": f"en-eo={served_run}"} | environment).items():
            monkeypatch.setenv(f"DRAGOMAN_{name.upper()}", value)
        ran = cli("serve", *arguments)
        assert ran.code == 0, ran.stderr
        return given[-1].settings, given[-1]

    return settings


def test_settings_come_from_the_environment(settings_of: Callable[..., tuple[Settings, Service]]) -> None:
    environment = {
        "port": "80",
        "allowed_host": "One.example two.example",
        "allowed_origin": "https://my.example moz-extension://*",
        "trusted_proxy": "172.16.0.0/12 10.0.0.1",
        "character_limit": "77",
        "batch_wait": "3",
        "pivot": "no",
        "metrics": "1",
        "api_key_file": "",  # as compose passes on what is not set
    }
    settings, service = settings_of(**environment)
    assert [pair.name for pair in service.models.pairs.values()] == ["en-eo"]
    assert (settings.port, settings.character_limit, settings.batch_wait) == (80, 77, 0.003)
    assert settings.allowed_hosts == ("one.example", "two.example")
    assert settings.allowed_origins == ("https://my.example", "moz-extension://*")
    assert settings.trusted_proxies == ("172.16.0.0/12", "10.0.0.1")
    assert (settings.pivot, settings.metrics, settings.api_keys) == (False, True, ())


def test_the_command_line_counts_first(settings_of: Callable[..., tuple[Settings, Service]]) -> None:
    settings, _ = settings_of("--port", "81", "--allowed-host", "three.example", port="80", allowed_host="one.example")
    assert (settings.port, settings.allowed_hosts) == (81, ("three.example",))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("PORT", "x", "--port"),
        ("CHARACTER_LIMIT", "0", "serve: character limit 0; must be 1 to 1,000,000,000"),
        ("TRUSTED_PROXY", "10.0.0.0/8 x", "serve: --trusted-proxy 'x' is no network"),
        ("API_KEY_FILE", "/no/such", "--api-key-file /no/such cannot be read"),
        ("PIVOT", "maybe", "pivot"),
    ],
)
def test_a_wrong_value_is_said_in_a_line(
    name: str, value: str, error: str, served_run: Path, cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"DRAGOMAN_{name}", value)
    ran: Any = cli("serve", "--pair", f"en-eo={served_run}")
    assert ran.code == 2
    assert error in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_no_other_command_looks_there(cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_BEAM", "none")
    monkeypatch.setenv("DRAGOMAN_SET", "none")
    assert cli("config", "show", "base").code == 0
