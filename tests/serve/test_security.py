"""Attempts to get in: by another name, from another page, with the wrong key, with paths, floods and slowness."""

import contextlib
import json
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from dragoman.serve.security import CONTENT_SECURITY_POLICY, Keys, RateLimiter, RefusedError
from support.serving import Running, running, service_of
from support.waiting import PATIENCE, until

GOOD = {"q": "a dog", "source": "en", "target": "eo"}
EXPLAIN = {"text": "a dog", "source": "en", "target": "eo"}


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:5000", "localhost.evil.example", "127.0.0.1.evil.example", ""]
)
@pytest.mark.parametrize("path", ["/", "/languages", "/api/v1/service", "/metrics"])
def test_a_name_that_is_not_ours_is_refused(served: Running, host: str, path: str) -> None:
    answer = served.ask("GET", path, headers={"Host": host})
    assert answer.status == 421
    assert "Host" in answer.json["error"]


@pytest.mark.parametrize("path", ["/health", "/", "/languages"])
def test_monitors_may_ask_for_the_head_alone(served: Running, path: str) -> None:
    head = raw(served, f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert head.split()[1] == b"200"
    assert head.endswith(b"\r\n\r\n")


def test_two_hosts_are_none(served: Running) -> None:
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert raw(served, request).split()[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "file://"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/translate", "/api/v1/translate", "/translate_file", "/nowhere"])
def test_other_pages_cannot_post(served: Running, headers: dict[str, str], path: str) -> None:
    answer = served.ask("POST", path, GOOD, headers)
    assert (answer.status, answer.json) == (403, {"error": "Requests from pages of other sites are refused"})


def test_our_own_page_can(served: Running) -> None:
    headers = {"Origin": served.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert served.ask("POST", "/translate", GOOD, headers).status == 200


def test_no_other_page_may_read(served: Running) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    for method, path in (("OPTIONS", "/translate"), ("GET", "/languages")):
        answer = served.ask(method, path, headers=asked)
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/nowhere"), ("POST", "/translate"), ("GET", "/web/app.js"), ("PUT", "/")],
)
def test_every_answer_is_guarded(served: Running, method: str, path: str) -> None:
    headers = served.ask(method, path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert CONTENT_SECURITY_POLICY.startswith("default-src 'none'; ")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_the_policy_opens_nothing_but_ourselves() -> None:
    for directive in CONTENT_SECURITY_POLICY.split("; "):
        assert directive.split()[1:] in (["'self'"], ["'none'"])


@pytest.mark.parametrize(
    "path",
    [
        "/web/../app.py",
        "/web/..%2fapp.py",
        "/web/%2e%2e/app.py",
        "/web//etc/passwd",
        "/web/....//app.py",
        "/web/..\\app.py",
        "/web/%00",
        "/web/vendor",
        "/etc/passwd",
        "/..",
    ],
)
def test_no_path_leads_out(served: Running, path: str) -> None:
    answer = served.ask("GET", path)
    assert answer.status in (400, 404)
    assert set(answer.json) == {"error"}


def test_keys(served_run: Path) -> None:
    key = "0123456789abcdef"
    with running(service_of(served_run, api_keys=("another-key-of-ours", key))) as server:
        for path, body in (("/api/v1/translate", EXPLAIN), ("/api/v1/explain", EXPLAIN), ("/api/v1/beam", EXPLAIN)):
            missing = server.post(path, body)
            assert (missing.status, missing.headers["www-authenticate"]) == (401, "Bearer")
            for wrong in ("Bearer no", "Bearer ", f"Basic {key}", f"Bearer {key}x", "Bearer é"):
                assert server.ask("POST", path, body, {"Authorization": wrong}).status in (401, 403)
            assert server.ask("POST", path, body, {"Authorization": f"Bearer {key}"}).status == 200
        assert server.ask("GET", "/metrics").status == 403
        assert server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {key}"}).status == 200
        assert server.ask("GET", "/api/v1/service").json["key_required"] is True


def test_a_key_is_the_whole_key() -> None:
    keys = Keys(("abc", "def"))
    assert [keys.holds(given) for given in ("abc", "def", "ab", "abcd", "", "\ud800")] == [True, True] + 4 * [False]
    assert not Keys(()).required


def raw(server: Running, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


def test_a_body_that_is_too_large(served_run: Path) -> None:
    with running(service_of(served_run, body_limit=1000)) as server:
        answer = server.post("/translate", {**GOOD, "q": "x" * 2000})
        assert (answer.status, answer.json) == (413, {"error": "Invalid request: the body exceeds 1000 bytes"})
        # One that does not say how large it is, and one that lies: neither is read further than the limit.
        head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert raw(server, head + (b"200\r\n" + b"x" * 512 + b"\r\n") * 4).split()[1] == b"413"
        lie = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n{"
        assert raw(server, lie).split()[1] == b"413"
        assert server.post("/translate", GOOD).status == 200


def test_a_body_that_never_comes(served_run: Path) -> None:
    with running(service_of(served_run, body_seconds=0.3)) as server:
        head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"
        answer = raw(server, head)
        assert answer.split()[1] == b"408"
        assert b"longer than 0.3 s" in answer

        # Many of them keep nobody else waiting.
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
        for connection in slow:
            connection.sendall(head)
        body = json.dumps(GOOD).encode()
        whole = (
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        )
        # In one piece, or a busy machine could come between head and body.
        answer = raw(server, whole + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert answer.split()[1] == b"200"
        for connection in slow:
            connection.close()


def test_headers_that_never_come(served_run: Path) -> None:
    service = service_of(served_run, header_seconds=0.3)
    with running(service) as server:
        assert raw(server, b"") == b""  # closed by us, without a word
        late = raw(server, b"GET /health HTTP/1.1\r\nHost: loc")
        assert late.split()[1] == b"408"
        assert json.loads(late.partition(b"\r\n\r\n")[2])["error"].startswith("The headers took longer than 0.3 s")
        answers: list[bytes] = []

        def is_answered() -> bool:
            with contextlib.suppress(ConnectionError):
                answers.append(raw(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
            return any(answers)

        until(is_answered)  # who is held up between connecting and asking is closed, too, and asks again
        assert answers[-1].split()[1] == b"200"


@pytest.mark.parametrize(
    "request_",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/9.9\r\n\r\n", b"GET /\r\n\r\n", b"A" * 100_000],
)
def test_what_is_not_http(served: Running, request_: bytes) -> None:
    answer = raw(served, request_ + b"\r\n\r\n")
    assert answer.split()[1] in (b"400", b"421")
    told, _ = json.JSONDecoder().raw_decode(answer.decode().partition("\r\n\r\n")[2])
    assert list(told) == ["error"]
    assert served.ask("GET", "/health").status == 200


def test_text_is_never_logged(served: Running, capfd: pytest.CaptureFixture[str]) -> None:
    secret = "the small zebra sees a purple unicorn"
    served.post("/translate", {**GOOD, "q": secret})
    served.post(f"/translate?q={secret.replace(' ', '+')}&source=zz&target=eo", "")
    served.post("/translate", {**GOOD, "q": secret + "\ud800"})
    served.post("/api/v1/explain", {**EXPLAIN, "text": secret, "translation": ["zebra"]})
    served.post("/api/v1/translate", {**EXPLAIN, "text": [secret]})
    captured = capfd.readouterr()
    assert "zebra" not in captured.out + captured.err
    metrics = served.ask("GET", "/metrics").body.decode()
    assert "zebra" not in metrics


def test_an_unexpected_failure_tells_nobody_the_text(served_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> list[object]:
        raise RuntimeError("zebra")

    with running(service_of(served_run, translate_batch=broken)) as server:
        answer = server.post("/translate", GOOD)
    captured = capfd.readouterr()
    assert (answer.status, set(answer.json)) == (500, {"error"})
    assert "zebra" not in answer.body.decode() + captured.out + captured.err
    assert "RuntimeError at " in captured.err


def test_metrics_are_opt_in_and_of_few_labels(served: Running, served_run: Path) -> None:
    for number in range(5):
        served.ask("GET", f"/nowhere/{number}")
        served.ask("GET", f"/download_file/{number}")
    lines = served.ask("GET", "/metrics").body.decode().splitlines()
    assert 'dragoman_requests_total{route="other",status="404"}' in "\n".join(lines)
    assert 'dragoman_requests_total{route="/download_file/{filename}",status="404"}' in "\n".join(lines)
    assert not [line for line in lines if "nowhere" in line or "127.0.0.1" in line]
    with running(service_of(served_run, metrics=False)) as server:
        assert server.ask("GET", "/metrics").status == 404


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock by which limits of the rate are kept; it stands until it is set."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("limits.storage.memory.time", SimpleNamespace(time=lambda: clock.now))
    return clock


def test_no_minute_has_more_than_is_allowed(clock: SimpleNamespace) -> None:
    limiter = RateLimiter(60)
    limiter.charge("a", 59)
    clock.now += 10.5
    limiter.charge("a")
    limiter.charge("b", 60)  # each address has its own minute
    with pytest.raises(RefusedError, match="Slowdown: 60 per 1 minute") as refused:
        limiter.charge("a", 3)
    assert (refused.value.status, refused.value.headers) == (429, ((b"retry-after", b"50"),))
    clock.now += 48.9
    with pytest.raises(RefusedError) as again:
        limiter.charge("a", 3)
    assert again.value.headers == ((b"retry-after", b"1"),)
    clock.now += 0.7
    limiter.charge("a", 3)  # what was refused did not count
    limiter.charge("a", 56)
    with pytest.raises(RefusedError) as full:
        limiter.charge("a")
    assert full.value.headers == ((b"retry-after", b"11"),)  # when the sixtieth is a minute old
    clock.now += 1000
    limiter.charge("a", 500)  # as much as a minute allows, no more
    with pytest.raises(RefusedError) as whole:
        limiter.charge("a", 500)
    assert whole.value.headers == ((b"retry-after", b"60"),)
    limiter.charge("a", 0)


def test_who_waits_as_long_as_told_is_answered(clock: SimpleNamespace) -> None:
    limiter = RateLimiter(20)
    for _ in range(20):
        limiter.charge("a")
        clock.now += 1.7
    for cost in (1, 5, 20):
        with pytest.raises(RefusedError) as refused:
            limiter.charge("a", cost)
        clock.now += int(refused.value.headers[0][1]) + 0.001  # no answer comes in no time
        limiter.charge("a", cost)


def test_no_limit_is_none() -> None:
    limiter = RateLimiter(0)
    for _ in range(10):
        limiter.charge("a", 10**9)


@pytest.mark.usefixtures("clock")
def test_addresses_are_forgotten() -> None:
    limiter = RateLimiter(1, most_addresses=10)
    for number in range(100):
        limiter.charge(str(number))
    assert len(limiter) == 10
    with pytest.raises(RefusedError):
        limiter.charge("90")  # the oldest of those remembered
    limiter.charge("0")
    assert len(limiter) == 10


def test_many_slow_readers_and_quick_ones(served: Running) -> None:
    """Connections that are opened and dropped at any point leave nothing behind."""
    body = b'{"q": "a dog", "source": "en", "target": "eo"}'
    request = (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    whole = request % len(body) + body
    for cut in range(0, len(whole) + 1, 7):
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall(whole[:cut])
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(served.post("/translate", GOOD).status)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert results == [200] * 8
