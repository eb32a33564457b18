"""The service as a whole: overload and recovery, clients that leave, stopping, the command, the README's lines."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.serve.model_pool import ModelPool
from dragoman.serve.service import translate_batch
from dragoman.serve.texts import BatchKey
from dragoman.translation.result import Translation
from support.commands import started
from support.serving import Running, running, service_of
from support.waiting import PATIENCE, until

ROOT = Path(__file__).parents[2]
GOOD = {"q": "a dog", "source": "en", "target": "eo"}


class Gate:
    """Holds translations back until it is opened."""

    def __init__(self) -> None:
        self.translated: list[str] = []
        self.open = threading.Event()

    def __call__(self, models: ModelPool, key: BatchKey, texts: Sequence[str]) -> Sequence[Translation]:
        assert self.open.wait(PATIENCE)
        self.translated += texts
        return translate_batch(models, key, texts)


def test_overload_is_told_and_passes(served_run: Path) -> None:
    gate = Gate()
    service = service_of(served_run, translate_batch=gate, queue_limit=4, workers=1, batch_tokens=1)
    with running(service) as server, ThreadPoolExecutor(8) as pool:
        first = pool.submit(server.post, "/translate", {**GOOD, "q": "first"})
        until(lambda: service.batcher.running == 1)
        waiting = [pool.submit(server.post, "/translate", {**GOOD, "q": f"dog {i}"}) for i in range(4)]
        until(lambda: service.batcher.waiting == 4)
        for path, body in (
            ("/translate", {**GOOD, "q": "one more"}),
            ("/api/v1/translate", {"text": "one more", "source": "en", "target": "eo"}),
        ):
            refused = server.post(path, body)
            assert refused.status == 503
            assert 1 <= int(refused.headers["retry-after"]) <= 30
            assert refused.json["error"].startswith("Too busy: 4 sentences wait, at most 4 may")
        assert server.ask("GET", "/health").status == 200
        gate.open.set()
        assert [answer.result(PATIENCE).status for answer in (first, *waiting)] == [200] * 5
        assert server.post("/translate", {**GOOD, "q": "one more"}).status == 200


def test_who_leaves_is_not_translated(served_run: Path) -> None:
    gate = Gate()
    service = service_of(served_run, translate_batch=gate, workers=1, batch_tokens=1)
    with running(service) as server, ThreadPoolExecutor(2) as pool:
        first = pool.submit(server.post, "/translate", {**GOOD, "q": "first"})
        until(lambda: service.batcher.running == 1)
        for path, body in (
            ("/translate", {**GOOD, "q": "left"}),
            ("/api/v1/translate/stream", {"text": "left", "source": "en", "target": "eo"}),
        ):
            connection = server.connect()
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            until(lambda: service.batcher.waiting == 1)
            connection.close()
            until(lambda: service.batcher.waiting == 0)
        gate.open.set()
        assert first.result(PATIENCE).status == 200
        assert server.post("/translate", {**GOOD, "q": "last"}).status == 200
    assert gate.translated == ["first", "last"]


def test_stopping_answers_what_was_accepted(served_run: Path) -> None:
    gate = Gate()
    service = service_of(served_run, translate_batch=gate, workers=1, batch_tokens=8)
    with running(service) as server, ThreadPoolExecutor(12) as pool:
        accepted = [pool.submit(server.post, "/translate", {**GOOD, "q": f"dog {i}"}) for i in range(12)]
        until(lambda: service.batcher.waiting + service.batcher.running > 0)
        until(lambda: service.metrics.value("sentences_total") + service.batcher.waiting >= 12)
        server.server.should_exit = True
        until(lambda: not server.server.servers[0].is_serving())
        with pytest.raises(OSError, match=r"refused|reset"):
            server.post("/translate", GOOD)
        gate.open.set()
        answers = [answer.result(PATIENCE) for answer in accepted]
        server.thread.join(PATIENCE)
    assert [answer.status for answer in answers] == [200] * 12
    assert all(answer.json["translatedText"] for answer in answers)


def test_sentences_are_translated_once_and_together(served_run: Path) -> None:
    service = service_of(served_run)
    with running(service) as server:
        body = {**GOOD, "q": ["a cat", "a dog", "a cat", "a dog. a cat"]}
        first = server.post("/translate", body).json["translatedText"]
        assert service.metrics.value("sentences_total") == 3  # the last is one sentence: no capital follows
        assert server.post("/translate", body).json["translatedText"] == first
        assert service.metrics.value("sentences_total") == 3
        assert service.metrics.value("cache_hits_total") == 3
    assert first[0] == first[2]


def test_the_cache_is_bounded(served_run: Path) -> None:
    service = service_of(served_run, cache_characters=200)
    with running(service) as server:
        for number in range(30):
            server.post("/translate", {**GOOD, "q": f"the dog sees {number} cats"})
            assert service.cache.size <= 200
        assert len(service.cache) > 1


def test_the_command_serves_and_stops(served_run: Path) -> None:
    command = ["-m", "dragoman", "serve", "--pair", f"en-eo={served_run}", "--port", "0"]
    with started(command, 2 * PATIENCE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"at (http://\S+)/$", said.strip())
        assert found is not None, said
        address = found[1]
        for line in readme_curls():
            local = (
                line.replace("http://localhost:5000", address).replace('"fr"', '"eo"').replace("target=fr", "target=eo")
            )
            ran = subprocess.run(shlex.split(local), capture_output=True, text=True, check=True, timeout=PATIENCE)
            assert ran.stdout
            assert '"error"' not in ran.stdout, (line, ran.stdout)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        assert (process.returncode, stdout, stderr) == (0, "", "")


def readme_curls() -> list[str]:
    pages = [ROOT / "README.md", ROOT / "docs" / "tour.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages).replace("\\\n", " ")
    found = [line.strip() for line in text.splitlines() if line.strip().startswith("curl ")]
    assert len(found) >= 5
    return [re.sub(r"\s#.*", "", line) for line in found]


def test_a_taken_port_is_told_in_a_line(served: Running, served_run: Path) -> None:
    command = [sys.executable, "-m", "dragoman", "serve", "--pair", f"en-eo={served_run}", "--port", str(served.port)]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env=dict(os.environ), cwd=ROOT, timeout=PATIENCE
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith(f"dragoman: serve: 127.0.0.1 port {served.port} cannot be used")
    assert ran.stderr.count("\n") == 1


def test_a_network_is_not_served_by_accident(cli: Callable[..., Any], served_run: Path) -> None:
    ran = cli("serve", "--pair", f"en-eo={served_run}", "--host", "0.0.0.0")
    assert (ran.code, ran.stderr.count("\n")) == (2, 1)
    assert "--api-key-file FILE, or --without-key" in ran.stderr
