"""A Hugging Face hub on loopback: answers what huggingface_hub asks, from directories. Large files are redirected to
another host, as the real one does."""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from support.commands import Ran
from support.waiting import PATIENCE

LARGE = (".safetensors", ".bin", ".spm", ".model")


@dataclass
class Repository:
    """A model on the hub: its commits, and the names of some of them."""

    commits: dict[str, Path]
    names: dict[str, str]
    gated: bool = False  # its files need a token; that it exists, everybody may know
    private: bool = False


@dataclass
class LoopbackHub:
    """What the hub has, what it was asked, and what is wrong with it."""

    port: int = 0
    repositories: dict[str, Repository] = field(default_factory=dict)
    token: str = ""  # the one that may read what is gated or private
    asked: list[str] = field(default_factory=list)  # GET /path
    short: set[str] = field(default_factory=set)  # files that end too early
    page: tuple[int, str] | None = None  # the status and the text that everything is answered with

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def publish(self, name: str, directory: Path, *names: str, **settings: bool) -> str:
        """Makes a directory the newest commit of a model; returns the hash of the commit."""
        repository = self.repositories.setdefault(name, Repository({}, {}, **settings))
        commit = hashlib.sha1(f"{name} {len(repository.commits)}".encode()).hexdigest()
        repository.commits[commit] = directory
        repository.names.update(dict.fromkeys(["main", *names], commit))
        return commit

    def fetched(self) -> set[str]:
        """The names of the files whose content was sent."""
        paths = [line.removeprefix("GET ") for line in self.asked if line.startswith("GET ")]
        return {path.rpartition("/")[2] for path in paths if "/resolve/" in path or path.startswith("/cdn/")}


@contextmanager
def loopback_hub() -> Iterator[LoopbackHub]:
    """Runs a hub for as long as the block."""
    hub = LoopbackHub()

    class Bound(_Handler):
        pass

    Bound.hub = hub
    with ThreadingHTTPServer(("127.0.0.1", 0), Bound) as server:
        hub.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join(PATIENCE)
            assert not thread.is_alive()


def environment(address: str, home: Path, **more: str) -> dict[str, str]:
    """The environment of a command that asks the hub at this address and has its cache in `home`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HF_") and not name.lower().endswith("_proxy")
    }
    return {**kept, "HF_ENDPOINT": address, "HF_HOME": str(home), **more}


def run_dragoman(
    *arguments: str | Path, env: Mapping[str, str], cwd: Path, program: str = "", seconds: float = 120
) -> Ran:
    """The command line in a process of its own: huggingface_hub looks at its environment when it is imported."""
    start = ["-c", program] if program else ["-m", "dragoman"]
    ran = subprocess.run(
        [sys.executable, *start, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=env,
        cwd=cwd,
        timeout=seconds,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = urlsplit(self.path).path
        self.hub.asked.append(f"{self.command} {path}")
        parts = [unquote(part) for part in path.strip("/").split("/")]  # a revision may hold slashes
        if self.hub.page is not None:
            status, text = self.hub.page
            self._send(status, text.encode(), {"Content-Type": "text/html"})
        elif parts[0] == "cdn":
            self._send_large(*parts[1:])
        elif parts[:2] == ["api", "models"]:
            self._send_about("/".join(parts[2:4]), parts[4:])
        elif parts[2:3] == ["resolve"]:
            self._resolve("/".join(parts[:2]), *parts[3:])
        else:
            self._refuse(404, "")

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, b"", {"X-Error-Code": code, "X-Error-Message": "refused"})

    def _found(self, name: str, revision: str) -> tuple[Repository, str] | None:
        """The model and the commit; None: the request was refused."""
        repository = self.hub.repositories.get(name)
        known = self.headers.get("Authorization") == f"Bearer {self.hub.token}"
        if repository is None or (repository.private and not known):
            self._refuse(401, "RepoNotFound")  # as the real one tells those who are not logged in
            return None
        commit = repository.names.get(revision, revision)
        if commit not in repository.commits:
            self._refuse(404, "RevisionNotFound")
            return None
        return repository, commit

    def _send_about(self, name: str, rest: list[str]) -> None:
        """/api/models/NAME, or that and /revision/REVISION or /tree/REVISION."""
        if not (found := self._found(name, rest[1] if rest else "main")):
            return
        repository, commit = found
        files = [(path.name, path.stat().st_size) for path in sorted(repository.commits[commit].iterdir())]
        about: Any = {"id": name, "sha": commit, "tags": []}
        about["siblings"] = [{"rfilename": file, "size": size} for file, size in files]
        if rest[:1] == ["tree"]:
            about = [{"type": "file", "path": file, "size": size, "oid": "0" * 40} for file, size in files]
        self._send(200, json.dumps(about).encode(), {"Content-Type": "application/json"})

    def _resolve(self, name: str, revision: str, file: str) -> None:
        """/NAME/resolve/REVISION/FILE."""
        if not (found := self._found(name, revision)):
            return
        repository, commit = found
        if repository.gated and self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            self._refuse(401 if "Authorization" not in self.headers else 403, "GatedRepo")
            return
        path = repository.commits[commit] / file
        if not path.is_file():
            self._refuse(404, "EntryNotFound")
            return
        content = path.read_bytes()
        headers = {"X-Repo-Commit": commit}
        if path.suffix in LARGE:
            digest = f'"{hashlib.sha256(content).hexdigest()}"'
            headers |= {"ETag": digest, "X-Linked-Etag": digest, "X-Linked-Size": str(len(content))}
            headers["Location"] = f"http://localhost:{self.hub.port}/cdn/{name}/{commit}/{file}"
            self._send(302, b"", headers)
        else:
            digest = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            self._send(200, content, {**headers, "ETag": f'"{digest}"'})

    def _send_large(self, owner: str, model: str, commit: str, file: str) -> None:
        if "Authorization" in self.headers:  # a token is for the hub alone
            self._refuse(400, "TokenLeaked")
            return
        content = (self.hub.repositories[f"{owner}/{model}"].commits[commit] / file).read_bytes()
        if file in self.hub.short:
            content = content[: len(content) // 2]
        begun = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if begun:
            place = {"Content-Range": f"bytes {begun[1]}-{len(content) - 1}/{len(content)}"}
            self._send(206, content[int(begun[1]) :], place)
        else:
            self._send(200, content, {})
