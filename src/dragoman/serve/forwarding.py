"""Behind a proxy: who really asks, by which name and how, from the headers that a trusted proxy adds.

Any client can write such headers, so they are read only where the connection comes from a network that the operator
named (`--trusted-proxy`), and of the addresses in them the last that is no such proxy is the client's: what stands
before it may be made up.
"""

import ipaddress
import re
from collections.abc import MutableMapping, Sequence
from typing import Any

from dragoman.errors import UsageError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Headers = dict[bytes, list[bytes]]

_FORWARDED_PART = re.compile(r'([A-Za-z]+)=("(?:[^"\\]|\\.)*"|[^\s",;]*)')
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d+)?|([^:]*):\d+")


class ContradictionError(Exception):
    """Two headers name different clients: one of them was not written by the proxy."""


class TrustedProxies:
    """The networks whose forwarding headers are believed."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = [network_of(text) for text in networks]

    def behind(self, scope: MutableMapping[str, Any], headers: Headers) -> MutableMapping[str, Any]:
        """The request as the client sent it to the proxy: its address, its scheme, and the names it called the service
        by, all of them (`hosts`), the first being the one that it knows."""
        peer = _address_in(scope["client"][0]) if scope.get("client") else None
        hosts = [value.decode("latin-1") for value in headers.get(b"host", [])]
        if peer is None or not self._trusts(peer):
            return {**scope, "hosts": hosts}
        chains = [chain for chain in (_forwarded_for(headers), _forwarded(headers, "for")) if chain]
        clients = {self._client(chain, str(peer)) for chain in chains}
        if len(clients) > 1:
            raise ContradictionError
        schemes = _listed(headers, b"x-forwarded-proto") or _forwarded(headers, "proto")
        names = _listed(headers, b"x-forwarded-host") + _forwarded(headers, "host")
        found = {**scope, "client": (clients.pop() if clients else str(peer), 0), "hosts": [*names, *hosts]}
        if schemes and schemes[0].lower() in ("http", "https"):
            found["scheme"] = schemes[0].lower()
        if names:
            others = [(name, value) for name, value in scope["headers"] if name.lower() != b"host"]
            found["headers"] = [*others, (b"host", names[0].encode("latin-1"))]
        return found

    def _client(self, chain: Sequence[str], peer: str) -> str:
        """The last address of the chain that is no proxy of ours. What is no address ends the chain."""
        client = peer
        for text in reversed(chain):
            address = _address_in(text)
            if address is None:
                return client
            client = str(address)
            if not self._trusts(address):
                return client
        return client

    def _trusts(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        return any(address in network for network in self._networks)


def network_of(text: str) -> Network:
    """Reads 10.0.0.0/8, or one address."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise UsageError(
            f"serve: --trusted-proxy {text!r} is no network; write an address, or one as 172.16.0.0/12"
        ) from None


def _address_in(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address, with or without a port."""
    if found := _WITH_PORT.fullmatch(text):
        text = found[1] or found[2] or ""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _forwarded_for(headers: Headers) -> list[str]:
    return _listed(headers, b"x-forwarded-for")


def _listed(headers: Headers, name: bytes) -> list[str]:
    """The values of a header that may be there several times, each of them a list."""
    texts = ",".join(value.decode("latin-1") for value in headers.get(name, []))
    return [part.strip() for part in texts.split(",") if part.strip()]


def _forwarded(headers: Headers, wanted: str) -> list[str]:
    """The values of one parameter of `Forwarded` (RFC 7239), in their order."""
    text = ",".join(value.decode("latin-1") for value in headers.get(b"forwarded", []))
    return [value.strip('"') for name, value in _FORWARDED_PART.findall(text) if name.lower() == wanted and value]
