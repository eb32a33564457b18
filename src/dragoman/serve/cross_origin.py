"""Pages and browser extensions of other origins that may use the service: those that the operator named.

A browser asks first (a preflight), and shows the answer to the page only where the headers here say so (CORS).
"""

import re
from collections.abc import Iterable

from dragoman.errors import UsageError

Header = tuple[bytes, bytes]

ANY = "*"
# https://my.example, http://localhost:8080, moz-extension://* (Firefox gives every installation another name)
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\*|[^\s/*?#@\\]+)")
_WEB = ("http", "https")
_METHODS = b"GET, POST, PUT, PATCH, DELETE"
_ASKED_HEADERS = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+(\s*,\s*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*")


class AllowedOrigins:
    """The origins that may ask from a browser."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(map(checked_origin, origins))

    def allow(self, origin: str) -> bool:
        """Whether pages of this origin may use the service. `null` (a file, a sandbox) is never one of these."""
        origin = origin.lower()
        if _ORIGIN.fullmatch(origin) is None or origin.endswith("*"):
            return False
        scheme = origin.partition("://")[0]
        return ANY in self._origins or origin in self._origins or f"{scheme}://{ANY}" in self._origins


def checked_origin(text: str) -> str:
    """An origin as browsers write it; what cannot be one is a UsageError."""
    origin = text.strip().lower().rstrip("/")
    found = _ORIGIN.fullmatch(origin)
    if origin != ANY and (found is None or (found[1] == ANY and origin.partition("://")[0] in _WEB)):
        raise UsageError(
            f"serve: --allowed-origin {text!r} is no origin; write one as https://my.example, "
            f"moz-extension://* for an extension, or * for every page"
        )
    return origin


def preflight_headers(asked: bytes | None, private_network: bool) -> list[Header]:
    """What a browser is told, beside `answer_headers`, when it asks whether a page may send a request. `asked`: the
    headers that the request would have."""
    headers = [(b"access-control-allow-methods", _METHODS), (b"access-control-max-age", b"600")]
    if asked is not None and _ASKED_HEADERS.fullmatch(asked):
        headers.append((b"access-control-allow-headers", asked))
    if private_network:
        headers.append((b"access-control-allow-private-network", b"true"))
    return headers


def answer_headers(origin: str) -> list[Header]:
    """What makes an answer readable to a page of an allowed origin."""
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"Retry-After, Content-Disposition"),
        (b"vary", b"Origin"),
    ]
