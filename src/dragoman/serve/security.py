"""The guard that every request passes before the service sees it, and the headers that every answer carries.

Plain ASGI, outermost: what a trusted proxy says is taken in, the Host is checked, then where a browser says the request
came from, the rate, and the body, which is read here once, whole, within its limits of size and time.
"""

import asyncio
import hmac
import json
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from dragoman.serve.cross_origin import AllowedOrigins, answer_headers, preflight_headers
from dragoman.serve.forwarding import ContradictionError, Headers, TrustedProxies
from dragoman.serve.metrics import Metrics
from dragoman.serve.settings import Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_RESOURCE_POLICY = b"cross-origin-resource-policy"
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
DEEPL_PATHS = ("/v2/", "/v3/")
OPUS_CAT_PATH = "/mtrestservice/"  # in any case; its clients ask for translations with GET


class RefusedError(Exception):
    """A request that is refused: the status, the sentence and the headers of the answer."""

    def __init__(self, status: int, error: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.headers = headers


class RateLimiter:
    """Allows each address so many texts in any 60 seconds. What was refused is not counted."""

    def __init__(self, per_minute: int, most_addresses: int = 10_000) -> None:
        """`per_minute` 0: any number. Of more than `most_addresses` the one that was silent for longest is forgotten,
        so that many addresses cannot fill the memory."""
        self._limit = RateLimitItemPerMinute(per_minute) if per_minute else None
        self._storage = MemoryStorage()
        self._window = MovingWindowRateLimiter(self._storage)
        self._most_addresses = most_addresses
        self._addresses: OrderedDict[str, None] = OrderedDict()  # the one silent for longest first

    def charge(self, address: str, cost: int = 1) -> None:
        """Counts `cost` texts of an address; raises a RefusedError (429) where that would be too many."""
        if self._limit is None:
            return
        cost = min(cost, self._limit.amount)  # else a request of more texts than that could never be answered
        self._remember(address)
        if not self._window.hit(self._limit, address, cost=cost):
            retry = ((b"retry-after", str(self._seconds_until(address, cost)).encode()),)
            raise RefusedError(429, f"Slowdown: {self._limit.amount} per 1 minute", retry)

    def __len__(self) -> int:
        """Addresses that are remembered."""
        return len(self._addresses)

    def _remember(self, address: str) -> None:
        assert self._limit is not None
        self._addresses[address] = None
        self._addresses.move_to_end(address)
        if len(self._addresses) > self._most_addresses:
            silent, _ = self._addresses.popitem(last=False)
            key = self._limit.key_for(silent)
            with self._storage.locks[key]:  # the storage's own thread may be at it
                self._storage.clear(key)

    def _seconds_until(self, address: str, cost: int) -> int:
        """Whole seconds until so many texts are allowed again: those by which enough of them are a minute old."""
        assert self._limit is not None
        key, window = self._limit.key_for(address), self._limit.get_expiry()
        for seconds in range(1, window):
            _, later = self._storage.get_moving_window(key, self._limit.amount, window - seconds)
            if later + cost <= self._limit.amount:
                return seconds
        return window


class Keys:
    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = [key.encode() for key in keys]

    @property
    def required(self) -> bool:
        return bool(self._keys)

    def holds(self, given: str) -> bool:
        """Whether a key is one of these. Every key is compared, each in constant time: the time taken tells nothing."""
        return sum(hmac.compare_digest(given.encode(errors="surrogatepass"), key) for key in self._keys) > 0


class Guard:
    def __init__(self, app: App, settings: Settings, metrics: Metrics, limiter: RateLimiter) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._limiter = limiter
        self._proxies = TrustedProxies(settings.trusted_proxies)
        self._origins = AllowedOrigins(settings.allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # websockets are not spoken here
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # as monitors ask; the server leaves out the body itself
            scope = {**scope, "method": "GET"}
        began = time.monotonic()
        status = 500
        headers = _headers(scope)
        origin = self._allowed_origin(headers)

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS, *_for_origin(origin)]
            await send(message)

        try:
            scope = self._seen_through_proxies(scope, headers)
            self._check_host(scope["hosts"])
            if scope["method"] == "OPTIONS" and origin is not None and b"access-control-request-method" in headers:
                await _answer_preflight(headers, send_guarded)
            else:
                if scope["method"] not in _SAFE_METHODS or scope["path"].lower().startswith(OPUS_CAT_PATH):
                    self._check_origin(scope, headers, origin)
                    self._limiter.charge(address_of(scope))
                body = await self._read(headers, receive)
                await self._app(scope, _replay(body, receive), send_guarded)
        except RefusedError as refused:
            self._metrics.refused.inc()
            await _refuse(refused, scope["path"], send_guarded)
        except _LeftError:
            self._metrics.left.inc()
            status = 499
        except Exception as error:  # answered already; its message may hold text, so only its place is logged
            last = traceback.extract_tb(error.__traceback__)[-1]
            print(f"dragoman: {type(error).__name__} at {last.filename}:{last.lineno}", file=sys.stderr)
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.count_request(route, status, time.monotonic() - began)

    def _allowed_origin(self, headers: Headers) -> str | None:
        """The origin of the page that asks, if it is one of those that may."""
        given = [value.decode("latin-1") for value in headers.get(b"origin", [])]
        return given[0] if len(given) == 1 and self._origins.allow(given[0]) else None

    def _seen_through_proxies(self, scope: Scope, headers: Headers) -> Scope:
        try:
            return self._proxies.behind(scope, headers)
        except ContradictionError:
            raise RefusedError(
                400,
                "Forwarded and X-Forwarded-For name different clients; let the proxy remove the one it does not set",
            ) from None

    def _check_host(self, hosts: Sequence[str]) -> None:
        """Every name is checked that the request has, those that a proxy reports too: a page can write any header but
        Host."""
        own = [value for value in hosts if self._settings.allows_host(value)]
        if not hosts or len(own) < len(hosts):
            raise RefusedError(
                421, "Host is not one of this service; call it by its own name, or start it with --allowed-host NAME"
            )

    def _check_origin(self, scope: Scope, headers: Headers, allowed: str | None) -> None:
        """Refuses requests from pages of other sites. A browser names the page that a request comes from; other
        programs name none, and are not asked for one."""
        if allowed is not None:
            return
        site = headers.get(b"sec-fetch-site", [b"none"])[-1]
        foreign = site not in (b"same-origin", b"none")
        for origin in headers.get(b"origin", []):
            foreign |= not _is_page_of(origin.decode("latin-1"), scope["hosts"][0])
        if foreign:
            raise RefusedError(403, "Requests from pages of other sites are refused")

    async def _read(self, headers: Headers, receive: Receive) -> bytes:
        limit = self._settings.body_limit
        declared = headers.get(b"content-length", [b""])[0]
        if declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                parts, size, more = [], 0, True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _LeftError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limit:
                        raise _too_large(limit)
                    more = message.get("more_body", False)
                return b"".join(parts)
        except TimeoutError:
            seconds = self._settings.body_seconds
            raise RefusedError(
                408,
                f"The request took longer than {seconds:g} s to arrive; send it faster",
                ((b"connection", b"close"),),
            ) from None


class _LeftError(Exception):
    """The client left before its request was whole."""


def _is_page_of(origin: str, host: str) -> bool:
    """Whether an origin is this host's. One that cannot be read is nobody's."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def address_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _for_origin(origin: str | None) -> list[tuple[bytes, bytes]]:
    """Who may use an answer: our own page alone, or a page of an allowed origin as well."""
    if origin is None:
        return [(_RESOURCE_POLICY, b"same-origin")]
    return [(_RESOURCE_POLICY, b"cross-origin"), *answer_headers(origin)]


async def _answer_preflight(headers: Headers, send: Send) -> None:
    asked = headers.get(b"access-control-request-headers", [None])[0]
    private = b"access-control-request-private-network" in headers
    await send({"type": "http.response.start", "status": 204, "headers": preflight_headers(asked, private)})
    await send({"type": "http.response.body", "body": b""})


def _headers(scope: Scope) -> Headers:
    found: Headers = {}
    for name, value in scope["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found


def _replay(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read, and then what comes later: that the client leaves."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _too_large(limit: int) -> RefusedError:
    return RefusedError(413, f"Invalid request: the body exceeds {limit} bytes", ((b"connection", b"close"),))


def problem(path: str, error: str) -> dict[str, str]:
    """What is answered when something is wrong: one sentence, under the name that the clients of an API know."""
    return {"message" if path.startswith(DEEPL_PATHS) else "error": error}


async def _refuse(refused: RefusedError, path: str, send: Send) -> None:
    body = json.dumps(problem(path, refused.error)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *refused.headers]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
