"""What proxies say of clients is believed of trusted proxies alone."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.errors import UsageError
from dragoman.serve.forwarding import ContradictionError, TrustedProxies, network_of
from dragoman.serve.settings import Settings
from support.serving import running, service_of

GOOD = {"q": "a dog", "source": "en", "target": "eo"}


def seen(peer: str, *trusted: str, **headers: str) -> dict[str, Any]:
    """A request as it is after the proxies were looked through."""
    raw = [(b"host", b"inner:5000"), *((name.replace("_", "-").encode(), v.encode()) for name, v in headers.items())]
    found: dict[bytes, list[bytes]] = {}
    for name, value in raw:
        found.setdefault(name, []).append(value)
    scope = {"client": (peer, 1), "scheme": "http", "headers": raw}
    return dict(TrustedProxies(trusted).behind(scope, found))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.9", "203.0.113.7", "203.0.113.7"),
        ("10.0.0.9", "203.0.113.7, 10.0.0.8", "203.0.113.7"),  # two proxies in a row
        ("10.0.0.9", "198.51.100.1, 203.0.113.7, 10.0.0.8", "203.0.113.7"),  # the first is what the client made up
        ("10.0.0.9", "nonsense, 203.0.113.7:4711", "203.0.113.7"),
        ("10.0.0.9", "203.0.113.7, unknown", "10.0.0.9"),  # what stands before no address may be made up
        ("10.0.0.9", "[2001:db8::7]:4711", "2001:db8::7"),
        ("::ffff:10.0.0.9", "203.0.113.7", "203.0.113.7"),
        ("10.0.0.9", "10.0.0.7", "10.0.0.7"),  # a client inside the network
        ("10.0.0.9", "", "10.0.0.9"),
        ("203.0.113.1", "198.51.100.1", "203.0.113.1"),  # no proxy of ours
    ],
)
def test_the_client_is_the_last_address_that_is_no_proxy(peer: str, forwarded: str, client: str) -> None:
    assert seen(peer, "10.0.0.0/8", x_forwarded_for=forwarded)["client"][0] == client


def test_forwarded_is_read_as_its_rfc_has_it() -> None:
    values = 'for="[2001:db8::7]:4711";proto=HTTPS;host="my.example", for=10.0.0.8;by=10.0.0.9'
    found = seen("10.0.0.9", "10.0.0.0/8", forwarded=values)
    assert (found["client"][0], found["scheme"]) == ("2001:db8::7", "https")
    assert found["hosts"] == ["my.example", "inner:5000"]
    assert dict(found["headers"])[b"host"] == b"my.example"


def test_of_two_headers_that_differ_one_is_made_up() -> None:
    same = seen("10.0.0.9", "10.0.0.9", x_forwarded_for="203.0.113.7", forwarded="for=203.0.113.7")
    assert same["client"][0] == "203.0.113.7"
    with pytest.raises(ContradictionError):
        seen("10.0.0.9", "10.0.0.9", x_forwarded_for="203.0.113.7", forwarded="for=198.51.100.1")


def test_nobody_is_trusted_by_default() -> None:
    found = seen("127.0.0.1", x_forwarded_for="203.0.113.7", x_forwarded_host="a", x_forwarded_proto="https")
    assert (found["client"][0], found["scheme"], found["hosts"]) == ("127.0.0.1", "http", ["inner:5000"])


@pytest.mark.parametrize("text", ["", "proxy", "10.0.0.0/33", "10.0.0"])
def test_what_is_no_network_is_said(text: str) -> None:
    with pytest.raises(UsageError, match=r"--trusted-proxy .* is no network; write an address, or one as 172\.16"):
        network_of(text)
    with pytest.raises(UsageError, match="is no network"):
        Settings(trusted_proxies=(text,))


def test_behind_a_proxy_each_client_has_its_own_rate(served_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limits.storage.memory.time", SimpleNamespace(time=lambda: 1000.0))  # no minute passes
    with running(service_of(served_run, rate_limit=2, trusted_proxies=("127.0.0.0/8",))) as server:

        def ask(client: str) -> int:
            return server.post("/translate", GOOD, **{"X-Forwarded-For": client}).status

        assert [ask("203.0.113.7") for _ in range(3)] == [200, 200, 429]
        assert ask("198.51.100.1, 203.0.113.7") == 429  # an address that the client put before its own
        assert ask("203.0.113.8") == 200


def test_without_a_trusted_proxy_the_header_changes_nothing(served_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limits.storage.memory.time", SimpleNamespace(time=lambda: 1000.0))
    with running(service_of(served_run, rate_limit=2)) as server:
        answers = [server.post("/translate", GOOD, **{"X-Forwarded-For": f"203.0.113.{n}"}).status for n in range(3)]
        assert answers == [200, 200, 429]


def test_the_name_and_the_scheme_before_the_proxy_are_in_addresses(served_run: Path) -> None:
    settings = {"trusted_proxies": ("127.0.0.1",), "allowed_hosts": ("my.example",)}
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\na dog\r\n'
        b'--x\r\nContent-Disposition: form-data; name="source"\r\n\r\nen\r\n'
        b'--x\r\nContent-Disposition: form-data; name="target"\r\n\r\neo\r\n--x--\r\n'
    )
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    before = {"X-Forwarded-Host": "my.example", "X-Forwarded-Proto": "https", "Origin": "https://my.example"}
    with running(service_of(served_run, **settings)) as server:
        answer = server.ask("POST", "/translate_file", body, {**form, **before})
        assert answer.json["translatedFileUrl"].startswith("https://my.example/download_file/")
        # Every name must be one of ours: a page can write any header but Host.
        for headers in (
            {"X-Forwarded-Host": "evil.example"},
            {"Host": "evil.example", "X-Forwarded-Host": "my.example"},
            {"Host": "evil.example", "Forwarded": "host=my.example"},
        ):
            assert server.ask("GET", "/health", headers=headers).status == 421
        contradiction = {"X-Forwarded-For": "203.0.113.7", "Forwarded": "for=203.0.113.8"}
        refused = server.ask("GET", "/health", headers=contradiction)
        assert refused.status == 400
        assert "name different clients" in refused.json["error"]


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("dragoman", True),
        ("dragoman:5000", True),
        ("my_service-1", True),
        ("192.0.2.7:5000", True),
        ("evil.example", False),
        ("dragoman.evil.example", False),
        ("-x", False),
        ("", False),
    ],
)
def test_on_a_network_the_name_of_a_container_is_one_of_ours(host: str, allowed: bool) -> None:
    assert Settings(host="0.0.0.0", without_key=True).allows_host(host) is allowed
    if host.startswith("dragoman"):
        assert not Settings().allows_host(host)  # nothing but this machine can call it there
