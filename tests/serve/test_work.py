"""The text of a request is worked on beside the event loop, and no request may ask for more work than it is allowed."""

import io
import json
import socket
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.data import segmentation
from dragoman.data.language_id import LanguageDetector
from dragoman.data.tokenizer import Tokenizer
from dragoman.serve import documents, service
from dragoman.serve.routes import libretranslate, request_values
from dragoman.translation.translation_memory import TranslationMemory
from support.serving import Answer, Running, running, service_of

QUESTION = {"source": "en", "target": "eo"}
LONGEST_WAIT = 60.0  # seconds, where an answer needs hundredths of one


def upload(content: bytes, name: str = "a.txt", **values: str) -> tuple[bytes, dict[str, str]]:
    fields = {"file": (f'; filename="{name}"', content), **{key: ("", value.encode()) for key, value in values.items()}}
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{key}"{more}\r\n\r\n'.encode() + value + b"\r\n"
        for key, (more, value) in fields.items()
    ]
    return b"".join([*parts, b"--x--\r\n"]), {"Content-Type": "multipart/form-data; boundary=x"}


def post_file(server: Running, content: bytes, name: str = "a.txt", source: str = "en") -> Answer:
    body, headers = upload(content, name, source=source, target="eo")
    return server.ask("POST", "/translate_file", body, headers)


ASKED: dict[str, tuple[Any, str, Callable[[Running], Answer]]] = {
    "segments": (service, "segments", lambda s: s.post("/translate", {**QUESTION, "q": ["the dog", "a cat"]})),
    "segments, streamed": (
        service, "segments", lambda s: s.post("/api/v1/translate/stream", {**QUESTION, "text": "the dog"})
    ),
    "segments, from inside": (service, "segments", lambda s: s.post("/api/v1/inside", {**QUESTION, "text": "the dog"})),
    "tokens": (Tokenizer, "encode_batch", lambda s: s.post("/api/v1/translate", {**QUESTION, "text": "the dog"})),
    "language": (LanguageDetector, "detect", lambda s: s.post("/detect", {"q": "the dog"})),
    "language of a text": (
        LanguageDetector, "detect", lambda s: s.post("/translate", {**QUESTION, "q": "the dog", "source": "auto"})
    ),
    "language of a question": (
        LanguageDetector, "detect", lambda s: s.post("/api/v1/translate", {**QUESTION, "text": "a", "source": "auto"})
    ),
    "corrections": (TranslationMemory, "exact", lambda s: s.post("/translate", {**QUESTION, "q": "the dog"})),
    "suggestions": (
        TranslationMemory, "similar", lambda s: s.post("/api/v1/translate", {**QUESTION, "text": "the dog"})
    ),
    "suggestions, streamed": (
        TranslationMemory, "similar", lambda s: s.post("/api/v1/translate/stream", {**QUESTION, "text": "the dog"})
    ),
    "a correction": (
        TranslationMemory,
        "store",
        lambda s: s.post("/api/v1/corrections", {**QUESTION, "text": "a", "translation": "b"}),
    ),
    "JSON": (json, "loads", lambda s: s.post("/translate", {**QUESTION, "q": "the dog"})),
    "a form": (
        request_values,
        "parse_qsl",
        lambda s: s.ask(
            "POST", "/detect", "q=the+dog", {"Content-Type": "application/x-www-form-urlencoded"}
        ),
    ),
    "an archive's size": (libretranslate, "uncompressed_size", lambda s: post_file(s, b"the dog")),
    "a file's language": (libretranslate, "beginning_of", lambda s: post_file(s, b"the dog", source="auto")),
    "a file": (documents, "translate_bytes", lambda s: post_file(s, b"the dog")),
    "HTML": (documents, "translate_bytes", lambda s: s.post("/translate", {**QUESTION, "q": "a", "format": "html"})),
}  # fmt: skip


@pytest.fixture(scope="module")
def correcting(served_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    kept = tmp_path_factory.mktemp("corrections") / "kept.sqlite"
    with running(service_of(served_run, corrections=kept, cache_characters=0)) as server:
        yield server


@pytest.mark.parametrize("work", ASKED)
def test_text_is_worked_on_beside_the_event_loop(
    work: str, correcting: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, ask = ASKED[work]
    done = getattr(where, name)
    threads: list[threading.Thread] = []

    def watched(*given: Any, **named: Any) -> Any:
        threads.append(threading.current_thread())
        return done(*given, **named)

    monkeypatch.setattr(where, name, watched)
    assert ask(correcting).status == 200
    assert threads
    assert correcting.thread not in threads


def test_a_health_check_is_answered_while_a_text_is_worked_on(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, answered = threading.Event(), threading.Event()
    cut = segmentation.segments

    def long_work(*given: Any) -> Any:
        begun.set()
        answered.wait(LONGEST_WAIT)
        return cut(*given)

    monkeypatch.setattr(service, "segments", long_work)
    with ThreadPoolExecutor(1) as pool:
        hostile = pool.submit(served.post, "/translate", {**QUESTION, "q": "a" + "." * 4990 + "b"})
        assert begun.wait(LONGEST_WAIT)
        try:
            with socket.create_connection(("127.0.0.1", served.port), timeout=LONGEST_WAIT / 2) as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert connection.recv(64).startswith(b"HTTP/1.1 200")
            assert not hostile.done()
        finally:
            answered.set()
        assert hostile.result(LONGEST_WAIT).status == 200


def docx(text: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", text)
    return packed.getvalue()


def test_a_request_has_so_many_sentences_and_no_more(served_run: Path) -> None:
    lines = "a dog\n\n"
    with running(service_of(served_run, sentence_limit=6, batch_limit=3)) as server:
        asks: list[Callable[[int], Answer]] = [
            lambda count: server.post("/translate", {**QUESTION, "q": lines * count}),
            lambda count: server.post("/translate", {**QUESTION, "q": [lines * (count - 1), lines]}),
            lambda count: server.post("/translate", {**QUESTION, "q": "a dog<br>" * count, "format": "html"}),
            lambda count: server.post("/api/v1/translate", {**QUESTION, "text": lines * count}),
            lambda count: server.post("/api/v1/translate/stream", {**QUESTION, "text": lines * count}),
            lambda count: server.post("/api/v1/inside", {**QUESTION, "text": lines * count}),
            lambda count: post_file(server, lines.encode() * count),
            lambda count: post_file(server, docx("<w:p><w:r><w:t>a dog</w:t></w:r></w:p>" * count), "a.docx"),
        ]
        for ask in asks:
            assert ask(6).status == 200
            refused = ask(7)
            assert refused.status == 413
            assert refused.json["error"].startswith("Invalid request: more than 6 sentences")


def test_a_request_that_is_only_to_be_detected_has_limits_too(served_run: Path) -> None:
    with running(service_of(served_run, character_limit=10, batch_limit=2)) as server:
        assert server.post("/detect", {"q": ["a" * 10] * 2}).status == 200
        for q in ("a" * 11, ["a"] * 3):
            refused = server.post("/detect", {"q": q})
            assert refused.status == 400
            assert "exceeds text limit" in refused.json["error"]
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        refused = server.ask("POST", "/detect", "q=a" + "&a=b" * 1000, form)
        assert (refused.status, refused.json) == (400, {"error": "Invalid request: more than 1000 fields"})


@pytest.mark.parametrize("path", ["/translate", "/detect", "/api/v1/translate", "/api/v1/explain", "/api/v1/parse"])
def test_what_is_nested_too_deep_is_refused(path: str, served: Running) -> None:
    refused = served.ask("POST", path, "[" * 100_000, {"Content-Type": "application/json"})
    assert refused.status in (400, 422)
    assert list(refused.json) == ["error"]
