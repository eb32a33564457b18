"""The settings of the service: each limit, its default, and the range it may have."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import UsageError
from dragoman.serve.cross_origin import checked_origin
from dragoman.serve.forwarding import network_of

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_HOST = re.compile(r"[^\s/:@?#\\\[\]]+|\[[0-9a-f:.]+\]", re.IGNORECASE)
_ONE_LABEL = re.compile(r"(?!\d+\Z)[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?")  # dragoman, my_service-1
# The least and the most of each: far beyond what makes sense on any machine.
RANGES: dict[str, tuple[float, float]] = {
    "port": (0, 65535),
    "body_limit": (1, 1 << 40),
    "body_seconds": (0.001, 86_400),
    "header_seconds": (0.001, 86_400),
    "character_limit": (1, 10**9),
    "batch_limit": (1, 10**6),
    "sentence_limit": (1, 10**9),
    "alternatives_limit": (0, 256),
    "beam_limit": (1, 256),
    "rate_limit": (0, 10**9),
    "queue_limit": (1, 10**7),
    "explain_limit": (1, 10**5),
    "document_limit": (1, 1024),
    "connection_limit": (1, 10**6),
    "workers": (1, 1024),
    "batch_tokens": (1, 10**7),
    "batch_wait": (0, 60),
    "cache_characters": (0, 10**12),
    "file_bytes": (0, 1 << 40),
    "file_seconds": (0, 10**9),
}


@dataclass(frozen=True)
class Settings:
    host: str = "127.0.0.1"
    port: int = 5000
    allowed_hosts: tuple[str, ...] = ()  # names by which the service may be called, besides those of `host`
    allowed_origins: tuple[str, ...] = ()  # other sites and browser extensions whose pages may use the service
    trusted_proxies: tuple[str, ...] = ()  # networks of proxies, whose word for the client's address is taken
    api_keys: tuple[str, ...] = ()
    without_key: bool = False  # serve a network without a key, on purpose
    # one request
    body_limit: int = 1 << 20  # bytes
    body_seconds: float = 10.0  # a body that takes longer to arrive is refused
    header_seconds: float = 10.0  # likewise headers
    character_limit: int = 5000  # a text
    batch_limit: int = 64  # texts
    sentence_limit: int = 20_000  # sentences of all its texts, or of its document
    alternatives_limit: int = 8
    beam_limit: int = 16
    # all requests
    rate_limit: int = 1200  # texts a minute from one address; 0: any number
    queue_limit: int = 1024  # sentences that wait; more are answered 503
    explain_limit: int = 16  # explanations that wait
    document_limit: int = 4  # documents translated at a time; more wait
    connection_limit: int = 1024
    workers: int = 2
    batch_tokens: int = 2048  # source tokens translated together, padding included
    batch_wait: float = 0.002  # seconds that a sentence waits for others to join its batch
    cache_characters: int = 4_000_000  # kept of sentences and their translations; 0: no cache
    file_bytes: int = 16 << 20  # translated files kept for download
    file_seconds: float = 1200.0
    metrics: bool = False
    pivot: bool = True  # translate through a third language where no run translates directly
    corrections: Path | None = None  # a file to keep people's corrections in; None: none are kept

    def __post_init__(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:  # true of NaN, too
                raise UsageError(f"serve: {name.replace('_', ' ')} {value}; must be {least:,} to {most:,}")
        for host in self.allowed_hosts:
            if not _HOST.fullmatch(host):
                raise UsageError(f"serve: --allowed-host {host!r} is no name of a host; write one as my.example")
        for origin in self.allowed_origins:
            checked_origin(origin)
        for network in self.trusted_proxies:
            network_of(network)
        if not self.host.strip():
            raise UsageError("serve: --host is empty; give an address to listen at, for example 127.0.0.1")
        if not self.is_loopback and not self.api_keys and not self.without_key:
            raise UsageError(
                f"serve: --host {self.host} opens the service to a network; give --api-key-file FILE, "
                f"or --without-key to serve everyone"
            )

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def allows_host(self, header: str) -> bool:
        """Whether a Host header names this service. The page of another site can make its own name resolve to this
        address (DNS rebinding), but the browser then sends that name, which is refused here."""
        name = _without_port(header).lower()
        if name in self.allowed_hosts or name == self.host.lower() or name == f"[{self.host.lower()}]":
            return True
        if self.is_loopback:
            return name in LOOPBACK_NAMES
        # An IP address cannot be made to resolve to another, so on a network every address is as good. Nor can someone
        # from outside have a name without a dot, such as containers call each other by.
        return name in LOOPBACK_NAMES or _is_number(name.strip("[]")) or _ONE_LABEL.fullmatch(name) is not None


def read_keys(path: Path | None) -> tuple[str, ...]:
    """Reads keys, one a line. They come in a file because everyone on a machine can read its command lines."""
    if path is None:
        return ()
    try:
        keys = tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except OSError as error:
        raise UsageError(f"serve: --api-key-file {path} cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"serve: --api-key-file {path} is no text ({error.reason}); give keys, one a line") from None
    short = min(map(len, keys), default=0)
    if short < 16:
        raise UsageError(
            f"serve: --api-key-file {path} holds {f'a key of {short} characters' if keys else 'no key'}; give keys of "
            f"16 or more, one a line, for example from: openssl rand -hex 16"
        )
    return keys


def _without_port(header: str) -> str:
    name, colon, port = header.rpartition(":")
    return name if colon and port.isdecimal() and (":" not in name or name.endswith("]")) else header


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
