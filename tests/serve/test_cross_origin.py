"""Other sites' pages and browser extensions may use the service where its operator named them, and no others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.serve.cross_origin import AllowedOrigins, checked_origin
from dragoman.serve.settings import Settings
from support.serving import Running, running, service_of

GOOD = {"q": "a dog", "source": "en", "target": "eo"}
SITE, EXTENSION = "https://my.example", "moz-extension://0b7d8e1e-6a1c-4f0e-9b1e-2d6f3c5a7e11"


@pytest.fixture(scope="module")
def open_to_two(served_run: Path) -> Iterator[Running]:
    with running(service_of(served_run, allowed_origins=(SITE, "moz-extension://*"))) as server:
        yield server


@pytest.mark.parametrize("origin", [SITE, EXTENSION])
def test_a_page_of_an_allowed_origin_asks_and_reads(open_to_two: Running, origin: str) -> None:
    """As a browser does it: the preflight, then the request, both with what the page needs to read the answer."""
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,authorization",
        "Access-Control-Request-Private-Network": "true",
    }
    first = open_to_two.ask("OPTIONS", "/translate", headers=asked)
    assert (first.status, first.body) == (204, b"")
    assert first.headers["access-control-allow-origin"] == origin
    assert "POST" in first.headers["access-control-allow-methods"]
    assert first.headers["access-control-allow-headers"] == "content-type,authorization"
    assert first.headers["access-control-allow-private-network"] == "true"
    answer = open_to_two.ask("POST", "/translate", GOOD, {"Origin": origin, "Sec-Fetch-Site": "cross-site"})
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers  # no cookie stands for a person here
    failed = open_to_two.ask("POST", "/translate", {"q": "a dog"}, {"Origin": origin})
    assert (failed.status, failed.headers["access-control-allow-origin"]) == (400, origin)  # errors are readable too


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://my.example", "https://my.example.evil.example", "null", "moz-extension://*", ""],
)
def test_others_may_not(open_to_two: Running, origin: str) -> None:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    for method, body in (("OPTIONS", None), ("POST", GOOD)):
        answer = open_to_two.ask(method, "/translate", body, asked)
        assert answer.status in (403, 405)
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_an_allowed_origin_opens_nothing_else(open_to_two: Running) -> None:
    """The host, and a request with two origins, are judged as before."""
    assert open_to_two.ask("POST", "/translate", GOOD, {"Origin": SITE, "Host": "evil.example"}).status == 421
    asked = {"Origin": SITE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "a\tb: c"}
    odd = open_to_two.ask("OPTIONS", "/translate", headers=asked)
    assert (odd.status, "access-control-allow-headers" in odd.headers) == (204, False)


def test_every_page_where_that_is_wanted() -> None:
    everyone = AllowedOrigins(["*"])
    assert [everyone.allow(origin) for origin in ("https://a.example", EXTENSION, "null", "x")] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["my.example", "https://", "https://*", "https://my.example/path", "https://a b", "https://u@my.example", ""],
)
def test_what_is_no_origin_is_said(text: str) -> None:
    with pytest.raises(UsageError, match=r"--allowed-origin .* is no origin; write one as https://my\.example"):
        Settings(allowed_origins=(text,))


def test_an_origin_is_compared_as_browsers_write_it() -> None:
    assert checked_origin(" HTTPS://My.Example/ ") == SITE
    assert AllowedOrigins(["HTTPS://My.Example/"]).allow(SITE)
