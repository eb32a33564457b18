"""A real server on a free port of this machine, in a thread, for tests that talk to it as anyone would."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dragoman.serve.app import Server, make_app
from dragoman.serve.pairs import ServedPair
from dragoman.serve.service import Service, translate_batch
from dragoman.serve.settings import Settings
from support.waiting import PATIENCE, until


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    url: str
    service: Service
    server: Server
    thread: threading.Thread

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Raw HTTP: anything but bytes and text goes as JSON."""
        connection = self.connect()
        given = dict(headers or {})
        if body is not None and not isinstance(body, str | bytes):
            body = json.dumps(body)
            given.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, given)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        answer = Answer(response.status, found, response.read())
        connection.close()
        return answer

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.ask("POST", path, body, headers)


@contextmanager
def running(service: Service) -> Iterator[Running]:
    ready = threading.Event()
    where: list[str] = []

    def started(url: str) -> None:
        where.append(url)
        ready.set()

    server = Server(make_app(service), service.settings, started, service.runs.close)
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: ready.is_set() or not thread.is_alive())
    assert ready.is_set()
    try:
        yield Running(where[0], service, server, thread)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
    assert not thread.is_alive()


def service_of(run: Path, *, translate_batch: Any = translate_batch, **settings: Any) -> Service:
    """English to Esperanto, without a limit on the rate: tests ask more than people do. Nor is a test that a busy
    machine holds up in the middle of a request one of the slow clients that the service gives up."""
    patient = {"header_seconds": 3600.0, "body_seconds": 3600.0}
    given = {"port": 0, "rate_limit": 0, "metrics": True, **patient, **settings}
    return Service([ServedPair("en", "eo", run)], Settings(**given), translate_batch=translate_batch)
